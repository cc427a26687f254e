/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/bytes.h"
#include "sim/gpu/driver_sim.h"
#include "sim/gpu/execution/capture.h"

static struct gpc_sim *sim;
static struct gpc_sim_driver driver;
static struct gpc_driver *drv = &driver.base;

#define MS UINT64_C(1000000)

static int set_up(void **state)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	config.virtual_clock = true;
	sim = gpc_sim_create(&config);
	return sim && gpc_sim_driver_init(&driver, sim, 0, NULL) == GPC_OK ? 0 : -1;
}

static int tear_down(void **state)
{
	gpc_sim_driver_fini(&driver);
	gpc_sim_destroy(sim);
	return 0;
}

FIXTURE(set_up, tear_down);

static gpc_stream stream_create(unsigned flags)
{
	struct gpc_sim_stream *stream = NULL;

	assert_int_equal(gpc_sim_stream_create(driver.context, flags, 0, &stream), CUDA_SUCCESS);
	return (uintptr_t)stream;
}

static gpc_event event_create(void)
{
	gpc_event event = 0;

	assert_int_equal(drv->ops->event_create(drv, &event), GPC_OK);
	return event;
}

static gpc_devptr take(uint64_t size)
{
	gpc_devptr ptr = 0;

	assert_int_equal(drv->ops->mem_alloc(drv, size, &ptr), GPC_OK);
	return ptr;
}

static void launch(gpc_stream stream, uint64_t ns, gpc_devptr ptr, uint64_t size, int fill)
{
	assert_int_equal(gpc_sim_driver_launch(&driver, stream, ns, ptr, size, fill), GPC_OK);
}

TEST(a_fence_waits_for_work_on_every_stream)
{
	gpc_stream a = stream_create(CU_STREAM_NON_BLOCKING);
	gpc_event event = event_create();

	launch(a, 10 * MS, 0, 0, -1);
	launch(0, 5 * MS, 0, 0, -1);
	assert_int_equal(drv->ops->fence_record(drv, event), GPC_OK);
	assert_int_equal(drv->ops->event_query(drv, event), GPC_DEVICE_NOT_READY);
	gpc_sim_clock_spend(&sim->clock, 9 * MS);
	assert_int_equal(drv->ops->event_query(drv, event), GPC_DEVICE_NOT_READY);
	gpc_sim_clock_spend(&sim->clock, 1 * MS);
	assert_int_equal(drv->ops->event_query(drv, event), GPC_OK);
	drv->ops->event_destroy(drv, event);
}

TEST(work_after_the_fence_does_not_delay_it)
{
	gpc_event event = event_create();

	launch(0, 1 * MS, 0, 0, -1);
	assert_int_equal(drv->ops->fence_record(drv, event), GPC_OK);
	launch(0, 100 * MS, 0, 0, -1);
	uint64_t before = drv->ops->now_ns(drv);
	assert_int_equal(drv->ops->event_wait(drv, event), GPC_OK);
	assert_int_equal(drv->ops->now_ns(drv) - before, 1 * MS);
	drv->ops->event_destroy(drv, event);
}

TEST(memory_reused_too_early_holds_the_old_owners_data)
{
	gpc_stream a = stream_create(CU_STREAM_NON_BLOCKING);
	gpc_stream b = stream_create(CU_STREAM_NON_BLOCKING);
	gpc_devptr ptr = take(2 * GPC_MIB);

	launch(a, 10 * MS, ptr, 100, 1);
	/* A new owner on another stream that waits for nothing. */
	launch(b, 1 * MS, ptr, 100, 2);
	assert_int_equal(drv->ops->context_sync(drv), GPC_OK);
	assert_int_equal(*(char *)gpc_sim_bytes(driver.sim, ptr), 1);
}

TEST(memory_reused_behind_a_stream_wait_holds_the_new_owners_data)
{
	gpc_stream b = stream_create(CU_STREAM_NON_BLOCKING);
	gpc_devptr ptr = take(2 * GPC_MIB);
	gpc_event event = event_create();

	launch(0, 10 * MS, ptr, 100, 1);
	assert_int_equal(drv->ops->legacy_record(drv, event), GPC_OK);
	assert_int_equal(drv->ops->stream_wait(drv, b, event), GPC_OK);
	launch(b, 1 * MS, ptr, 100, 2);
	assert_int_equal(drv->ops->context_sync(drv), GPC_OK);
	assert_int_equal(*(char *)gpc_sim_bytes(driver.sim, ptr), 2);
	drv->ops->event_destroy(drv, event);
}

