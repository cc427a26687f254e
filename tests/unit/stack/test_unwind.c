/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "stack/modules.h"
#include "stack/unwind.h"

#define MAX 64

static struct gpc_unwind unwind;
static uint64_t frames[MAX];
static uint32_t n_frames;
static uint32_t n_skipped;

/* Each calls the next and does something after it, so that none is a tail call. */
#define LINK(name, next)                                 \
	static __attribute__((noinline)) int name(int n) \
	{                                                \
		int result = next(n + 1);                \
                                                         \
		__asm__ volatile("" ::: "memory");       \
		return result + 1;                       \
	}

static __attribute__((noinline)) int innermost(int n)
{
	n_frames = gpc_unwind_capture(&unwind, frames, MAX, n_skipped);
	__asm__ volatile("" ::: "memory");
	return n;
}

LINK(third, innermost)
LINK(second, third)
LINK(first, second)

static void *no_library(void *handle, const char *name)
{
	return NULL;
}

/* True if address lies within the code of `function`; these are small and the next starts behind. */
static bool is_in(uint64_t address, int (*function)(int))
{
	uint64_t start = (uintptr_t)function;

	return address > start && address - start < 400;
}

static void check_order(void)
{
	n_skipped = 0;
	first(0);
	assert_true(n_frames >= 5);
	assert_true(is_in(frames[0], innermost));
	assert_true(is_in(frames[1], third));
	assert_true(is_in(frames[2], second));
	assert_true(is_in(frames[3], first));
	n_skipped = 2;
	first(0);
	assert_true(is_in(frames[0], second));
	assert_true(is_in(frames[1], first));
}

TEST(libunwind_finds_the_callers_in_order)
{
	void *library = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);

	gpc_unwind_init(&unwind, dlsym);
	/* unwind.c: not under the thread sanitizer. */
#ifdef __SANITIZE_THREAD__
	library = NULL;
#endif
	if (!library) {
		assert_ptr_equal(unwind.backtrace, backtrace);
		skip();
	}
	assert_ptr_equal(unwind.backtrace, dlsym(library, "unw_backtrace"));
	check_order();
	gpc_unwind_fini(&unwind);
}

/* A program that uses libunwind itself, which unwind.h says we tune, gets the same frames from it. */
TEST(the_walks_of_a_program_that_uses_libunwind_stay_as_they_were)
{
	void *library = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
	int (*walk)(void **, int) = NULL;
	void *walks[2][MAX];
	int n[2];

	/* unwind.c: not under the thread sanitizer. */
#ifdef __SANITIZE_THREAD__
	library = NULL;
#endif
	if (!library)
		skip();
	*(void **)&walk = dlsym(library, "unw_backtrace");
	assert_non_null(walk);
	n[0] = walk(walks[0], MAX);
	gpc_unwind_init(&unwind, dlsym);
	n[1] = walk(walks[1], MAX);
	assert_ptr_equal(unwind.backtrace, dlsym(library, "unw_backtrace"));
	assert_true(n[0] > 1);
	assert_int_equal(n[0], n[1]);
	/* All but the place of the call itself. */
	assert_memory_equal(walks[0] + 1, walks[1] + 1, (size_t)(n[0] - 1) * sizeof(void *));
	gpc_unwind_fini(&unwind);
}

TEST(glibc_finds_the_callers_in_order)
{
	gpc_unwind_init_glibc(&unwind);
	assert_ptr_equal(unwind.backtrace, backtrace);
	check_order();
	gpc_unwind_fini(&unwind);
}

TEST(a_libunwind_without_the_symbol_is_replaced_by_glibc)
{
	gpc_unwind_init(&unwind, no_library);
	assert_ptr_equal(unwind.backtrace, backtrace);
	check_order();
	gpc_unwind_fini(&unwind);
}

static int gives_calls(void **addresses, int n)
{
	n = backtrace(addresses, n) - 1; /* without this function */
	for (int i = 0; i < n; i++)
		addresses[i] = (char *)addresses[i + 1] - 1;
	return n;
}

/* As libunwind for aarch64 does. */
TEST(an_unwinder_may_give_the_calls_and_not_what_they_return_to)
{
	unwind = (struct gpc_unwind){ .backtrace = gives_calls };
	check_order();
	gpc_unwind_fini(&unwind);
}

static int walks_nothing(void **addresses, int n)
{
	return 0;
}

TEST(an_unwinder_that_fails_yields_no_frames)
{
	gpc_unwind_fini(&unwind);
	n_skipped = 0;
	first(0);
	assert_int_equal(n_frames, 0);
	unwind = (struct gpc_unwind){ .backtrace = walks_nothing };
	first(0);
	assert_int_equal(n_frames, 0);
}

TEST(never_more_than_asked_for)
{
	uint64_t few[3] = { 0, 0, 77 };

	gpc_unwind_init(&unwind, dlsym);
	assert_int_equal(gpc_unwind_capture(&unwind, few, 2, 0), 2);
	assert_int_equal(few[2], 77);
	assert_int_equal(gpc_unwind_capture(&unwind, few, 0, 0), 0);
	assert_int_equal(gpc_unwind_capture(&unwind, few, GPC_UNWIND_MAX_FRAMES + 1, 0), 0);
	assert_int_equal(gpc_unwind_capture(&unwind, few, 2, 1000), 0);
	gpc_unwind_fini(&unwind);
}

static __attribute__((noinline)) uint32_t capture_here(uint64_t *here)
{
	uint32_t n = gpc_unwind_capture(&unwind, here, MAX, 0);

	__asm__ volatile("" ::: "memory");
	return n;
}

static void *walk_often(void *arg)
{
	uint64_t mine[MAX], again[MAX];
	uint32_t n = capture_here(mine);

	for (int i = 0; i < 2000; i++)
		if (capture_here(again) != n || memcmp(again + 2, mine + 2, (n - 2) * 8) != 0)
			return &unwind;
	return NULL;
}

TEST(threads_walk_at_the_same_time)
{
	pthread_t threads[4];
	void *wrong;

	gpc_unwind_init(&unwind, dlsym);
	for (size_t i = 0; i < N_OF(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, walk_often, NULL), 0);
	for (size_t i = 0; i < N_OF(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
	gpc_unwind_fini(&unwind);
}

static int close_nothing(void *unused)
{
	return 0;
}

TEST(a_page_of_unloaded_code_is_not_taken_for_readable)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(page != MAP_FAILED);
	gpc_unwind_init(&unwind, dlsym);
	if (!unwind.walk.is_readable)
		skip();
	assert_true(unwind.walk.is_readable((uintptr_t)page));
	assert_int_equal(munmap(page, 4096), 0);
	assert_int_equal(gpc_modules_unload(close_nothing, NULL), 0);
	assert_false(unwind.walk.is_readable((uintptr_t)page));
	gpc_unwind_fini(&unwind);
}
