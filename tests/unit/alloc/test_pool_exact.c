/* SPDX-License-Identifier: Apache-2.0 */
#include "one_stage.h"

static enum gpc_status try_exact(uint64_t size, gpc_devptr *ret_address)
{
	struct gpc_request request = stage_request(&stage, size);

	request.is_exact = true;
	return gpc_pool_alloc(&stage.pool, &request, ret_address);
}

static gpc_devptr exact(uint64_t size)
{
	gpc_devptr address = 0;

	assert_int_equal(try_exact(size, &address), GPC_OK);
	return address;
}

static enum gpc_status retry_exact(uint64_t size, gpc_devptr *ret_address)
{
	struct gpc_request request = stage_request(&stage, size);

	request.is_exact = true;
	return gpc_pool_retry(&stage.pool, &request, ret_address);
}

static uint64_t n_taken(void)
{
	return stage.pool.counters->n_driver_malloc;
}

static uint64_t reserved(void)
{
	return stage.pool.counters->reserved_bytes;
}

static void open_on(uint64_t bytes, bool is_one_stream, uint32_t divisions)
{
	struct gpc_sim_config config = stage_config();
	struct gpc_pool_params params = stage_params();

	config.memory = bytes;
	config.context_cost = 0;
	params.is_one_stream = is_one_stream;
	params.roundup_divisions = divisions;
	stage_open_on(&stage, &config, &params, NULL);
}

static int open_room(void **state)
{
	open_on(GPC_GIB, true, 0);
	return 0;
}

FIXTURE(open_room, close_stage);

static int open_many_streams(void **state)
{
	open_on(GPC_GIB, false, 0);
	return 0;
}

static int open_rounding(void **state)
{
	open_on(GPC_GIB, true, 4);
	return 0;
}

TEST(each_request_gets_an_allocation_of_the_driver_of_its_size)
{
	static const uint64_t sizes[] = { 2, 20, 6, 34, 8, 2 };
	uint64_t sum = 0;

	for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		(void)exact(sizes[i] * GPC_MIB);
		sum += sizes[i] * GPC_MIB;
		assert_int_equal(n_taken(), i + 1);
		assert_int_equal(reserved(), sum);
		assert_int_equal(stage.pool.counters->requested_bytes, sum);
	}
	(void)exact(3 * GPC_MIB + 1);
	assert_int_equal(reserved(), sum + 4 * GPC_MIB); /* as the driver would hold for it */
}

TEST_WITH(the_option_that_rounds_does_not_round_it, open_rounding, close_stage)
{
	(void)exact(66 * GPC_MIB);
	assert_int_equal(reserved(), 66 * GPC_MIB);
}

TEST(what_was_freed_serves_only_its_own_size)
{
	gpc_devptr a = exact(64 * GPC_MIB);
	gpc_devptr b;

	stage_free(&stage, a);
	b = exact(62 * GPC_MIB);
	assert_int_not_equal(b, a);
	assert_int_equal(n_taken(), 2);
	assert_int_equal(exact(64 * GPC_MIB), a);
	assert_int_equal(n_taken(), 2);
}

TEST(another_caller_cuts_nothing_from_it)
{
	gpc_devptr a = exact(256 * GPC_MIB);
	gpc_devptr b;

	stage_free(&stage, a);
	b = stage_alloc(&stage, 40 * GPC_MIB);
	(void)stage_alloc(&stage, 4 * GPC_MIB);
	assert_int_equal(stage.pool.cut_bytes, 20 * GPC_MIB); /* its own shared segment */
	assert_true(b < a || b >= a + 256 * GPC_MIB);
	assert_int_equal(exact(256 * GPC_MIB), a);
}

TEST(another_caller_may_take_it_whole_while_it_is_parked)
{
	gpc_devptr a = exact(32 * GPC_MIB);

	stage_free(&stage, a);
	assert_int_equal(stage_alloc(&stage, 32 * GPC_MIB), a);
	stage_free(&stage, a);
	assert_int_equal(exact(32 * GPC_MIB), a);
}

