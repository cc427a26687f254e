/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/context/contexts.h"
#include "runtime/context/endings.h"
#include "runtime/context/green.h"
#include "runtime/context/streams.h"
#include "runtime/memory.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "world.h"

#define LONG_NS (UINT64_C(40) * 1000 * 1000)

static CUgreenCtx green_of(CUdevice device)
{
	static char parts;
	CUgreenCtx green;

	CHECK(world_enter());
	gpc_runtime_green_begins();
	gpc_runtime_leave();
	CHECK(!world.cuGreenCtxCreate(&green, (CUdevResourceDesc)(void *)&parts, device, 1));
	return green;
}

static CUcontext make_current(CUgreenCtx green)
{
	CUcontext handle;

	CHECK(!world.fns.cuCtxFromGreenCtx(&handle, green) && !world.cuCtxSetCurrent(handle));
	return handle;
}

static void ends(CUgreenCtx green, CUdevice device)
{
	CHECK(world_enter());
	CHECK(gpc_runtime_green_ends(green) == device);
	CHECK(!world.cuGreenCtxDestroy(green));
	gpc_runtime_primary_released(device);
	gpc_runtime_leave();
}

static void shares(void)
{
	const struct gpc_context *primary;
	CUcontext handle;
	CUgreenCtx green;
	CUdeviceptr idle;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&idle, 4 * MIB) && !world_free(idle));
	primary = world_context();
	green = green_of(0);
	handle = make_current(green);
	CHECK(handle != world.context && world_context() == primary);
	CHECK(gpc_context_find(handle) == primary && gpc_green_find(handle) == world.context);
	CHECK(!world_malloc(&ptr, 4 * MIB) && ptr == idle);
	CHECK(COUNTER(n_hit) == 1 && COUNTER(n_driver_malloc) == 1);
	/* It ends, and the memory stays. */
	ends(green, 0);
	CHECK(!gpc_green_find(handle) && !gpc_context_find(handle));
	CHECK(!world.cuCtxSetCurrent(world.context) && world_context() == primary);
	CHECK(!atomic_load(&primary->is_gone) && !world_free(ptr) && !world_sync());
}

TEST(a_green_context_has_the_memory_of_its_primary_one)
{
	world_run(NULL, "stacks:off", shares);
	world_assert_is_silent();
}

static void alone(void)
{
	const struct gpc_context *primary;
	CUgreenCtx green;
	CUdeviceptr ptr;

	CHECK(!world.cuInit(0));
	gpc_runtime_saw_start();
	green = green_of(1);
	(void)make_current(green);
	CHECK(!world_malloc(&ptr, 1000));
	primary = world_context();
	CHECK(primary->handle == gpc_runtime.devices[1].primary);
	CHECK(primary->device->ordinal == 1 && !primary->pool.fences.is_one_stream);
	ends(green, 1);
	CHECK(atomic_load(&primary->is_gone));
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[1], reserved_bytes) == 0);
}

TEST(with_the_last_green_context_its_primary_one_ends)
{
	world_run("devices:2", "record:off", alone);
}

