/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/metamem.h"
#include "stack/modules.h"
#include "stack/sink_box.h"

static struct sink_box box;

static int setup(void **state)
{
	(void)state;
	sink_box_clear(&box);
	gpc_metamem_fail_at(0);
	return 0;
}

static void open_modules(struct gpc_modules *modules)
{
	struct gpc_stack_sink sink = sink_box_sink(&box);

	assert_int_equal(gpc_modules_init(modules, &sink), GPC_OK);
}

/* The last record whose range holds `address`, or NULL. */
static const struct gpucache_module *module_of(const void *address)
{
	const struct gpucache_module *found = NULL;
	const struct gpucache_module *module = NULL;

	while ((module = sink_box_next(&box, GPUCACHE_REGION_MODULES, module)))
		if ((uintptr_t)address >= module->start && (uintptr_t)address < module->end)
			found = module;
	return found;
}

static const char *path_of(const struct gpucache_module *module)
{
	return (const char *)(module + 1);
}

/* The build id as the file says it, by section headers: another way than the one under test. */
static size_t build_id_of_file(const char *path, uint8_t *ret_id)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	const char *file;
	const ElfW(Ehdr) * head;
	size_t found = 0;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(file != MAP_FAILED);
	head = (const void *)file;
	for (unsigned i = 0; i < head->e_shnum; i++) {
		const ElfW(Shdr) *section =
			(const void *)(file + head->e_shoff + i * head->e_shentsize);
		const ElfW(Nhdr) *note = (const void *)(file + section->sh_offset);

		if (section->sh_type == SHT_NOTE && note->n_type == NT_GNU_BUILD_ID &&
			note->n_namesz == 4) {
			memcpy(ret_id, (const char *)(note + 1) + 4, note->n_descsz);
			found = note->n_descsz;
		}
	}
	munmap((void *)(uintptr_t)file, (size_t)st.st_size);
	close(fd);
	return found;
}

static void check_module(const void *address, const char *name_part)
{
	const struct gpucache_module *module = module_of(address);
	uint8_t id[64];
	size_t id_size;

	assert_non_null(module);
	assert_non_null(strstr(path_of(module), name_part));
	assert_int_equal(path_of(module)[0], '/');
	id_size = build_id_of_file(path_of(module), id);
	assert_int_equal(module->build_id_size, id_size);
	assert_memory_equal(module->build_id, id, id_size);
	assert_true(module->bias <= module->start);
	assert_true(module->time_ns > 0);
	assert_int_equal(module->size % 8, 0);
}

static void this_program_and_libc_are_found_with_their_build_ids(void **state)
{
	struct gpc_modules modules;
	Dl_info libc;

	(void)state;
	open_modules(&modules);
	check_module((const void *)(uintptr_t)&setup, "test_modules");
	assert_true(dladdr(dlsym(RTLD_DEFAULT, "getpid"), &libc));
	check_module(dlsym(RTLD_DEFAULT, "getppid"), strrchr(libc.dli_fname, '/'));
	gpc_modules_fini(&modules);
}

static void a_second_look_records_only_what_was_opened_since(void **state)
{
	struct gpc_modules modules;
	uint32_t before, after;
	void *library;

	(void)state;
	open_modules(&modules);
	before = box.n[GPUCACHE_REGION_MODULES];
	gpc_modules_refresh(&modules);
	assert_int_equal(box.n[GPUCACHE_REGION_MODULES], before);
	library = dlopen("libutil.so.1", RTLD_NOW);
	if (!library)
		skip();
	gpc_modules_refresh(&modules);
	after = box.n[GPUCACHE_REGION_MODULES];
	assert_true(after > before);
	gpc_modules_refresh(&modules);
	assert_int_equal(box.n[GPUCACHE_REGION_MODULES], after);
	/* Opened again at the same or another place: recorded again only if it is another mapping. */
	dlclose(library);
	library = dlopen("libutil.so.1", RTLD_NOW);
	gpc_modules_refresh(&modules);
	assert_in_range(box.n[GPUCACHE_REGION_MODULES], after, after + 1);
	dlclose(library);
	gpc_modules_fini(&modules);
}

static void modules_that_the_sink_refuses_are_known_but_not_recorded(void **state)
{
	struct gpc_modules modules;

	(void)state;
	box.refuses = true;
	open_modules(&modules);
	assert_true(modules.n_known >= 2);
	assert_int_equal(box.n[GPUCACHE_REGION_MODULES], 0);
	gpc_modules_fini(&modules);
}

static void without_memory_there_are_no_modules_and_nothing_leaks(void **state)
{
	struct gpc_stack_sink sink = sink_box_sink(&box);
	size_t before = gpc_metamem_total();
	struct gpc_modules modules;

	(void)state;
	for (unsigned n = 1; n <= 2; n++) {
		gpc_metamem_fail_at(n);
		assert_int_equal(gpc_modules_init(&modules, &sink), GPC_NO_METADATA);
		gpc_metamem_fail_at(0);
		assert_int_equal(gpc_metamem_total(), before);
	}
	open_modules(&modules);
	gpc_modules_fini(&modules);
	assert_int_equal(gpc_metamem_total(), before);
}

static void a_look_that_finds_no_memory_is_made_up_for_later(void **state)
{
	struct gpc_modules modules;
	uint32_t before;
	void *library;

	(void)state;
	open_modules(&modules);
	before = box.n[GPUCACHE_REGION_MODULES];
	library = dlopen("libanl.so.1", RTLD_NOW);
	if (!library)
		skip();
	gpc_metamem_fail_at(1);
	gpc_modules_refresh(&modules);
	gpc_metamem_fail_at(0);
	assert_int_equal(box.n[GPUCACHE_REGION_MODULES], before);
	gpc_modules_refresh(&modules);
	assert_true(box.n[GPUCACHE_REGION_MODULES] > before);
	dlclose(library);
	gpc_modules_fini(&modules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(this_program_and_libc_are_found_with_their_build_ids, setup),
		cmocka_unit_test_setup(a_second_look_records_only_what_was_opened_since, setup),
		cmocka_unit_test_setup(
			modules_that_the_sink_refuses_are_known_but_not_recorded, setup),
		cmocka_unit_test_setup(
			without_memory_there_are_no_modules_and_nothing_leaks, setup),
		cmocka_unit_test_setup(a_look_that_finds_no_memory_is_made_up_for_later, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