TEST(it_takes_no_piece_of_what_others_share)
{
	gpc_devptr large = stage_alloc(&stage, 200 * GPC_MIB);
	gpc_devptr piece;
	gpc_devptr a;

	stage_free(&stage, large);
	piece = stage_alloc(&stage, 30 * GPC_MIB);
	assert_int_equal(piece, large); /* cut */
	stage_free(&stage, stage_alloc(&stage, 30 * GPC_MIB));
	a = exact(30 * GPC_MIB); /* though one of this size is parked */
	assert_true(a < large || a >= large + 200 * GPC_MIB);
}

TEST(all_that_is_idle_goes_back_before_it_is_refused)
{
	gpc_devptr blocks[10];
	gpc_devptr address;

	for (unsigned i = 0; i < 10; i++)
		blocks[i] = exact(100 * GPC_MIB);
	for (unsigned i = 0; i < 10; i++)
		stage_free(&stage, blocks[i]);
	assert_int_equal(reserved(), 1000 * GPC_MIB);
	assert_int_equal(try_exact(GPC_GIB, &address), GPC_OK);
	assert_int_equal(reserved(), GPC_GIB);
	assert_int_equal(try_exact(2 * GPC_MIB, &address), GPC_DEVICE_NO_MEMORY);
}

TEST(no_more_goes_back_than_the_request_needs)
{
	gpc_devptr a = exact(500 * GPC_MIB);
	gpc_devptr b = exact(400 * GPC_MIB);
	gpc_devptr c;

	stage_free(&stage, a);
	stage_free(&stage, b);
	c = exact(300 * GPC_MIB);
	assert_int_not_equal(c, 0);
	assert_int_equal(reserved(), 800 * GPC_MIB);
	assert_int_equal(exact(500 * GPC_MIB), a);
}

TEST(what_others_left_idle_goes_back_too)
{
	stage_free(&stage, stage_alloc(&stage, 600 * GPC_MIB));
	(void)exact(GPC_GIB);
	assert_int_equal(reserved(), GPC_GIB);
}

TEST(a_request_of_another_caller_takes_it_back_by_the_ladder)
{
	struct gpc_request request = stage_request(&stage, 1000 * GPC_MIB);
	gpc_devptr address;

	stage_free(&stage, exact(600 * GPC_MIB));
	assert_int_equal(gpc_pool_alloc(&stage.pool, &request, &address), GPC_DEVICE_NO_MEMORY);
	assert_int_equal(gpc_pool_trim(&stage.pool, request.size, false), 600 * GPC_MIB);
	assert_int_equal(gpc_pool_retry(&stage.pool, &request, &address), GPC_OK);
}

TEST(a_limit_counts_nothing_that_is_idle)
{
	gpc_devptr address;

	stage.budget.limit_bytes = 100 * GPC_MIB;
	stage_free(&stage, exact(60 * GPC_MIB));
	assert_int_equal(try_exact(100 * GPC_MIB, &address), GPC_OK);
	assert_int_equal(try_exact(2 * GPC_MIB, &address), GPC_LIMIT);
}

/* A program with caches of both kinds fits where it would without us: what others share has room for it. */
TEST(a_piece_of_what_others_share_is_the_last_resort)
{
	gpc_devptr address;

	(void)stage_alloc(&stage, 2 * GPC_MIB); /* of 20 */
	stage.budget.limit_bytes = reserved();
	assert_int_equal(reserved(), 20 * GPC_MIB);
	assert_int_equal(try_exact(10 * GPC_MIB, &address), GPC_LIMIT);
	assert_int_equal(retry_exact(10 * GPC_MIB, &address), GPC_OK);
	assert_int_equal(reserved(), 20 * GPC_MIB);
}

