/* SPDX-License-Identifier: Apache-2.0 */
/* The order of cudaFree on the device.  The clock is virtual: a wait on the host moves it. */
#include <pthread.h>

#include "barrier_stage.h"

FIXTURE(open_with_barriers, close_stage);

TEST(a_block_is_reused_at_once_and_its_new_work_is_ordered_after_the_old)
{
	gpc_devptr old = stage_alloc(&stage, 4096);
	uint64_t start = now();

	submit(a, LONG_NS, old);
	stage_free(&stage, old);
	assert_int_equal(n_due(), 1);
	assert_int_equal(stage_alloc(&stage, 4096), old);
	assert_int_equal(stage_counters(&stage).pending_bytes, 0);
	submit(b, MS, old);
	assert_int_equal(n_due(), 0);
	assert_true(now() == start); /* the host did not wait */
	assert_int_equal(atomic_load(&b->tail_ns), start + LONG_NS + MS);
}

TEST(a_run_of_frees_costs_one_event_and_no_submission_none)
{
	gpc_devptr blocks[20];

	for (int i = 0; i < 20; i++)
		blocks[i] = stage_alloc(&stage, 4096);
	submit(a, LONG_NS, blocks[0]);
	for (int i = 0; i < 20; i++)
		stage_free(&stage, blocks[i]);
	for (int i = 0; i < 20; i++)
		stage_free(&stage, stage_alloc(&stage, 4096));
	assert_int_equal(stage.drv.counters.n_fence_record, 0);
	submit(b, MS, 0);
	submit(a, MS, 0);
	assert_int_equal(stage.drv.counters.n_fence_record, 1);
	assert_int_equal(stage.drv.counters.n_fence_wait, 1);
}

TEST(a_query_waits_only_for_work_before_the_free)
{
	gpc_devptr old = stage_alloc(&stage, 4096);
	uint64_t start = now();

	submit(a, LONG_NS, old);
	stage_free(&stage, old);
	assert_int_equal(n_unsettled(), 1);
	submit(b, LONG_NS, 0);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	assert_int_equal(now(), start + LONG_NS);
	assert_false(runs(a));
	assert_true(runs(b));
	assert_int_equal(n_unsettled(), 0);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK); /* there is nothing to wait for */
	assert_true(runs(b));
}

TEST(a_query_orders_frees_without_a_later_submission)
{
	gpc_devptr old = stage_alloc(&stage, 4096);

	submit(a, LONG_NS, old);
	stage_free(&stage, old);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	assert_false(runs(a));
	assert_int_equal(n_due() + n_unsettled(), 0);
}

TEST(a_free_in_stream_order_needs_no_barrier)
{
	const struct gpc_request request = { .is_async = true };

	assert_int_equal(gpc_pool_free(&stage.pool, stage_alloc(&stage, 4096), &request), GPC_OK);
	assert_int_equal(n_due() + n_unsettled(), 0);
	assert_int_equal(stage_counters(&stage).pending_bytes, 4096);
}

TEST(pending_blocks_become_free_with_the_next_barrier)
{
	const struct gpc_request request = { .is_async = true };
	gpc_devptr async = stage_alloc(&stage, 4096);
	gpc_devptr old = stage_alloc(&stage, 12 * GPC_MIB);

	submit(a, LONG_NS, async);
	assert_int_equal(gpc_pool_free(&stage.pool, async, &request), GPC_OK);
	stage_free(&stage, old);
	submit(b, MS, 0);
	assert_int_equal(stage_counters(&stage).pending_bytes, 0);
	assert_int_equal(stage_alloc(&stage, 4096), async);
	assert_true(runs(a));
}

