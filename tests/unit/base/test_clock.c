/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <pthread.h>

#include "base/clock.h"

/* Long enough that anchors are renewed many times, and that a wrong rate would show. */
#define RUN_NS UINT64_C(60000000)

/*
 * The tolerance of the cycle-counter clock.  It is read between two readings of the kernel's clock, so a preemption
 * only widens the tolerance.  The rates of the first anchors are exact to a thousandth of the milliseconds they are
 * used for.
 */
#define APART_NS UINT64_C(100000)

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

TEST(the_cheap_clock_tells_the_time_of_the_monotonic_one)
{
	assert_null(compare(state));
}

TEST(it_does_so_in_several_threads_at_once)
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
