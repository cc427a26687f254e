/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of one segment: mapped, returned, or refused by the driver. */
#include "pages_stage.h"

FIXTURE(open_on, close_stage);

TEST_OWN(without_the_option_there_are_no_pages)
{
	open_mode(GPC_VMM_OFF, true);
	stage_free(&stage, stage_alloc(&stage, 100 * GPC_MIB));
	assert_int_equal(n_pages(), 0);
}

TEST_OWN(auto_has_pages_once_a_request_was_refused)
{
	gpc_devptr large;
	gpc_devptr address;

	open_mode(GPC_VMM_AUTO, true);
	large = stage_alloc(&stage, 200 * GPC_MIB);
	(void)stage_alloc(&stage, 30 * GPC_MIB);
	assert_int_equal(n_pages(), 0);
	assert_int_equal(stage_try(&stage, 100 * GPC_MIB, &address), GPC_DEVICE_NO_MEMORY);
	stage_free(&stage, large);
	(void)gpc_pool_trim(&stage.pool, UINT64_MAX, true);
	(void)stage_alloc(&stage, 100 * GPC_MIB);
	assert_int_equal(n_pages(), 50);
}

TEST_OWN(auto_has_pages_once_the_limit_refused_one)
{
	gpc_devptr address;

	open_mode(GPC_VMM_AUTO, true);
	stage.budget.limit_bytes = 100 * GPC_MIB;
	(void)stage_alloc(&stage, 40 * GPC_MIB);
	assert_int_equal(stage_try(&stage, 80 * GPC_MIB, &address), GPC_LIMIT);
	(void)stage_alloc(&stage, 20 * GPC_MIB);
	assert_int_equal(n_pages(), 10);
}

TEST(small_blocks_are_never_on_pages)
{
	(void)stage_alloc(&stage, GPC_MIB);
	assert_int_equal(n_pages(), 0);
	(void)stage_alloc(&stage, GPC_MIB + 1);
	assert_int_equal(n_pages(), 10);
}

TEST_OWN(of_a_large_segment_the_pages_are_a_part)
{
	struct gpc_sim_config config = stage_config();
	struct gpc_pool_params params = stage_params();

	params.vmm = GPC_VMM_ON;
	config.memory = 4 * GPC_GIB;
	stage_open_on(&stage, &config, &params, NULL);
	(void)stage_alloc(&stage, 1026 * GPC_MIB);
	assert_int_equal(n_pages(), (1026 + 5) / 6); /* of 6 MiB */
}

TEST(while_a_capture_is_open_pages_neither_come_nor_go)
{
	gpc_devptr first;
	gpc_devptr last;
	uint64_t before;

	make_gap(&first, &last);
	before = n_pages();
	gpc_captures_begin(&stage.heap.captures);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 0);
	(void)stage_alloc(&stage, 120 * GPC_MIB);
	assert_int_equal(n_pages(), before);
	gpc_captures_end(&stage.heap.captures);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 92 * GPC_MIB);
}

static bool may_touch(unsigned device, gpc_devptr address)
{
	return gpc_sim_may_touch(stage.sim, (int)device, address, 512, true);
}

TEST_OWN(other_devices_may_access_present_and_future_pages)
{
	struct gpc_sim_config config = stage_config();
	struct gpc_pool_params params = stage_params();
	gpc_devptr blocks[2];

	config.n_devices = 3;
	params.vmm = GPC_VMM_ON;
	stage_open_on(&stage, &config, &params, NULL);
	blocks[0] = stage_alloc(&stage, 30 * GPC_MIB);
	assert_false(may_touch(1, blocks[0]));
	gpc_pool_open_pages(&stage.pool, 1);
	blocks[1] = stage_alloc(&stage, 30 * GPC_MIB);
	for (int i = 0; i < 2; i++) {
		assert_true(may_touch(0, blocks[i]) && may_touch(1, blocks[i]));
		assert_false(may_touch(2, blocks[i]));
	}
}

