/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "one_stage.h"

FIXTURE(open_plain, close_stage);

TEST(waits_refused_by_a_capture_do_not_fill_the_ring)
{
	gpc_devptr a = stage_alloc(&stage, 4096);

	gpc_captures_begin(&stage.heap.captures);
	for (int i = 0; i < 2 * GPC_MAX_FENCES; i++) {
		stage_free(&stage, a);
		assert_int_equal(gpc_pool_wait(&stage.pool, 0), 0);
		a = stage_alloc(&stage, 4096);
	}
	gpc_captures_end(&stage.heap.captures);
	assert_true(gpc_pool_reap(&stage.pool) > 0);
	assert_int_equal(stage.pool.counters->pending_bytes, 0);
	assert_int_equal(stage.drv.counters.n_sync, 0);
}

TEST(the_programs_synchronisation_passes_earlier_frees)
{
	gpc_devptr a = stage_alloc(&stage, 4096);
	gpc_devptr b = stage_alloc(&stage, 4096);
	struct gpc_pool_sync sync;

	stage_launch(&stage, 0, 5 * MS, a, 4096);
	stage_free(&stage, a);
	sync = gpc_pool_begin_sync(&stage.pool);
	stage_free(&stage, b);
	stage_pass_time(&stage, 5 * MS);
	gpc_pool_end_sync(&stage.pool, sync, 0);
	assert_int_equal(stage.pool.counters->pending_bytes, 4096);
	assert_int_equal(stage_n_fence_calls(&stage), 0);
	assert_int_equal(stage_alloc(&stage, 4096), a);
}

TEST(the_programs_synchronisation_of_one_context_says_nothing_of_peers)
{
	struct gpc_sim_driver peer;
	gpc_devptr a = stage_alloc(&stage, 4096);
	struct gpc_pool_sync sync;

	assert_int_equal(gpc_sim_driver_init(&peer, stage.sim, 0, NULL), GPC_OK);
	assert_int_equal(gpc_fences_add_member(&stage.pool.fences, &peer.base), GPC_OK);
	assert_int_equal(gpc_sim_driver_launch(&peer, 0, 5 * MS, a, 4096, -1), GPC_OK);
	stage_free(&stage, a);
	sync = gpc_pool_begin_sync(&stage.pool);
	gpc_pool_end_sync(&stage.pool, sync, 0);
	assert_int_equal(stage.pool.counters->pending_bytes, 4096);
	/* Our own wait is for all of them. */
	assert_int_equal(gpc_pool_wait(&stage.pool, 0), 4096);
	assert_int_equal(peer.counters.n_sync, 1);
	gpc_pool_fini(&stage.pool);
	gpc_sim_driver_fini(&peer);
}

TEST(an_endless_kernel_never_blocks_below_the_pending_limit)
{
	struct gpc_sim_stream *stream = stage_stream(&stage);
	uint64_t endless = UINT64_C(1) << 60;
	uint64_t before = gpc_sim_clock_now(&stage.sim->clock);

	stage_launch(&stage, stage_handle(stream), endless, 0, 0);
	for (int i = 0; i < 500; i++)
		stage_free(&stage, stage_alloc(&stage, 2 * GPC_MIB - 512));
	assert_true(stage.pool.counters->pending_bytes <= stage.params.pending_limit);
	assert_int_equal(stage.drv.counters.n_sync, 0);
	assert_int_equal(gpc_sim_clock_now(&stage.sim->clock), before);
	assert_true(stage.pool.counters->n_fence > 0);
}

TEST_OWN(above_the_pending_limit_a_miss_waits_for_the_oldest_useful_fence)
{
	struct gpc_pool_params params = stage_params();
	gpc_devptr a;
	gpc_devptr b;

	params.pending_limit = 30 * GPC_MIB;
	stage_open(&stage, &params);
	a = stage_alloc(&stage, 20 * GPC_MIB);
	b = stage_alloc(&stage, 20 * GPC_MIB);
	stage_launch(&stage, 0, 5 * MS, a, 512);
	stage_free(&stage, a);
	stage_launch(&stage, 0, 50 * MS, b, 512);
	stage_free(&stage, b);
	assert_int_equal(stage_alloc(&stage, 20 * GPC_MIB), a);
	/* It waited for the first kernel and not for the second. */
	assert_true(gpc_sim_clock_now(&stage.sim->clock) < 50 * MS);
	assert_int_equal(stage.drv.counters.n_sync, 1);
	assert_int_equal(stage.drv.counters.n_mem_alloc, 2);
}

