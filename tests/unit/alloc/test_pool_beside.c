/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that goes back to the driver beside work that cannot reach it, and what is known of that work. */
#include "barrier_stage.h"

FIXTURE(open_with_barriers, close_stage);

TEST(idle_segments_go_back_beside_work_that_cannot_reach_them)
{
	gpc_devptr freed = stage_alloc(&stage, 12 * GPC_MIB);
	uint64_t start;

	submit(a, MS, freed);
	stage_free(&stage, freed);
	submit(b, LONG_NS, 0);
	stage_pass_time(&stage, MS);
	start = now();
	assert_int_equal(gpc_pool_trim(&stage.pool, 1, false), 12 * GPC_MIB);
	assert_int_equal(stage.drv.counters.n_mem_free, 1);
	assert_int_equal(now(), start);
	assert_int_equal(gpc_pool_ask_idle(&stage.pool), GPC_DEVICE_NOT_READY);
	assert_int_equal(gpc_pool_idle(&stage.pool), 0); /* the driver has it already */
	stage_pass_time(&stage, LONG_NS);
	assert_int_equal(gpc_pool_ask_idle(&stage.pool), GPC_OK);
}

static struct gpc_driver_ops ops;
static const struct gpc_driver_ops *real;
static gpc_devptr on_its_way;

static enum gpc_status free_and_submit(struct gpc_driver *drv, gpc_devptr ptr)
{
	enum gpc_status st = real->mem_free(drv, ptr);

	submit(b, LONG_NS, 0);
	return st;
}

TEST(work_that_another_thread_submits_during_a_return_is_not_waited_for)
{
	gpc_devptr first = stage_alloc(&stage, 12 * GPC_MIB);
	gpc_devptr second = stage_alloc(&stage, 14 * GPC_MIB);
	uint64_t start = now();

	stage_free(&stage, first);
	stage_free(&stage, second);
	real = stage.drv.base.ops;
	ops = *real;
	ops.mem_free = free_and_submit;
	stage.drv.base.ops = &ops;
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, false), 26 * GPC_MIB);
	assert_true(runs(b));
	assert_int_equal(now(), start);
	stage.drv.base.ops = real;
}

static enum gpc_status free_late(struct gpc_driver *drv, gpc_devptr ptr)
{
	on_its_way = ptr;
	return GPC_OK;
}

TEST(what_the_driver_does_not_have_yet_counts_as_idle)
{
	gpc_devptr freed = stage_alloc(&stage, 12 * GPC_MIB);
	uint64_t left_ms = 0;

	stage_free(&stage, freed);
	submit(b, LONG_NS, 0);
	ops = *stage.drv.base.ops;
	ops.mem_free_beside = free_late;
	stage.drv.base.ops = &ops;
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	assert_int_equal(gpc_pool_trim(&stage.pool, 1, false), 12 * GPC_MIB);
	assert_int_equal(gpc_pool_idle(&stage.pool), 12 * GPC_MIB);
	gpc_pool_wait_late(&stage.pool, &left_ms); /* once; then it is the driver's */
	assert_int_equal(gpc_pool_idle(&stage.pool), 0);
	assert_int_equal(gpc_sim_mem_free_now(stage.sim, on_its_way), CUDA_SUCCESS);
}

TEST(what_cannot_be_known_now_is_not_waited_for)
{
	uint64_t left_ms = 1000;

	submit(b, LONG_NS, 0);
	gpc_captures_begin(&stage.heap.captures);
	assert_int_equal(gpc_pool_wait_idle(&stage.pool, &left_ms), GPC_UNSUPPORTED);
	gpc_captures_end(&stage.heap.captures);
	gpc_pool_close(&stage.pool, &left_ms);
	assert_int_equal(gpc_pool_wait_idle(&stage.pool, &left_ms), GPC_UNSUPPORTED);
	gpc_pool_reopen(&stage.pool);
	assert_true(gpc_sim_fault_add(&stage.sim->faults, "cuEventCreate", 1, 1, 2));
	assert_int_equal(gpc_pool_wait_idle(&stage.pool, &left_ms), GPC_DEVICE_NO_MEMORY);
	assert_int_equal(left_ms, 1000);
	stage_pass_time(&stage, LONG_NS);
	assert_int_equal(gpc_pool_wait_idle(&stage.pool, &left_ms), GPC_OK);
}

