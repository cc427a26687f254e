/* SPDX-License-Identifier: Apache-2.0 */
/* What the host may read: the detector knows waits and frees, but no clock. */
#include "tests/unit/sim/racing.h"

static const struct gpc_sim_race_stack reader = { .n = 1, .frames = { 0x21 } };

static int set_up_race(void **state)
{
	return set_up_streams(64 * GPC_MIB);
}

FIXTURE(set_up_race, tear_down);

static uint64_t n_found(void)
{
	return gpc_sim_race_n_violations(sim);
}

TEST(the_host_reads_behind_a_free_what_was_submitted_before_it)
{
	gpc_sim_race_host_reads(context, &reader);
	busy(one, 5 * MS);
	gpc_sim_race_host_reads(context, &reader);
	gpc_sim_race_freed(context, gpc_sim_race_of_context(context), false);
	gpc_sim_race_host_reads(context, &reader);
	assert_int_equal(n_found(), 0); /* no free has promised anything */
	gpc_sim_race_freed(context, gpc_sim_race_of_context(context), true);
	busy(two, 5 * MS);
	gpc_sim_race_host_reads(context, &reader);
	assert_int_equal(n_found(), 1);
	assert_int_equal(sim->race->violations[0].kind, GPC_SIM_RACE_READ);
	assert_memory_equal(&sim->race->violations[0].new_owner, &reader, sizeof reader);
	assert_int_equal(gpc_sim_stream_sync(one), CUDA_SUCCESS);
	gpc_sim_race_host_reads(context, &reader);
	assert_int_equal(n_found(), 1); /* what came behind the free may run */
}

TEST(what_has_not_ended_is_not_learnt)
{
	busy(one, 5 * MS);
	gpc_sim_race_freed(context, gpc_sim_race_of_context(context), true);
	gpc_sim_race_learn(sim, gpc_sim_race_of_stream(one), false);
	gpc_sim_race_host_reads(context, &reader);
	assert_int_equal(n_found(), 1);
	gpc_sim_race_learn(sim, gpc_sim_race_of_device(sim, 0), true);
	gpc_sim_race_host_reads(context, &reader);
	assert_int_equal(n_found(), 1);
}
