/* SPDX-License-Identifier: Apache-2.0 */
#include "one_stage.h"

FIXTURE(open_one_stream, close_stage);

#define N_FILL 64

/* Blocks of 4 MiB until the driver has no more; every second one is free then. */
static uint32_t fill_in_stripes(gpc_devptr *blocks)
{
	uint32_t n = 0;

	stage.budget.limit_bytes = 200 * GPC_MIB;
	while (n < N_FILL && !stage_try(&stage, 4 * GPC_MIB, &blocks[n]))
		n++;
	assert_in_range(n, 40, 50);
	for (uint32_t i = 1; i < n; i += 2)
		stage_free(&stage, blocks[i]);
	return n;
}

static enum gpc_status retry(uint64_t size, gpc_devptr *ret_address)
{
	struct gpc_request request = stage_request(&stage, size);

	return gpc_pool_retry(&stage.pool, &request, ret_address);
}

TEST(a_small_request_is_cut_from_a_large_piece_where_the_driver_has_none)
{
	gpc_devptr blocks[N_FILL];
	gpc_devptr small[2];
	uint32_t n = fill_in_stripes(blocks);
	uint64_t n_malloc;

	assert_int_equal(stage_try(&stage, 1000, &small[0]), GPC_LIMIT);
	assert_int_equal(retry(1000, &small[0]), GPC_OK);
	stage_check(&stage);
	/* From now on without a question to the driver. */
	n_malloc = stage.pool.counters->n_driver_failed;
	assert_int_equal(stage_try(&stage, 1000, &small[1]), GPC_OK);
	assert_int_equal(stage.pool.counters->n_driver_failed, n_malloc);
	assert_int_equal(small[1], small[0] + 1024);
	stage_check(&stage);
	/* What was cut comes together again. */
	stage_free(&stage, small[0]);
	stage_free(&stage, small[1]);
	assert_int_equal(stage_alloc(&stage, 4 * GPC_MIB), blocks[1]);
	stage_free(&stage, blocks[1]);
	for (uint32_t i = 0; i < n; i += 2)
		stage_free(&stage, blocks[i]);
}

TEST(the_driver_is_asked_first_again_once_it_has_memory)
{
	gpc_devptr blocks[N_FILL];
	gpc_devptr small[2];
	uint32_t n = fill_in_stripes(blocks);
	uint64_t n_given;

	assert_int_equal(retry(1000, &small[0]), GPC_OK);
	for (uint32_t i = n / 2 & ~1u; i < n; i += 2) /* and the last segments are idle */
		stage_free(&stage, blocks[i]);
	assert_true(gpc_pool_trim(&stage.pool, 1, true) > 0);
	n_given = stage.pool.counters->n_driver_malloc;
	assert_int_equal(stage_try(&stage, 1000, &small[1]), GPC_OK);
	assert_int_equal(stage.pool.counters->n_driver_malloc, n_given + 1);
	assert_true(small[1] > small[0] + 4 * GPC_MIB || small[1] < small[0]);
	stage_free(&stage, small[0]);
	stage_free(&stage, small[1]);
}

TEST(the_driver_is_asked_first_again_once_it_has_given)
{
	gpc_devptr blocks[N_FILL];
	gpc_devptr small;
	uint64_t n_given;

	(void)fill_in_stripes(blocks);
	assert_int_equal(retry(1000, &small), GPC_OK);
	stage_free(&stage, small);
	stage.budget.limit_bytes = 0;
	(void)stage_alloc(&stage, 64 * GPC_MIB);
	n_given = stage.pool.counters->n_driver_malloc;
	(void)stage_alloc(&stage, 1000);
	assert_int_equal(stage.pool.counters->n_driver_malloc, n_given + 1);
}

TEST(a_large_request_is_cut_from_free_memory_of_small_ones)
{
	gpc_devptr small = stage_alloc(&stage, 4096);
	gpc_devptr large;

	stage.budget.limit_bytes = 2 * GPC_MIB;
	assert_int_equal(retry(GPC_MIB + GPC_MIB / 2, &large), GPC_OK);
	assert_int_equal(large, small + 4096);
	assert_int_equal(stage.pool.counters->n_hit, 1);
	stage_check(&stage);
	stage_free(&stage, large);
	stage_free(&stage, small);
}

TEST(max_split_size_yields_where_memory_is_short)
{
	gpc_devptr blocks[N_FILL];
	gpc_devptr small;
	uint32_t n = fill_in_stripes(blocks);

	/* Blocks from 1 MiB on are whole, and only for requests from 1 MiB on. */
	stage.pool.params.max_split_size = GPC_MIB;
	assert_int_equal(retry(1000, &small), GPC_OK);
	stage_check(&stage);
	stage_free(&stage, small);
	for (uint32_t i = 0; i < n; i += 2)
		stage_free(&stage, blocks[i]);
}

TEST(an_idle_segment_is_not_cut_but_returned)
{
	struct gpc_captures *captures = &stage.heap.captures;
	gpc_devptr address;

	stage.budget.limit_bytes = 64 * GPC_MIB;
	stage_free(&stage, stage_alloc(&stage, 64 * GPC_MIB));
	assert_int_equal(retry(1000, &address), GPC_LIMIT);
	/* Unless a capture is open, which a return would break. */
	gpc_captures_begin(captures);
	assert_int_equal(retry(1000, &address), GPC_OK);
	gpc_captures_end(captures);
	stage_check(&stage);
	stage_free(&stage, address);
}
