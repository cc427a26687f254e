/* SPDX-License-Identifier: Apache-2.0 */
#include "one_stage.h"

FIXTURE(open_plain, close_stage);

TEST(peaks_start_anew_from_what_is_held)
{
	gpc_devptr kept = stage_alloc(&stage, 1000);
	gpc_devptr spike = stage_alloc(&stage, 4 * GPC_MIB);

	stage_free(&stage, spike);
	assert_int_equal(stage.pool.recent.live_bytes, 1024 + 4 * GPC_MIB);
	gpc_pool_reset_peaks(&stage.pool);
	assert_int_equal(stage.pool.recent.live_bytes, 1024);
	assert_int_equal(stage.pool.recent.requested_bytes, 1000);
	assert_int_equal(stage.pool.recent.reserved_bytes, stage_counters(&stage).reserved_bytes);
	assert_int_equal(stage_counters(&stage).peak_live_bytes, 1024 + 4 * GPC_MIB);
	stage_free(&stage, stage_alloc(&stage, 64 * GPC_MIB));
	assert_int_equal(stage.pool.recent.live_bytes, 1024 + 64 * GPC_MIB);
	assert_int_equal(
		stage.pool.recent.reserved_bytes, stage_counters(&stage).peak_reserved_bytes);
	stage_free(&stage, kept);
}

TEST(a_streams_requests_are_counted_while_they_are_live)
{
	struct gpc_sim_stream *streams[] = { stage_stream(&stage), stage_stream(&stage) };
	struct gpc_request request = stage_request(&stage, 1000);
	uint64_t bytes = 0;
	uint64_t n = 0;
	gpc_devptr mine = 0;

	(void)stage_alloc(&stage, 4096);
	request.stream = stage_handle(streams[0]);
	assert_int_equal(gpc_pool_alloc(&stage.pool, &request, &mine), GPC_OK);
	gpc_pool_count_stream(&stage.pool, stage_handle(streams[0]), &bytes, &n);
	assert_int_equal(bytes, 1000);
	assert_int_equal(n, 1);
	gpc_pool_count_stream(&stage.pool, stage_handle(streams[1]), &bytes, &n);
	assert_int_equal(n, 1);
	assert_int_equal(gpc_pool_free(&stage.pool, mine, &request), GPC_OK);
	stage_check(&stage);
	gpc_pool_count_stream(&stage.pool, stage_handle(streams[0]), &bytes, &n);
	assert_int_equal(n, 1);
	/* The next owner of the same place named none. */
	(void)stage_alloc(&stage, 1000);
	gpc_pool_count_stream(&stage.pool, stage_handle(streams[0]), &bytes, &n);
	assert_int_equal(n, 1);
}
