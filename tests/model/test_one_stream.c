/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Races with the end of the one-stream rule: cases that tests/prove found, written by hand.  Memory was reused without
 * a fence, while work of its old owner runs on the legacy stream.
 */
#include "tests/unit/alloc/stage.h"

#define WORK_NS (10 * MS)

static struct stage stage;

static int set_up(void **state)
{
	struct gpc_pool_params params = stage_params();
	gpc_devptr first;

	params.is_one_stream = true;
	stage_open(&stage, &params);
	first = stage_alloc(&stage, GPC_MIB);
	stage_launch(&stage, 0, WORK_NS, first, GPC_MIB);
	stage_free(&stage, first);
	return stage_alloc(&stage, GPC_MIB) == first ? 0 : -1;
}

static int tear_down(void **state)
{
	stage_close(&stage);
	return 0;
}

FIXTURE(set_up, tear_down);

static enum gpc_status tell(const struct gpc_sim_stream *stream)
{
	return gpc_fences_stream_created(&stage.pool.fences, stage_handle(stream));
}

/* True if the new owner's work on this stream starts after the old owner's work has ended. */
static bool is_behind_the_old_work(const struct gpc_sim_stream *stream)
{
	return atomic_load(&stream->tail_ns) >= GPC_SIM_CLOCK_START + WORK_NS;
}

TEST(a_stream_created_after_the_first_per_thread_use_is_ordered_too)
{
	struct gpc_sim_stream *stream = stage_stream(&stage);

	gpc_fences_per_thread_stream_used(&stage.pool.fences);
	assert_int_equal(tell(stream), GPC_OK);
	assert_true(is_behind_the_old_work(stream));
}

TEST(a_stream_made_after_the_record_failed_tries_again)
{
	struct gpc_sim_stream *first = stage_stream(&stage);
	struct gpc_sim_stream *second = stage_stream(&stage);

	assert_true(gpc_sim_fault_add(&stage.sim->faults, "cuEventRecord", 1, 1, 2));
	assert_int_equal(tell(first), GPC_DEVICE_NO_MEMORY);
	assert_int_equal(tell(second), GPC_OK);
	assert_true(is_behind_the_old_work(second));
}

TEST(a_peer_waits_also_where_a_stream_ended_the_rule_before)
{
	struct gpc_sim_stream *stream = stage_stream(&stage);

	assert_int_equal(tell(stream), GPC_OK);
	assert_true(is_behind_the_old_work(stream));
	assert_true(gpc_fences_peer_comes(&stage.pool.fences));
}

TEST(a_peer_waits_where_nothing_could_be_recorded)
{
	assert_true(gpc_sim_fault_add(&stage.sim->faults, "cuEventCreate", 1, 1, 2));
	assert_true(gpc_fences_peer_comes(&stage.pool.fences));
	assert_false(gpc_fences_is_free_safe(&stage.pool.fences));
}

TEST(where_there_never_was_one_stream_a_peer_need_not_wait)
{
	struct gpc_fences fences;

	gpc_fences_init(&fences, &stage.drv.base, &stage.heap.captures, false);
	assert_false(gpc_fences_peer_comes(&fences));
}
