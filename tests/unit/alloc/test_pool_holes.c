/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages of a segment go back to the driver, and when. */
#include "pages_stage.h"

FIXTURE(open_on, close_stage);

TEST(idle_pages_between_two_blocks_go_back)
{
	gpc_devptr first;
	gpc_devptr last;

	make_gap(&first, &last);
	assert_int_equal(gpc_pool_returnable(&stage.pool), 92 * GPC_MIB);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 92 * GPC_MIB);
	assert_int_equal(gpc_pool_returnable(&stage.pool), 0);
	assert_int_equal(used(), 8 * GPC_MIB);
	assert_int_equal(stage.pool.counters->reserved_bytes, 8 * GPC_MIB);
	assert_int_equal(stage.pool.counters->n_segments, 2);
	stage_check(&stage);
	(void)stage_alloc(&stage, 230 * GPC_MIB);
	stage_free(&stage, last);
	stage_free(&stage, first);
	stage_check(&stage);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 8 * GPC_MIB);
	assert_int_equal(used(), 230 * GPC_MIB);
}

static gpc_devptr behind;
static bool is_lost;

/* As a thread that frees `behind`, without the pool's lock. */
static void look_for_pool(const struct gpc_block *block, uint64_t now_ns)
{
	is_lost |= gpc_heap_find_pool(&stage.heap, behind) != &stage.pool;
}

TEST(the_blocks_behind_the_pages_are_found_at_every_moment)
{
	gpc_devptr middle;

	stage_free(&stage, stage_alloc(&stage, 60 * GPC_MIB));
	(void)stage_alloc(&stage, 20 * GPC_MIB);
	middle = stage_alloc(&stage, 20 * GPC_MIB);
	behind = stage_alloc(&stage, 20 * GPC_MIB);
	stage_free(&stage, middle);
	is_lost = false;
	stage.heap.observer.block_changed = look_for_pool;
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 20 * GPC_MIB);
	assert_false(is_lost);
}

TEST(no_more_goes_back_than_is_wanted)
{
	gpc_devptr first;
	gpc_devptr last;

	make_gap(&first, &last);
	assert_int_equal(gpc_pool_trim(&stage.pool, 9 * GPC_MIB, true), 10 * GPC_MIB);
	assert_int_equal(used(), 90 * GPC_MIB);
	stage_check(&stage);
	/* What stays is used first. */
	(void)stage_alloc(&stage, 80 * GPC_MIB);
	assert_int_equal(used(), 90 * GPC_MIB);
}

TEST(of_an_idle_segment_only_the_wanted_pages_go)
{
	stage_free(&stage, stage_alloc(&stage, 101 * GPC_MIB));
	assert_int_equal(gpc_pool_trim(&stage.pool, 1, true), 2 * GPC_MIB);
	assert_int_equal(used(), 100 * GPC_MIB);
	stage_check(&stage);
	assert_int_equal(gpc_pool_trim(&stage.pool, 99 * GPC_MIB, true), 100 * GPC_MIB);
	assert_int_equal(used(), 0);
}

TEST(the_free_ends_of_a_segment_go_back)
{
	gpc_devptr blocks[3];

	stage_free(&stage, stage_alloc(&stage, 60 * GPC_MIB));
	for (int i = 0; i < 3; i++)
		blocks[i] = stage_alloc(&stage, 20 * GPC_MIB);
	stage_free(&stage, blocks[0]);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 20 * GPC_MIB);
	stage_check(&stage);
	stage_free(&stage, blocks[2]);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 20 * GPC_MIB);
	stage_check(&stage);
	assert_int_equal(stage.pool.counters->n_segments, 1);
	stage_free(&stage, blocks[1]);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 20 * GPC_MIB);
}

TEST(a_block_within_one_page_sends_none_back)
{
	gpc_devptr pieces[3];

	for (int i = 0; i < 3; i++)
		pieces[i] = stage_alloc(&stage, GPC_MIB + 512);
	stage_free(&stage, pieces[1]);
	(void)gpc_pool_trim(&stage.pool, UINT64_MAX, true); /* the segment's end */
	assert_int_equal(used(), 4 * GPC_MIB);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 0);
}