TEST(behind_a_barrier_nothing_goes_back_beside_work)
{
	gpc_devptr idle = stage_alloc(&stage, 12 * GPC_MIB);
	gpc_devptr freed = stage_alloc(&stage, 14 * GPC_MIB);

	stage_free(&stage, idle);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	submit(a, LONG_NS, freed);
	stage_free(&stage, freed);
	submit(b, MS,
		0); /* raises a barrier, behind which a free in stream order would wait, too */
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, false), 0);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, false), 26 * GPC_MIB);
}

TEST(where_nothing_can_go_back_beside_work_only_who_may_wait_returns_it)
{
	gpc_devptr freed = stage_alloc(&stage, 12 * GPC_MIB);

	stage_free(&stage, freed);
	submit(b, LONG_NS, 0);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	assert_true(gpc_sim_fault_add(&stage.sim->faults, "cuStreamCreate", 1, 2, 801));
	assert_int_equal(gpc_pool_trim(&stage.pool, 1, false), 0);
	assert_true(runs(b));
	assert_int_equal(gpc_pool_trim(&stage.pool, 1, true), 12 * GPC_MIB);
	assert_false(runs(b));
}

TEST(what_the_driver_does_not_free_beside_work_it_frees_with_a_wait)
{
	gpc_devptr freed = stage_alloc(&stage, 12 * GPC_MIB);

	stage_free(&stage, freed);
	submit(b, LONG_NS, 0);
	assert_true(gpc_sim_fault_add(&stage.sim->faults, "cuMemFreeAsync", 1, 1, 801));
	assert_int_equal(gpc_pool_trim(&stage.pool, 1, false), 12 * GPC_MIB);
	assert_false(runs(b));
	assert_int_equal(stage_n_allocations(&stage), 0);
}

TEST(the_programs_synchronisation_ends_the_duties_of_earlier_frees)
{
	gpc_devptr old = stage_alloc(&stage, 12 * GPC_MIB);
	gpc_devptr late = stage_alloc(&stage, 14 * GPC_MIB);
	struct gpc_pool_sync sync;

	submit(a, MS, old);
	stage_free(&stage, old);
	sync = gpc_pool_begin_sync(&stage.pool);
	stage_free(&stage, late);
	stage_pass_time(&stage, MS);
	gpc_pool_end_sync(&stage.pool, sync, now());
	assert_int_equal(n_due(), 1); /* for the free during the synchronisation */
	assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 26 * GPC_MIB);
	sync = gpc_pool_begin_sync(&stage.pool);
	gpc_pool_end_sync(&stage.pool, sync, now());
	assert_int_equal(n_due() + n_unsettled(), 0);
	assert_int_equal(stage.drv.counters.n_fence_wait, 0);
}

TEST_WITH(on_one_stream_memory_that_may_be_short_goes_back_beside_later_work, open_one, close_stage)
{
	gpc_devptr freed = stage_alloc(&stage, 1 * GPC_GIB);

	stage_launch(&stage, 0, MS, freed, 4096);
	stage_free(&stage, freed);
	assert_int_equal(n_due(), 1);
	assert_int_equal(n_unsettled(), 0);
	gpc_pool_raise_barrier(&stage.pool);
	assert_int_equal(n_due(), 0);
	stage_launch(&stage, 0, LONG_NS, 0, 0);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	assert_int_equal(gpc_pool_trim(&stage.pool, 1, false), 1 * GPC_GIB);
	assert_true(runs(&stage.drv.context->legacy));
}

TEST_WITH(on_one_stream_a_launch_does_not_wait_if_no_event_can_be_recorded, open_one, close_stage)
{
	gpc_devptr freed = stage_alloc(&stage, 6 * GPC_GIB);

	stage_launch(&stage, 0, LONG_NS, freed, 4096);
	stage_free(&stage, freed);
	assert_true(gpc_sim_fault_add(&stage.sim->faults, "cuEventCreate", 1, 1, 2));
	gpc_pool_raise_barrier(&stage.pool);
	assert_true(runs(&stage.drv.context->legacy));
	assert_int_equal(n_due(), 1); /* the next launch tries again */
	gpc_pool_raise_barrier(&stage.pool);
	assert_int_equal(n_due(), 0);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	assert_false(runs(&stage.drv.context->legacy));
}

TEST_WITH(on_one_stream_with_plenty_a_free_costs_no_event, open_one, close_stage)
{
	gpc_devptr freed = stage_alloc(&stage, 800 * GPC_MIB);

	stage_launch(&stage, 0, MS, freed, 4096);
	stage_free(&stage, freed);
	assert_int_equal(n_due(), 0);
}
