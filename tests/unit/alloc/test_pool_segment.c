/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "one_stage.h"

FIXTURE(open_plain, close_stage);

static void open_limited(uint64_t limit, bool is_one_stream)
{
	struct gpc_pool_params params = stage_params();

	params.is_one_stream = is_one_stream;
	stage_open(&stage, &params);
	stage.budget.limit_bytes = limit;
}

TEST(a_closed_pool_neither_grows_nor_shrinks)
{
	gpc_devptr a = stage_alloc(&stage, 4 * GPC_MIB);
	uint64_t left_ms = 1000;
	gpc_devptr b = 0;

	stage_free(&stage, a);
	(void)gpc_pool_wait(&stage.pool, 0);
	gpc_pool_close(&stage.pool, &left_ms);
	assert_int_equal(left_ms, 1000); /* nothing was on the move */
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 0);
	a = stage_alloc(&stage, 4 * GPC_MIB);
	assert_int_equal(stage.drv.counters.n_mem_alloc, 1);
	assert_int_equal(stage_try(&stage, 64 * GPC_MIB, &b), GPC_NOT_FOUND);
	assert_int_equal(stage.pool.counters->n_driver_failed, 0);
	stage_free(&stage, a);
	stage_check(&stage);
	gpc_pool_reopen(&stage.pool);
	(void)gpc_pool_wait(&stage.pool, 0);
	assert_true(gpc_pool_trim(&stage.pool, UINT64_MAX, true) > 0);
	b = stage_alloc(&stage, 64 * GPC_MIB);
	stage_free(&stage, b);
}

TEST(segments_have_the_size_of_their_class)
{
	static const struct {
		uint64_t request;
		uint64_t segment;
	} rows[] = {
		{ 512, 2 * GPC_MIB },
		{ 2 * GPC_MIB, 20 * GPC_MIB },
		{ 31 * GPC_MIB + 1, 32 * GPC_MIB },
	};
	uint64_t reserved = 0;

	for (size_t i = 0; i < N_OF(rows); i++) {
		(void)stage_alloc(&stage, rows[i].request);
		reserved += rows[i].segment;
		assert_int_equal(stage.pool.counters->reserved_bytes, reserved);
		assert_int_equal(stage.budget.used_bytes, reserved);
		assert_int_equal(stage.pool.counters->n_segments, i + 1);
		assert_int_equal(stage.pool.counters->n_driver_malloc, i + 1);
		assert_int_equal(stage.pool.counters->last_driver_malloc_ns,
			stage_request(&stage, 1).now_ns);
		stage_pass_time(&stage, MS);
	}
}

TEST_OWN(the_limit_is_never_passed_and_changes_nothing)
{
	gpc_devptr address = 77;

	open_limited(40 * GPC_MIB, true);
	(void)stage_alloc(&stage, 30 * GPC_MIB);
	assert_int_equal(stage_try(&stage, 12 * GPC_MIB, &address), GPC_LIMIT);
	assert_int_equal(address, 77);
	assert_int_equal(stage.budget.used_bytes, 30 * GPC_MIB);
	assert_int_equal(stage.pool.counters->n_driver_failed, 1);
	stage_check(&stage);
	(void)stage_alloc(&stage, 10 * GPC_MIB); /* to the byte */
	assert_int_equal(stage.budget.used_bytes, 40 * GPC_MIB);
}

TEST_OWN(near_the_limit_a_segment_is_as_small_as_it_can_be)
{
	open_limited(40 * GPC_MIB, true);
	(void)stage_alloc(&stage, 30 * GPC_MIB);
	(void)stage_alloc(
		&stage, 3 * GPC_MIB); /* a medium segment of 20 MiB does not fit any more */
	assert_int_equal(stage.budget.used_bytes, 34 * GPC_MIB);
}

TEST_OWN(a_full_device_says_so_with_the_drivers_own_code)
{
	struct gpc_sim_config config = stage_config();
	struct gpc_pool_params params = stage_params();
	gpc_devptr address = 0;

	config.memory = 64 * GPC_MIB;
	config.context_cost = 0;
	stage_open_on(&stage, &config, &params, NULL);
	(void)stage_alloc(&stage, 50 * GPC_MIB);
	(void)stage_alloc(&stage, 3 * GPC_MIB); /* by a tight segment */
	assert_int_equal(stage_try(&stage, 20 * GPC_MIB, &address), GPC_DEVICE_NO_MEMORY);
	assert_int_equal(stage.budget.used_bytes, 54 * GPC_MIB);
}

