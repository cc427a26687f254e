/* SPDX-License-Identifier: Apache-2.0 */
#include "one_stage.h"

FIXTURE(NULL, close_stage);

/* A device with this much for us, where a freed block is FREE at once. */
static void open_room(uint64_t bytes)
{
	struct gpc_sim_config config = stage_config();
	struct gpc_pool_params params = stage_params();

	config.memory = bytes;
	config.context_cost = 0;
	params.is_one_stream = true;
	stage_open_on(&stage, &config, &params, NULL);
}

static uint64_t n_looks(void)
{
	return stage.drv.counters.n_mem_info;
}

TEST(an_idle_segment_is_cut_while_there_is_plenty)
{
	gpc_devptr large;

	open_room(8 * GPC_GIB);
	large = stage_alloc(&stage, GPC_GIB);
	stage_free(&stage, large);
	assert_int_equal(stage_alloc(&stage, 130 * GPC_MIB), large);
	assert_int_equal(stage.pool.cut_bytes, GPC_GIB);
}

TEST(a_segment_stays_whole_if_its_piece_would_pin_needed_room)
{
	gpc_devptr large;
	gpc_devptr small;

	open_room(2 * GPC_GIB);
	large = stage_alloc(&stage, GPC_GIB);
	stage_free(&stage, large);
	small = stage_alloc(&stage, 30 * GPC_MIB);
	assert_int_not_equal(small, large);
	assert_int_equal(stage.pool.counters->reserved_bytes, GPC_GIB + 30 * GPC_MIB);
	assert_int_equal(stage.pool.cut_bytes, 0);
	assert_int_equal(stage_alloc(&stage, GPC_GIB), large);
}

TEST(cut_segments_are_limited_to_two_fifths_of_the_slack)
{
	open_room(GPC_GIB);
	stage_free(&stage, stage_alloc(&stage, 24 * GPC_MIB)); /* slack: 1000 MiB */
	assert_true(gpc_pool_may_cut(&stage.pool, 400 * GPC_MIB, 60 * GPC_MIB));
	assert_false(gpc_pool_may_cut(&stage.pool, 400 * GPC_MIB + GPC_GRAIN, 60 * GPC_MIB));
	(void)stage_alloc(&stage, 4 * GPC_MIB);
	assert_int_equal(stage.pool.cut_bytes, 24 * GPC_MIB);
	assert_true(gpc_pool_may_cut(&stage.pool, 376 * GPC_MIB, 60 * GPC_MIB));
	assert_false(gpc_pool_may_cut(&stage.pool, 376 * GPC_MIB + GPC_GRAIN, 60 * GPC_MIB));
}

TEST(a_large_part_of_the_slack_is_not_cut_for_a_small_piece)
{
	open_room(GPC_GIB);
	stage_free(&stage, stage_alloc(&stage, 24 * GPC_MIB)); /* slack: 1000 MiB */
	assert_true(gpc_pool_may_cut(&stage.pool, 62 * GPC_MIB, 2 * GPC_MIB));
	assert_true(gpc_pool_may_cut(&stage.pool, 64 * GPC_MIB, 8 * GPC_MIB));
	assert_false(gpc_pool_may_cut(&stage.pool, 64 * GPC_MIB, 8 * GPC_MIB - GPC_GRAIN));
	assert_true(gpc_pool_may_cut(&stage.pool, GPC_MEDIUM_SEGMENT, 2 * GPC_MIB));
}

TEST(a_segment_counts_as_cut_until_its_last_piece_is_free)
{
	gpc_devptr pieces[3];

	open_room(8 * GPC_GIB);
	for (int i = 0; i < 3; i++)
		pieces[i] = stage_alloc(&stage, 5 * GPC_MIB);
	(void)stage_alloc(&stage, 4096); /* the small pool has its own rule */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(stage.pool.cut_bytes, 20 * GPC_MIB);
		stage_free(&stage, pieces[i]);
	}
	assert_int_equal(gpc_pool_largest_free(&stage.pool), 20 * GPC_MIB); /* it looks */
	assert_int_equal(stage.pool.cut_bytes, 0);
}

