/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/metamem.h"
#include "stack/modules.h"
#include "stack/sink_box.h"

static struct sink_box box;

static int setup(void **state)
{
	sink_box_clear(&box);
	gpc_metamem_fail_at(0);
	return 0;
}

FIXTURE(setup, NULL);

static void open_modules(struct gpc_modules *modules)
{
	struct gpc_stack_sink sink = sink_box_sink(&box);

	assert_int_equal(gpc_modules_init(modules, &sink, NULL), GPC_OK);
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

TEST(this_program_and_libc_are_found_with_their_build_ids)
{
	struct gpc_modules modules;
	Dl_info libc;

	open_modules(&modules);
	check_module((const void *)(uintptr_t)&setup, "test_modules");
	assert_true(dladdr(dlsym(RTLD_DEFAULT, "getpid"), &libc));
	check_module(dlsym(RTLD_DEFAULT, "getppid"), strrchr(libc.dli_fname, '/'));
	gpc_modules_fini(&modules);
}

TEST(a_second_look_records_only_what_was_opened_since)
{
	struct gpc_modules modules;
	uint32_t before, after;
	void *library;

	open_modules(&modules);
	before = box.n[GPUCACHE_REGION_MODULES];
	gpc_modules_look(&modules);
	assert_int_equal(box.n[GPUCACHE_REGION_MODULES], before);
	library = dlopen("libutil.so.1", RTLD_NOW);
	if (!library)
		skip();
	gpc_modules_look(&modules);
	after = box.n[GPUCACHE_REGION_MODULES];
	assert_true(after > before);
	gpc_modules_look(&modules);
	assert_int_equal(box.n[GPUCACHE_REGION_MODULES], after);
	/* Opened again at the same or another place: recorded again only if it is another mapping. */
	dlclose(library);
	library = dlopen("libutil.so.1", RTLD_NOW);
	gpc_modules_look(&modules);
	assert_in_range(box.n[GPUCACHE_REGION_MODULES], after, after + 1);
	dlclose(library);
	gpc_modules_fini(&modules);
}

TEST(modules_that_the_sink_refuses_are_known_but_not_recorded)
{
	struct gpc_modules modules;

	box.refuses = true;
	open_modules(&modules);
	assert_true(modules.n_known >= 2);
	assert_int_equal(box.n[GPUCACHE_REGION_MODULES], 0);
	gpc_modules_fini(&modules);
}

TEST(without_memory_there_are_no_modules_and_nothing_leaks)
{
	struct gpc_stack_sink sink = sink_box_sink(&box);
	size_t before = gpc_metamem_total();
	struct gpc_modules modules;

	for (unsigned n = 1; n <= 2; n++) {
		gpc_metamem_fail_at(n);
		assert_int_equal(gpc_modules_init(&modules, &sink, NULL), GPC_NO_METADATA);
		gpc_metamem_fail_at(0);
		assert_int_equal(gpc_metamem_total(), before);
	}
	open_modules(&modules);
	gpc_modules_fini(&modules);
	assert_int_equal(gpc_metamem_total(), before);
}

TEST(a_look_that_finds_no_memory_is_made_up_for_later)
{
	struct gpc_modules modules;
	uint32_t before;
	void *library;

	open_modules(&modules);
	before = box.n[GPUCACHE_REGION_MODULES];
	library = dlopen("libanl.so.1", RTLD_NOW);
	if (!library)
		skip();
	gpc_metamem_fail_at(1);
	gpc_modules_look(&modules);
	gpc_metamem_fail_at(0);
	assert_int_equal(box.n[GPUCACHE_REGION_MODULES], before);
	gpc_modules_look(&modules);
	assert_true(box.n[GPUCACHE_REGION_MODULES] > before);
	dlclose(library);
	gpc_modules_fini(&modules);
}

/* --- Objects that come and go ----------------------------------------------------------------- */

#define N_PLUGINS 3

static char folder[] = "/tmp/gpc-modules-XXXXXX";

/* Objects of one size, which the loader maps at one place, and one that is larger. */
static int make_plugins(void **state)
{
	char command[512];
	int failed = !mkdtemp(folder);

	for (int i = 0; i < N_PLUGINS && !failed; i++) {
		snprintf(command, sizeof command,
			"echo 'int value(void){return %d;} char room[%d];' | cc -shared -fPIC -x c "
			"-o %s/%d.so -",
			i, i == 2 ? 1 << 20 : 1, folder, i);
		failed = system(command);
	}
	return failed;
}

static int remove_plugins(void **state)
{
	char path[64];

	for (int i = 0; i < N_PLUGINS; i++) {
		snprintf(path, sizeof path, "%s/%d.so", folder, i);
		unlink(path);
	}
	return rmdir(folder);
}

GROUP(make_plugins, remove_plugins);

/* Returns the handle; *ret_frame is an address in the object, as of a call. */
static void *open_plugin(int i, uint64_t *ret_frame)
{
	char path[64];
	void *plugin;

	snprintf(path, sizeof path, "%s/%d.so", folder, i);
	plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(plugin);
	*ret_frame = (uintptr_t)dlsym(plugin, "value") + 1;
	return plugin;
}

/* The frame as it is recorded, of the plug-in i while it is loaded. */
static uint64_t frame_of(struct gpc_modules *modules, int i, bool is_seen)
{
	uint64_t frame;
	void *plugin = open_plugin(i, &frame);

	gpc_modules_watch(modules);
	gpc_modules_mark(modules, &frame, 1);
	/* As a new stack does. */
	gpc_modules_look(modules);
	if (is_seen)
		gpc_modules_unload(dlclose, plugin);
	else
		dlclose(plugin);
	return frame;
}

static void expect_module(uint64_t frame, int i)
{
	const struct gpucache_module *module = module_of((const void *)(uintptr_t)frame);
	char name[16];

	snprintf(name, sizeof name, "/%d.so", i);
	assert_non_null(module);
	assert_non_null(strstr(path_of(module), name));
	assert_int_equal(module->bias >> 48, frame >> 48);
}

TEST(each_of_those_at_one_place_has_its_own_addresses)
{
	struct gpc_modules modules;
	uint64_t frames[2];
	uint32_t n;

	open_modules(&modules);
	for (int i = 0; i < 2; i++)
		frames[i] = frame_of(&modules, i, true);
	if (GPUCACHE_FRAME_ADDRESS(frames[0]) != GPUCACHE_FRAME_ADDRESS(frames[1]))
		skip();
	assert_int_equal(frames[0] >> 48, 0);
	assert_int_not_equal(frames[1] >> 48, 0);
	n = box.n[GPUCACHE_REGION_MODULES];
	for (int turn = 0; turn < 10; turn++)
		for (int i = 0; i < 2; i++) {
			assert_int_equal(frame_of(&modules, i, true), frames[i]);
			expect_module(frames[i], i);
		}
	assert_int_equal(box.n[GPUCACHE_REGION_MODULES], n);
	gpc_modules_fini(&modules);
}

TEST(one_that_reaches_beyond_the_place_has_one_generation_all_over)
{
	struct gpc_modules modules;
	uint64_t frame;

	open_modules(&modules);
	for (int turn = 0; turn < 2; turn++)
		for (int i = 0; i < N_PLUGINS; i++) {
			frame = frame_of(&modules, i, true);
			expect_module(frame, i);
		}
	gpc_modules_fini(&modules);
}

TEST(what_nobody_knows_in_the_place_of_one_that_is_gone_is_not_taken_for_it)
{
	struct gpc_modules modules;
	struct gpc_module_place place;
	uint64_t frame;

	open_modules(&modules);
	frame = frame_of(&modules, 0, true);
	gpc_modules_find(&modules, frame, &place);
	assert_true(place.is_loaded);
	gpc_modules_watch(&modules);
	gpc_modules_find(&modules, frame, &place);
	assert_false(place.is_loaded);
	assert_string_equal(place.name, "0.so");
	assert_true(place.offset > 0 && place.offset < 1 << 16);
	gpc_modules_mark(&modules, &frame, 1);
	assert_int_equal(frame >> 48, GPC_NO_GENERATION);
	assert_null(module_of((const void *)(uintptr_t)frame));
	gpc_modules_find(&modules, frame, &place);
	assert_true(place.is_loaded);
	gpc_modules_fini(&modules);
}

TEST(code_of_no_module_elsewhere_has_no_generation)
{
	struct gpc_modules modules;
	uint64_t frame = 12345;
	struct gpc_module_place place;

	open_modules(&modules);
	(void)frame_of(&modules, 0, true);
	gpc_modules_watch(&modules);
	gpc_modules_mark(&modules, &frame, 1);
	assert_int_equal(frame, 12345);
	gpc_modules_find(&modules, frame, &place);
	assert_true(place.is_loaded);
	assert_int_equal(place.address, 12345);
	gpc_modules_fini(&modules);
}

TEST(what_is_unloaded_unseen_is_found_by_the_next_look)
{
	struct gpc_modules modules;
	uint32_t n_turns;

	open_modules(&modules);
	(void)frame_of(&modules, 0, false);
	n_turns = gpc_modules_n_turns(&modules);
	gpc_modules_watch(&modules);
	assert_int_equal(gpc_modules_n_turns(&modules), n_turns);
	gpc_modules_look(&modules);
	assert_int_equal(gpc_modules_n_turns(&modules), n_turns + 1);
	gpc_modules_fini(&modules);
}

static struct gpc_modules *inside;

static int close_and_watch(void *plugin)
{
	uint32_t n_turns = gpc_modules_n_turns(inside);

	gpc_modules_watch(inside);
	assert_int_equal(gpc_modules_n_turns(inside), n_turns);
	dlclose(plugin);
	/* Another thread may be here before our dlclose has ended. */
	gpc_modules_watch(inside);
	assert_int_equal(gpc_modules_n_turns(inside), n_turns + 1);
	return 0;
}

TEST(what_is_unloaded_is_seen_before_the_call_has_ended)
{
	struct gpc_modules modules;
	uint64_t frame;
	void *plugin;

	open_modules(&modules);
	plugin = open_plugin(0, &frame);
	gpc_modules_look(&modules);
	inside = &modules;
	gpc_modules_unload(close_and_watch, plugin);
	gpc_modules_fini(&modules);
}

/* Each thread opens and closes a plug-in of its own, and what is recorded of its frames must be of that plug-in. */
#define N_TURNS 200

struct owner {
	struct gpc_modules *modules;
	int number;
	uint64_t frames[N_TURNS];
};

static void *open_and_close(void *arg)
{
	struct owner *owner = arg;

	for (int i = 0; i < N_TURNS; i++)
		owner->frames[i] = frame_of(owner->modules, owner->number, true);
	return NULL;
}

TEST(threads_that_open_and_close_are_told_apart)
{
	static struct owner owners[N_PLUGINS];
	struct gpc_modules modules;
	pthread_t threads[N_PLUGINS];

	open_modules(&modules);
	for (int i = 0; i < N_PLUGINS; i++) {
		owners[i] = (struct owner){ .modules = &modules, .number = i };
		assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &owners[i]), 0);
	}
	for (int i = 0; i < N_PLUGINS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < N_PLUGINS; i++)
		for (int turn = 0; turn < N_TURNS; turn++)
			expect_module(owners[i].frames[turn], i);
	gpc_modules_fini(&modules);
}