TEST(without_metadata_the_drivers_memory_goes_back)
{
	gpc_devptr address = 77;

	gpc_metamem_fail_at(1);
	assert_int_equal(stage_try(&stage, 4096, &address), GPC_NO_METADATA);
	gpc_metamem_fail_at(0);
	assert_int_equal(address, 77);
	assert_int_equal(stage_n_allocations(&stage), 0);
	assert_int_equal(stage.budget.used_bytes, 0);
	stage_check(&stage);
	(void)stage_alloc(&stage, 4096);
}

/* Answers as the simulated driver does, but off the grid that the segment map needs. */
static enum gpc_status alloc_off_the_grid(
	struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr)
{
	*ret_ptr = GPC_GIB + 512;
	return GPC_OK;
}

static unsigned n_given_back;

static enum gpc_status count_free(struct gpc_driver *drv, gpc_devptr ptr)
{
	assert_int_equal(ptr, GPC_GIB + 512);
	n_given_back++;
	return GPC_OK;
}

TEST(memory_off_the_grid_goes_back_at_once)
{
	const struct gpc_driver_ops *real = stage.drv.base.ops;
	struct gpc_driver_ops ops = *real;
	gpc_devptr address = 0;

	ops.mem_alloc = alloc_off_the_grid;
	ops.mem_free = count_free;
	stage.drv.base.ops = &ops;
	n_given_back = 0;
	assert_int_equal(stage_try(&stage, 4096, &address), GPC_UNSUPPORTED);
	assert_int_equal(n_given_back, 1);
	stage.drv.base.ops = real;
	stage_check(&stage);
}

/* Gives another address each time; with `is_twice`, first to another caller at the same moment. */
static unsigned n_asked;
static bool is_twice;

static enum gpc_status alloc_elsewhere(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr)
{
	struct gpc_request request = stage_request(&stage, 4096);

	*ret_ptr = GPC_GIB + 512 * ++n_asked;
	if (is_twice) {
		gpc_devptr address = 0;

		is_twice = false;
		assert_int_equal(gpc_pool_grow(&stage.pool, &request, &address), GPC_UNSUPPORTED);
	}
	return GPC_OK;
}

static gpc_devptr given_back[4];

static enum gpc_status note_free(struct gpc_driver *drv, gpc_devptr ptr)
{
	given_back[n_given_back++] = ptr;
	return GPC_OK;
}

static enum gpc_status grow(uint64_t size)
{
	struct gpc_request request = stage_request(&stage, size);
	gpc_devptr address = 77;
	enum gpc_status st = gpc_pool_grow(&stage.pool, &request, &address);

	assert_int_equal(address, 77);
	return st;
}

/* Two that ask at once; what the first gets is kept while the capture is open, and no more than that. */
TEST(under_a_capture_one_piece_without_a_place_is_kept)
{
	const struct gpc_driver_ops *real_driver = stage.drv.base.ops;
	struct gpc_driver_ops ops = *real_driver;
	struct gpc_captures *captures = &stage.heap.captures;
	gpc_devptr address = 0;

	ops.mem_alloc = alloc_elsewhere;
	ops.mem_free = note_free;
	stage.drv.base.ops = &ops;
	for (unsigned i = 0; i < 2; i++) {
		n_asked = 0;
		n_given_back = 0;
		is_twice = true;
		gpc_captures_begin(captures);
		assert_int_equal(grow(4096), GPC_UNSUPPORTED);
		assert_int_equal(n_given_back, 1);
		assert_int_equal(given_back[0], GPC_GIB + 512); /* of the one that was later */
		assert_int_equal(stage.budget.used_bytes, 2 * GPC_MIB);
		assert_int_equal(gpc_pool_reap(&stage.pool), 0);
		assert_int_equal(grow(4096), GPC_NO_METADATA);
		assert_int_equal(n_asked, 2);
		assert_int_equal(n_given_back, 1);
		gpc_captures_end(captures);
		if (i == 0)
			assert_int_equal(gpc_pool_reap(&stage.pool), 0);
		else
			assert_int_equal(grow(4096), GPC_UNSUPPORTED); /* and its own, too */
		assert_int_equal(n_given_back, 2 + i);
		assert_int_equal(given_back[1], GPC_GIB + 1024);
		assert_int_equal(stage.budget.used_bytes, 0);
		assert_int_equal(gpc_pool_reap(&stage.pool), 0);
		assert_int_equal(n_given_back, 2 + i);
	}
	/* A driver that does so once is not asked any more. */
	n_asked = 0;
	assert_int_equal(stage_try(&stage, 4096, &address), GPC_UNSUPPORTED);
	assert_int_equal(n_asked, 0);
	/* And with the context it is gone. */
	gpc_captures_begin(captures);
	assert_int_equal(grow(4096), GPC_UNSUPPORTED);
	n_given_back = 0;
	stage_end_idle_event(&stage.pool);
	gpc_pool_forget(&stage.pool);
	gpc_captures_end(captures);
	assert_int_equal(stage.budget.used_bytes, 0);
	assert_int_equal(gpc_pool_reap(&stage.pool), 0);
	assert_int_equal(n_given_back, 0);
	stage.drv.base.ops = real_driver;
}

