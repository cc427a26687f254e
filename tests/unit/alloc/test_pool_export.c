/* SPDX-License-Identifier: Apache-2.0 */
#include "one_stage.h"

FIXTURE(open_one_stream, close_stage);

#define TEST_WITH_FENCES(name) TEST_WITH(name, open_plain, close_stage)

TEST(an_exported_segment_is_not_handed_out_again)
{
	gpc_devptr a = stage_alloc(&stage, 4096);
	gpc_devptr b = stage_alloc(&stage, 4096);
	gpc_devptr base = 0;

	assert_int_equal(gpc_pool_export(&stage.pool, b + 100, &base), GPC_OK);
	assert_int_equal(base, a);
	assert_int_equal(gpc_pool_export(&stage.pool, b, &base), GPC_OK); /* twice is once */
	stage_check(&stage);
	stage_free(&stage, a);
	stage_check(&stage);
	assert_int_not_equal(stage_alloc(&stage, 4096), a);
	assert_int_equal(stage.drv.counters.n_mem_free, 0);
	stage_free(&stage, b);
	assert_int_equal(stage.drv.counters.n_mem_free, 1);
	assert_int_equal(stage_n_allocations(&stage), 1);
	assert_int_equal(gpc_pool_export(&stage.pool, b, &base), GPC_NOT_FOUND);
}

TEST(an_address_finds_its_segment_while_that_is_there)
{
	gpc_devptr a = stage_alloc(&stage, 4096);
	gpc_devptr base = 0;
	uint64_t size = 0;

	assert_int_equal(gpc_pool_segment_of(&stage.pool, a + 5000, &base, &size), GPC_OK);
	assert_int_equal(base, a);
	assert_int_equal(size, 2 * GPC_MIB);
	assert_int_equal(gpc_pool_segment_of(&stage.pool, a + size, &base, &size), GPC_NOT_FOUND);
	stage_free(&stage, a);
	assert_int_equal(gpc_pool_trim(&stage.pool, 1, true), 2 * GPC_MIB);
	assert_int_equal(gpc_pool_segment_of(&stage.pool, a, &base, &size), GPC_NOT_FOUND);
}

TEST(an_idle_segment_can_be_exported_and_trimmed)
{
	gpc_devptr a = stage_alloc(&stage, 4096);
	gpc_devptr base = 0;

	stage_free(&stage, a);
	assert_int_equal(gpc_pool_export(&stage.pool, a, &base), GPC_OK);
	stage_check(&stage);
	assert_int_equal(gpc_pool_trim(&stage.pool, 1, true), 2 * GPC_MIB);
}

static void export_it(gpc_devptr address)
{
	gpc_devptr base = 0;

	assert_int_equal(gpc_pool_export(&stage.pool, address, &base), GPC_OK);
	stage_check(&stage);
}

TEST_WITH_FENCES(an_exported_segment_goes_back_when_its_fence_has_passed)
{
	struct gpc_sim_stream *stream = stage_stream(&stage);
	gpc_devptr a = stage_alloc(&stage, 4096);

	export_it(a);
	stage_launch(&stage, stage_handle(stream), 5 * MS, a, 4096);
	stage_free(&stage, a);
	assert_int_equal(stage_n_allocations(&stage), 1);
	assert_int_equal(gpc_pool_reap(&stage.pool), 0);
	stage_pass_time(&stage, 6 * MS);
	assert_int_equal(stage_n_allocations(&stage), 1); /* nobody has looked yet */
	assert_true(gpc_pool_reap(&stage.pool) > 0);
	assert_int_equal(stage_n_allocations(&stage), 0);
	assert_int_equal(stage.pool.counters->reserved_bytes, 0);
}

TEST_WITH_FENCES(a_wait_of_the_program_sends_it_back)
{
	gpc_devptr a = stage_alloc(&stage, 4096);
	struct gpc_pool_sync sync;

	export_it(a);
	stage_free(&stage, a);
	sync = gpc_pool_begin_sync(&stage.pool);
	gpc_pool_end_sync(&stage.pool, sync, 1);
	assert_int_equal(stage_n_allocations(&stage), 0);
}