/* --- A loader that we make up ----------------------------------------------------------------- */

#define PLACE     UINT64_C(0x100000000000)
#define STEP      UINT64_C(0x10000)
#define N_OBJECTS (GPUCACHE_MAX_MODULES + 8)

/* If set, the loader's list is: object i of n_made_up, at place i, of the given length; of the last only. */
static struct {
	bool is_on;
	bool is_last_only;
	uint32_t n;
	uint64_t place; /* of the last, if only it is there */
	unsigned long long n_closed;
} made_up;

static int report(uint32_t i, uint64_t address,
	int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg)
{
	ElfW(Phdr)
		segment = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = 0x1000 + 8 * i };
	char name[32];
	struct dl_phdr_info info = { .dlpi_addr = address,
		.dlpi_name = name,
		.dlpi_phdr = &segment,
		.dlpi_phnum = 1,
		.dlpi_adds = made_up.n + made_up.n_closed,
		.dlpi_subs = made_up.n_closed };

	snprintf(name, sizeof name, "/lib/%u.so", i);
	return callback(&info, sizeof info, arg);
}

int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *arg)
{
	int (*next)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
	int result = 0;

	if (!made_up.is_on) {
		*(void **)&next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
		return next(callback, arg);
	}
	for (uint32_t i = made_up.is_last_only ? made_up.n - 1 : 0; i < made_up.n && !result; i++)
		result = report(
			i, made_up.is_last_only ? made_up.place : PLACE + i * STEP, callback, arg);
	return result;
}