TEST(once_it_is_over_no_new_segment_has_pages)
{
	uint64_t before;

	(void)stage_alloc(&stage, 30 * GPC_MIB);
	before = n_pages();
	atomic_store(&stage.heap.is_paging_over, true);
	(void)stage_alloc(&stage, 40 * GPC_MIB);
	assert_int_equal(n_pages(), before);
}

/* What is free goes back, what is freed later goes back then, and neither is handed out again. */
TEST(once_it_is_over_pages_go_back_with_their_blocks)
{
	gpc_devptr first;
	gpc_devptr last;

	make_gap(&first, &last);
	atomic_store(&stage.heap.is_paging_over, true);
	gpc_pool_end_pages(&stage.pool);
	assert_int_equal(used(), 8 * GPC_MIB);
	(void)stage_alloc(&stage, GPC_MIB + 1); /* not from what is left beside the blocks */
	assert_int_equal(used(), 28 * GPC_MIB);
	stage_free(&stage, first);
	stage_free(&stage, last);
	(void)gpc_pool_wait(&stage.pool, 0);
	assert_int_equal(used(), 20 * GPC_MIB);
}

TEST(a_segment_of_its_own_has_no_pages)
{
	gpc_heap_set_apart(&stage.heap, GPC_WHOLE_EXPORTED);
	(void)stage_alloc(&stage, 30 * GPC_MIB);
	assert_int_equal(n_pages(), 0);
}

TEST(a_context_that_dies_takes_its_pages_along)
{
	gpc_devptr block;

	block = stage_alloc(&stage, 30 * GPC_MIB);
	stage_launch(&stage, 0, 5 * MS, block, 30 * GPC_MIB);
	gpc_pool_forget(&stage.pool);
	assert_int_equal(gpc_sim_context_state(stage.drv.context), CUDA_SUCCESS);
	assert_int_equal(used(), 0);
	assert_int_equal(stage.heap.ranges.n_live, 0);
}

/* Every call of the driver on the way to pages fails once; what is asked for is then had without them. */
TEST_WITH(whichever_call_fails_everything_is_as_before, NULL, NULL)
{
	static const char *const calls[] = { "cuMemAddressReserve", "cuMemCreate", "cuMemMap",
		"cuMemSetAccess" };
	static const int codes[] = { 2, 801, 999 };
	gpc_devptr block;

	for (size_t c = 0; c < N_OF(calls); c++) {
		for (size_t k = 0; k < N_OF(codes); k++) {
			for (uint64_t nth = 1; nth <= (c == 0 || c == 3 ? 1 : 15); nth += 7) {
				open_mode(GPC_VMM_ON, true);
				assert_true(gpc_sim_fault_add(
					&stage.sim->faults, calls[c], nth, 1, codes[k]));
				block = stage_alloc(&stage, 30 * GPC_MIB);
				assert_int_equal(used(), 30 * GPC_MIB);
				assert_int_equal(stage.heap.ranges.n_live, 0);
				assert_int_equal(stage_n_allocations(&stage), 1);
				assert_int_equal(stage.pool.has_no_pages, codes[k] != 2);
				stage_free(&stage, block);
				(void)gpc_pool_trim(&stage.pool, UINT64_MAX, true);
				assert_int_equal(used(), 0);
				stage_close(&stage);
			}
		}
	}
}

TEST(pages_that_the_driver_keeps_keep_their_addresses)
{
	stage_free(&stage, stage_alloc(&stage, 30 * GPC_MIB));
	assert_true(gpc_sim_fault_add(&stage.sim->faults, "cuMemUnmap", 1, 1, 999));
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 30 * GPC_MIB);
	assert_int_equal(used(), 30 * GPC_MIB);
	assert_int_equal(stage.budget.used_bytes, 30 * GPC_MIB);
	assert_int_equal(stage.pool.counters->kind_bytes[GPUCACHE_KIND_REFUSED], 30 * GPC_MIB);
	assert_int_equal(stage.heap.ranges.n_live, 1);
	gpc_slab_give_back(&stage.heap.ranges, 0); /* for the sums at the end */
}
