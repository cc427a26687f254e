/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/linetab.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include "base/metamem.h"
#include "lines.h"
#include "stack/elf_file.h"
#include "unit.h"

static struct gpc_linetab *table;
static uint64_t base;
static uint32_t line;
static char file[256];

static int note_base(struct dl_phdr_info *info, size_t size, void *arg)
{
	*(uint64_t *)arg = info->dlpi_addr; /* the first object is the executable */
	return 1;
}

static int open_this(void **state)
{
	dl_iterate_phdr(note_base, &base);
	table = gpc_linetab_open("/proc/self/exe");
	return 0;
}

static int close_this(void **state)
{
	gpc_linetab_close(table);
	table = NULL;
	return 0;
}

FIXTURE(open_this, close_this);

static bool find(uint64_t address)
{
	line = 0;
	return table && gpc_linetab_find(table, base, address, &line, file, sizeof file);
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text);

	return len >= strlen(end) && strcmp(text + len - strlen(end), end) == 0;
}

TEST(a_call_is_found_by_its_file_and_line)
{
	uint64_t first;
	uint64_t second;
	uint32_t at;

	first = lines_here();
	at = __LINE__ - 1;
	second = lines_here();
	assert_true(find(first));
	assert_int_equal(line, at);
	assert_true(ends_with(file, "tests/unit/stack/test_linetab.c"));
	assert_true(find(second));
	assert_int_equal(line, at + 2);
}

TEST(tables_of_dwarf_4_are_read_too)
{
	uint32_t at;
	uint64_t address = lines_of_old_table(&at);

	assert_true(find(address));
	assert_int_equal(line, at);
	assert_true(ends_with(file, "tests/unit/stack/lines.c"));
}

TEST(an_address_of_no_code_has_no_line)
{
	assert_false(find(base));
	assert_false(find(base - 1));
	assert_false(find(UINT64_MAX));
}

TEST(what_is_no_object_has_no_lines)
{
	assert_null(gpc_linetab_open("/nowhere/at/all"));
	assert_null(gpc_linetab_open("/proc/self/cmdline"));
	assert_null(gpc_linetab_open("/tmp"));
	gpc_metamem_fail_at(1);
	assert_null(gpc_linetab_open("/proc/self/exe"));
	gpc_metamem_fail_at(0);
}

static void copy_this(int to)
{
	static char copy[1 << 20];
	int from = open("/proc/self/exe", O_RDONLY);
	ssize_t n;

	assert_true(from >= 0);
	while ((n = read(from, copy, sizeof copy)) > 0)
		assert_int_equal(write(to, copy, (size_t)n), n);
	close(from);
}

/* The section of the line tables. */
static Elf64_Shdr find_section(int fd)
{
	Elf64_Ehdr header;
	Elf64_Shdr names;
	Elf64_Shdr section;
	char name[12];

	assert_true(gpc_elf_read_header(fd, &header));
	assert_true(gpc_elf_read_section(fd, &header, header.e_shstrndx, &names));
	for (uint32_t i = 0; gpc_elf_read_section(fd, &header, i, &section); i++)
		if (gpc_elf_read(fd, name, sizeof name, names.sh_offset + section.sh_name) &&
			memcmp(name, ".debug_line", sizeof name) == 0)
			return section;
	fail();
	return section;
}

/* Whatever a byte of the first units says, all reads end within the tables. */
TEST(damaged_tables_do_no_harm)
{
	char path[] = "/tmp/gpucache_linetab_XXXXXX";
	uint64_t address = lines_here();
	int fd = mkstemp(path);
	Elf64_Shdr section;
	unsigned seed = 1;

	assert_true(fd >= 0);
	copy_this(fd);
	section = find_section(fd);
	for (int round = 0; round < 400; round++) {
		uint8_t byte;
		off_t at;

		seed = seed * 1103515245u + 12345u;
		at = (off_t)(section.sh_offset +
			     (seed >> 8) % (section.sh_size < 4096 ? section.sh_size : 4096));
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= (uint8_t)(1u << (seed >> 4 & 7));
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		gpc_linetab_close(table);
		table = gpc_linetab_open(path);
		(void)find(address);
	}
	for (off_t size = (off_t)(section.sh_offset + section.sh_size); size > 0; size /= 2) {
		assert_int_equal(ftruncate(fd, size), 0);
		assert_null(gpc_linetab_open(path));
	}
	close(fd);
	unlink(path);
}
