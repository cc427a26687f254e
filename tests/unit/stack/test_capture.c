/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/metamem.h"
#include "stack/named.h"
#include "stack/sink_box.h"

static struct sink_box box;
static struct gpc_stacks stacks;
static _Thread_local uint32_t last_id;

static struct gpc_stacks_params make_params(void)
{
	return (struct gpc_stacks_params){
		.sink = sink_box_sink(&box),
		.lookup_in = dlsym,
		.max_stacks = 100,
		.with_python = true,
	};
}

static int setup(void **state)
{
	struct gpc_stacks_params params;

	sink_box_clear(&box);
	gpc_metamem_fail_at(0);
	params = make_params();
	return gpc_stacks_init(&stacks, &params) == GPC_OK ? 0 : -1;
}

static int teardown(void **state)
{
	gpc_stacks_fini(&stacks);
	return 0;
}

FIXTURE(setup, teardown);

static __attribute__((noinline)) uint32_t grow(void)
{
	last_id = gpc_stack_capture(&stacks, 0);
	return last_id;
}

static __attribute__((noinline)) void grow_skipping_one(void)
{
	last_id = gpc_stack_capture(&stacks, 1);
}

static __attribute__((noinline)) uint32_t descend(int n)
{
	uint32_t id = n ? descend(n - 1) : grow();

	__asm__ volatile("" ::: "memory");
	return id;
}

TEST(one_place_has_one_id_and_another_place_another)
{
	uint32_t ids[3], other;

	/* One call site: not unrolled. */
#pragma GCC unroll 1
	for (size_t i = 0; i < N_OF(ids); i++)
		ids[i] = grow();
	other = grow();
	assert_int_equal(ids[0], 1);
	assert_int_equal(ids[1], 1);
	assert_int_equal(ids[2], 1);
	assert_int_equal(other, 2);
	assert_int_equal(box.n[GPUCACHE_REGION_STACKS], 2);
	assert_true(box.n[GPUCACHE_REGION_MODULES] >= 2);
}

TEST(the_first_frame_is_the_caller_of_capture)
{
	struct gpc_raw_stack stack;

	grow();
	assert_true(gpc_depot_find(&stacks.depot, last_id, &stack));
	assert_true(stack.n_native >= 3);
	assert_int_equal(stack.n_python, 0);
	assert_int_equal(stack.flags, 0);
	assert_in_range(stack.frames[0], (uintptr_t)grow, (uintptr_t)grow + 200);
	grow_skipping_one();
	assert_true(gpc_depot_find(&stacks.depot, last_id, &stack));
	assert_in_range(stack.frames[0], (uintptr_t)the_first_frame_is_the_caller_of_capture,
		(uintptr_t)the_first_frame_is_the_caller_of_capture + 0x100000);
}

TEST(a_deep_stack_is_cut_and_says_so)
{
	struct gpc_raw_stack stack;

	descend(100);
	assert_true(gpc_depot_find(&stacks.depot, last_id, &stack));
	assert_int_equal(stack.n_native, GPC_STACKS_DEPTH);
	assert_int_equal(stack.flags, GPUCACHE_STACK_CUT);
}

TEST(a_full_depot_gives_id_zero_and_counts)
{
	static const volatile int depths[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 3 };

	/* One call site for all; 8 and 9 come when there is no room, 3 is known then. */
#pragma GCC unroll 1
	for (size_t i = 0; i < N_OF(depths); i++) {
		box.refuses = i >= 8;
		assert_int_equal(descend(depths[i]) == 0, depths[i] >= 8);
	}
	assert_int_equal(gpc_stacks_dropped(&stacks), 2);
	assert_int_equal(gpc_stacks_dropped_python(&stacks), 0);
}

TEST(with_everything_off_there_is_no_stack)
{
	struct gpc_stacks_params params = make_params();
	struct gpc_stacks off;

	params.with_python = false;
	assert_int_equal(gpc_stacks_init(&off, &params), GPC_OK);
	gpc_unwind_fini(&off.unwind); /* as where no unwinder works */
	assert_int_equal(gpc_stack_capture(&off, 0), 0);
	assert_int_equal(gpc_stacks_dropped(&off), 0);
	gpc_stacks_fini(&off);
}