TEST(memory_without_live_blocks_can_go_back)
{
	gpc_devptr pieces[2];
	gpc_devptr large;

	open_room(8 * GPC_GIB);
	pieces[0] = stage_alloc(&stage, 5 * GPC_MIB);
	pieces[1] = stage_alloc(&stage, 5 * GPC_MIB);
	large = stage_alloc(&stage, 100 * GPC_MIB);
	assert_int_equal(gpc_pool_returnable(&stage.pool), 0);
	stage_free(&stage, pieces[0]);
	assert_int_equal(gpc_pool_returnable(&stage.pool), 0);
	stage_free(&stage, large);
	assert_int_equal(gpc_pool_returnable(&stage.pool), 100 * GPC_MIB);
	stage_free(&stage, pieces[1]);
	assert_int_equal(gpc_pool_returnable(&stage.pool), 120 * GPC_MIB);
	assert_int_equal(gpc_pool_trim(&stage.pool, 100 * GPC_MIB, true), 100 * GPC_MIB);
	assert_int_equal(gpc_pool_returnable(&stage.pool), 20 * GPC_MIB);
}

TEST(pending_memory_counts_as_returnable)
{
	struct gpc_pool_params params = stage_params();
	gpc_devptr block;

	stage_open(&stage, &params); /* a freed block waits for its fence */
	block = stage_alloc(&stage, 100 * GPC_MIB);
	stage_free(&stage, block);
	assert_int_equal(stage.pool.counters->pending_bytes, 100 * GPC_MIB);
	assert_int_equal(gpc_pool_returnable(&stage.pool), 100 * GPC_MIB);
}

TEST(on_a_nearly_full_device_a_block_that_fills_a_segment_gets_its_own)
{
	open_room(GPC_GIB);
	(void)stage_alloc(&stage, 980 * GPC_MIB);
	(void)stage_alloc(&stage, 6 * GPC_MIB);
	assert_int_equal(stage.pool.counters->reserved_bytes, 986 * GPC_MIB);
}

TEST(on_a_nearly_full_device_blocks_share_while_rounding_would_waste_more)
{
	gpc_devptr blocks[4];

	open_room(GPC_GIB);
	(void)stage_alloc(&stage, 960 * GPC_MIB);
	for (int i = 0; i < 4; i++)
		blocks[i] = stage_alloc(&stage, 5 * GPC_MIB); /* alone: 6 MiB */
	assert_int_equal(stage.pool.counters->reserved_bytes, 980 * GPC_MIB);
	stage_free(&stage, blocks[1]); /* 5 of 20 MiB are stranded; 7 MiB alone waste 1 */
	assert_false(gpc_pool_may_cut(&stage.pool, 20 * GPC_MIB, 7 * GPC_MIB));
	assert_true(gpc_pool_may_cut(&stage.pool, 20 * GPC_MIB, 2 * GPC_MIB + 256 * GPC_KIB));
	assert_false(gpc_pool_may_cut(&stage.pool, 20 * GPC_MIB, 4 * GPC_MIB));
	assert_false(gpc_pool_may_cut(&stage.pool, 22 * GPC_MIB, 2 * GPC_MIB + 256 * GPC_KIB));
	(void)stage_alloc(&stage, 7 * GPC_MIB);
	assert_int_equal(stage.pool.counters->reserved_bytes, 988 * GPC_MIB);
}

TEST(an_idle_segment_is_shared_again_on_the_terms_of_a_new_one)
{
	gpc_devptr block;

	open_room(GPC_GIB);
	(void)stage_alloc(&stage, 980 * GPC_MIB);
	block = stage_alloc(&stage, 5 * GPC_MIB);
	stage_free(&stage, block);
	assert_int_equal(stage_alloc(&stage, 3 * GPC_MIB), block);
	assert_int_equal(stage.pool.cut_bytes, 20 * GPC_MIB);
	assert_int_equal(stage.pool.counters->reserved_bytes, 1000 * GPC_MIB);
}

