/* SPDX-License-Identifier: Apache-2.0 */
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/metamem.h"
#include "base/own_stack.h"
#include "unit.h"

#define SMALL   16384u /* PTHREAD_STACK_MIN */
#define LARGE   (GPC_OWN_STACK_BYTES / 2)
#define THREADS 8

static _Thread_local int of_thread;

static uintptr_t here(void)
{
	return (uintptr_t)__builtin_frame_address(0);
}

/* What a call found where it ran. */
struct visit {
	uintptr_t at;
	int of_thread;
	bool is_blocked;
	struct visit *deeper;
};

static void look(void *arg)
{
	struct visit *visit = arg;
	sigset_t mask;

	visit->at = here();
	visit->of_thread = ++of_thread;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	visit->is_blocked = sigismember(&mask, SIGUSR1);
	if (visit->deeper)
		gpc_own_stack_run(look, visit->deeper);
}

static bool is_near(uintptr_t a, uintptr_t b)
{
	return a - b + 65536 < 131072;
}

TEST(without_pages_a_call_runs_in_place)
{
	struct visit visit = { 0 };

	/* The first, because later ones find the stack that was kept. */
	gpc_metamem_fail_at(1);
	gpc_own_stack_run(look, &visit);
	gpc_metamem_fail_at(0);
	assert_true(is_near(visit.at, here()));
	assert_false(visit.is_blocked);
}

TEST(a_call_runs_elsewhere_in_the_same_thread_without_signals)
{
	struct visit visit = { 0 };
	sigset_t mask;

	of_thread = 41;
	gpc_own_stack_run(look, &visit);
	assert_false(is_near(visit.at, here()));
	assert_int_equal(visit.of_thread, 42);
	assert_int_equal(of_thread, 42);
	assert_true(visit.is_blocked);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_false(sigismember(&mask, SIGUSR1));
}

TEST(a_call_inside_a_call_stays_where_it_is)
{
	struct visit inner = { 0 };
	struct visit outer = { .deeper = &inner };

	gpc_own_stack_run(look, &outer);
	assert_true(is_near(inner.at, outer.at));
	assert_false(is_near(inner.at, here()));
}

static void *frames[16];
static int n_frames;

static void walk(void *arg)
{
	n_frames = backtrace(frames, 16);
}

static __attribute__((noinline)) void *walk_from_here(void)
{
	gpc_own_stack_run(walk, NULL);
	return __builtin_return_address(0);
}

TEST(an_unwinder_finds_the_callers_on_the_other_stack)
{
	void *caller = walk_from_here();
	bool is_there = false;

	for (int i = 0; i < n_frames; i++)
		is_there |= frames[i] == caller;
	assert_true(is_there);
}

static void fill(void *arg)
{
	volatile char large[LARGE];

	for (size_t i = 0; i < sizeof large; i++)
		large[i] = *(char *)arg;
	*(char *)arg = (char)(large[0] + large[LARGE - 1]);
}

static void *use_much(void *arg)
{
	for (int i = 0; i < 100; i++) {
		*(char *)arg = 1;
		gpc_own_stack_run(fill, arg);
	}
	return NULL;
}

TEST(threads_with_small_stacks_need_much_at_once)
{
	pthread_t threads[THREADS];
	char results[THREADS];
	pthread_attr_t attr;
	size_t before = gpc_metamem_total();

	pthread_attr_init(&attr);
#ifndef __SANITIZE_THREAD__ /* which needs more itself */
	assert_int_equal(pthread_attr_setstacksize(&attr, SMALL), 0);
#endif
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], &attr, use_much, &results[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(results[i], 2);
	}
	assert_int_equal(gpc_metamem_total(), before);
}
