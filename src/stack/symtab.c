/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the section headers, then the whole symbol table into mapped memory, and searches it from the start. */
#include "stack/symtab.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "base/metamem.h"
#include "base/text.h"
#include "stack/elf_file.h"

/* Finds SHT_SYMTAB and the section of its names.  The dynamic symbols are searched before (exported.h). */
static bool find_sections(int fd, const Elf64_Ehdr *header, Elf64_Shdr *symbols, Elf64_Shdr *names)
{
	for (uint32_t i = 0; gpc_elf_read_section(fd, header, i, symbols); i++)
		if (symbols->sh_type == SHT_SYMTAB)
			return symbols->sh_size <= GPC_SYMTAB_MAX_BYTES &&
			       gpc_elf_read_section(fd, header, symbols->sh_link, names);
	return false;
}

static const Elf64_Sym *search(const Elf64_Sym *symbols, uint64_t n, uint64_t address)
{
	for (uint64_t i = 0; i < n; i++) {
		if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC &&
			address >= symbols[i].st_value &&
			address - symbols[i].st_value < symbols[i].st_size)
			return &symbols[i];
	}
	return NULL;
}

static bool find_in(int fd, uint64_t base, uint64_t address, char *buf, size_t size)
{
	Elf64_Ehdr header;
	Elf64_Shdr symbols;
	Elf64_Shdr names;
	const Elf64_Sym *symbol = NULL;
	Elf64_Sym *table;
	char name[128] = "";

	if (!gpc_elf_read_header(fd, &header) || !find_sections(fd, &header, &symbols, &names))
		return false;
	table = gpc_metamem_map(symbols.sh_size + 1);
	if (!table)
		return false;
	if (gpc_elf_read(fd, table, symbols.sh_size, symbols.sh_offset))
		symbol = search(table, symbols.sh_size / sizeof *table,
			header.e_type == ET_EXEC ? address : address - base);
	/* The name ends at the first NUL; one that is longer than the buffer is truncated. */
	if (symbol && symbol->st_name < names.sh_size) {
		uint64_t left = names.sh_size - symbol->st_name;
		size_t n = left < sizeof name - 1 ? (size_t)left : sizeof name - 1;

		if (!gpc_elf_read(fd, name, n, names.sh_offset + symbol->st_name))
			name[0] = '\0';
	}
	gpc_metamem_unmap(table, symbols.sh_size + 1);
	return name[0] != '\0' && gpc_format(buf, size, "%s", name) > 0;
}

bool gpc_symtab_find(const char *path, uint64_t base, uint64_t address, char *buf, size_t size)
{
	int fd = gpc_io_open(path, O_RDONLY);
	bool is_found;

	if (fd < 0)
		return false;
	is_found = find_in(fd, base, address, buf, size);
	gpc_io_drop(fd);
	return is_found;
}
