/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <pthread.h>

#include "sim/gpu/execution/clock.h"

#define MS UINT64_C(1000000)

/* Enough to meet each other, few enough for a sanitizer. */
#define N_THREADS 4
#define N_ROUNDS  2000

TEST(a_virtual_clock_starts_after_zero_and_stands_still)
{
	struct gpc_sim_clock clock;

	gpc_sim_clock_init(&clock, true);
	assert_int_equal(gpc_sim_clock_now(&clock), GPC_SIM_CLOCK_START);
	assert_int_equal(gpc_sim_clock_now(&clock), GPC_SIM_CLOCK_START);
}

TEST(waiting_moves_a_virtual_clock_ahead_and_never_back)
{
	struct gpc_sim_clock clock;

	gpc_sim_clock_init(&clock, true);
	gpc_sim_clock_wait_until(&clock, 5 * MS);
	assert_int_equal(gpc_sim_clock_now(&clock), 5 * MS);
	gpc_sim_clock_wait_until(&clock, 3 * MS);
	assert_int_equal(gpc_sim_clock_now(&clock), 5 * MS);
}

TEST(a_call_that_costs_something_moves_a_virtual_clock_by_its_cost)
{
	struct gpc_sim_clock clock;

	gpc_sim_clock_init(&clock, true);
	gpc_sim_clock_spend(&clock, 0);
	assert_int_equal(gpc_sim_clock_now(&clock), GPC_SIM_CLOCK_START);
	gpc_sim_clock_spend(&clock, 2 * MS);
	gpc_sim_clock_spend(&clock, 1);
	assert_int_equal(gpc_sim_clock_now(&clock), GPC_SIM_CLOCK_START + 2 * MS + 1);
}

TEST(a_real_clock_is_the_hosts_and_waits_are_never_short)
{
	/* Below and above the length up to which a wait is spun. */
	static const uint64_t lengths[] = { GPC_SIM_CLOCK_SPIN_NS / 4, 3 * GPC_SIM_CLOCK_SPIN_NS };
	struct gpc_sim_clock clock;

	gpc_sim_clock_init(&clock, false);
	for (size_t i = 0; i < N_OF(lengths); i++) {
		uint64_t before = gpc_clock_monotonic_ns();
		uint64_t until = gpc_sim_clock_now(&clock) + lengths[i];

		assert_true(until >= before + lengths[i]);
		gpc_sim_clock_wait_until(&clock, until);
		assert_true(gpc_clock_monotonic_ns() >= until);
		before = gpc_clock_monotonic_ns();
		gpc_sim_clock_spend(&clock, lengths[i]);
		assert_true(gpc_clock_monotonic_ns() >= before + lengths[i]);
	}
	gpc_sim_clock_wait_until(&clock, 0);
}

TEST(a_maximum_only_grows)
{
	_Atomic uint64_t at = 5;

	gpc_sim_max(&at, 4);
	assert_int_equal(at, 5);
	gpc_sim_max(&at, 6);
	assert_int_equal(at, 6);
}

struct shared {
	struct gpc_sim_clock clock;
	_Atomic unsigned n_wrong;
};

static void *spend_and_wait(void *arg)
{
	struct shared *shared = arg;

	for (unsigned i = 0; i < N_ROUNDS; i++) {
		uint64_t before = gpc_sim_clock_now(&shared->clock);

		gpc_sim_clock_spend(&shared->clock, 1);
		gpc_sim_clock_wait_until(&shared->clock, before + 1);
		if (gpc_sim_clock_now(&shared->clock) < before + 1)
			atomic_fetch_add(&shared->n_wrong, 1);
	}
	return NULL;
}

TEST(threads_that_share_a_virtual_clock_never_see_it_go_back)
{
	struct shared shared = { .n_wrong = 0 };
	pthread_t threads[N_THREADS];

	gpc_sim_clock_init(&shared.clock, true);
	for (unsigned i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, spend_and_wait, &shared), 0);
	for (unsigned i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(shared.n_wrong, 0);
	assert_int_equal(
		gpc_sim_clock_now(&shared.clock), GPC_SIM_CLOCK_START + N_THREADS * N_ROUNDS);
}