TEST(once_memory_was_refused_a_block_that_fills_a_segment_splits_no_piece)
{
	gpc_devptr pieces[5];
	gpc_devptr block;

	open_room(GPC_GIB);
	for (int i = 0; i < 5; i++)
		pieces[i] = stage_alloc(&stage, 4 * GPC_MIB); /* one segment */
	block = stage_alloc(&stage, 990 * GPC_MIB);
	stage_free(&stage, pieces[1]);
	stage_free(&stage, pieces[2]);
	assert_int_equal(stage_try(&stage, 20 * GPC_MIB, &block), GPC_DEVICE_NO_MEMORY);
	(void)stage_alloc(&stage, 6 * GPC_MIB);
	assert_int_equal(stage.pool.counters->reserved_bytes, 1016 * GPC_MIB);
	assert_int_equal(stage_alloc(&stage, 8 * GPC_MIB), pieces[1]); /* exactly */
}

TEST(a_request_for_more_than_all_the_room_changes_no_policy)
{
	gpc_devptr large;

	open_room(2 * GPC_GIB);
	(void)stage_alloc(&stage, GPC_GIB + 824 * GPC_MIB);
	large = stage_alloc(&stage, 100 * GPC_MIB);
	stage_free(&stage, large);
	assert_int_equal(stage_try(&stage, 3 * GPC_GIB, &large), GPC_DEVICE_NO_MEMORY);
	assert_int_equal(stage_alloc(&stage, 94 * GPC_MIB), large); /* uncut, as before */
	stage_free(&stage, large);
	assert_int_equal(stage_try(&stage, 124 * GPC_MIB, &large), GPC_DEVICE_NO_MEMORY);
	assert_int_equal(stage_try(&stage, 94 * GPC_MIB, &large), GPC_OK);
	assert_int_equal(stage.pool.counters->n_driver_malloc, 3);
}

TEST(a_request_for_more_than_the_limit_changes_no_policy)
{
	gpc_devptr block;

	open_room(8 * GPC_GIB);
	stage.budget.limit_bytes = GPC_GIB;
	block = stage_alloc(&stage, 600 * GPC_MIB);
	assert_int_equal(stage_try(&stage, GPC_GIB + GPC_MIB, &block), GPC_LIMIT);
	assert_false(atomic_load(&stage.pool.is_pressed));
	assert_int_equal(stage_try(&stage, 500 * GPC_MIB, &block), GPC_LIMIT);
	assert_true(atomic_load(&stage.pool.is_pressed));
}

TEST(a_segment_somewhat_too_large_is_given_uncut)
{
	gpc_devptr large;

	open_room(2 * GPC_GIB);
	(void)stage_alloc(&stage, GPC_GIB + 824 * GPC_MIB);
	large = stage_alloc(&stage, 100 * GPC_MIB);
	stage_free(&stage, large);
	assert_int_equal(stage_alloc(&stage, 94 * GPC_MIB), large);
	assert_int_equal(stage.pool.cut_bytes, 0);
}

TEST(all_that_is_wasted_so_is_a_sixteenth_of_the_slack)
{
	open_room(1000 * GPC_MIB);
	(void)stage_alloc(&stage, 40 * GPC_MIB);
	assert_true(gpc_pool_may_waste(&stage.pool, 180 * GPC_MIB, 120 * GPC_MIB));
	assert_false(gpc_pool_may_waste(&stage.pool, 182 * GPC_MIB, 122 * GPC_MIB - GPC_GRAIN));
	assert_false(gpc_pool_may_waste(&stage.pool, 30 * GPC_MIB, 20 * GPC_MIB - GPC_GRAIN));
}

