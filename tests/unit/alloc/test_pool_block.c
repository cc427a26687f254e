/* SPDX-License-Identifier: Apache-2.0 */
#include "one_stage.h"

static void blocks_that_passed_merge_with_their_neighbours(void **state)
{
	gpc_devptr a = stage_alloc(&stage, GPC_MIB);
	gpc_devptr b = stage_alloc(&stage, GPC_MIB);

	(void)state;
	stage_free(&stage, b);
	stage_free(&stage, a);
	assert_int_equal(gpc_pool_largest_free(&stage.pool), 0);
	assert_int_equal(gpc_pool_reap(&stage.pool), 2 * GPC_MIB);
	assert_int_equal(gpc_pool_largest_free(&stage.pool), 2 * GPC_MIB);
	assert_int_equal(stage.pool.blocks.n_entries, 1);
}

static void freed_neighbours_merge_in_every_order(void **state)
{
	static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 },
		{ 2, 0, 1 }, { 2, 1, 0 } };

	(void)state;
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

int main(void)
{
#define TEST(name)            cmocka_unit_test_setup_teardown(name, open_plain, close_stage)
#define TEST_ONE_STREAM(name) cmocka_unit_test_setup_teardown(name, open_one_stream, close_stage)
	const struct CMUnitTest tests[] = {
		TEST(blocks_that_passed_merge_with_their_neighbours),
		TEST_ONE_STREAM(freed_neighbours_merge_in_every_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