TEST(a_request_is_served_where_idle_pages_are_enough)
{
	gpc_devptr held[8];
	gpc_devptr large;

	/* Stripes of 16 MiB fill the device, and every other is free. */
	for (int i = 0; i < 8; i++) {
		held[i] = stage_alloc(&stage, 16 * GPC_MIB);
		(void)stage_alloc(&stage, 16 * GPC_MIB);
	}
	for (int i = 0; i < 8; i++)
		stage_free(&stage, held[i]);
	assert_int_equal(stage_try(&stage, 128 * GPC_MIB, &large), GPC_DEVICE_NO_MEMORY);
	assert_int_equal(gpc_pool_trim(&stage.pool, 128 * GPC_MIB, true), 128 * GPC_MIB);
	(void)stage_alloc(&stage, 128 * GPC_MIB);
	assert_int_equal(used(), DEVICE);
}

/* Nothing is unmapped while work from before the last free runs. */
static void expect_pages_wait_for_work(enum gpc_vmm vmm, bool is_one_stream, bool has_barriers)
{
	gpc_devptr first;
	gpc_devptr last;
	gpc_devptr middle;

	open_mode(vmm, is_one_stream);
	stage.pool.params.has_barriers = has_barriers;
	make_gap(&first, &last);
	middle = stage_alloc(&stage, 94 * GPC_MIB);
	stage_launch(&stage, 0, 5 * MS, middle, 94 * GPC_MIB);
	stage_free(&stage, middle);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 0);
	assert_int_equal(stage.drv.counters.n_page_unmap, 0);
	stage_pass_time(&stage, 6 * MS);
	(void)gpc_pool_reap(&stage.pool);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 92 * GPC_MIB);
	assert_int_equal(gpc_sim_context_state(stage.drv.context), CUDA_SUCCESS);
}

TEST_OWN(under_the_one_stream_rule_pages_wait_for_their_work)
{
	expect_pages_wait_for_work(GPC_VMM_ON, true, false);
}

TEST_OWN(behind_a_barrier_pages_wait_for_their_work)
{
	expect_pages_wait_for_work(GPC_VMM_ON, false, true);
}

TEST_OWN(pages_go_back_beside_work_that_began_after_their_last_free)
{
	gpc_devptr first;
	gpc_devptr last;
	uint64_t start;

	open_mode(GPC_VMM_ON, false);
	stage.pool.params.has_barriers = true;
	make_gap(&first, &last);
	gpc_pool_raise_barrier(&stage.pool);
	stage_launch(&stage, 0, 5 * MS, last, 3 * GPC_MIB);
	start = gpc_sim_clock_now(&stage.sim->clock);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, false), 92 * GPC_MIB);
	assert_int_equal(gpc_pool_ask_idle(&stage.pool), GPC_DEVICE_NOT_READY);
	assert_int_equal(gpc_sim_clock_now(&stage.sim->clock), start);
	assert_int_equal(gpc_sim_context_state(stage.drv.context), CUDA_SUCCESS);
}

TEST_OWN(a_pending_block_keeps_its_pages)
{
	gpc_devptr middle;

	open_mode(GPC_VMM_ON, false);
	(void)stage_alloc(&stage, 3 * GPC_MIB);
	middle = stage_alloc(&stage, 10 * GPC_MIB);
	stage_launch(&stage, 0, 5 * MS, middle, 10 * GPC_MIB);
	stage_free(&stage, middle);
	assert_int_equal(stage.pool.counters->pending_bytes, 10 * GPC_MIB);
	(void)gpc_pool_trim(&stage.pool, UINT64_MAX, true); /* the rest behind it */
	assert_int_equal(used(), 14 * GPC_MIB);
	stage_pass_time(&stage, 6 * MS);
	(void)gpc_pool_reap(&stage.pool);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 10 * GPC_MIB);
}

TEST(without_metadata_there_is_no_hole)
{
	gpc_devptr first;
	gpc_devptr last;

	make_gap(&first, &last);
	stage.heap.segments.max_items = stage.heap.segments.n_used;
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 0);
	assert_int_equal(used(), 100 * GPC_MIB);
	stage_check(&stage);
	stage.heap.segments.max_items = GPC_MAX_SEGMENTS;
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 92 * GPC_MIB);
}
