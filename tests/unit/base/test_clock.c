/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <pthread.h>

#include "base/clock.h"

/* Long enough that anchors are renewed many times, and that a wrong rate would show. */
#define RUN_NS UINT64_C(60000000)

/* How far both clocks may be apart: a reading may be interrupted between the two, so the bound is generous. */
#define APART_NS UINT64_C(20000000)

static void *compare(void *arg)
{
	uint64_t end = gpc_clock_monotonic_ns() + RUN_NS;
	uint64_t before;

	do {
		uint64_t ns;
		uint64_t after;

		before = gpc_clock_monotonic_ns();
		ns = gpc_clock_ns();
		after = gpc_clock_monotonic_ns();
		if (ns + APART_NS < before || ns > after + APART_NS)
			return arg;
	} while (before < end);
	return NULL;
}

static void the_cheap_clock_tells_the_time_of_the_monotonic_one(void **state)
{
	(void)state;
	assert_null(compare(state));
}

static void it_does_so_in_several_threads_at_once(void **state)
{
	pthread_t threads[4];
	void *wrong = NULL;

	for (size_t i = 0; i < N_OF(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, compare, state), 0);
	for (size_t i = 0; i < N_OF(threads); i++) {
		void *result;

		pthread_join(threads[i], &result);
		wrong = result ? result : wrong;
	}
	assert_null(wrong);
}

static void most_readings_are_within_a_microsecond(void **state)
{
	unsigned n_near = 0;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		uint64_t before = gpc_clock_monotonic_ns();
		uint64_t ns = gpc_clock_ns();
		uint64_t after = gpc_clock_monotonic_ns();

		n_near += ns + 1000 >= before && ns <= after + 1000;
	}
	assert_true(n_near > 9000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cheap_clock_tells_the_time_of_the_monotonic_one),
		cmocka_unit_test(it_does_so_in_several_threads_at_once),
		cmocka_unit_test(most_readings_are_within_a_microsecond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
