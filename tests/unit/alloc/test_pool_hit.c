/* SPDX-License-Identifier: Apache-2.0 */
#include "one_stage.h"

FIXTURE(open_one_stream, close_stage);

static struct gpc_block *block_at(gpc_devptr address)
{
	return gpc_pool_find_block_locked(
		&stage.pool, gpc_segment_map_find(&stage.heap.segment_map, address), address);
}

static bool is_parked(gpc_devptr address)
{
	return block_at(address)->state == GPC_BLOCK_PARKED;
}

TEST(a_request_takes_the_block_of_its_size_that_was_freed_last)
{
	gpc_devptr blocks[4];

	for (int i = 0; i < 4; i++)
		blocks[i] = stage_alloc(&stage, i < 2 ? 4096 : 8192);
	for (int i = 0; i < 4; i++)
		stage_free(&stage, blocks[i]);
	for (int i = 3; i >= 0; i--) {
		assert_true(is_parked(blocks[i]));
		assert_int_equal(stage_alloc(&stage, i < 2 ? 4000 : 8000), blocks[i]);
		assert_int_equal(block_at(blocks[i])->requested, i < 2 ? 4000 : 8000);
	}
	assert_int_equal(stage.pool.n_parked, 0);
	assert_int_equal(stage.pool.counters->n_hit, 7);
}

TEST(a_parked_block_counts_as_cached_and_can_go_back)
{
	gpc_devptr a = stage_alloc(&stage, 30 * GPC_MIB);

	stage_free(&stage, a);
	assert_true(is_parked(a));
	assert_int_equal(stage_counters(&stage).cached_bytes, 30 * GPC_MIB);
	assert_int_equal(stage_counters(&stage).live_bytes, 0);
	assert_int_equal(gpc_pool_idle(&stage.pool), 30 * GPC_MIB);
	assert_int_equal(gpc_pool_returnable(&stage.pool), 30 * GPC_MIB);
	assert_true(is_parked(a)); /* sums need no look */
	assert_int_equal(gpc_pool_largest_free(&stage.pool), 30 * GPC_MIB);
	assert_false(is_parked(a));
	assert_int_equal(stage_alloc(&stage, 30 * GPC_MIB), a);
	stage_free(&stage, a);
	assert_int_equal(gpc_pool_trim(&stage.pool, 1, true), 30 * GPC_MIB);
	assert_int_equal(stage_n_allocations(&stage), 0);
}

TEST(a_double_free_of_a_parked_block_is_an_error)
{
	gpc_devptr a = stage_alloc(&stage, 4096);

	stage_free(&stage, a);
	assert_int_equal(stage_try_free(&stage, a), GPC_INVALID);
	assert_int_equal(stage_try_free(&stage, a + 512), GPC_INVALID);
	assert_int_equal(gpc_pool_record_use(&stage.pool, a), GPC_INVALID);
	assert_true(is_parked(a));
}

TEST(a_request_of_another_size_finds_parked_neighbours_as_one_block)
{
	gpc_devptr quarters[4];

	for (int i = 0; i < 4; i++)
		quarters[i] = stage_alloc(&stage, GPC_MIB / 2);
	stage_free(&stage, quarters[2]);
	stage_free(&stage, quarters[1]);
	assert_int_equal(stage.pool.n_parked, 2);
	assert_int_equal(stage_alloc(&stage, GPC_MIB), quarters[1]);
	assert_int_equal(stage.pool.n_parked, 0);
	assert_int_equal(stage_n_allocations(&stage), 1);
}

TEST(sizes_that_share_a_slot_are_told_apart)
{
	const uint64_t next = GPC_MIB / 2 + GPC_PARKED_SLOTS * GPC_GRAIN;
	gpc_devptr a = stage_alloc(&stage, GPC_MIB / 2);
	gpc_devptr b = stage_alloc(&stage, next);

	stage_free(&stage, a);
	stage_free(&stage, b);
	assert_int_equal(stage_alloc(&stage, next), b);
	assert_int_equal(stage_alloc(&stage, GPC_MIB / 2), a);
	stage_free(&stage, a);
	stage_free(&stage, b);
	/* Not the one parked last: so all are unparked, and the best fit is found. */
	assert_int_equal(stage_alloc(&stage, GPC_MIB / 2), a);
	assert_int_equal(stage.pool.n_parked, 0);
}