TEST_WITH(each_thing_without_metadata_sends_the_memory_back, NULL, NULL)
{
	for (unsigned nth = 1; nth <= 3; nth++) {
		gpc_devptr address = 77;
		struct gpc_pool_params params = stage_params();

		stage_open(&stage, &params);
		gpc_metamem_fail_at(nth);
		assert_int_equal(stage_try(&stage, 4096, &address), GPC_NO_METADATA);
		gpc_metamem_fail_at(0);
		assert_int_equal(address, 77);
		assert_int_equal(stage.budget.used_bytes, 0);
		assert_int_equal(stage.heap.segments.n_live, 0);
		assert_int_equal(stage_n_allocations(&stage), 0);
		(close_stage)(state);
	}
}

TEST(the_smallest_segment_is_requested_once)
{
	gpc_devptr address = 0;

	assert_true(gpc_sim_fault_add(&stage.sim->faults, "cuMemAlloc_v2", 1, 1, 2));
	assert_int_equal(stage_try(&stage, 30 * GPC_MIB, &address), GPC_DEVICE_NO_MEMORY);
	assert_int_equal(stage.drv.counters.n_mem_alloc, 1);
}

TEST_ONE_STREAM(trim_prefers_one_segment_that_is_large_enough)
{
	gpc_devptr small = stage_alloc(&stage, 12 * GPC_MIB);
	gpc_devptr fit = stage_alloc(&stage, 40 * GPC_MIB);
	gpc_devptr large = stage_alloc(&stage, 80 * GPC_MIB);

	stage_free(&stage, small);
	stage_free(&stage, large);
	stage_free(&stage, fit);
	assert_int_equal(gpc_pool_trim(&stage.pool, 30 * GPC_MIB, true), 40 * GPC_MIB);
	assert_int_equal(stage_n_allocations(&stage), 2);
	assert_int_equal(gpc_pool_trim(&stage.pool, 0, true), 0);
	assert_int_equal(stage.pool.counters->n_driver_free, 1);
	assert_int_equal(
		gpc_pool_trim(&stage.pool, 12 * GPC_MIB, true), 12 * GPC_MIB); /* to the byte */
	assert_int_equal(stage.pool.counters->n_driver_free, 2);
}

TEST_ONE_STREAM(trim_takes_the_longest_idle_where_none_is_large_enough)
{
	gpc_devptr a = stage_alloc(&stage, 12 * GPC_MIB);
	gpc_devptr b = stage_alloc(&stage, 12 * GPC_MIB);
	gpc_devptr c = stage_alloc(&stage, 12 * GPC_MIB);

	stage_free(&stage, b);
	stage_free(&stage, c);
	stage_free(&stage, a);
	assert_int_equal(gpc_pool_trim(&stage.pool, 20 * GPC_MIB, true), 24 * GPC_MIB);
	assert_null(gpc_heap_find_pool(&stage.heap, b));
	assert_null(gpc_heap_find_pool(&stage.heap, c));
	assert_non_null(gpc_heap_find_pool(&stage.heap, a));
}

TEST_ONE_STREAM(trim_takes_no_more_than_what_is_still_wanted)
{
	gpc_devptr a = stage_alloc(&stage, 16 * GPC_MIB);
	gpc_devptr b = stage_alloc(&stage, 14 * GPC_MIB);
	gpc_devptr c = stage_alloc(&stage, 12 * GPC_MIB);

	stage_free(&stage, a);
	stage_free(&stage, b);
	stage_free(&stage, c);
	assert_int_equal(gpc_pool_trim(&stage.pool, 20 * GPC_MIB, true), 28 * GPC_MIB);
	assert_non_null(gpc_heap_find_pool(&stage.heap, b));
}