TEST_WITH_FENCES(a_wait_of_ours_sends_all_that_are_idle_back_and_nothing_else)
{
	gpc_devptr blocks[3];

	for (int i = 0; i < 3; i++)
		blocks[i] = stage_alloc(&stage, 12 * GPC_MIB);
	export_it(blocks[0]);
	export_it(blocks[1]);
	for (int i = 0; i < 3; i++)
		stage_free(&stage, blocks[i]);
	assert_int_equal(gpc_pool_wait(&stage.pool, 0), 36 * GPC_MIB);
	assert_int_equal(stage_n_allocations(&stage), 1);
	assert_int_equal(gpc_pool_wait(&stage.pool, 0), 0);
	/* Another thread was faster: what it took away is still counted at the first look. */
	stage.pool.n_leaving = 1;
	gpc_pool_return_exported(&stage.pool, true);
	assert_int_equal(stage_n_allocations(&stage), 1);
	stage.pool.n_leaving = 0;
}

TEST(a_capture_keeps_it_until_the_next_free)
{
	gpc_devptr a = stage_alloc(&stage, 4096);
	gpc_devptr b;

	export_it(a);
	gpc_captures_begin(&stage.heap.captures);
	stage_free(&stage, a);
	assert_int_equal(stage_n_allocations(&stage), 1);
	gpc_captures_end(&stage.heap.captures);
	stage_check(&stage);
	b = stage_alloc(&stage, 4096);
	assert_int_equal(stage_n_allocations(&stage), 2);
	stage_free(&stage, b);
	assert_int_equal(stage_n_allocations(&stage), 1); /* the new one */
}

TEST(the_first_view_of_a_block_binds)
{
	gpc_devptr a = stage_alloc(&stage, 4096);
	gpc_devptr b = stage_alloc(&stage, 8192);
	gpc_devptr c = stage_alloc(&stage, 4096);
	struct gpc_span span;

	assert_int_equal(gpc_pool_decide_view(&stage.pool, b + 5000, GPC_VIEW_OPEN, &span), GPC_OK);
	assert_int_equal(span.segment, a);
	assert_int_equal(span.block, b);
	assert_int_equal(span.size, 8192);
	assert_int_equal(span.view, GPC_VIEW_OPEN);
	assert_int_equal(gpc_pool_decide_view(&stage.pool, b, GPC_VIEW_OWN, &span), GPC_OK);
	assert_int_equal(gpc_pool_decide_view(&stage.pool, b, GPC_VIEW_SEGMENT, &span), GPC_OK);
	assert_int_equal(span.view, GPC_VIEW_OWN);
	assert_int_equal(gpc_pool_decide_view(&stage.pool, c, GPC_VIEW_SEGMENT, &span), GPC_OK);
	assert_int_equal(gpc_pool_decide_view(&stage.pool, c, GPC_VIEW_OWN, &span), GPC_OK);
	assert_int_equal(span.view, GPC_VIEW_SEGMENT);
	/* A block that starts its segment is that for everybody. */
	assert_int_equal(gpc_pool_decide_view(&stage.pool, a, GPC_VIEW_OWN, &span), GPC_OK);
	assert_int_equal(span.view, GPC_VIEW_SEGMENT);
	/* The next owner is asked anew. */
	stage_free(&stage, c);
	assert_int_equal(gpc_pool_decide_view(&stage.pool, c, GPC_VIEW_OWN, &span), GPC_INVALID);
	assert_int_equal(stage_alloc(&stage, 4096), c);
	assert_int_equal(gpc_pool_decide_view(&stage.pool, c, GPC_VIEW_OPEN, &span), GPC_OK);
	assert_int_equal(span.view, GPC_VIEW_OPEN);
	assert_int_equal(
		gpc_pool_decide_view(&stage.pool, 12345, GPC_VIEW_OPEN, &span), GPC_NOT_FOUND);
	stage_free(&stage, a);
	stage_free(&stage, b);
	stage_free(&stage, c);
}

static bool starts_its_segment(gpc_devptr address)
{
	const struct gpc_segment *segment = gpc_segment_map_find(&stage.heap.segment_map, address);

	return segment->address == address && !segment->first->next;
}