TEST_OWN(rests_of_segments_count_where_memory_is_held_back)
{
	struct gpc_pool_params params = stage_params();
	uint64_t size = 600 * 1024; /* three in a segment of 2 MiB */

	params.pending_limit = 30 * GPC_MIB;
	stage_open(&stage, &params);
	for (int i = 0; i < 200; i++) {
		gpc_devptr a = stage_alloc(&stage, size);

		stage_launch(&stage, 0, MS, a, 512);
		stage_free(&stage, a);
		assert_true(stage.pool.counters->reserved_bytes <= size + params.pending_limit);
	}
	assert_true(stage.drv.counters.n_sync > 0);
}

TEST_OWN(above_the_pending_limit_under_a_capture_memory_grows)
{
	struct gpc_pool_params params = stage_params();

	params.pending_limit = GPC_MIB;
	stage_open(&stage, &params);
	gpc_captures_begin(&stage.heap.captures);
	for (int i = 0; i < 5; i++)
		stage_free(&stage, stage_alloc(&stage, 20 * GPC_MIB));
	gpc_captures_end(&stage.heap.captures);
	assert_int_equal(stage.drv.counters.n_mem_alloc, 5);
	assert_int_equal(stage.drv.counters.n_sync, 0);
}

TEST_OWN(an_old_driver_is_synchronised_once_a_batch_and_never_a_free)
{
	struct gpc_sim_config config = stage_config();
	struct gpc_pool_params params = stage_params();

	config.driver_version = 12040;
	params.pending_limit = 10 * 20 * GPC_MIB - 1;
	stage_open_on(&stage, &config, &params, NULL);
	for (int i = 0; i < 100; i++)
		stage_free(&stage, stage_alloc(&stage, 20 * GPC_MIB));
	assert_in_range(stage.drv.counters.n_sync, 1, 10);
	assert_int_equal(stage.drv.counters.n_fence_record, 0);
	assert_int_equal(stage.drv.counters.n_event_query, 0);
	assert_true(stage.drv.counters.n_mem_alloc <= 10);
}

TEST(a_wait_for_everything_frees_everything)
{
	gpc_devptr a = stage_alloc(&stage, 4096);
	gpc_devptr b = stage_alloc(&stage, 20 * GPC_MIB);

	stage_launch(&stage, 0, 5 * MS, a, 4096);
	stage_free(&stage, a);
	stage_free(&stage, b);
	assert_int_equal(gpc_pool_wait(&stage.pool, 0), 20 * GPC_MIB + 4096);
	assert_int_equal(gpc_pool_wait(&stage.pool, 0), 0);
	assert_int_equal(stage.pool.counters->pending_bytes, 0);
	assert_int_equal(stage.pool.counters->n_sync, 1);
}

TEST(a_bounded_wait_blocks_in_no_call_of_the_driver_and_ends)
{
	gpc_devptr a = stage_alloc(&stage, 4096);
	gpc_devptr b = stage_alloc(&stage, 20 * GPC_MIB);
	uint64_t before = gpc_sim_clock_now(&stage.sim->clock);
	uint64_t left_ms = 3;

	stage_launch(&stage, 0, 5 * MS, a, 4096);
	stage_free(&stage, a);
	stage_free(&stage, b);
	assert_int_equal(gpc_pool_wait_within(&stage.pool, 0, &left_ms), 0);
	assert_int_equal(left_ms, 0);
	assert_int_equal(gpc_sim_clock_now(&stage.sim->clock), before);
	assert_int_equal(stage.drv.counters.n_sync, 0);
	/* Without any time left it takes what is over. */
	stage_pass_time(&stage, 5 * MS);
	assert_int_equal(gpc_pool_wait_within(&stage.pool, 0, &left_ms), 20 * GPC_MIB + 4096);
}

static void *pass_five_ms(void *arg)
{
	stage_pass_time(arg, 5 * MS);
	return NULL;
}

TEST(a_bounded_wait_ends_when_the_work_does)
{
	gpc_devptr a = stage_alloc(&stage, 4096);
	uint64_t left_ms = 600000;
	pthread_t thread;

	stage_launch(&stage, 0, 5 * MS, a, 4096);
	stage_free(&stage, a);
	assert_int_equal(pthread_create(&thread, NULL, pass_five_ms, &stage), 0);
	assert_int_equal(gpc_pool_wait_within(&stage.pool, 4096, &left_ms), 4096);
	pthread_join(thread, NULL);
	assert_true(left_ms > 0);
	left_ms = 7;
	assert_int_equal(gpc_pool_wait_within(&stage.pool, 4096, &left_ms), 0);
	assert_int_equal(left_ms, 7); /* there is nothing to wait for */
}