TEST(no_more_blocks_are_parked_than_the_list_may_hold)
{
	gpc_devptr blocks[GPC_MAX_PARKED + 1];

	for (uint32_t i = 0; i <= GPC_MAX_PARKED; i++)
		blocks[i] = stage_alloc(&stage, 512);
	for (uint32_t i = 0; i < GPC_MAX_PARKED; i++)
		stage_free(&stage, blocks[i]);
	assert_int_equal(stage.pool.n_parked, GPC_MAX_PARKED);
	stage_free(&stage, blocks[GPC_MAX_PARKED]);
	assert_int_equal(stage.pool.n_parked, 1);
	assert_int_equal(stage_counters(&stage).cached_bytes, 2 * GPC_MIB);
}

TEST(idle_segments_keep_the_order_and_the_times_of_their_frees)
{
	uint64_t first = gpc_sim_clock_now(&stage.sim->clock) + MS;
	const struct gpc_segment *oldest;
	gpc_devptr blocks[3];

	for (int i = 0; i < 3; i++)
		blocks[i] = stage_alloc(&stage, (uint64_t)(i + 1) * 20 * GPC_MIB);
	for (int i = 2; i >= 0; i--) {
		stage_pass_time(&stage, MS);
		stage_free(&stage, blocks[i]);
	}
	assert_int_equal(stage.pool.n_parked, 3);
	assert_int_equal(gpc_pool_largest_free(&stage.pool), 60 * GPC_MIB);
	oldest = gpc_list_entry(stage.pool.idle.next, struct gpc_segment, idle);
	assert_int_equal(oldest->address, blocks[2]);
	assert_int_equal(oldest->idle_since_ns, first);
	assert_int_equal(gpc_pool_trim(&stage.pool, 100 * GPC_MIB, true), 100 * GPC_MIB);
	assert_int_equal(stage_alloc(&stage, 20 * GPC_MIB), blocks[0]);
}

TEST(what_could_not_serve_its_size_is_not_parked)
{
	gpc_devptr a = stage_alloc(&stage, 4096);
	gpc_devptr b = stage_alloc(&stage, 8 * GPC_MIB);
	struct gpc_request small = stage_request(&stage, 4096);
	gpc_devptr base;
	gpc_devptr c;

	/* A small block in a segment of large ones. */
	stage_free(&stage, stage_alloc(&stage, 2 * GPC_MIB - 4096));
	stage.budget.limit_bytes = stage.budget.used_bytes;
	stage_free(&stage, a);
	assert_int_equal(stage_alloc(&stage, 512), a);
	while (stage_try(&stage, 512 * 1024, &c) == GPC_OK)
		;
	assert_int_equal(gpc_pool_cut(&stage.pool, &small, &c), GPC_OK);
	while (block_at(c)->segment->kind == GPC_POOL_SMALL)
		assert_int_equal(gpc_pool_cut(&stage.pool, &small, &c), GPC_OK);
	stage_free(&stage, c);
	assert_int_equal(stage.pool.n_parked, 0);
	/* A block that another process may hold. */
	assert_int_equal(gpc_pool_export(&stage.pool, b, &base), GPC_OK);
	stage_free(&stage, b);
	assert_int_equal(stage.pool.n_parked, 0);
}

TEST(exporting_a_segment_withdraws_its_parked_blocks)
{
	gpc_devptr a = stage_alloc(&stage, 4096);
	gpc_devptr b = stage_alloc(&stage, 4096);
	gpc_devptr base;

	stage_free(&stage, a);
	assert_int_equal(gpc_pool_export(&stage.pool, b, &base), GPC_OK);
	assert_int_not_equal(stage_alloc(&stage, 4096), a);
}