TEST(from_the_first_export_on_large_blocks_have_segments_of_their_own)
{
	static const uint64_t sizes[] = { 1 * GPC_MIB, 1 * GPC_MIB + 512, 2 * GPC_MIB, 5 * GPC_MIB,
		30 * GPC_MIB };
	gpc_devptr before[2] = { stage_alloc(&stage, 2 * GPC_MIB),
		stage_alloc(&stage, 2 * GPC_MIB) };
	gpc_devptr blocks[5];
	uint64_t reserved;

	assert_false(starts_its_segment(before[1]));
	stage_free(&stage, before[1]); /* of the right size, and inside */
	gpc_heap_set_apart(&stage.heap, GPC_WHOLE_EXPORTED);
	reserved = stage.pool.counters->reserved_bytes;
	for (int i = 0; i < 5; i++) {
		blocks[i] = stage_alloc(&stage, sizes[i]);
		assert_true(starts_its_segment(blocks[i]));
		reserved += gpc_size_tight_segment(sizes[i]);
		assert_int_equal(stage.pool.counters->reserved_bytes, reserved);
		stage_check(&stage);
	}
	/* Small ones go on sharing. */
	before[1] = stage_alloc(&stage, 4096);
	assert_false(starts_its_segment(before[1]));
	stage_free(&stage, before[1]);
	for (int i = 0; i < 5; i++)
		stage_free(&stage, blocks[i]);
	stage_free(&stage, before[0]);
}

TEST(a_program_that_queries_ranges_gets_own_segments_from_64_kib_on)
{
	gpc_devptr shared, blocks[3];

	shared = stage_alloc(&stage, 100 * GPC_KIB);
	gpc_heap_set_apart(&stage.heap, GPC_WHOLE_ASKED);
	gpc_heap_set_apart(&stage.heap, GPC_WHOLE_EXPORTED); /* takes nothing back */
	for (int i = 0; i < 3; i++) {
		blocks[i] = stage_alloc(&stage, GPC_WHOLE_ASKED << i);
		assert_true(starts_its_segment(blocks[i]));
		assert_true(blocks[i] - shared >= GPC_SMALL_SEGMENT || shared > blocks[i]);
		stage_check(&stage);
	}
	assert_int_equal(stage.pool.counters->n_segments, 4);
	/* Smaller ones, where there is room. */
	(void)stage_alloc(&stage, GPC_WHOLE_ASKED - GPC_GRAIN);
	assert_int_equal(stage.pool.counters->n_segments, 4);
	stage_free(&stage, blocks[1]);
	assert_int_equal(stage_alloc(&stage, GPC_WHOLE_ASKED), blocks[1]);
	stage_check(&stage);
}

TEST(small_blocks_share_when_a_fiftieth_of_the_room_is_lost_so)
{
	const uint64_t lost = GPC_SMALL_SEGMENT - GPC_WHOLE_ASKED;

	gpc_heap_set_apart(&stage.heap, GPC_WHOLE_ASKED);
	stage.budget.room_bytes = 50 * 3 * lost;
	stage.budget.looked_at_bytes = stage.budget.used_bytes;
	for (int i = 0; i < 20; i++)
		(void)stage_alloc(&stage, GPC_WHOLE_ASKED);
	stage_check(&stage);
	assert_int_equal(stage.pool.counters->n_segments, 4); /* three, and one for 17 */
}

TEST(whole_segments_are_used_again_where_little_is_wasted)
{
	gpc_devptr large;
	gpc_devptr small;

	gpc_heap_set_apart(&stage.heap, GPC_WHOLE_EXPORTED);
	large = stage_alloc(&stage, 40 * GPC_MIB);
	stage_free(&stage, large);
	assert_int_equal(stage_alloc(&stage, 40 * GPC_MIB), large);
	stage_free(&stage, large);
	small = stage_alloc(&stage, 20 * GPC_MIB);
	assert_int_not_equal(small, large);
	assert_int_equal(stage_alloc(&stage, 36 * GPC_MIB), large);
	assert_int_equal(stage.pool.counters->n_hit, 2);
	stage_free(&stage, large);
	stage_free(&stage, small);
	assert_int_equal(stage_alloc(&stage, 19 * GPC_MIB), small); /* the smallest that fits */
	stage_free(&stage, small);
}

/* Nine eighths of what the request needs, and one segment's alignment more. */
TEST(an_idle_segment_that_would_waste_more_than_an_eighth_is_not_given_whole)
{
	const uint64_t wanted = 32 * GPC_MIB;
	gpc_devptr enough;
	gpc_devptr large;

	gpc_heap_set_apart(&stage.heap, GPC_WHOLE_EXPORTED);
	enough = stage_alloc(&stage, wanted + wanted / 8);
	large = stage_alloc(&stage, wanted + wanted / 8 + GPC_SEGMENT_ALIGN);
	stage_free(&stage, large);
	assert_int_not_equal(stage_alloc(&stage, wanted), large);
	assert_int_equal(stage.pool.counters->n_hit, 0);
	stage_free(&stage, enough);
	assert_int_equal(stage_alloc(&stage, wanted), enough);
	assert_int_equal(stage.pool.counters->n_hit, 1);
}