TEST(a_wait_with_a_full_ring_is_for_the_latest_frees_too)
{
	gpc_devptr a[GPC_MAX_FENCES + 3];

	for (size_t n = GPC_MAX_FENCES - 1; n <= N_OF(a); n++) {
		uint64_t n_sync = stage.drv.counters.n_sync;

		for (size_t i = 0; i < n; i++)
			a[i] = stage_alloc(&stage, 4096);
		for (size_t i = 0; i < n; i++) {
			stage_free(&stage, a[i]);
			(void)gpc_pool_begin_sync(&stage.pool); /* of the program, and it fails */
		}
		assert_int_equal(gpc_pool_wait(&stage.pool, 0), n * 4096);
		assert_int_equal(stage.pool.counters->pending_bytes, 0);
		assert_int_equal(stage.drv.counters.n_sync - n_sync, n < GPC_MAX_FENCES ? 1 : 2);
	}
}

TEST(blocks_with_a_fence_get_no_other_one)
{
	gpc_devptr a = stage_alloc(&stage, 4096);

	assert_int_equal(gpc_pool_reap(&stage.pool), 0);
	assert_int_equal(stage.pool.counters->n_fence, 0); /* nothing is pending */
	for (uint64_t i = 1; i <= 2; i++) {
		stage_launch(&stage, 0, 5 * MS, a, 4096);
		stage_free(&stage, a);
		if (i == 1)
			assert_int_equal(gpc_pool_reap(&stage.pool), 0);
		assert_int_equal(gpc_pool_wait(&stage.pool, 0), 4096);
		assert_int_equal(stage.pool.counters->n_fence, i);
		assert_int_equal(stage.drv.counters.n_fence_record, i);
		a = stage_alloc(&stage, 4096);
	}
}

TEST(at_the_pending_limit_a_miss_does_not_wait)
{
	gpc_devptr a = stage_alloc(&stage, 20 * GPC_MIB);

	stage.pool.params.pending_limit = 20 * GPC_MIB;
	stage_launch(&stage, 0, 5 * MS, a, 512);
	stage_free(&stage, a);
	assert_int_not_equal(stage_alloc(&stage, 20 * GPC_MIB), a);
	assert_int_equal(stage.drv.counters.n_sync, 0);
}

TEST(while_a_capture_just_begins_no_wait_is_made)
{
	gpc_devptr a = stage_alloc(&stage, 4096);

	stage_launch(&stage, 0, 5 * MS, a, 4096);
	stage_free(&stage, a);
	pthread_rwlock_wrlock(&stage.heap.captures.lock);
	assert_int_equal(gpc_pool_wait(&stage.pool, 0), 0);
	pthread_rwlock_unlock(&stage.heap.captures.lock);
	assert_int_equal(stage.pool.counters->pending_bytes, 4096);
	assert_int_equal(stage.drv.counters.n_sync, 0);
}

/* What happens to the pool while the host waits for its context. */
static struct gpc_sim_driver *comer;
static const struct gpc_driver_ops *waiting_ops;

static void *come_or_forget(void *arg)
{
	gpc_event events[GPC_MAX_FENCES];

	gpc_captures_begin(&stage.heap.captures);
	gpc_captures_end(&stage.heap.captures);
	if (!comer) {
		stage_keep_events(&stage, events);
		gpc_pool_forget(&stage.pool);
		stage_end_events(&stage, events);
		return NULL;
	}
	gpc_lock_take(&stage.pool.lock);
	assert_int_equal(gpc_fences_add_member(&stage.pool.fences, &comer->base), GPC_OK);
	gpc_lock_release(&stage.pool.lock);
	return NULL;
}

/* By another thread: the one that waits holds no lock meanwhile, and lets a capture begin. */
static enum gpc_status come_during_wait(struct gpc_driver *drv, gpc_event event)
{
	enum gpc_status st = waiting_ops->event_wait(drv, event);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, come_or_forget, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return st;
}

TEST(a_wait_during_which_a_peer_came_or_the_context_died_passes_nothing)
{
	struct gpc_driver_ops ops = *stage.drv.base.ops;
	struct gpc_sim_driver peer;

	waiting_ops = stage.drv.base.ops;
	ops.event_wait = come_during_wait;
	assert_int_equal(gpc_sim_driver_init(&peer, stage.sim, 0, NULL), GPC_OK);
	for (int i = 0; i < 2; i++) {
		comer = i == 0 ? &peer : NULL;
		stage_free(&stage, stage_alloc(&stage, 4096));
		stage.drv.base.ops = &ops;
		assert_int_equal(gpc_pool_wait(&stage.pool, 0), 0);
		stage.drv.base.ops = waiting_ops;
		assert_int_equal(stage.pool.counters->pending_bytes, comer ? 4096 : 0);
		if (comer)
			gpc_fences_remove_member(&stage.pool.fences, &peer.base);
	}
	gpc_sim_driver_fini(&peer);
}