TEST(a_block_that_needs_a_segment_of_its_own_takes_no_parked_one)
{
	gpc_devptr a = stage_alloc(&stage, 64 * GPC_KIB);
	gpc_devptr b = stage_alloc(&stage, 64 * GPC_KIB);

	stage_free(&stage, b);
	assert_true(is_parked(b));
	gpc_heap_set_apart(&stage.heap, GPC_WHOLE_ASKED);
	assert_int_not_equal(stage_alloc(&stage, 64 * GPC_KIB), b);
	stage_free(&stage, a);
}

TEST(a_context_that_dies_takes_its_parked_blocks_along)
{
	gpc_devptr a = stage_alloc(&stage, 4096);

	stage_free(&stage, a);
	gpc_pool_forget(&stage.pool);
	assert_int_equal(stage.pool.n_parked, 0);
	assert_int_equal(stage_try_free(&stage, a), GPC_NOT_FOUND);
}

static int open_with_barriers(void **state)
{
	struct gpc_sim_config config = stage_config();
	struct gpc_pool_params params = stage_params();

	params.has_barriers = true;
	stage_open_on(&stage, &config, &params, NULL);
	return 0;
}

#define TEST_BARRIER(name) TEST_WITH(name, open_with_barriers, close_stage)

TEST_BARRIER(the_next_owner_of_a_parked_block_works_behind_the_barrier)
{
	struct gpc_sim_stream *a = stage_stream(&stage);
	struct gpc_sim_stream *b = stage_stream(&stage);
	gpc_devptr block = stage_alloc(&stage, 4096);
	uint64_t start = gpc_sim_clock_now(&stage.sim->clock);

	stage_launch(&stage, stage_handle(a), 10 * MS, block, 4096);
	stage_free(&stage, block);
	assert_true(is_parked(block));
	assert_int_equal(stage.heap.duties->n_due, 1);
	assert_int_equal(stage_alloc(&stage, 4096), block);
	assert_int_equal(stage.heap.duties->n_due, 1);
	gpc_pool_raise_barrier(&stage.pool);
	stage_launch(
		&stage, stage_handle(b), MS, block, 4096); /* the simulated GPU checks for races */
	stage_free(&stage, block);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	assert_true(is_parked(block)); /* a barrier looks at no block */
	assert_true(gpc_sim_clock_now(&stage.sim->clock) >= start + 11 * MS);
}

TEST_BARRIER(memory_of_a_parked_block_goes_back_only_after_its_barrier)
{
	struct gpc_sim_stream *a = stage_stream(&stage);
	gpc_devptr block = stage_alloc(&stage, 30 * GPC_MIB);

	stage_launch(&stage, stage_handle(a), 10 * MS, block, 4096);
	stage_free(&stage, block);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 0);
	stage_pass_time(&stage, 10 * MS);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 30 * GPC_MIB);
}

TEST_BARRIER(a_free_in_stream_order_parks_nothing_before_its_fence)
{
	struct gpc_sim_stream *a = stage_stream(&stage);
	gpc_devptr block = stage_alloc(&stage, 4096);
	gpc_devptr other = stage_alloc(&stage, 8192);
	struct gpc_request request = stage_request(&stage, 0);

	request.stream = stage_handle(a);
	request.is_async = true;
	assert_int_equal(gpc_pool_free(&stage.pool, block, &request), GPC_OK);
	assert_int_equal(stage.pool.n_parked, 0);
	assert_int_equal(stage_counters(&stage).pending_bytes, 4096);
	/* What passes meets those that are parked beside it. */
	stage_free(&stage, other);
	assert_true(is_parked(other));
	assert_int_equal(gpc_pool_reap(&stage.pool), 4096);
	assert_int_equal(gpc_pool_largest_free(&stage.pool), 2 * GPC_MIB);
}
