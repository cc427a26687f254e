/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/sim/machine.h"

FIXTURE(set_up, tear_down);

/* Streams that are made from here on take two pieces of work. */
static struct gpc_sim_stream *short_stream(void)
{
	sim->config.queue = 2;
	return stream_create(CU_STREAM_NON_BLOCKING);
}

static uint64_t passed(void)
{
	return now() - GPC_SIM_CLOCK_START;
}

TEST(a_queue_without_an_end_never_blocks_the_host)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_NON_BLOCKING);

	for (int i = 0; i < 1000; i++)
		busy(stream, 1 * MS);
	assert_int_equal(passed(), 0);
}

TEST(a_submission_to_a_full_queue_waits_for_the_oldest_piece)
{
	struct gpc_sim_stream *stream = short_stream();

	busy(stream, 2 * MS);
	busy(stream, 3 * MS);
	assert_int_equal(passed(), 0);
	busy(stream, 4 * MS);
	assert_int_equal(passed(), 2 * MS);
	assert_int_equal(time_to_sync(), 7 * MS);
}

TEST(events_and_waits_for_them_take_places_too)
{
	struct gpc_sim_stream *stream = short_stream();
	struct gpc_sim_event *event = event_create();

	busy(stream, 2 * MS);
	assert_int_equal(gpc_sim_stream_record(stream, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_wait(stream, event), CUDA_SUCCESS);
	assert_int_equal(passed(), 2 * MS);
}

TEST(a_stream_whose_queue_is_full_blocks_no_other)
{
	struct gpc_sim_stream *full = short_stream();
	struct gpc_sim_stream *other = short_stream();

	busy(full, 2 * MS);
	busy(full, 2 * MS);
	busy(other, 1 * MS);
	assert_int_equal(passed(), 0);
}

TEST(an_event_of_the_context_takes_a_place_in_each_stream_only_where_that_is_asked_for)
{
	struct gpc_sim_stream *stream = short_stream();
	struct gpc_sim_event *event = event_create();

	busy(stream, 2 * MS);
	busy(stream, 3 * MS);
	assert_int_equal(gpc_sim_context_record(context, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_context_wait(context, event), CUDA_SUCCESS);
	assert_int_equal(passed(), 0);
	sim->config.is_event_queued = true;
	assert_int_equal(gpc_sim_context_record(context, event), CUDA_SUCCESS);
	assert_int_equal(passed(), 2 * MS);
	/* The first kernel has ended; the second and the event are in. */
	assert_int_equal(gpc_sim_context_wait(context, event), CUDA_SUCCESS);
	assert_int_equal(passed(), 5 * MS);
}