TEST(a_peer_that_comes_or_goes_during_the_programs_wait_spoils_it)
{
	struct gpc_sim_driver peer;
	struct gpc_pool_sync sync;

	assert_int_equal(gpc_sim_driver_init(&peer, stage.sim, 0, NULL), GPC_OK);
	stage_free(&stage, stage_alloc(&stage, 4096));
	sync = gpc_pool_begin_sync(&stage.pool);
	assert_int_equal(gpc_fences_add_member(&stage.pool.fences, &peer.base), GPC_OK);
	gpc_pool_end_sync(&stage.pool, sync, 0);
	assert_int_equal(stage.pool.counters->pending_bytes, 4096);
	sync = gpc_pool_begin_sync(&stage.pool);
	gpc_fences_remove_member(&stage.pool.fences, &peer.base);
	gpc_pool_end_sync(&stage.pool, sync, 0);
	assert_int_equal(stage.pool.counters->pending_bytes, 4096);
	assert_int_equal(gpc_pool_wait(&stage.pool, 0), 4096);
	gpc_sim_driver_fini(&peer);
}

/* The clock is virtual: a call that waits for the later work moves it that far. */
TEST_OWN(a_malloc_waits_for_nothing_and_a_free_for_earlier_work)
{
	struct gpc_pool_params params = stage_params();
	gpc_devptr blocks[40];
	struct gpc_sim_stream *before;
	struct gpc_sim_stream *later;
	uint64_t start;

	params.pending_limit = 64 * GPC_MIB;
	stage_open(&stage, &params);
	before = stage_stream(&stage);
	later = stage_stream(&stage);
	for (int i = 0; i < 40; i++)
		blocks[i] = stage_alloc(&stage, 4 * GPC_MIB);
	start = gpc_sim_clock_now(&stage.sim->clock);
	stage_launch(&stage, stage_handle(before), 200 * MS, blocks[0], 512);
	for (int i = 0; i < 40; i++)
		stage_free(&stage, blocks[i]);
	assert_int_equal(gpc_sim_clock_now(&stage.sim->clock), start + 200 * MS);
	stage_launch(&stage, stage_handle(later), 3000 * MS, 0, 0);
	(void)stage_alloc(&stage, 64 * GPC_MIB);
	assert_int_equal(gpc_sim_clock_now(&stage.sim->clock), start + 200 * MS);
	assert_int_equal(gpc_sim_stream_query(later), CUDA_ERROR_NOT_READY);
}

/* Much is cached, more than pending_limit above what was ever live: nothing of that is pending. */
TEST_OWN(a_free_waits_for_nothing_where_nothing_is_pending)
{
	struct gpc_pool_params params = stage_params();

	params.is_one_stream = true;
	params.has_barriers = true;
	params.pending_limit = 16 * GPC_MIB;
	stage_open(&stage, &params);
	for (uint64_t size = 40; size <= 120; size += 40)
		stage_free(&stage, stage_alloc(&stage, size * GPC_MIB));
	assert_true(stage.pool.counters->reserved_bytes >
		    stage.pool.counters->peak_live_bytes + params.pending_limit);
	assert_int_equal(stage.pool.counters->pending_bytes, 0);
	assert_int_equal(stage_n_fence_calls(&stage), 0);
	assert_int_equal(stage.drv.counters.n_sync, 0);
}

TEST_OWN(a_free_waits_for_no_peer)
{
	struct gpc_pool_params params = stage_params();
	struct gpc_sim_driver peer;
	gpc_devptr block;
	uint64_t start;

	params.pending_limit = GPC_MIB;
	stage_open(&stage, &params);
	at_int_equal(gpc_sim_driver_init(&peer, stage.sim, 0, NULL), GPC_OK);
	at_int_equal(gpc_fences_add_member(&stage.pool.fences, &peer.base), GPC_OK);
	start = gpc_sim_clock_now(&stage.sim->clock);
	at_int_equal(gpc_sim_driver_launch(&peer, 0, 3000 * MS, 0, 0, -1), GPC_OK);
	for (int i = 0; i < 4; i++) {
		block = stage_alloc(&stage, 4 * GPC_MIB);
		stage_launch(&stage, 0, 10 * MS, block, 512);
		stage_free(&stage, block);
	}
	assert_in_range(gpc_sim_clock_now(&stage.sim->clock), start, start + 40 * MS);
	gpc_fences_remove_member(&stage.pool.fences, &peer.base);
	gpc_sim_driver_fini(&peer);
}