TEST(while_a_capture_is_open_blocks_wait_and_the_barrier_stays_due)
{
	gpc_devptr old = stage_alloc(&stage, 4096);
	struct gpc_sim_graph *graph = NULL;

	submit(a, LONG_NS, old);
	gpc_captures_begin(&stage.heap.captures);
	assert_int_equal(gpc_sim_capture_begin(b, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	stage_free(&stage, old);
	assert_int_equal(stage_counters(&stage).pending_bytes, 4096);
	submit(b, MS, 0);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	assert_int_equal(n_due(), 1);
	assert_int_equal(n_unsettled(), 1);
	assert_int_equal(gpc_sim_capture_end(b, &graph), CUDA_SUCCESS); /* it is whole */
	gpc_captures_end(&stage.heap.captures);
	submit(b, MS, 0);
	assert_int_equal(n_due(), 0);
	assert_int_equal(stage_alloc(&stage, 4096), old);
	assert_true(atomic_load(&b->tail_ns) >= LONG_NS);
	gpc_sim_graph_destroy(graph);
}

TEST(from_its_announcement_on_a_capture_finds_nothing_loose)
{
	gpc_devptr first = stage_alloc(&stage, 4096);
	gpc_devptr second = stage_alloc(&stage, 4096);

	submit(a, LONG_NS, first);
	stage_free(&stage, first);
	gpc_captures_announce(&stage.heap.captures);
	gpc_pool_raise_barrier(&stage.pool); /* as who begins a capture does */
	stage_free(&stage, second);          /* and another thread in between */
	gpc_captures_begin_announced(&stage.heap.captures);
	assert_int_equal(stage_counters(&stage).pending_bytes, 4096);
	assert_int_equal(stage.pool.barrier.raised, 1);
	assert_int_equal(n_due(), 1);
	gpc_captures_end(&stage.heap.captures);
	assert_false(gpc_captures_is_near(&stage.heap.captures));
}

TEST(with_a_peer_blocks_wait_for_their_fence_and_the_order_is_kept)
{
	gpc_devptr old = stage_alloc(&stage, 4096);
	struct gpc_sim_driver peer;
	uint64_t start = now();

	assert_int_equal(gpc_sim_driver_init(&peer, stage.sim, 0, NULL), GPC_OK);
	assert_int_equal(gpc_fences_add_member(&stage.pool.fences, &peer.base), GPC_OK);
	submit(a, LONG_NS, old);
	stage_free(&stage, old);
	assert_int_equal(stage_counters(&stage).pending_bytes, 4096);
	submit(b, MS, 0);
	assert_int_equal(stage_counters(&stage).pending_bytes, 4096);
	assert_int_equal(atomic_load(&b->tail_ns), start + LONG_NS + MS);
	gpc_fences_remove_member(&stage.pool.fences, &peer.base);
	gpc_sim_driver_fini(&peer);
}

TEST(an_exported_block_waits_for_its_fence)
{
	gpc_devptr old = stage_alloc(&stage, 4096);
	gpc_devptr base;

	assert_int_equal(gpc_pool_export(&stage.pool, old, &base), GPC_OK);
	submit(a, LONG_NS, old);
	stage_free(&stage, old);
	assert_int_equal(stage_counters(&stage).pending_bytes, 4096);
	submit(b, MS, 0);
	/* Behind the barrier, but its memory is others': it goes back when the work is over. */
	assert_int_equal(stage.drv.counters.n_mem_free, 0);
	assert_true(runs(a));
	stage_pass_time(&stage, LONG_NS);
	gpc_pool_return_exported(&stage.pool, true);
	assert_int_equal(stage.drv.counters.n_mem_free, 1);
}

TEST(memory_goes_back_only_when_the_work_before_its_free_is_over)
{
	gpc_devptr busy = stage_alloc(&stage, 12 * GPC_MIB);
	gpc_devptr idle = stage_alloc(&stage, 30 * GPC_MIB);

	stage_free(&stage, idle);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	submit(a, LONG_NS, busy);
	stage_free(&stage, busy);
	submit(b, 10 * LONG_NS, 0);
	assert_int_equal(gpc_pool_trim(&stage.pool, 12 * GPC_MIB, true), 30 * GPC_MIB);
	stage_pass_time(&stage, 10 * LONG_NS); /* the simulated driver waited itself */
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 12 * GPC_MIB);
}

TEST(a_wait_of_ours_waits_for_the_work_before_the_free_only)
{
	gpc_devptr busy = stage_alloc(&stage, 12 * GPC_MIB);

	submit(a, LONG_NS, busy);
	stage_free(&stage, busy);
	submit(b, 10 * LONG_NS, 0);
	assert_int_equal(gpc_pool_trim(&stage.pool, 1, true), 0);
	assert_int_equal(gpc_pool_wait(&stage.pool, 12 * GPC_MIB), 0); /* nothing is pending */
	assert_false(runs(a));
	assert_true(runs(b));
	assert_true(gpc_pool_trim(&stage.pool, 1, true) > 0);
}

TEST(a_bounded_wait_asks_for_the_barrier_and_never_blocks)
{
	gpc_devptr address = stage_alloc(&stage, 20 * GPC_MIB);
	uint64_t before = now();
	uint64_t left_ms = 2;

	stage_launch(&stage, stage_handle(a), LONG_NS, address, 512);
	stage_free(&stage, address);
	(void)gpc_pool_wait_within(&stage.pool, 0, &left_ms);
	assert_int_equal(left_ms, 0);
	assert_int_equal(now(), before);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 0);
	stage_pass_time(&stage, LONG_NS);
	left_ms = 2;
	(void)gpc_pool_wait_within(&stage.pool, 0, &left_ms);
	assert_int_equal(left_ms, 2);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 20 * GPC_MIB);
}

