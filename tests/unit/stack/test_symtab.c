/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/symtab.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include "unit.h"

/* Not exported, so the loader does not know its name. */
static __attribute__((noinline)) int a_function_nobody_exports(int i)
{
	return i * 3 + 1;
}

static int note_base(struct dl_phdr_info *info, size_t size, void *arg)
{
	*(uint64_t *)arg = info->dlpi_addr; /* the first object is the executable */
	return 1;
}

static uint64_t base_of_this(void)
{
	uint64_t base = 0;

	dl_iterate_phdr(note_base, &base);
	return base;
}

static uint64_t address_of_this(void)
{
	return (uint64_t)(uintptr_t)a_function_nobody_exports;
}

TEST(a_static_function_is_found_by_any_address_in_it)
{
	char name[64] = "";

	assert_int_equal(a_function_nobody_exports(1), 4);
	assert_true(gpc_symtab_find(
		"/proc/self/exe", base_of_this(), address_of_this(), name, sizeof name));
	assert_string_equal(name, "a_function_nobody_exports");
	assert_true(gpc_symtab_find(
		"/proc/self/exe", base_of_this(), address_of_this() + 1, name, sizeof name));
	assert_string_equal(name, "a_function_nobody_exports");
}

TEST(a_name_is_cut_to_fit_and_terminated)
{
	char name[11];

	memset(name, 'x', sizeof name);
	assert_true(gpc_symtab_find(
		"/proc/self/exe", base_of_this(), address_of_this(), name, sizeof name));
	assert_int_equal(strlen(name), sizeof name - 1);
	assert_memory_equal(name, "a_function", sizeof name - 1);
}

TEST(an_address_of_no_function_is_not_found)
{
	char name[64] = "as before";

	assert_false(gpc_symtab_find(
		"/proc/self/exe", base_of_this(), base_of_this(), name, sizeof name));
	assert_false(
		gpc_symtab_find("/proc/self/exe", base_of_this(), UINT64_MAX, name, sizeof name));
	assert_string_equal(name, "as before");
}

TEST(what_is_no_file_or_no_object_is_not_found)
{
	char name[64];

	assert_false(gpc_symtab_find("/nowhere/at/all", 0, 1, name, sizeof name));
	assert_false(gpc_symtab_find("/proc/self/cmdline", 0, 1, name, sizeof name));
	assert_false(gpc_symtab_find("/dev/null", 0, 1, name, sizeof name));
	assert_false(gpc_symtab_find("/tmp", 0, 1, name, sizeof name));
}

/* A copy of this executable's first bytes, with a part overwritten. */
static void write_damaged(const char *path, size_t size, size_t at, const void *bytes, size_t n)
{
	static char copy[8 << 20];
	int from = open("/proc/self/exe", O_RDONLY);
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	size_t got = 0;
	ssize_t more;

	assert_true(from >= 0 && to >= 0);
	while (got < sizeof copy && (more = read(from, copy + got, sizeof copy - got)) > 0)
		got += (size_t)more;
	size = size < got ? size : got;
	if (at + n <= size)
		memcpy(copy + at, bytes, n);
	assert_int_equal(write(to, copy, size), (ssize_t)size);
	close(from);
	close(to);
}

TEST(a_damaged_object_is_not_found_and_does_no_harm)
{
	static const Elf64_Half zero = 0;
	static const Elf64_Half many = 60000;
	static const unsigned char class_32 = ELFCLASS32;
	static const Elf64_Off beyond = UINT64_C(1) << 60;
	char path[] = "/tmp/gpucache_symtab_XXXXXX";
	char name[64];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	for (size_t size = 0; size <= sizeof(Elf64_Ehdr); size += 16) {
		write_damaged(path, size, SIZE_MAX / 2, NULL, 0);
		assert_false(gpc_symtab_find(path, 0, 1, name, sizeof name));
	}
	write_damaged(path, SIZE_MAX, offsetof(Elf64_Ehdr, e_shnum), &zero, sizeof zero);
	assert_false(gpc_symtab_find(path, base_of_this(), address_of_this(), name, sizeof name));
	write_damaged(path, SIZE_MAX, offsetof(Elf64_Ehdr, e_shnum), &many, sizeof many);
	assert_false(gpc_symtab_find(path, base_of_this(), address_of_this(), name, sizeof name));
	write_damaged(path, SIZE_MAX, offsetof(Elf64_Ehdr, e_shoff), &beyond, sizeof beyond);
	assert_false(gpc_symtab_find(path, base_of_this(), address_of_this(), name, sizeof name));
	write_damaged(path, SIZE_MAX, EI_CLASS, &class_32, sizeof class_32);
	assert_false(gpc_symtab_find(path, base_of_this(), address_of_this(), name, sizeof name));
	unlink(path);
}
