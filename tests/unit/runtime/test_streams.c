/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/context/streams.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "world.h"

#define LONG_NS (UINT64_C(40) * 1000 * 1000)

static void ends_the_rule(void)
{
	CUdeviceptr ptr;
	CUstream stream;

	world_start();
	CHECK(world_context()->pool.fences.is_one_stream);
	CHECK(!world_malloc(&ptr, 1000) && !world_free(ptr));
	CHECK(COUNTER(pending_bytes) == 0);
	/* What the legacy stream still does, the new stream waits for. */
	CHECK(!world.gpusim_launch(CU_STREAM_LEGACY, LONG_NS, 0, NULL));
	stream = world_stream();
	CHECK(world.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
	CHECK(!world_context()->pool.fences.is_one_stream);
	CHECK(!world_malloc(&ptr, 1000) && !world_free(ptr));
	CHECK(COUNTER(pending_bytes) == 1024);
	CHECK(world_enter());
	gpc_runtime_stream_destroyed(stream);
	gpc_runtime_leave();
	CHECK(!world.cuStreamDestroy_v2(stream));
	CHECK(!world_context()->pool.fences.is_one_stream); /* it does not come back */
}

TEST(a_stream_ends_the_one_stream_rule_and_waits)
{
	world_run("clock:virtual", "record:off,free_order:fence", ends_the_rule);
}

static void waits_on_the_host(void)
{
	CUstream stream;

	world_start();
	CHECK(world_context());
	CHECK(!world.gpusim_launch(CU_STREAM_LEGACY, LONG_NS, 0, NULL));
	stream = world_stream();
	/* The event could not be made, so the host waited before the program got the stream. */
	CHECK(!world.cuStreamQuery(stream) && !world.cuStreamQuery(CU_STREAM_LEGACY));
	CHECK(!world_context()->pool.fences.is_end_due);
}

TEST(where_the_device_cannot_wait_the_host_does)
{
	world_run("clock:virtual,fail:cuEventCreate/1/999", "record:off", waits_on_the_host);
}

/*
 * The end of the one-stream rule could not be recorded; the wait, which a capture forbids, must come before one begins.
 */
static void is_over_before_a_capture(void)
{
	struct gpc_fences *fences;
	CUstream stream;

	world_start();
	fences = &world_context()->pool.fences;
	CHECK(!world.gpusim_launch(CU_STREAM_LEGACY, LONG_NS, 0, NULL));
	CHECK(world_enter());
	gpc_runtime_per_thread_stream_used();
	CHECK(fences->is_end_due);
	CHECK(world.cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY);
	gpc_runtime_capture_begins((CUstream)0x1000);
	CHECK(!fences->is_end_due && !world.cuStreamQuery(CU_STREAM_LEGACY));
	gpc_runtime_capture_ended((CUstream)0x1000);
	gpc_runtime_leave();
	/* The wait stands for the event: nothing is due at a stream either. */
	CHECK(!world.gpusim_launch(CU_STREAM_LEGACY, LONG_NS, 0, NULL));
	stream = world_stream();
	CHECK(world.cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY);
	CHECK(!world.cuStreamQuery(stream));
}

TEST(an_end_that_failed_is_waited_for_before_a_capture_begins)
{
	world_run("clock:virtual,fail:cuEventCreate/1/999", "record:off,free_order:fence",
		is_over_before_a_capture);
}

static void no_context(void)
{
	world_start();
	CHECK(!world.cuCtxSetCurrent(NULL));
	CHECK(world_enter());
	gpc_runtime_stream_created(CU_STREAM_LEGACY);
	gpc_runtime_stream_destroyed(CU_STREAM_LEGACY);
	gpc_runtime_leave();
}

TEST(without_a_context_nothing_happens)
{
	world_run(NULL, "record:off", no_context);
}

static void per_thread(void)
{
	CUcontext other;
	struct gpc_context *first;

	world_start();
	first = world_context();
	CHECK(!world.gpusim_launch(CU_STREAM_LEGACY, LONG_NS, 0, NULL));
	CHECK(world_enter());
	gpc_runtime_per_thread_stream_used();
	gpc_runtime_leave();
	CHECK(gpc_runtime_per_thread_seen);
	CHECK(!first->pool.fences.is_one_stream);
	CHECK(world.cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY); /* nobody waited */
	CHECK(first->pool.counters->one_stream_end == GPUCACHE_ONE_STREAM_END_PER_THREAD);
	CHECK(!world.cuCtxCreate_v2(&other, 0, 0));
	CHECK(!world_context()->pool.fences.is_one_stream); /* nor has a later one the rule */
}

TEST(a_per_thread_stream_ends_the_rule_everywhere)
{
	world_run("clock:virtual", "record:off", per_thread);
}

static unsigned n_open(void)
{
	return atomic_load(&gpc_runtime.heap.captures.n_open);
}

static void captures(void)
{
	CUdeviceptr ptr;
	CUgraph graph;
	CUstream a;
	CUstream b;

	world_start();
	a = world_stream();
	b = world_stream();
	CHECK(!world_malloc(&ptr, 1000));
	CHECK(world_enter());
	gpc_runtime_capture_begins(a);
	CHECK(!world.cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
	gpc_runtime_capture_begins(b);
	CHECK(n_open() == 2);
	gpc_runtime_capture_ended(b); /* the driver refused */
	gpc_runtime_capture_ended(b); /* of a stream that does not capture: nothing */
	CHECK(n_open() == 1);
	gpc_runtime_leave();
	/* While it is open: a free, a hit and a miss, and nothing of it breaks the capture. */
	CHECK(!world_free(ptr) && COUNTER(pending_bytes) == 1024);
	CHECK(!world_malloc(&ptr, 40 * MIB) && !world_malloc(&ptr, 1000));
	CHECK(COUNTER(n_fence) == 0);
	CHECK(!world.cuStreamEndCapture(a, &graph));
	CHECK(world_enter());
	gpc_runtime_capture_ended(a);
	CHECK(n_open() == 0);
	gpc_runtime_capture_ended(a);
	gpc_runtime_capture_begins(a);
	gpc_runtime_stream_destroyed(b);
	CHECK(n_open() == 1);
	gpc_runtime_stream_destroyed(a); /* ends its capture without a word */
	CHECK(n_open() == 0);
	gpc_runtime_leave();
}

TEST(captures_are_counted_and_not_broken)
{
	world_run(NULL, "record:off,stacks:off", captures);
}

static void many_captures(void)
{
	world_start();
	CHECK(world_enter());
	for (uintptr_t i = 0; i < GPC_MAX_CAPTURES + 4; i++)
		gpc_runtime_capture_begins((CUstream)(0x1000 + i));
	for (uintptr_t i = 0; i < GPC_MAX_CAPTURES + 4; i++)
		gpc_runtime_capture_ended((CUstream)(0x1000 + i));
	CHECK(n_open() == 0);
	gpc_runtime_leave();
}

TEST(more_captures_than_are_listed_end_as_well)
{
	world_run(NULL, "record:off,stacks:off", many_captures);
}

static void dies_with_its_context(void)
{
	struct gpc_captures *captures = &gpc_runtime.heap.captures;
	CUstream stream;

	world_start();
	stream = world_stream();
	CHECK(world_enter());
	gpc_runtime_capture_begins(stream);
	gpc_runtime_leave();
	CHECK(!world.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK(gpc_captures_is_any_open(captures));
	world_reset();
	CHECK(!gpc_captures_is_any_open(captures));
}

TEST(a_capture_ends_with_its_context)
{
	world_run(NULL, "record:off,stacks:off", dies_with_its_context);
}