static void make_up(uint32_t n, bool is_last_only, uint64_t place)
{
	made_up.is_on = true;
	made_up.is_last_only = is_last_only;
	made_up.n = n;
	made_up.place = place;
	made_up.n_closed += is_last_only;
}

TEST(what_finds_no_room_in_the_table_is_recorded_as_nothing)
{
	struct gpc_modules modules;
	uint64_t frame = PLACE + 1;

	make_up(GPUCACHE_MAX_MODULES, false, 0);
	open_modules(&modules);
	assert_int_equal(box.n[GPUCACHE_REGION_MODULES], GPUCACHE_MAX_MODULES);
	/* In a place of its own: nothing is known of it.  In that of another: nor is it taken for that one. */
	make_up(GPUCACHE_MAX_MODULES + 1, true, PLACE + STEP * N_OBJECTS);
	gpc_modules_look(&modules);
	frame = made_up.place + 1;
	gpc_modules_mark(&modules, &frame, 1);
	assert_int_equal(frame, made_up.place + 1);
	make_up(GPUCACHE_MAX_MODULES + 1, true, PLACE);
	gpc_modules_look(&modules);
	frame = PLACE + 1;
	assert_false(gpc_modules_mark(&modules, &frame, 1));
	assert_int_equal(frame >> 48, GPC_NO_GENERATION);
	assert_int_equal(box.n[GPUCACHE_REGION_MODULES], GPUCACHE_MAX_MODULES);
	/* What has its record comes back to it. */
	make_up(1, false, 0);
	gpc_modules_look(&modules);
	frame = PLACE + 1;
	assert_true(gpc_modules_mark(&modules, &frame, 1));
	assert_int_equal(frame, PLACE + 1);
	made_up.is_on = false;
	gpc_modules_fini(&modules);
}

TEST(each_of_many_at_one_place_is_told_from_all_others)
{
	static uint64_t frames[1000];
	struct gpc_modules modules;

	make_up(1, false, 0);
	open_modules(&modules);
	for (uint32_t turn = 0; turn < 2; turn++)
		for (uint32_t i = 0; i < N_OF(frames); i++) {
			/* Around PLACE, so that they overlap in all ways. */
			uint64_t place = PLACE + i * 7919 % 4096 / 16 * 16;
			uint64_t frame = place + 8;

			make_up(i + 2, true, place);
			gpc_modules_look(&modules);
			gpc_modules_mark(&modules, &frame, 1);
			if (turn)
				assert_int_equal(frame, frames[i]);
			frames[i] = frame;
		}
	for (uint32_t i = 0; i < N_OF(frames); i++) {
		char path[32];

		snprintf(path, sizeof path, "/lib/%u.so", i + 1);
		assert_string_equal(path_of(module_of((void *)(uintptr_t)frames[i])), path);
	}
	made_up.is_on = false;
	gpc_modules_fini(&modules);
}
