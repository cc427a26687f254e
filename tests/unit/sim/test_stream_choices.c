/* SPDX-License-Identifier: Apache-2.0 */
/* Behaviour that varies between GPUs and programs: kernels that begin early, and what a free waits for. */
#include "tests/unit/sim/machine.h"

FIXTURE(set_up, tear_down);

static struct gpc_sim_effect *early_kernel_of(uint64_t ns, uint64_t ptr, int value)
{
	struct gpc_sim_effect *effect = kernel_of(ns, ptr, 1, value);

	effect->is_early = true;
	return effect;
}

TEST(an_early_kernel_runs_beside_the_one_ahead_of_it_and_what_follows_is_behind_both)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_NON_BLOCKING);
	uint64_t ptr = take(512);

	busy(stream, 1 * MS);
	submit(stream, kernel_of(5 * MS, ptr, 1, 1));
	submit(stream, early_kernel_of(2 * MS, ptr, 2));
	submit(stream, early_kernel_of(1 * MS, ptr + 1, 3)); /* beside both */
	submit(stream, fill_of(1 * MS, ptr + 2, 1, 4));
	pass(2 * MS);
	assert_memory_equal(bytes_at(ptr), "\0\3\0", 3);
	pass(1 * MS);
	assert_memory_equal(bytes_at(ptr), "\2\3\0", 3);
	pass(3 * MS);
	assert_memory_equal(bytes_at(ptr), "\1\3\0", 3); /* overwritten by the older one */
	pass(1 * MS);
	assert_memory_equal(bytes_at(ptr), "\1\3\4", 3);
	assert_int_equal(time_to_sync(), 0);
}

TEST(an_early_kernel_behind_anything_but_a_kernel_is_an_ordinary_one)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();
	uint64_t ptr = take(512);

	submit(stream, kernel_of(5 * MS, ptr, 1, 1));
	assert_int_equal(gpc_sim_stream_record(stream, event), CUDA_SUCCESS);
	submit(stream, early_kernel_of(1 * MS, ptr, 2));
	busy(stream, 2 * MS);
	submit(stream, early_kernel_of(1 * MS, ptr, 3));
	assert_int_equal(time_to_sync(), 9 * MS);
	assert_int_equal(bytes_at(ptr)[0], 3);
}

TEST(an_early_kernel_is_behind_what_its_context_waits_for)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();
	uint64_t ptr = take(512);

	submit(stream, kernel_of(5 * MS, ptr, 1, 1));
	assert_int_equal(gpc_sim_context_record(context, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_context_wait(context, event), CUDA_SUCCESS);
	submit(stream, early_kernel_of(1 * MS, ptr, 2));
	assert_int_equal(time_to_sync(), 6 * MS);
}

TEST(a_free_waits_for_the_memorys_own_context_alone_where_that_is_asked_for)
{
	struct gpc_sim_context *beside = context_on(0);
	uint64_t ptr = take(512);

	sim->config.free_waits_alone = true;
	busy(&context->legacy, 2 * MS);
	busy(&beside->legacy, 4 * MS);
	assert_int_equal(gpc_sim_mem_free(sim, ptr), CUDA_SUCCESS);
	assert_int_equal(now() - GPC_SIM_CLOCK_START, 2 * MS);
	gpc_sim_context_destroy(beside);
}
