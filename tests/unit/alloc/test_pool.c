/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "one_stage.h"

FIXTURE(open_plain, close_stage);

static int open_with_max_split(void **state)
{
	struct gpc_pool_params params = stage_params();

	params.is_one_stream = true;
	params.max_split_size = 32 * GPC_MIB;
	stage_open(&stage, &params);
	return 0;
}

TEST(live_blocks_are_aligned_and_do_not_overlap)
{
	gpc_devptr a = stage_alloc(&stage, 1000);
	gpc_devptr b = stage_alloc(&stage, 1);
	gpc_devptr c = stage_alloc(&stage, 512);

	assert_int_equal(b, a + 1024);
	assert_int_equal(c, b + 512);
	assert_int_equal(stage.pool.counters->live_bytes, 2048);
	assert_int_equal(stage.pool.counters->requested_bytes, 1513);
	assert_int_equal(stage.pool.counters->n_blocks, 3);
	assert_int_equal(stage.drv.counters.n_mem_alloc, 1);
}

TEST(sizes_of_zero_and_beyond_all_reason_are_invalid)
{
	gpc_devptr address = 77;

	assert_int_equal(stage_try(&stage, 0, &address), GPC_INVALID);
	assert_int_equal(stage_try(&stage, GPC_SIZE_MAX + 1, &address), GPC_INVALID);
	assert_int_equal(stage_try(&stage, UINT64_MAX, &address), GPC_INVALID);
	assert_int_equal(address, 77);
}

TEST_ONE_STREAM(with_one_stream_a_free_and_a_malloc_make_no_driver_call)
{
	gpc_devptr a = stage_alloc(&stage, 4096);
	uint64_t n_alloc = stage.drv.counters.n_mem_alloc;

	for (int i = 0; i < 1000; i++) {
		stage_free(&stage, a);
		assert_int_equal(stage_alloc(&stage, 4096), a);
	}
	assert_int_equal(stage.drv.counters.n_mem_alloc, n_alloc);
	assert_int_equal(stage.drv.counters.n_mem_free, 0);
	assert_int_equal(stage_n_fence_calls(&stage), 0);
	assert_int_equal(stage_counters(&stage).n_hit, 1000);
}

TEST(with_other_streams_a_free_makes_no_driver_call)
{
	gpc_devptr a[10];

	for (size_t i = 0; i < N_OF(a); i++)
		a[i] = stage_alloc(&stage, 4096);
	for (size_t i = 0; i < N_OF(a); i++)
		stage_free(&stage, a[i]);
	assert_int_equal(stage_n_fence_calls(&stage), 0);
	assert_int_equal(stage.pool.counters->pending_bytes, 10 * 4096);
}

TEST(a_block_in_use_by_a_stream_waits_for_its_event)
{
	struct gpc_sim_stream *stream = stage_stream(&stage);
	gpc_devptr a = stage_alloc(&stage, 20 * GPC_MIB);
	gpc_devptr b;

	stage_launch(&stage, stage_handle(stream), 5 * MS, a, 20 * GPC_MIB);
	stage_free(&stage, a);
	b = stage_alloc(&stage, 20 * GPC_MIB);
	assert_int_not_equal(a, b);
	stage_pass_time(&stage, 5 * MS);
	assert_int_equal(stage_alloc(&stage, 20 * GPC_MIB), a);
}

TEST(an_idle_device_gives_the_freed_block_at_once)
{
	gpc_devptr a = stage_alloc(&stage, 20 * GPC_MIB);

	stage_free(&stage, a);
	assert_int_equal(stage_alloc(&stage, 20 * GPC_MIB), a);
	assert_int_equal(stage.pool.counters->n_fence, 1);
	assert_int_equal(stage.drv.counters.n_sync, 0);
}

TEST(pending_memory_too_small_for_a_miss_is_not_looked_at)
{
	stage_free(&stage, stage_alloc(&stage, 4096));
	(void)stage_alloc(&stage, 20 * GPC_MIB);
	assert_int_equal(stage_n_fence_calls(&stage), 0);
}

TEST(the_open_fence_is_closed_after_so_many_frees)
{
	gpc_devptr a[64];

	for (size_t i = 0; i < N_OF(a); i++)
		a[i] = stage_alloc(&stage, 512);
	for (size_t i = 0; i < N_OF(a) - 1; i++)
		stage_free(&stage, a[i]);
	assert_int_equal(stage.pool.counters->n_fence, 0);
	stage_free(&stage, a[63]);
	assert_int_equal(stage.pool.counters->n_fence, 1);
	assert_int_equal(stage.pool.counters->pending_bytes, 0); /* the device is idle */
}

