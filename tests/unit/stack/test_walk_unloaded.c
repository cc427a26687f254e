/* SPDX-License-Identifier: Apache-2.0 */
/* A library in the place of one that was unloaded, with another frame at the same return address. */
#include "unit.h"

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "stack/capture.h"
#include "stack/sink_box.h"

#define MAX 64

/* Code of the same length; the frame is full of `fill`, which its old rule takes for a return address. */
#define SOURCE                                                           \
	"int middle(int (*back)(void), void *fill, void **ret_caller)\n" \
	"{\n"                                                            \
	"	void *volatile room[WORDS];\n"                                 \
	"	for (volatile int i = 0; i < WORDS; i++)\n"                    \
	"		room[i] = fill;\n"                                            \
	"	*ret_caller = __builtin_return_address(0);\n"                  \
	"	return back() + (room[0] != fill);\n"                          \
	"}\n"

/* What it is told to call runs while this thread holds the loader's lock. */
#define SOURCE_OF_START                                                \
	"#include <stdlib.h>\n"                                        \
	"__attribute__((constructor)) static void start(void)\n"       \
	"{\n"                                                          \
	"	((void (*)(void))strtoull(getenv(\"AT_START\"), 0, 0))();\n" \
	"}\n"

struct library {
	void *handle;
	int (*middle)(int (*back)(void), void *fill, void **ret_caller);
};

static struct sink_box box;
static struct gpc_stacks stacks;
static char folder[] = "/tmp/gpc-unloaded-XXXXXX";

static uint64_t frames[MAX];
static uint32_t n_frames;

static int make(const char *name, const char *source, int words)
{
	char command[2048];

	snprintf(command, sizeof command,
		"printf '%%s' '%s' | cc -O1 -fomit-frame-pointer -fno-stack-protector -fPIC "
		"-shared "
		"-DWORDS=%d -x c -o %s/%s -",
		source, words, folder, name);
	return system(command);
}

static int set_up(void **state)
{
	const struct gpc_stacks_params params = {
		.sink = sink_box_sink(&box),
		.lookup_in = dlsym,
		.max_stacks = 100,
	};

	sink_box_clear(&box);
	return !mkdtemp(folder) || make("a.so", SOURCE, 160) || make("b.so", SOURCE, 480) ||
	       make("c.so", SOURCE_OF_START, 0) || gpc_stacks_init(&stacks, &params);
}

static int tear_down(void **state)
{
	static const char *const names[] = { "a.so", "b.so", "c.so" };
	char path[64];

	for (size_t i = 0; i < N_OF(names); i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
	}
	gpc_stacks_fini(&stacks);
	return rmdir(folder);
}

GROUP(set_up, tear_down);

static struct library open_library(const char *name)
{
	char path[64];
	struct library library;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	library.handle = dlopen(path, RTLD_NOW);
	assert_non_null(library.handle);
	*(void **)&library.middle = dlsym(library.handle, "middle");
	return library;
}

static __attribute__((noinline)) int capture(void)
{
	struct gpc_raw_stack stack;

	assert_true(gpc_depot_find(&stacks.depot, gpc_stack_capture(&stacks, 0), &stack));
	n_frames = stack.n_native;
	memcpy(frames, stack.frames, n_frames * sizeof *frames);
	return 0;
}

/* Without the rules: what is left to libunwind. */
static __attribute__((noinline)) int capture_by_asking(void)
{
	struct gpc_unwind asking = stacks.unwind;

	asking.walk.table = NULL;
	n_frames = gpc_unwind_capture(&asking, frames, MAX, 0);
	return 0;
}

static __attribute__((noinline)) void check_through(
	const struct library *library, int (*back)(void), void *fill)
{
	void *caller = NULL;

	assert_int_equal(library->middle(back, fill, &caller), 0);
	assert_true(n_frames > 3);
	assert_int_equal(GPUCACHE_FRAME_ADDRESS(frames[2]), (uintptr_t)caller);
}

static void *decoy;
static void *volatile keep;

static __attribute__((noinline)) int capture_decoy(void)
{
	decoy = __builtin_return_address(0);
	return capture();
}

/* Its frame is found by the frame pointer alone: who takes a word for this return address walks on to a wrong caller. */
static __attribute__((noinline)) int learn_decoy(size_t n)
{
	keep = alloca(n);
	return capture_decoy() + (keep == NULL);
}

static void *ask_glibc(void *unused)
{
	struct gpc_unwind asking = stacks.unwind;

	asking.walk.table = NULL;
	atomic_store(&asking.walk.has_forgotten, true);
	n_frames = gpc_unwind_capture(&asking, frames, MAX, 0);
	return NULL;
}

static void ask_in_another_thread(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, ask_glibc, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* First: glibc makes ready what it unwinds by when it is asked first. */
TEST(a_thread_need_not_wait_for_one_that_loads_a_library)
{
	char address[32];
	struct library library;

	if (!stacks.unwind.walk.table)
		skip();
	snprintf(address, sizeof address, "%p",
		*(void **)&(void (*)(void)){ ask_in_another_thread });
	assert_int_equal(setenv("AT_START", address, 1), 0);
	n_frames = 0;
	library = open_library("c.so");
	assert_true(n_frames > 1);
	dlclose(library.handle);
}

TEST(a_library_in_the_place_of_another_is_walked_by_its_own_rules)
{
	uint64_t middle[2] = { 0 };

	if (!stacks.unwind.walk.table)
		skip();
	/* All from one place, so that in the second library every address but one has its old rule still. */
	for (volatile int i = 0; i < 6; i++) {
		struct library library = open_library(i % 2 ? "b.so" : "a.so");

		check_through(&library, capture, i > 2 ? decoy : NULL);
		if (i > 1)
			assert_int_equal(frames[1], middle[i % 2]);
		middle[i % 2] = frames[1];
		check_through(&library, capture_by_asking, NULL);
		for (volatile size_t n = 16; n < 2000; n += 500)
			(void)learn_decoy(n);
		gpc_modules_unload(dlclose, library.handle);
	}
	assert_int_equal(GPUCACHE_FRAME_ADDRESS(middle[0]), GPUCACHE_FRAME_ADDRESS(middle[1]));
	assert_int_not_equal(middle[0], middle[1]);
}

static void *any_thread_state(void)
{
	return &box;
}

static __attribute__((noinline)) int capture_below(int n)
{
	int result = n ? capture_below(n - 1) : capture();

	__asm__ volatile("" ::: "memory");
	return result;
}

TEST(a_stack_taken_again_is_one_without_python)
{
	stacks.python.get_thread_state = any_thread_state;
	atomic_store(&stacks.python.state, GPC_PYTHON_UNUSABLE);
	/* From one place: the second stack is new, all its addresses are known, and the unloading was not seen. */
	for (volatile int i = 0; i < 2; i++) {
		struct library library = open_library("a.so");
		uint64_t before;
		uint32_t n_turns;

		check_through(&library, capture, NULL);
		n_turns = gpc_modules_n_turns(&stacks.modules);
		dlclose(library.handle);
		before = gpc_stacks_dropped_python(&stacks);
		(void)capture_below(5 - i);
		assert_int_equal(gpc_stacks_dropped_python(&stacks), before + 1);
		assert_int_equal(gpc_modules_n_turns(&stacks.modules), n_turns + 1);
	}
}