TEST(init_gives_everything_back_whichever_map_fails)
{
	struct gpc_stacks_params params = make_params();
	size_t before = gpc_metamem_total();
	struct gpc_stacks other;
	unsigned n = 0;

	for (;;) {
		enum gpc_status st;

		gpc_metamem_fail_at(++n);
		st = gpc_stacks_init(&other, &params);
		gpc_metamem_fail_at(0);
		if (st == GPC_OK)
			break;
		assert_int_equal(st, GPC_NO_METADATA);
		assert_int_equal(gpc_metamem_total(), before);
	}
	assert_int_equal(n, 6);
	gpc_stacks_fini(&other);
	assert_int_equal(gpc_metamem_total(), before);
}

/* The description of a stack of these frames. */
static const char *describe(const uint64_t *frames, uint16_t n_native, uint16_t n_python)
{
	static char line[200];
	struct gpc_raw_stack stack = {
		.frames = frames, .n_native = n_native, .n_python = n_python
	};
	bool is_new;
	uint32_t id = gpc_depot_put(&stacks.depot, &stack, &is_new);

	return gpc_stack_describe(&stacks, id, line, sizeof(line)) ? line : NULL;
}

/* A code object whose lines are 40, and 41 from instruction 2 on. */
static uint64_t add_code(uintptr_t key_of, const char *name, const char *file)
{
	struct gpc_code_key key = { .code = key_of };
	struct gpc_code code = {
		.name = name,
		.file = file,
		.lines = "\x80\x01\xd9\x01\x01",
		.name_size = (uint32_t)strlen(name),
		.file_size = (uint32_t)strlen(file),
		.lines_size = 5,
		.first_line = 40,
		.python_version = 0x030b,
	};

	return GPUCACHE_FRAME_PYTHON | (uint64_t)gpc_codes_add(&stacks.codes, &key, &code) << 32;
}

TEST(a_python_stack_is_described_by_its_innermost_python_frame)
{
	uint64_t code = add_code(1, "grow", "/home/me/train.py");
	uint64_t frames[] = { 4711, GPUCACHE_FRAME_PYTHON, code | 2 };

	/* Code object 0 is one that found no room: the next frame speaks. */
	assert_string_equal(describe(frames, 1, 2), "grow train.py:41");
	frames[2] = code | 90;
	assert_string_equal(describe(frames, 1, 2), "grow train.py");
	frames[2] = code | UINT32_MAX;
	assert_string_equal(describe(frames, 1, 2), "grow train.py:40");
}

TEST(where_there_is_little_room_callers_are_left_out)
{
	uint64_t code = add_code(5, "Grid.grow", "/home/me/train.py");
	uint64_t frames[] = { code | 2, code | 2, code | 2 };
	struct gpc_raw_stack stack = { .frames = frames, .n_python = 3 };
	char line[64];
	bool is_new;
	uint32_t id = gpc_depot_put(&stacks.depot, &stack, &is_new);

	assert_true(gpc_stack_describe(&stacks, id, line, 38));
	assert_string_equal(line, "Grid.grow train.py:41 < grow:41");
	assert_true(gpc_stack_describe(&stacks, id, line, 31));
	assert_string_equal(line, "Grid.grow train.py:41");
	assert_true(gpc_stack_describe(&stacks, id, line, 21));
	assert_string_equal(line, "grow train.py:41");
	assert_true(gpc_stack_describe(&stacks, id, line, 10));
	assert_string_equal(line, "grow trai");
}

TEST(frames_of_libraries_are_the_way_and_not_the_site)
{
	uint64_t forward =
		add_code(6, "Linear.forward", "/v/lib/python3.12/site-packages/torch/nn/l.py");
	uint64_t call = add_code(7, "Module.call", "/v/lib/python3.12/site-packages/torch/nn/m.py");
	uint64_t step = add_code(8, "fit.<locals>.step", "/home/me/train.py");
	uint64_t run = add_code(9, "run", "<frozen runpy>");
	uint64_t frames[] = { forward | 2, call | 2, step | 2, call | 2, step | 2, run | 2 };

	assert_string_equal(
		describe(frames, 0, 6), "fit.step train.py:41, via Linear.forward < fit.step:41");
	assert_string_equal(describe(frames, 0, 2), "Module.call m.py:41, via Linear.forward");
}

