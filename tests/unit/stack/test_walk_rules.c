/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that a walk finds by a guess, or that threads learn at once: nothing is learned at each walk, and each address
 * has one rule.
 */
#include "unit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

#include "walked.h"

FIXTURE(open_walk, close_walk);

#define N_THREADS 2
#define N_ROUNDS  1000

static volatile uintptr_t nothing;

/* Where nobody called: its frame ends in a return address of 0. */
static __attribute__((noinline)) int called_by_nobody(bool is_so)
{
	uintptr_t *volatile place = (uintptr_t *)__builtin_frame_address(0) + 1;
	uintptr_t caller = *place;
	int result;

	if (is_so)
		*(volatile uintptr_t *)place = nothing;
	result = capture_only();
	*(volatile uintptr_t *)place = caller;
	return result;
}

TEST(rules_are_kept_except_under_the_thread_sanitizer)
{
	bool is_off = dlsym(RTLD_DEFAULT, "__tsan_init") != NULL;

#ifndef __x86_64__
	is_off = true;
#endif
	assert_int_equal(unwind.walk.table == NULL, is_off);
}

TEST(no_caller_is_learned_once)
{
	volatile int n = 6; /* one call, not six */
	uint32_t before = 0;

	skip_where_it_is_off();
	for (int i = 0; i < n; i++) {
		before = i == 4 ? n_learned() : before;
		assert_true(called_by_nobody(i >= 2) > 0);
	}
	assert_int_equal(n_learned(), before);
}

static __attribute__((noinline)) int deep(int n)
{
	int result = n ? deep(n - 1) : capture_only();

	__asm__ volatile("" ::: "memory");
	return result + 1;
}

/* A guess that was stored while the table was cleared leads to half a rule; one a walk is made anew. */
TEST(a_guess_of_half_a_rule_is_made_anew)
{
	struct gpc_walk_table *table = unwind.walk.table;
	volatile uint32_t n = 100; /* one call, not a hundred */
	uint32_t before = 0;

	skip_where_it_is_off();
	for (uint32_t turn = 0; turn < n; turn++) {
		uint32_t last = atomic_load(&table->n_rules);

		before = turn + 1 == n ? n_learned() : before;
		(void)deep(5);
		if (turn != 1)
			continue;
		for (uint32_t i = 0; i < last; i++) {
			struct gpc_walk_rule *twin = &table->rules[last + i];

			atomic_store(&twin->place, atomic_load(&table->rules[i].place));
			guess(&table->rules[i], last + (i + 1) % last);
			guess(twin, last + (i + 1) % last);
		}
		atomic_store(&table->n_rules, 2 * last);
	}
	assert_int_equal(n_learned(), before);
}

static pthread_barrier_t start;
static atomic_int n_ready; /* closer together than a barrier lets go */

/* Another return address at each depth. */
#define CALL(n)                          \
	case n:                          \
		sum = descend((n)-1);    \
		__asm__ volatile("nop"); \
		return sum + (n)

static __attribute__((noinline)) int descend(int depth)
{
	uint64_t frames[MAX];
	int sum;

	switch (depth) {
		CALL(1);
		CALL(2);
		CALL(3);
		CALL(4);
		CALL(5);
		CALL(6);
		CALL(7);
		CALL(8);
		CALL(9);
		CALL(10);
		CALL(11);
		CALL(12);
		CALL(13);
		CALL(14);
		CALL(15);
		CALL(16);
		CALL(17);
		CALL(18);
		CALL(19);
		CALL(20);
	default:
		return (int)gpc_unwind_capture(&unwind, frames, MAX, 0);
	}
}

static void *learn(void *arg)
{
	for (int round = 0; round < N_ROUNDS; round++) {
		pthread_barrier_wait(&start);
		atomic_fetch_add(&n_ready, 1);
		for (int i = 0; i < 10000 && atomic_load(&n_ready) < N_THREADS * (round + 1); i++)
			;
		(void)descend(20);
		pthread_barrier_wait(&start);
	}
	return arg;
}

static uintptr_t address_of(uint32_t number)
{
	return atomic_load(&unwind.walk.table->rules[number].place) & ((UINT64_C(1) << 47) - 1);
}

static void check_rules(void)
{
	uint32_t n = atomic_load(&unwind.walk.table->n_rules);

	assert_true(n >= 20);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < i && address_of(i); k++)
			assert_true(address_of(i) != address_of(k));
}

TEST(an_address_has_one_rule_however_many_threads_learn_it)
{
	pthread_t threads[N_THREADS];

	skip_where_it_is_off();
	assert_int_equal(pthread_barrier_init(&start, NULL, N_THREADS + 1), 0);
	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, learn, NULL), 0);
	for (int round = 0; round < N_ROUNDS; round++) {
		pthread_barrier_wait(&start);
		pthread_barrier_wait(&start);
		check_rules();
		gpc_unwind_fini(&unwind);
		gpc_unwind_init(&unwind, dlsym);
	}
	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}