TEST(an_event_that_cannot_be_had_is_a_wait_of_the_host)
{
	static const char *const entries[] = { "cuEventCreate", "cuCtxRecordEvent",
		"cuCtxWaitEvent" };

	for (int i = 0; i < 3; i++) {
		gpc_devptr old = stage_alloc(&stage, 4096);

		submit(a, LONG_NS, old);
		stage_free(&stage, old);
		assert_true(gpc_sim_fault_add(&stage.sim->faults, entries[i], 1, 1, 2));
		submit(b, MS, 0);
		assert_false(runs(a));
		assert_int_equal(n_due() + n_unsettled(), 0);
	}
	assert_true(gpc_pool_keeps_order(&stage.pool));
}

TEST(a_barrier_that_neither_device_nor_host_kept_stays_due)
{
	gpc_devptr old = stage_alloc(&stage, 4096);

	submit(a, LONG_NS, old);
	stage_free(&stage, old);
	assert_true(gpc_sim_fault_add(&stage.sim->faults, "cuCtxRecordEvent", 1, 1, 2));
	assert_true(gpc_sim_fault_add(&stage.sim->faults, "cuCtxSynchronize", 1, 1, 999));
	gpc_pool_raise_barrier(&stage.pool);
	assert_true(runs(a));
	assert_int_equal(n_due(), 1);
	submit(b, MS, 0);
	assert_int_equal(n_due(), 0);
	stage_pass_time(&stage, LONG_NS + MS);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	assert_int_equal(stage.pool.barrier.passed, stage.pool.barrier.n_frees);
}

TEST(a_broken_context_owes_nothing_more)
{
	gpc_devptr old = stage_alloc(&stage, 4096);

	stage_free(&stage, old);
	gpc_sim_context_break(stage.drv.context, CUDA_ERROR_ILLEGAL_ADDRESS);
	gpc_pool_raise_barrier(&stage.pool);
	assert_int_equal(n_due(), 0);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);   /* nothing was recorded */
	assert_int_equal(gpc_pool_trim(&stage.pool, 1, true), 0); /* nor is anything known */
	atomic_store(&stage.drv.context->broken, 0);
}