TEST(trim_never_touches_a_segment_with_live_or_pending_blocks)
{
	gpc_devptr a = stage_alloc(&stage, 4096);
	gpc_devptr b = stage_alloc(&stage, 20 * GPC_MIB);

	stage_free(&stage, b);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 0);
	assert_int_equal(gpc_pool_reap(&stage.pool), 20 * GPC_MIB);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 20 * GPC_MIB);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 0);
	stage_free(&stage, a);
}

/* The free may wait for work that runs: only a caller that may wait, too, gets it. */
TEST_ONE_STREAM(idle_segments_go_back_though_a_capture_is_open)
{
	stage_free(&stage, stage_alloc(&stage, 20 * GPC_MIB));
	gpc_captures_begin(&stage.heap.captures);
	assert_int_equal(
		gpc_pool_trim(&stage.pool, UINT64_MAX, true), 0); /* no barrier since the free */
	gpc_captures_end(&stage.heap.captures);
	gpc_pool_learn(&stage.pool);
	gpc_captures_begin(&stage.heap.captures);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, false), 0);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 20 * GPC_MIB);
	gpc_captures_end(&stage.heap.captures);
	/* Nothing is held any more. */
	gpc_captures_begin(&stage.heap.captures);
	gpc_captures_end(&stage.heap.captures);
}

static const struct gpc_driver_ops *real_ops;
static unsigned n_unguarded;

static enum gpc_status free_guarded(struct gpc_driver *drv, gpc_devptr address)
{
	if (!pthread_rwlock_trywrlock(&stage.heap.captures.lock)) {
		n_unguarded++;
		pthread_rwlock_unlock(&stage.heap.captures.lock);
	}
	return real_ops->mem_free(drv, address);
}

TEST_OWN(no_capture_can_begin_while_the_driver_takes_memory_back)
{
	struct gpc_pool_params params = stage_params();
	struct gpc_driver_ops ops;
	gpc_devptr base;
	gpc_devptr a;

	params.is_one_stream = true;
	params.decay_ns = 100 * MS;
	stage_open(&stage, &params);
	real_ops = stage.drv.base.ops;
	ops = *real_ops;
	ops.mem_free = free_guarded;
	stage.drv.base.ops = &ops;
	n_unguarded = 0;
	stage_free(&stage, stage_alloc(&stage, 20 * GPC_MIB));
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 20 * GPC_MIB);
	stage_free(&stage, stage_alloc(&stage, 20 * GPC_MIB));
	stage_pass_time(&stage, 101 * MS);
	a = stage_alloc(&stage, 40 * GPC_MIB); /* and the other one decays */
	assert_int_equal(gpc_pool_export(&stage.pool, a, &base), GPC_OK);
	stage_free(&stage, a);
	assert_int_equal(stage_n_allocations(&stage), 0);
	assert_int_equal(n_unguarded, 0);
	stage.drv.base.ops = real_ops;
}

TEST_ONE_STREAM(unused_remainders_do_not_add_up)
{
	const struct gpucache_counters *counters = stage.pool.counters;

	for (int i = 0; i < 100; i++)
		(void)stage_alloc(&stage, 8 * GPC_MIB);
	assert_int_equal(counters->live_bytes, 800 * GPC_MIB);
	assert_true(counters->cached_bytes <= counters->reserved_bytes / 16 + 4 * GPC_MIB);
}

TEST_ONE_STREAM(used_remainders_make_whole_medium_segments)
{
	for (int i = 0; i < 10; i++) {
		(void)stage_alloc(&stage, 8 * GPC_MIB);
		(void)stage_alloc(&stage, 8 * GPC_MIB);
		(void)stage_alloc(&stage, 4 * GPC_MIB);
	}
	assert_int_equal(stage.pool.counters->reserved_bytes, 200 * GPC_MIB);
	assert_int_equal(stage_n_allocations(&stage), 10);
}