static enum gpc_status break_after_wait(struct gpc_driver *drv, gpc_event event)
{
	enum gpc_status st = waiting_ops->event_wait(drv, event);

	gpc_sim_context_break(stage.drv.context, CUDA_ERROR_ILLEGAL_ADDRESS);
	return st;
}

TEST_OWN(a_miss_reports_a_context_that_breaks_during_a_wait)
{
	struct gpc_pool_params params = stage_params();
	struct gpc_driver_ops ops;
	gpc_devptr block;
	gpc_devptr address = 0;

	params.pending_limit = 30 * GPC_MIB;
	params.max_split_size = 32 * GPC_MIB; /* what passes does not serve the miss */
	stage_open(&stage, &params);
	waiting_ops = stage.drv.base.ops;
	ops = *waiting_ops;
	ops.event_wait = break_after_wait;
	block = stage_alloc(&stage, 64 * GPC_MIB);
	stage.drv.base.ops = &ops;
	stage_launch(&stage, 0, MS, block, 512);
	stage_free(&stage, block);
	assert_int_equal(stage_try(&stage, 12 * GPC_MIB, &address),
		gpc_status_from_device(CUDA_ERROR_ILLEGAL_ADDRESS));
	stage.drv.base.ops = waiting_ops;
	assert_int_equal(stage.drv.counters.n_mem_alloc, 1);
	assert_int_equal(stage.pool.counters->pending_bytes, 64 * GPC_MIB);
}

TEST(a_wait_for_more_than_any_block_waits_for_all)
{
	gpc_devptr a = stage_alloc(&stage, 10 * GPC_MIB);
	gpc_devptr b = stage_alloc(&stage, 10 * GPC_MIB);

	stage_free(&stage, a);
	stage_free(&stage, b);
	assert_int_equal(gpc_pool_wait(&stage.pool, 20 * GPC_MIB), 20 * GPC_MIB);
}

TEST(a_wait_that_the_driver_refuses_frees_nothing)
{
	gpc_devptr a = stage_alloc(&stage, 4096);

	stage_free(&stage, a);
	assert_true(gpc_sim_fault_add(&stage.sim->faults, "cuEventSynchronize", 1, 2, 999));
	assert_int_equal(gpc_pool_wait(&stage.pool, 0), 0);
	assert_int_equal(gpc_pool_wait(&stage.pool, 4096), 0);
	assert_int_equal(stage.pool.counters->pending_bytes, 4096);
	stage_check(&stage);
	assert_int_equal(gpc_pool_wait(&stage.pool, 4096), 4096);
}

TEST(with_more_peers_than_members_nothing_is_ever_passed)
{
	gpc_devptr a = stage_alloc(&stage, 4096);

	stage.pool.fences.has_more_contexts = true;
	stage_free(&stage, a);
	assert_int_equal(gpc_pool_wait(&stage.pool, 0), 0);
	assert_int_equal(stage.drv.counters.n_sync, 0);
	stage.pool.fences.has_more_contexts = false;
}

/* Two contexts that come to the memory and go again while it is waited for. */
static atomic_bool is_over;

static void *come_and_go(void *arg)
{
	struct gpc_sim_driver *drv = arg;

	while (!atomic_load(&is_over)) {
		gpc_lock_take(&stage.pool.lock);
		assert_int_equal(gpc_fences_add_member(&stage.pool.fences, &drv->base), GPC_OK);
		gpc_lock_release(&stage.pool.lock);
		gpc_lock_take(&stage.pool.lock);
		gpc_fences_remove_member(&stage.pool.fences, &drv->base);
		gpc_lock_release(&stage.pool.lock);
	}
	return NULL;
}

TEST(members_may_come_and_go_during_a_wait)
{
	struct gpc_sim_driver others[2];
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(gpc_sim_driver_init(&others[i], stage.sim, 0, NULL), GPC_OK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &others[i]), 0);
	for (int i = 0; i < 300; i++) {
		stage_free(&stage, stage_alloc(&stage, 4096));
		(void)gpc_pool_wait(&stage.pool, 0);
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_true(gpc_pool_wait(&stage.pool, 0) > 0 || !stage.pool.counters->pending_bytes);
	for (int i = 0; i < 2; i++)
		gpc_sim_driver_fini(&others[i]);
}