TEST(a_limit_is_all_the_room_there_is)
{
	open_room(8 * GPC_GIB);
	stage.budget.limit_bytes = GPC_GIB;
	(void)stage_alloc(&stage, 24 * GPC_MIB);
	assert_true(gpc_pool_may_cut(&stage.pool, 400 * GPC_MIB, 60 * GPC_MIB));
	assert_false(gpc_pool_may_cut(&stage.pool, 400 * GPC_MIB + GPC_GRAIN, 60 * GPC_MIB));
}

TEST(memory_of_other_processes_is_no_room)
{
	open_room(8 * GPC_GIB);
	(void)stage_alloc(&stage, 24 * GPC_MIB);
	stage.budget.used_bytes += 7 * GPC_GIB;
	assert_true(gpc_pool_may_cut(&stage.pool, 400 * GPC_MIB, 60 * GPC_MIB));
	assert_false(gpc_pool_may_cut(&stage.pool, 400 * GPC_MIB + 2 * GPC_GRAIN, 60 * GPC_MIB));
	stage.budget.used_bytes +=
		2 * GPC_GIB; /* more than the device has: what was known is old */
	assert_false(gpc_pool_may_cut(&stage.pool, GPC_GRAIN, 60 * GPC_MIB));
	stage.budget.used_bytes -= 9 * GPC_GIB;
}

TEST(the_driver_is_asked_once_for_an_eighth_of_the_room)
{
	gpc_devptr blocks[16];

	open_room(8 * GPC_GIB);
	for (int i = 0; i < 16; i++)
		blocks[i] = stage_alloc(&stage, 500 * GPC_MIB);
	assert_int_equal(n_looks(), 6); /* at first, and whenever more than 1 GiB has come since */
	for (int i = 0; i < 16; i++)
		stage_free(&stage, blocks[i]);
	assert_int_equal(stage_alloc(&stage, 500 * GPC_MIB), blocks[15]);
	assert_int_equal(n_looks(), 6); /* a hit asks nobody */
}

TEST(a_refusal_updates_the_free_memory)
{
	struct gpc_request request;
	gpc_devptr address;
	gpc_devptr foreign = 0;

	open_room(8 * GPC_GIB);
	(void)stage_alloc(&stage, 2 * GPC_MIB);
	assert_int_equal(stage.budget.room_bytes, 8 * GPC_GIB);
	assert_int_equal(
		stage.drv.base.ops->mem_alloc(&stage.drv.base, 7 * GPC_GIB, &foreign), GPC_OK);
	request = stage_request(&stage, 2 * GPC_GIB);
	assert_int_equal(gpc_pool_alloc(&stage.pool, &request, &address), GPC_DEVICE_NO_MEMORY);
	assert_int_equal(stage.budget.room_bytes, GPC_GIB);
	/* That there is none for it again is no news. */
	assert_int_equal(n_looks(), 2);
	assert_int_equal(gpc_pool_alloc(&stage.pool, &request, &address), GPC_DEVICE_NO_MEMORY);
	assert_int_equal(n_looks(), 2);
	assert_int_equal(stage.drv.base.ops->mem_free(&stage.drv.base, foreign), GPC_OK);
}

TEST(a_driver_that_does_not_say_is_taken_to_have_plenty)
{
	open_room(GPC_GIB);
	assert_true(gpc_sim_fault_add(&stage.sim->faults, "cuMemGetInfo", 1, 100, 1));
	(void)stage_alloc(&stage, 900 * GPC_MIB);
	assert_int_equal(stage.budget.room_bytes, 0);
	assert_true(gpc_pool_may_cut(&stage.pool, 900 * GPC_MIB, 60 * GPC_MIB));
	assert_true(gpc_pool_may_waste(&stage.pool, 900 * GPC_MIB, 700 * GPC_MIB));
}

TEST(the_device_is_not_queried_while_a_capture_is_open)
{
	open_room(GPC_GIB);
	gpc_captures_begin(&stage.heap.captures);
	(void)stage_alloc(&stage, 900 * GPC_MIB);
	assert_int_equal(n_looks(), 0);
	gpc_captures_end(&stage.heap.captures);
}
