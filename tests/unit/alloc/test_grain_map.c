/* SPDX-License-Identifier: Apache-2.0 */
/* The sets of a grain map, compared with an array of booleans; and their use by the pool. */
#include "one_stage.h"

FIXTURE(open_one_stream, close_stage);

static struct gpc_grain_map map;

static uint32_t lowest_of(const bool *is_in)
{
	uint32_t grain = 0;

	while (grain < GPC_GRAINS && !is_in[grain])
		grain++;
	return grain;
}

TEST_WITH(a_set_agrees_with_an_array, NULL, NULL)
{
	struct gpc_grain_set *set = gpc_grain_map_set(&map, GPC_GRAIN);
	static bool is_in[GPC_GRAINS];
	uint64_t dice = 1;
	uint32_t n = 0;

	assert_int_equal(gpc_grain_set_lowest(set), GPC_GRAINS);
	for (int step = 0; step < 20000; step++) {
		uint32_t grain;

		dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		/* Few at first: so that whole words become empty, too. */
		grain = (uint32_t)(dice >> 33) % GPC_GRAINS & (step < 10000 ? 0xf83 : 0xfff);
		if (is_in[grain])
			gpc_grain_set_remove(set, grain);
		else
			gpc_grain_set_add(set, grain);
		is_in[grain] = !is_in[grain];
		n += is_in[grain] ? 1 : UINT32_MAX;
		assert_int_equal(gpc_grain_set_has(set, grain), is_in[grain]);
		assert_int_equal(gpc_grain_set_lowest(set), lowest_of(is_in));
	}
	assert_int_equal(gpc_grain_set_count(set), n);
}

TEST_WITH(each_small_size_has_a_set_and_no_larger_one, NULL, NULL)
{
	for (uint64_t n = 1; n <= GPC_GRAIN_SIZES; n++)
		assert_ptr_equal(gpc_grain_map_set(&map, n * GPC_GRAIN), &map.vacant[n - 1]);
	assert_null(gpc_grain_map_set(&map, (GPC_GRAIN_SIZES + 1) * GPC_GRAIN));
}

/* Of each size the lowest block is given first, in whichever order they were freed. */
TEST(small_blocks_freed_in_any_order_are_given_from_the_lowest_on)
{
	enum {
		N = 64
	};
	gpc_devptr kept[N];
	gpc_devptr freed[N];

	for (uint64_t size = GPC_GRAIN; size <= (GPC_GRAIN_SIZES + 2) * GPC_GRAIN;
		size += GPC_GRAIN) {
		for (int i = 0; i < N; i++) {
			freed[i] = stage_alloc(&stage, size);
			kept[i] = stage_alloc(&stage, size);
		}
		for (int i = 0; i < N; i++) {
			stage_free(&stage, freed[i * 29 % N]);
			stage_check(&stage);
		}
		for (int i = 0; i < N; i++) {
			assert_int_equal(stage_alloc(&stage, size), freed[i]);
			stage_check(&stage);
		}
		for (int i = 0; i < N; i++) {
			stage_free(&stage, freed[i]);
			stage_free(&stage, kept[i]);
		}
	}
	assert_int_equal(stage.pool.counters->live_bytes, 0);
}

TEST(an_interior_pointer_of_a_small_block_is_not_freed)
{
	const struct gpc_request request = { 0 };
	gpc_devptr block = stage_alloc(&stage, 4096);

	assert_int_equal(gpc_pool_free(&stage.pool, block + 1, &request), GPC_INVALID);
	assert_int_equal(gpc_pool_free(&stage.pool, block + GPC_GRAIN, &request), GPC_INVALID);
	assert_int_equal(gpc_pool_free(&stage.pool, block, &request), GPC_OK);
	assert_int_equal(gpc_pool_free(&stage.pool, block, &request), GPC_INVALID);
}

TEST(the_map_of_a_segment_that_goes_back_is_empty_for_the_next)
{
	gpc_devptr block = stage_alloc(&stage, 4096);

	assert_int_equal(stage.heap.grain_maps.n_live, 1);
	stage_free(&stage, block);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 2 * GPC_MIB);
	assert_int_equal(stage.heap.grain_maps.n_live, 0);
	(void)stage_alloc(&stage, 512);
	assert_int_equal(stage.heap.grain_maps.n_live, 1);
	stage_check(&stage);
}