TEST(without_a_pending_limit_no_number_of_bytes_closes_the_fence)
{
	stage.pool.params.pending_limit = 0;
	stage_free(&stage, stage_alloc(&stage, 20 * GPC_MIB));
	assert_int_equal(stage.pool.counters->n_fence, 0);
}

TEST(the_open_fence_is_closed_after_so_many_bytes)
{
	uint64_t part = stage.params.pending_limit / 8;
	gpc_devptr a = stage_alloc(&stage, part - 4 * GPC_MIB);
	gpc_devptr b = stage_alloc(&stage, 4 * GPC_MIB);

	stage_free(&stage, a);
	assert_int_equal(stage.pool.counters->n_fence, 0);
	stage_free(&stage, b);
	assert_int_equal(stage.pool.counters->n_fence, 1);
}

TEST_ONE_STREAM(a_garbage_address_is_not_found_and_a_wrong_one_is_invalid)
{
	gpc_devptr a = stage_alloc(&stage, 4096);

	assert_int_equal(stage_try_free(&stage, 0), GPC_NOT_FOUND);
	assert_int_equal(stage_try_free(&stage, 0x1234), GPC_NOT_FOUND);
	assert_int_equal(stage_try_free(&stage, UINT64_MAX), GPC_NOT_FOUND);
	assert_int_equal(stage_try_free(&stage, a + 512), GPC_INVALID);
	assert_int_equal(stage_try_free(&stage, a + 1), GPC_INVALID);
	assert_int_equal(stage_try_free(&stage, a + 4096), GPC_INVALID); /* free, not live */
	stage_free(&stage, a);
	assert_int_equal(stage_try_free(&stage, a), GPC_INVALID);
	assert_int_equal(stage_counters(&stage).n_free, 1);
}

TEST(a_double_free_of_a_pending_block_is_invalid)
{
	gpc_devptr a = stage_alloc(&stage, 4096);

	stage_free(&stage, a);
	assert_int_equal(stage.pool.counters->pending_bytes, 4096);
	assert_int_equal(stage_try_free(&stage, a), GPC_INVALID);
}

TEST(a_block_of_another_pool_is_not_found)
{
	struct gpc_pool_params params = stage_params();
	struct gpc_request request = stage_request(&stage, 4096);
	struct gpc_sim_driver other_drv;
	struct gpc_pool other;
	gpc_devptr address = 0;

	assert_int_equal(gpc_sim_driver_init(&other_drv, stage.sim, 0, NULL), GPC_OK);
	gpc_pool_init(&other, &stage.heap, &other_drv.base, &stage.budget, &params, 0, 1, NULL);
	assert_int_equal(other.context, 1);
	assert_int_equal(gpc_pool_alloc(&other, &request, &address), GPC_OK);
	assert_int_equal(stage_try_free(&stage, address), GPC_NOT_FOUND);
	assert_ptr_equal(gpc_heap_find_pool(&stage.heap, address), &other);
	assert_int_equal(gpc_pool_free(&other, address, &request), GPC_OK);
	gpc_pool_fini(&other);
	gpc_sim_driver_fini(&other_drv);
}

