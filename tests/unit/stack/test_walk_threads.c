/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that learn the same code at once: each address has one rule, so that what one learns all walk by. */
#include "unit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

#include "stack/unwind.h"

#define MAX       64
#define N_THREADS 2
#define N_ROUNDS  1000

static struct gpc_unwind unwind;
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

static void an_address_has_one_rule_however_many_threads_learn_it(void **state)
{
	pthread_t threads[N_THREADS];

	(void)state;
	gpc_unwind_init(&unwind, dlsym);
	if (!unwind.walk.table)
		skip();
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
	gpc_unwind_fini(&unwind);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_has_one_rule_however_many_threads_learn_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