TEST(a_wait_for_a_broken_context_fails_once)
{
	gpc_devptr old = stage_alloc(&stage, 4096);

	stage_free(&stage, old);
	gpc_pool_raise_barrier(&stage.pool);
	gpc_sim_context_break(stage.drv.context, CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(
		gpc_status_to_device(gpc_pool_settle(&stage.pool)), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(n_unsettled(), 0);
	atomic_store(&stage.drv.context->broken, 0);
}

TEST_WITH(an_old_driver_waits_on_the_host_and_reports_no_barriers, open_old, close_stage)
{
	gpc_devptr old = stage_alloc(&stage, 4096);

	submit(a, LONG_NS, old);
	stage_free(&stage, old);
	submit(b, MS, 0);
	assert_false(runs(a));
	assert_false(gpc_pool_keeps_order(&stage.pool));
	stage_free(&stage, stage_alloc(&stage, 4096));
	assert_int_equal(n_due(), 0);
	assert_int_equal(stage_counters(&stage).pending_bytes, 4096);
}

TEST_WITH(one_stream_needs_nothing_but_for_the_return_to_the_driver, open_one, close_stage)
{
	gpc_devptr old = stage_alloc(&stage, 12 * GPC_MIB);

	stage_launch(&stage, 0, LONG_NS, old, 4096);
	stage_free(&stage, old);
	assert_int_equal(n_due() + n_unsettled(), 0);
	assert_int_equal(stage.drv.counters.n_fence_record, 0);
	assert_int_equal(gpc_pool_trim(&stage.pool, 1, true), 0);
	assert_int_equal(stage.drv.counters.n_fence_wait, 0);
	stage_pass_time(&stage, LONG_NS);
	assert_true(gpc_pool_trim(&stage.pool, 1, true) > 0);
}

static const struct gpc_driver_ops *real_ops;
static struct gpc_driver_ops late_ops;
static gpc_event late_mark;

static enum gpc_status wait_behind_the_mark(struct gpc_driver *drv, gpc_event event)
{
	assert_int_equal(real_ops->legacy_record(drv, late_mark), GPC_OK);
	return real_ops->fence_wait(drv, event);
}

/*
 * After a thread has decided to mark the legacy stream, but before its record, another thread creates a stream, frees,
 * and raises a barrier; the mark comes between the barrier's two calls.
 */
static void *come_between(void *arg)
{
	gpc_devptr busy;

	assert_int_equal(gpc_fences_stream_created(&stage.pool.fences, stage_handle(a)), GPC_OK);
	busy = stage_alloc(&stage, 4096);
	submit(a, LONG_NS, busy);
	stage_free(&stage, busy);
	assert_int_equal(stage_alloc(&stage, 4096), busy);
	submit(b, MS, busy);
	return NULL;
}

static enum gpc_status record_late(struct gpc_driver *drv, gpc_event event)
{
	pthread_t thread;

	late_mark = event;
	late_ops.legacy_record = real_ops->legacy_record;
	late_ops.fence_wait = wait_behind_the_mark;
	assert_int_equal(pthread_create(&thread, NULL, come_between, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return GPC_OK;
}

TEST_WITH(a_mark_that_comes_late_is_not_taken_for_a_barrier, open_one, close_stage)
{
	uint64_t start = now();

	real_ops = stage.drv.base.ops;
	late_ops = *real_ops;
	late_ops.legacy_record = record_late;
	stage_free(&stage, stage_alloc(&stage, 12 * GPC_MIB));
	stage.drv.base.ops = &late_ops;
	gpc_pool_learn(&stage.pool);
	stage.drv.base.ops = real_ops;
	assert_int_equal(atomic_load(&b->tail_ns), start + LONG_NS + MS);
	assert_int_equal(n_unsettled(), 1);
}

TEST(a_pool_that_ends_takes_its_duties_with_it)
{
	gpc_devptr old = stage_alloc(&stage, 4096);
	gpc_event event;

	stage_free(&stage, old);
	gpc_pool_raise_barrier(&stage.pool);
	old = stage_alloc(&stage, 4096);
	stage_free(&stage, old);
	event = stage.pool.barrier.event;
	gpc_sim_context_reset(stage.drv.context);
	gpc_pool_forget(&stage.pool);
	assert_int_equal(n_due() + n_unsettled(), 0);
	gpc_pool_raise_barrier(&stage.pool);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	stage.drv.base.ops->event_destroy(&stage.drv.base, event); /* it ends with its context */
}