static void reset(void)
{
	CUgreenCtx green;
	CUdeviceptr ptr;

	world_start();
	green = green_of(0);
	(void)make_current(green);
	CHECK(!world_malloc(&ptr, 1000) && world_context()->generation == 1);
	world_reset();
	(void)make_current(green);
	CHECK(world_context()->generation == 2 && world_context()->handle == world.context);
	CHECK(world_free(ptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST(a_reset_of_the_primary_context_is_one_of_its_green_ones)
{
	world_run(NULL, "record:off", reset);
}

static CUstream stream_of(CUgreenCtx green)
{
	CUstream stream;

	CHECK(!world.cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
	CHECK(world_enter());
	gpc_runtime_stream_created(stream);
	gpc_runtime_leave();
	return stream;
}

static void covers(void)
{
	CUgreenCtx green;
	CUdeviceptr ptr;
	CUdeviceptr next;
	CUstream stream;

	world_start();
	green = green_of(0);
	stream = stream_of(green);
	CHECK(!world_malloc(&ptr, 64 * MIB));
	CHECK(!world.gpusim_launch(stream, LONG_NS, 0, NULL));
	CHECK(!world_free(ptr) && !world_malloc(&next, 64 * MIB));
	CHECK(next != ptr && !world_free(next));
	CHECK(world.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
	CHECK(!world.cuStreamSynchronize(stream));
	CHECK(!world_malloc(&next, 64 * MIB) && COUNTER(n_driver_malloc) == 2);
}

TEST(a_fence_covers_the_work_of_green_contexts)
{
	world_run("clock:virtual", "record:off,free_order:fence", covers);
}

static void waits_for_one(void)
{
	CUcontext handle;
	CUgreenCtx green;
	CUdeviceptr ptr;
	CUstream stream;

	world_start();
	stream = world_stream();
	green = green_of(0);
	CHECK(!world_malloc(&ptr, 4 * MIB));
	CHECK(!world.gpusim_launch(stream, LONG_NS, 0, NULL) && !world_free(ptr));
	handle = make_current(green);
	CHECK(!world_sync()); /* of the green context: the kernel is another's */
	CHECK(world.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
	CHECK(COUNTER(pending_bytes) == 4 * MIB);
	CHECK(world_enter() && !gpc_runtime_begin_sync(handle).context);
	gpc_runtime_leave();
	CHECK(!world.cuCtxSetCurrent(world.context) && !world_sync());
	CHECK(COUNTER(pending_bytes) == 0);
}

TEST(a_wait_for_a_green_context_passes_no_fence)
{
	world_run("clock:virtual", "record:off,free_order:fence", waits_for_one);
}

static void ends_the_rule(void)
{
	CUcontext handle;
	CUgreenCtx green;
	CUdeviceptr ptr;
	CUdeviceptr next;

	world_start();
	CHECK(!world_malloc(&ptr, 1000) && !world_free(ptr));
	CHECK(world_context()->pool.fences.is_one_stream && COUNTER(pending_bytes) == 0);
	CHECK(!world.gpusim_launch(CU_STREAM_LEGACY, LONG_NS, 0, NULL));
	green = green_of(0);
	/* What was reused without a fence is done: the green context's NULL is no stream of ours. */
	CHECK(!world.cuStreamQuery(CU_STREAM_LEGACY));
	handle = make_current(green);
	CHECK(!world_malloc(&ptr, 1000) && !world_free(ptr) && COUNTER(pending_bytes) == 1024);
	/* Its NULL and that of the primary context are two streams. */
	CHECK(world_enter());
	for (int i = 0; i < 2; i++) {
		CUstream stream = i == 0 ? NULL : CU_STREAM_LEGACY;
		bool is_ours;

		CHECK(!world.cuCtxSetCurrent(world.context));
		CHECK(!gpc_runtime_malloc_on(&ptr, 4 * MIB, stream));
		CHECK(!world.gpusim_launch(CU_STREAM_LEGACY, LONG_NS, 0, NULL));
		CHECK(!gpc_runtime_free_on(ptr, stream, &is_ours) && is_ours);
		CHECK(!world.cuCtxSetCurrent(handle));
		CHECK(!gpc_runtime_malloc_on(&next, 4 * MIB, stream) && next != ptr);
	}
	gpc_runtime_leave();
}

TEST(with_a_green_context_null_is_many_streams)
{
	world_run("clock:virtual", "record:off,free_order:fence", ends_the_rule);
}

static void many(void)
{
	CUgreenCtx greens[100];
	CUcontext handles[100];
	CUdeviceptr ptr;

	world_start();
	for (int i = 0; i < 100; i++) {
		greens[i] = green_of(0);
		handles[i] = make_current(greens[i]);
		CHECK(world_context()->handle == world.context);
		CHECK(!world_malloc(&ptr, 1000) && !world_free(ptr));
	}
	for (int i = 0; i < 100; i++) {
		CHECK(!world.cuCtxSetCurrent(handles[i]));
		CHECK(world_context()->handle == world.context);
		ends(greens[i], 0);
	}
	CHECK(atomic_load(&gpc_runtime.devices[0].n_contexts) == 1);
}

TEST(more_green_contexts_than_are_known_at_once)
{
	world_run(NULL, "record:off", many);
}

static void unseen(void)
{
	static char parts;
	CUgreenCtx green;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 1000) && world_context()->pool.fences.is_one_stream);
	/* Created by a route that we do not intercept. */
	CHECK(!world.cuGreenCtxCreate(&green, (CUdevResourceDesc)(void *)&parts, 0, 1));
	(void)make_current(green);
	CHECK(world_context()->handle == world.context);
	CHECK(gpc_green_is_used() && !world_context()->pool.fences.is_one_stream);
}

TEST(a_green_context_that_nobody_announced_is_recognised)
{
	world_run(NULL, "record:off", unseen);
}

static void destroyed(void)
{
	CUcontext handle;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 1000));
	handle = make_current(green_of(0));
	CHECK(world_context() && world_destroy(handle) == CUDA_ERROR_INVALID_CONTEXT);
	CHECK(!atomic_load(&world_context()->is_gone) && COUNTER(live_bytes) == 1024);
}

TEST(a_green_context_cannot_be_destroyed_as_an_ordinary_one)
{
	world_run(NULL, "record:off", destroyed);
}

static void old_driver(void)
{
	CUgreenCtx green;
	CUdeviceptr ptr;

	world.fns.cuStreamGetCtx_v2 = NULL;
	world_start();
	CHECK(!world_malloc(&ptr, 1000) && world_context()->handle == world.context);
	green = green_of(0);
	(void)make_current(green);
	CHECK(!gpc_context_current());
	CHECK(!world_malloc(&ptr, 1000) && !gpc_heap_find_pool(&gpc_runtime.heap, ptr));
	CHECK(!world_free(ptr));
	world.fns.cuCtxFromGreenCtx = NULL;
	CHECK(world_enter() && gpc_runtime_green_ends(green) == -1);
	gpc_runtime_leave();
}

TEST(where_nobody_knows_the_primary_context_memory_is_the_drivers)
{
	world_run(NULL, "record:off", old_driver);
}
