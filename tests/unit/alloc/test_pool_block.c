/* SPDX-License-Identifier: Apache-2.0 */
#include "one_stage.h"

FIXTURE(open_one_stream, close_stage);

TEST_WITH(blocks_that_passed_merge_with_their_neighbours, open_plain, close_stage)
{
	gpc_devptr a = stage_alloc(&stage, GPC_MIB);
	gpc_devptr b = stage_alloc(&stage, GPC_MIB);

	stage_free(&stage, b);
	stage_free(&stage, a);
	assert_int_equal(gpc_pool_largest_free(&stage.pool), 0);
	assert_int_equal(gpc_pool_reap(&stage.pool), 2 * GPC_MIB);
	assert_int_equal(gpc_pool_largest_free(&stage.pool), 2 * GPC_MIB);
	assert_int_equal(stage.heap.blocks.n_live, 2); /* one is spare */
}

TEST(freed_neighbours_merge_in_every_order)
{
	static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 },
		{ 2, 0, 1 }, { 2, 1, 0 } };

	for (size_t i = 0; i < N_OF(orders); i++) {
		gpc_devptr a[3];

		for (int k = 0; k < 3; k++)
			a[k] = stage_alloc(&stage, 4096);
		for (int k = 0; k < 3; k++) {
			stage_free(&stage, a[orders[i][k]]);
			stage_check(&stage);
		}
		assert_int_equal(gpc_pool_largest_free(&stage.pool), 2 * GPC_MIB);
	}
}

TEST(a_free_and_a_malloc_leave_the_numbers_of_blocks_alone)
{
	const struct gpc_slab *slab = &stage.heap.blocks;
	gpc_devptr a = stage_alloc(&stage, 4096);

	assert_int_equal(slab->n_live, 2);
	for (int i = 0; i < 3; i++) {
		stage_free(&stage, a);
		assert_int_equal(slab->n_live, 2); /* one is spare */
		assert_int_equal(stage_alloc(&stage, 4096), a);
		assert_int_equal(slab->n_live, 2);
	}
	assert_int_equal(slab->n_used, 2);
}

/* From the first, the second, ... piece of metadata on there is none, while blocks are cut one by one. */
TEST_WITH(without_metadata_a_block_is_given_whole_and_nothing_is_lost, NULL, NULL)
{
	gpc_devptr address;
	unsigned n_whole = 0;

	for (unsigned nth = 1; nth <= 14; nth++) {
		struct gpc_pool_params params = stage_params();
		enum gpc_status st = GPC_OK;

		params.is_one_stream = true;
		stage_open(&stage, &params);
		gpc_metamem_fail_at(nth);
		for (int i = 0; i < 9000 && !st; i++) {
			uint64_t live = stage.pool.counters->live_bytes;

			/* The first is larger: so the second segment still gets a block, and no second one. */
			st = stage_try(&stage, i ? 512 : 1024, &address);
			n_whole += !st && stage.pool.counters->live_bytes > live + 1024;
			assert_true(st == GPC_OK || st == GPC_NO_METADATA);
		}
		gpc_metamem_fail_at(0);
		(close_stage)(state);
	}
	assert_true(n_whole > 0);
}