TEST(while_a_capture_is_open_memory_grows_and_nothing_is_recorded)
{
	struct gpc_sim_stream *stream = stage_stream(&stage);
	struct gpc_sim_graph *graph = NULL;
	gpc_devptr a = stage_alloc(&stage, 20 * GPC_MIB);
	gpc_devptr b;

	gpc_captures_begin(&stage.heap.captures);
	assert_int_equal(
		gpc_sim_capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	stage_free(&stage, a);
	b = stage_alloc(&stage, 20 * GPC_MIB);
	assert_int_not_equal(a, b);
	assert_int_equal(gpc_pool_reap(&stage.pool), 0);
	assert_int_equal(gpc_pool_wait(&stage.pool, 0), 0);
	assert_int_equal(stage.drv.counters.n_fence_record + stage.drv.counters.n_sync, 0);
	/* The device did not see anything that would have broken the capture. */
	assert_int_equal(gpc_sim_capture_end(stream, &graph), CUDA_SUCCESS);
	gpc_sim_graph_destroy(graph);
	gpc_captures_end(&stage.heap.captures);
	assert_int_equal(stage_alloc(&stage, 20 * GPC_MIB), a);
}

TEST(the_search_reports_a_broken_context)
{
	struct gpc_request request = stage_request(&stage, 20 * GPC_MIB);
	gpc_devptr address = 0;

	stage_free(&stage, stage_alloc(&stage, 20 * GPC_MIB));
	gpc_captures_begin(&stage.heap.captures);
	(void)stage_alloc(&stage, 20 * GPC_MIB);
	gpc_captures_end(&stage.heap.captures);
	stage_launch(&stage, 0, 5 * MS, 0, 0);
	assert_int_equal(gpc_pool_reap(&stage.pool), 0);
	gpc_sim_context_break(stage.drv.context, CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(stage_try(&stage, 20 * GPC_MIB, &address),
		gpc_status_from_device(CUDA_ERROR_ILLEGAL_ADDRESS));
	assert_int_equal(gpc_pool_search(&stage.pool, &request, &address),
		gpc_status_from_device(CUDA_ERROR_ILLEGAL_ADDRESS));
	assert_int_equal(gpc_pool_reap(&stage.pool), 0);
	assert_int_equal(stage.pool.counters->pending_bytes, 20 * GPC_MIB);
	stage_check(&stage);
	/* A broken context takes nothing back; it is destroyed with its memory. */
	gpc_pool_fini(&stage.pool);
}

TEST_WITH(with_max_split_large_blocks_are_kept_for_large_requests, open_with_max_split, close_stage)
{
	gpc_devptr big = stage_alloc(&stage, 64 * GPC_MIB);
	gpc_devptr small;

	stage_free(&stage, big);
	small = stage_alloc(&stage, 12 * GPC_MIB);
	assert_true(small < big || small >= big + 64 * GPC_MIB);
	/* Nearly as large: it gets the whole block, uncut. */
	assert_int_equal(stage_alloc(&stage, 60 * GPC_MIB), big);
	assert_int_equal(stage.pool.counters->live_bytes, (12 + 64) * GPC_MIB);
	stage_free(&stage, big);
	/* Much smaller: it would waste a medium segment and more. */
	assert_int_not_equal(stage_alloc(&stage, 40 * GPC_MIB), big);
}

TEST_WITH(with_max_split_a_block_serves_up_to_the_very_byte, open_with_max_split, close_stage)
{
	static const struct {
		uint64_t block;
		uint64_t request;
		bool is_served;
	} rows[] = {
		{ 32 * GPC_MIB, 32 * GPC_MIB, true },
		{ 32 * GPC_MIB, 32 * GPC_MIB - GPC_GRAIN, false },
		{ 52 * GPC_MIB, 32 * GPC_MIB, false },
		{ 52 * GPC_MIB, 32 * GPC_MIB + GPC_GRAIN, true },
	};

	for (size_t i = 0; i < N_OF(rows); i++) {
		gpc_devptr block = stage_alloc(&stage, rows[i].block);
		gpc_devptr given;

		stage_free(&stage, block);
		given = stage_alloc(&stage, rows[i].request);
		assert_int_equal(given == block, rows[i].is_served);
		stage_free(&stage, given);
		(void)gpc_pool_trim(&stage.pool, UINT64_MAX, true);
	}
}

TEST_ONE_STREAM(without_max_split_a_block_of_any_size_is_cut)
{
	gpc_devptr big = stage_alloc(&stage, 64 * GPC_MIB);

	stage_free(&stage, big);
	assert_int_equal(stage_alloc(&stage, 12 * GPC_MIB), big);
	assert_int_equal(stage_alloc(&stage, 12 * GPC_MIB), big + 12 * GPC_MIB);
	assert_int_equal(stage.pool.counters->n_segments, 1);
	assert_int_equal(stage.pool.counters->n_hit, 2);
}

/* What the observer was told; of a pool's end, too. */
static struct {
	uint64_t n_changed;
	uint64_t n_taken;
	uint64_t n_freed;
	unsigned n_arenas;
	uint64_t n_added;
	uint64_t n_removed;
	uint8_t last_state;
} diary;

static void note_changed(const struct gpc_block *block, uint64_t now_ns)
{
	assert_int_equal(now_ns == 0, block->state == GPC_BLOCK_UNUSED);
	assert_true(block->mark == 0 || block->requested > 0);
	assert_int_equal(block->requested > 0,
		block->state == GPC_BLOCK_LIVE || block->state == GPC_BLOCK_PENDING);
	diary.n_changed++;
	diary.last_state = block->state;
}

static void note_taken(const struct gpc_block *block, const struct gpc_request *request)
{
	assert_int_equal(block->state, GPC_BLOCK_LIVE);
	assert_int_equal(block->requested, request->size);
	assert_int_equal(block->mark, request->mark);
	diary.n_taken++;
}

static void note_freed(
	const struct gpc_block *block, const struct gpc_request *request, bool is_parked)
{
	assert_false(is_parked); /* it waits for its fence */
	assert_int_equal(block->state, GPC_BLOCK_LIVE);
	assert_true(block->requested > 0);
	diary.n_freed++;
}

static void note_arena(const struct gpc_block *block)
{
	assert_int_equal(block->state, GPC_BLOCK_LIVE);
	assert_false(block->is_arena);
	diary.n_arenas++;
}

static void note_added(const struct gpc_segment *segment, const struct gpc_request *request)
{
	assert_int_equal(segment->mark, request->mark);
	diary.n_added++;
}

static void note_removed(const struct gpc_segment *segment)
{
	assert_true(segment->size > 0);
	diary.n_removed++;
}

TEST_OWN(the_observer_is_told_everything_once)
{
	struct gpc_observer observer = { .block_changed = note_changed,
		.taken = note_taken,
		.freed = note_freed,
		.became_arena = note_arena,
		.segment_added = note_added,
		.segment_removed = note_removed };
	struct gpc_sim_config config = stage_config();
	struct gpc_pool_params params = stage_params();
	gpc_devptr a;

	stage_open_on(&stage, &config, &params, &observer);
	stage_pass_time(&stage, MS);
	a = stage_alloc(&stage, 4096);
	assert_int_equal(diary.n_added, 1);
	assert_int_equal(diary.n_taken, 1);
	assert_int_equal(diary.n_changed, 2); /* the segment's block, and the rest of it */
	for (int i = 0; i < 2; i++)
		assert_int_equal(gpc_pool_lend(&stage.pool, a), GPC_OK);
	assert_int_equal(gpc_pool_lend(&stage.pool, a + 512), GPC_INVALID);
	assert_int_equal(diary.n_arenas, 1);
	assert_int_equal(diary.n_changed, 3);
	assert_int_equal(diary.last_state, GPC_BLOCK_LIVE);
	stage_free(&stage, a);
	assert_int_equal(diary.n_freed, 1);
	assert_int_equal(diary.last_state, GPC_BLOCK_PENDING);
	(void)gpc_pool_reap(&stage.pool);
	assert_int_equal(diary.last_state, GPC_BLOCK_FREE);
	(void)gpc_pool_trim(&stage.pool, 1, true);
	assert_int_equal(diary.n_removed, 1);
	assert_int_equal(diary.last_state, GPC_BLOCK_UNUSED);
	/* The next owner may lend it, too. */
	a = stage_alloc(&stage, 4096);
	assert_int_equal(gpc_pool_lend(&stage.pool, a), GPC_OK);
	assert_int_equal(diary.n_arenas, 2);
	stage_free(&stage, a);
}

static void expect_books(uint64_t requested, uint64_t live, uint64_t cached, uint64_t n_blocks)
{
	struct gpucache_counters counters = stage_counters(&stage);

	assert_int_equal(counters.requested_bytes, requested);
	assert_int_equal(counters.live_bytes, live);
	assert_int_equal(counters.cached_bytes, cached);
	assert_int_equal(counters.n_blocks, n_blocks);
}

TEST_ONE_STREAM(counters_and_peaks_are_exact_at_every_step)
{
	gpc_devptr other = stage_alloc(&stage, 512);
	gpc_devptr block = stage_alloc(&stage, 4000);

	expect_books(4512, 4096 + 512, 2 * GPC_MIB - 4096 - 512, 2);
	stage_free(&stage, block);
	expect_books(512, 512, 2 * GPC_MIB - 512, 1);
	/* The same block again, for a larger request. */
	assert_int_equal(stage_alloc(&stage, 4001), block);
	expect_books(4513, 4096 + 512, 2 * GPC_MIB - 4096 - 512, 2);
	assert_int_equal(stage_counters(&stage).peak_requested_bytes, 4513);
	assert_int_equal(stage_counters(&stage).peak_live_bytes, 4096 + 512);
	stage_free(&stage, block);
	stage_free(&stage, other);
	expect_books(0, 0, 2 * GPC_MIB, 0);
	assert_int_equal(stage_counters(&stage).peak_requested_bytes, 4513);
}

#define N_THREADS 4
#define N_TURNS   20000

struct worker {
	pthread_t thread;
	uint32_t random;
	gpc_devptr *box; /* the others' too: what one leaves there another frees */
};

/* Mostly its own block; now and then another size, another's block, or memory given back. */
static void *work(void *arg)
{
	struct worker *self = arg;

	for (int i = 0; i < N_TURNS; i++) {
		gpc_devptr address;

		self->random = self->random * 1664525 + 1013904223;
		address = stage_alloc(&stage, self->random >> 28 == 0 ? 700 * 1024 : 4096);
		if (self->random >> 26 == 1)
			address = __atomic_exchange_n(self->box, address, __ATOMIC_ACQ_REL);
		if (address)
			stage_free(&stage, address);
		if (self->random >> 24 == 77)
			(void)gpc_pool_trim(&stage.pool, 1, true);
	}
	return NULL;
}

TEST_ONE_STREAM(threads_that_exchange_blocks_keep_the_books_in_order)
{
	struct worker workers[N_THREADS];
	gpc_devptr box = 0;

	for (uint32_t i = 0; i < N_THREADS; i++) {
		workers[i] = (struct worker){ .random = i, .box = &box };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
	if (box)
		stage_free(&stage, box);
	stage_check(&stage);
	assert_int_equal(stage_counters(&stage).n_malloc, N_THREADS * N_TURNS);
	assert_int_equal(stage_counters(&stage).n_free, N_THREADS * N_TURNS);
	assert_int_equal(stage_counters(&stage).live_bytes, 0);
}

/* A segment that is idle and on its way back, and stays until the next call. */
static void export_under_a_capture(gpc_devptr address)
{
	gpc_devptr base = 0;

	assert_int_equal(gpc_pool_export(&stage.pool, address, &base), GPC_OK);
	stage_free(&stage, address);
	gpc_captures_begin(&stage.heap.captures);
	assert_int_equal(gpc_pool_wait(&stage.pool, 0), 0);
	gpc_captures_end(&stage.heap.captures);
}

TEST(the_end_of_a_pool_waits_and_gives_all_back_with_its_events)
{
	gpc_devptr a = stage_alloc(&stage, 20 * GPC_MIB);
	gpc_devptr b = stage_alloc(&stage, 30 * GPC_MIB);

	stage_launch(&stage, 0, 5 * MS, a, 512);
	stage_free(&stage, a);
	assert_int_equal(gpc_pool_reap(&stage.pool), 0);
	stage_launch(&stage, 0, 5 * MS, b, 512);
	stage_free(&stage, b);
	gpc_pool_fini(&stage.pool);
	assert_int_equal(stage_n_allocations(&stage), 0);
	assert_true(stage.drv.counters.n_event_create > 0);
	assert_int_equal(stage.drv.counters.n_event_destroy, stage.drv.counters.n_event_create);
}

TEST(a_dead_context_is_forgotten_without_any_driver_call)
{
	gpc_event events[GPC_MAX_FENCES];
	struct gpc_sim_counters before;
	struct gpc_request request;
	gpc_devptr a;
	gpc_devptr address = 0;
	struct gpc_pool_sync sync;

	a = stage_alloc(&stage, 4096);
	stage_free(&stage, stage_alloc(&stage, 20 * GPC_MIB));
	assert_int_equal(
		gpc_pool_reap(&stage.pool), 20 * GPC_MIB); /* and the fence keeps its event */
	export_under_a_capture(stage_alloc(&stage, 30 * GPC_MIB));
	sync = gpc_pool_begin_sync(&stage.pool);
	stage_keep_events(&stage, events);
	memcpy(&before, &stage.drv.counters, sizeof before);
	gpc_pool_forget(&stage.pool);
	assert_memory_equal(&before, &stage.drv.counters, sizeof before);
	assert_int_equal(stage.budget.used_bytes, 0);
	assert_int_equal(stage.pool.counters->live_bytes, 0);
	assert_int_equal(stage.pool.counters->reserved_bytes, 0);
	stage_check(&stage);
	/* Nothing is idle, and nothing is to go back. */
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 0);
	assert_int_equal(gpc_pool_reap(&stage.pool), 0);
	assert_int_equal(stage_try_free(&stage, a), GPC_NOT_FOUND);
	/* A synchronisation that began before ends after: it has nothing to pass. */
	gpc_pool_end_sync(&stage.pool, sync, 0);
	/* What a late thread is given by the driver does not stay with a pool that is gone. */
	request = stage_request(&stage, 4096);
	assert_int_equal(gpc_pool_grow(&stage.pool, &request, &address), GPC_NOT_FOUND);
	assert_int_equal(stage.budget.used_bytes, 0);
	stage_end_events(&stage, events);
}
