/* SPDX-License-Identifier: Apache-2.0 */
/* The header is checked once; a section is read by its number, which may be none of the file. */
#include "stack/elf_file.h"

#include <string.h>

#include "base/io.h"

bool gpc_elf_read(int fd, void *buf, size_t size, uint64_t offset)
{
	return gpc_io_read_at(fd, buf, size, offset) == (ssize_t)size;
}

bool gpc_elf_read_header(int fd, Elf64_Ehdr *header)
{
	return gpc_elf_read(fd, header, sizeof *header, 0) &&
	       memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       header->e_shentsize == sizeof(Elf64_Shdr) && header->e_shnum > 0 &&
	       header->e_shnum <= GPC_ELF_MAX_SECTIONS;
}

bool gpc_elf_read_section(int fd, const Elf64_Ehdr *header, uint32_t i, Elf64_Shdr *ret_section)
{
	return i < header->e_shnum && gpc_elf_read(fd, ret_section, sizeof *ret_section,
					      header->e_shoff + (uint64_t)i * sizeof *ret_section);
}