TEST_WITH(nobody_gets_it_before_its_work_is_over, open_many_streams, close_stage)
{
	gpc_devptr a = exact(64 * GPC_MIB);
	gpc_devptr b;

	stage_launch(&stage, stage_handle(stage_stream(&stage)), 10 * MS, a, 64 * GPC_MIB);
	stage_free(&stage, a);
	assert_int_equal(stage.pool.counters->pending_bytes, 64 * GPC_MIB);
	b = exact(64 * GPC_MIB);
	assert_int_not_equal(b, a);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, false), 0);
	stage_pass_time(&stage, 20 * MS);
	assert_int_equal(exact(64 * GPC_MIB), a);
}

TEST(idle_ones_go_back_before_a_capture_begins)
{
	stage_free(&stage, stage_alloc(&stage, 30 * GPC_MIB));
	gpc_pool_return_exact(&stage.pool);
	assert_int_equal(reserved(), 30 * GPC_MIB); /* there is no exact one */
	stage_free(&stage, exact(64 * GPC_MIB));
	gpc_pool_return_exact(&stage.pool);
	assert_int_equal(reserved(), 0);
}

TEST(an_exported_one_serves_no_more_requests)
{
	gpc_devptr a = exact(64 * GPC_MIB);
	gpc_devptr base;

	assert_int_equal(gpc_pool_export(&stage.pool, a, &base), GPC_OK);
	assert_int_equal(base, a);
	stage_free(&stage, a);
	(void)exact(64 * GPC_MIB);
	assert_int_equal(n_taken(), 2);
}

TEST(it_is_never_made_of_pages)
{
	stage.pool.params.vmm = GPC_VMM_ON;
	(void)exact(64 * GPC_MIB);
	gpc_list_each (link, &stage.pool.segments)
		assert_null(gpc_list_entry(link, struct gpc_segment, link)->range);
}

/* Found in their bins, however many there are, and not by a walk along the list of all that is idle. */
TEST(of_many_idle_ones_the_lowest_of_the_size_serves)
{
	gpc_devptr all[30];

	for (unsigned i = 0; i < 30; i++)
		all[i] = exact((2 + i % 3 * 2) * GPC_MIB);
	for (unsigned i = 30; i-- > 0;)
		stage_free(&stage, all[i]);
	assert_int_equal(gpc_pool_largest_free(&stage.pool),
		0); /* for others: it looked, so none is parked */
	for (unsigned i = 0; i < 30; i += 3)
		assert_int_equal(exact(2 * GPC_MIB), all[i]);
	for (unsigned i = 2; i < 30; i += 3)
		assert_int_equal(exact(6 * GPC_MIB), all[i]);
	assert_null(gpc_pool_check(&stage.pool));
	assert_int_equal(n_taken(), 30);
}

TEST(the_checker_finds_an_exact_segment_in_bins_of_others)
{
	struct gpc_segment *segment;
	gpc_devptr block = stage_alloc(&stage, 64 * GPC_MIB);

	stage_free(&stage, block);
	segment = gpc_segment_map_find(&stage.heap.segment_map, block);
	assert_null(gpc_pool_check(&stage.pool));
	segment->is_exact = true;
	assert_string_equal(gpc_pool_check(&stage.pool),
		"I3: a block is in a bin iff it is free, and in that of its size");
	segment->is_exact = false;
}

TEST(the_checker_finds_an_exact_segment_that_was_cut)
{
	struct gpc_segment *segment;
	gpc_devptr piece;

	stage_free(&stage, stage_alloc(&stage, 64 * GPC_MIB));
	piece = stage_alloc(&stage, 20 * GPC_MIB);
	segment = gpc_segment_map_find(&stage.heap.segment_map, piece);
	segment->is_exact = true;
	assert_string_equal(gpc_pool_check(&stage.pool), "I10: an exact segment is one block");
	segment->is_exact = false;
}