/* In no segment, but in the books, and charged against the limit: until the context ends, the driver keeps it. */
TEST_ONE_STREAM(memory_that_the_driver_does_not_take_back_stays_in_the_books)
{
	const struct gpucache_counters *counters;

	counters = stage.pool.counters;
	stage_free(&stage, stage_alloc(&stage, 20 * GPC_MIB));
	assert_true(gpc_sim_fault_add(&stage.sim->faults, "cuMemFree_v2", 1, 1, 1));
	(void)gpc_pool_trim(&stage.pool, UINT64_MAX, true);
	assert_int_equal(counters->reserved_bytes, 0);
	assert_int_equal(counters->kind_bytes[GPUCACHE_KIND_REFUSED], 20 * GPC_MIB);
	assert_int_equal(counters->direct_bytes, 20 * GPC_MIB);
	assert_int_equal(stage.budget.used_bytes, 20 * GPC_MIB);
	stage_check(&stage);
	gpc_pool_fini(&stage.pool);
	assert_int_equal(counters->kind_bytes[GPUCACHE_KIND_REFUSED], 0);
	assert_int_equal(counters->direct_bytes, 0);
	assert_int_equal(stage.budget.used_bytes, 0);
}

TEST_OWN(segments_idle_for_long_decay_inside_a_later_call)
{
	struct gpc_pool_params params = stage_params();
	gpc_devptr small;
	gpc_devptr rest;

	params.is_one_stream = true;
	params.decay_ns = 100 * MS;
	stage_open(&stage, &params);
	small = stage_alloc(&stage, 4096);
	rest = stage_alloc(&stage, 12 * GPC_MIB);
	stage_free(&stage, stage_alloc(&stage, 20 * GPC_MIB));
	stage_free(&stage, rest);
	stage_pass_time(&stage, 100 * MS);
	stage_free(&stage, small); /* not older than that */
	assert_int_equal(stage_n_allocations(&stage), 3);
	stage_pass_time(&stage, 5 * MS);
	stage_free(&stage, stage_alloc(&stage, 4096)); /* too early for another look */
	assert_int_equal(stage.pool.counters->n_gc_segments, 0);
	stage_pass_time(&stage, 100 * MS / 16 - 5 * MS);
	small = stage_alloc(&stage, 4096); /* in a free only: the driver may wait */
	assert_int_equal(stage.pool.counters->n_gc_segments, 0);
	stage_free(&stage, small);
	assert_int_equal(stage.pool.counters->n_gc_segments, 2);
	assert_int_equal(stage_n_allocations(&stage), 1);
}

TEST_ONE_STREAM(without_a_time_for_it_nothing_decays)
{
	stage_free(&stage, stage_alloc(&stage, 20 * GPC_MIB));
	stage_pass_time(&stage, 1000000 * MS);
	(void)stage_alloc(&stage, 30 * GPC_MIB);
	assert_int_equal(stage.pool.counters->n_gc_segments, 0);
}

TEST_OWN(garbage_is_collected_above_the_threshold)
{
	struct gpc_pool_params params = stage_params();
	gpc_devptr a[4];

	params.is_one_stream = true;
	params.gc_threshold_ppm = 500000;
	stage_open(&stage, &params);
	stage.budget.limit_bytes = 200 * GPC_MIB;
	for (size_t i = 0; i < N_OF(a); i++)
		a[i] = stage_alloc(&stage, 20 * GPC_MIB);
	for (size_t i = 0; i < N_OF(a); i++)
		stage_free(&stage, a[i]);
	a[0] = stage_alloc(&stage, 40 * GPC_MIB); /* 80 + 40 > 100 */
	assert_int_equal(stage.budget.used_bytes, 120 * GPC_MIB);
	stage_free(&stage, a[0]);
	assert_int_equal(stage.budget.used_bytes, 100 * GPC_MIB);
	assert_int_equal(stage.pool.counters->n_gc_segments, 1);
}

TEST_OWN(garbage_collection_without_a_limit_goes_by_the_device)
{
	struct gpc_pool_params params = stage_params();

	params.is_one_stream = true;
	params.gc_threshold_ppm = 10000; /* of 8 GiB: 81.92 MiB */
	stage_open(&stage, &params);
	stage_free(&stage, stage_alloc(&stage, 40 * GPC_MIB));
	stage_free(&stage, stage_alloc(&stage, 60 * GPC_MIB));
	assert_int_equal(stage.budget.used_bytes, 60 * GPC_MIB);
}

TEST_OWN(garbage_collection_of_an_unknown_device_does_nothing)
{
	struct gpc_pool_params params = stage_params();

	params.is_one_stream = true;
	params.gc_threshold_ppm = 500000;
	stage_open(&stage, &params);
	stage.budget.device_bytes = 0;
	stage_free(&stage, stage_alloc(&stage, 40 * GPC_MIB));
	(void)stage_alloc(&stage, 60 * GPC_MIB);
	assert_int_equal(stage.budget.used_bytes, 100 * GPC_MIB);
}