TEST(a_python_frame_is_followed_by_four_callers_with_the_lines_of_its_own_file)
{
	uint64_t alloc = add_code(2, "Device.alloc", "/home/me/train.py");
	uint64_t step = add_code(3, "fit.<locals>.<lambda>", "/opt/x/fit.py");
	uint64_t main = add_code(4, "main.", "/home/me/train.py");
	uint64_t frames[] = { alloc | 2, step | 2, main | 2, alloc | 2, step | 2, main | 2 };

	assert_string_equal(describe(frames, 0, 6),
		"Device.alloc train.py:41 < fit.<lambda> fit.py:41 < main.:41 < Device.alloc:41 "
		"< fit.<lambda> fit.py:41");
}

/* A copy of libutil under another name, opened; an address in it. */
static uint64_t open_copy(const char *name, void **ret_library)
{
	void *original = dlopen("libutil.so.1", RTLD_NOW);
	char command[2048], path[512], folder[] = "/tmp/gpc-XXXXXX";
	struct link_map *map;

	if (!original || dlinfo(original, RTLD_DI_LINKMAP, &map) || !mkdtemp(folder))
		return 0;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	snprintf(command, sizeof(command), "cp '%s' '%s'", map->l_name, path);
	if (system(command))
		return 0;
	*ret_library = dlopen(path, RTLD_NOW);
	unlink(path);
	rmdir(folder);
	dlclose(original);
	if (!*ret_library || dlinfo(*ret_library, RTLD_DI_LINKMAP, &map))
		return 0;
	return (uint64_t)(uintptr_t)map->l_ld + 1;
}

TEST(a_native_stack_is_described_by_its_innermost_frame_outside_cuda)
{
	uint64_t frames[2];
	void *library = NULL;

	frames[1] = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "getppid") + 2;
	frames[0] = open_copy("libcudart.so.99", &library);
	if (!frames[0])
		skip();
	assert_non_null(strstr(describe(frames, 2, 0), "getppid (libc"));
	assert_null(describe(frames, 1, 0));
	dlclose(library);
	grow();
	assert_true(gpc_stack_describe(&stacks, last_id, (char[100]){ "" }, 100));
}

TEST(a_static_function_is_described_by_its_name_its_line_and_its_callers)
{
	char line[200];

	grow();
	assert_true(gpc_stack_describe(&stacks, last_id, line, sizeof(line)));
	assert_non_null(strstr(line, "grow test_capture.c:"));
	assert_non_null(strstr(
		line, " < a_static_function_is_described_by_its_name_its_line_and_its_callers:"));
}

TEST(what_is_no_id_has_no_description)
{
	char line[10] = "before";

	assert_false(gpc_stack_describe(&stacks, 0, line, sizeof(line)));
	assert_string_equal(line, "");
	assert_false(gpc_stack_describe(&stacks, 77, line, sizeof(line)));
}

TEST(a_library_opened_later_is_recorded_with_the_next_new_stack)
{
	uint32_t before, after;
	void *library;

	grow();
	before = box.n[GPUCACHE_REGION_MODULES];
	library = dlopen("librt.so.1", RTLD_NOW);
	if (!library)
		skip();
	/* Another call site, so another stack. */
	grow();
	after = box.n[GPUCACHE_REGION_MODULES];
	assert_true(after > before);
	dlclose(library);
}

static void *capture_often(void *arg)
{
	for (int i = 0; i < 500; i++)
		if (!descend(i % 20))
			return arg;
	return NULL;
}

TEST(threads_capture_at_the_same_time)
{
	pthread_t threads[4];
	void *wrong;

	for (size_t i = 0; i < N_OF(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, capture_often, &stacks), 0);
	for (size_t i = 0; i < N_OF(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
	assert_int_equal(box.n[GPUCACHE_REGION_STACKS], 20);
}