TEST(memory_reused_behind_a_wait_of_the_context_holds_the_new_owners_data)
{
	gpc_stream a = stream_create(CU_STREAM_NON_BLOCKING);
	gpc_stream b = stream_create(CU_STREAM_NON_BLOCKING);
	gpc_devptr ptr = take(2 * GPC_MIB);
	gpc_event event = event_create();

	launch(a, 10 * MS, ptr, 100, 1);
	assert_int_equal(drv->ops->fence_record(drv, event), GPC_OK);
	assert_int_equal(drv->ops->fence_wait(drv, event), GPC_OK);
	launch(b, 1 * MS, ptr, 100, 2);
	assert_int_equal(drv->ops->context_sync(drv), GPC_OK);
	assert_int_equal(*(char *)gpc_sim_bytes(driver.sim, ptr), 2);
	drv->ops->event_destroy(drv, event);
}

TEST(a_free_waits_for_the_device)
{
	gpc_devptr ptr = take(2 * GPC_MIB);

	uint64_t before = drv->ops->now_ns(drv);
	launch(stream_create(CU_STREAM_NON_BLOCKING), 3 * MS, ptr, 100, 1);
	assert_int_equal(drv->ops->mem_free(drv, ptr), GPC_OK);
	assert_true(drv->ops->now_ns(drv) - before >= 3 * MS);
}

TEST(the_legacy_stream_and_blocking_streams_wait_for_each_other)
{
	gpc_stream blocking = stream_create(0);
	gpc_event event = event_create();
	uint64_t before = drv->ops->now_ns(drv);

	launch(blocking, 2 * MS, 0, 0, -1);
	launch(0, 2 * MS, 0, 0, -1);
	launch(blocking, 2 * MS, 0, 0, -1);
	assert_int_equal(drv->ops->context_sync(drv), GPC_OK);
	assert_int_equal(drv->ops->now_ns(drv) - before, 6 * MS);
	drv->ops->event_destroy(drv, event);
}

TEST(a_kernel_on_freed_memory_breaks_the_context_for_good)
{
	gpc_devptr ptr = take(2 * GPC_MIB);

	assert_int_equal(drv->ops->mem_free(drv, ptr), GPC_OK);
	launch(0, 1 * MS, ptr, 100, 1);
	assert_int_equal(gpc_status_to_device(drv->ops->context_sync(drv)), 700);
	assert_int_equal(gpc_status_to_device(drv->ops->mem_alloc(drv, 2 * GPC_MIB, &ptr)), 700);
}

TEST(the_nth_call_fails_as_told_and_the_next_does_not)
{
	gpc_devptr ptr = 42;

	assert_true(gpc_sim_fault_add(&sim->faults, "cuMemAlloc", 2, 1, 2));
	take(512);
	assert_int_equal(drv->ops->mem_alloc(drv, 512, &ptr), GPC_DEVICE_NO_MEMORY);
	assert_int_equal(ptr, 42);
	take(512);
	assert_int_equal(driver.counters.n_mem_alloc, 3);
}

TEST(a_fence_breaks_a_capture_and_an_allocation_does_not)
{
	struct gpc_sim_stream *stream =
		(struct gpc_sim_stream *)(uintptr_t)stream_create(CU_STREAM_NON_BLOCKING);
	gpc_event event = event_create();
	struct gpc_sim_graph *graph = NULL;

	assert_int_equal(
		gpc_sim_capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	take(2 * GPC_MIB);
	assert_int_equal(gpc_sim_capture_status(stream, NULL), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	assert_int_equal(gpc_status_to_device(drv->ops->fence_record(drv, event)), 900);
	assert_int_equal(
		gpc_sim_capture_status(stream, NULL), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	assert_int_equal(
		gpc_sim_capture_end(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_null(graph);
	drv->ops->event_destroy(drv, event);
}

TEST(a_program_that_allocates_during_a_global_capture_breaks_it)
{
	struct gpc_sim_stream *stream =
		(struct gpc_sim_stream *)(uintptr_t)stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_graph *graph = NULL;
	uint64_t ptr;

	assert_int_equal(
		gpc_sim_capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_mem_alloc(driver.context, 512, &ptr),
		CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(
		gpc_sim_capture_end(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST(captured_work_happens_at_each_launch_and_not_before)
{
	struct gpc_sim_stream *stream =
		(struct gpc_sim_stream *)(uintptr_t)stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_graph *graph = NULL;
	gpc_devptr ptr = take(512);
	char *byte = gpc_sim_bytes(driver.sim, ptr);

	*byte = 0;
	assert_int_equal(
		gpc_sim_capture_begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
	launch((uintptr_t)stream, 1 * MS, ptr, 1, 5);
	assert_int_equal(gpc_sim_capture_end(stream, &graph), CUDA_SUCCESS);
	assert_int_equal(drv->ops->context_sync(drv), GPC_OK);
	assert_int_equal(*byte, 0);
	for (unsigned i = 0; i < 2; i++) {
		*byte = 0;
		assert_int_equal(gpc_sim_graph_launch(graph, stream), CUDA_SUCCESS);
		assert_int_equal(drv->ops->context_sync(drv), GPC_OK);
		assert_int_equal(*byte, 5);
	}
	gpc_sim_graph_destroy(graph);
}
