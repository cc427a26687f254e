/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of cudaFree on the device (alloc/barrier.h), by the calls of the hooks.  The clock is virtual: an hour of
 * work ends only if the host waits for it.
 */
#include "runtime/context/green.h"
#include "runtime/context/reach.h"
#include "runtime/context/streams.h"
#include "runtime/export/ipc.h"
#include "runtime/ledger/observe.h"
#include "runtime/process/enter.h"
#include "world.h"

#define HOUR_NS (UINT64_C(3600) * 1000 * 1000 * 1000)
#define CONF    "record:off,stacks:off"
#define VIRTUAL "clock:virtual"

/* The hooks of a launch. */
static void submit(CUstream stream, uint64_t ns)
{
	CHECK(world_enter());
	if (gpc_runtime_duties.n_due > 0)
		gpc_runtime_submits(stream);
	gpc_runtime_leave();
	CHECK(!world.gpusim_launch(stream, ns, 0, NULL));
}

static void look(CUstream stream)
{
	CHECK(world_enter());
	if (gpc_runtime_duties.n_unsettled > 0)
		gpc_runtime_queries(stream);
	gpc_runtime_leave();
}

static bool is_running(CUstream stream)
{
	return world.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
}

/* A block of 64 MiB, given back while work of an hour is in flight on `stream`. */
static CUdeviceptr free_in_flight(CUstream stream)
{
	CUdeviceptr ptr;

	CHECK(!world_malloc(&ptr, 64 * MIB));
	submit(stream, HOUR_NS);
	CHECK(!world_free(ptr));
	return ptr;
}

/* Hands that block out again, while its work is in flight. */
static CUdeviceptr reuse_in_flight(CUstream stream)
{
	CUdeviceptr freed = free_in_flight(stream);
	CUdeviceptr ptr;

	CHECK(!world_malloc(&ptr, 64 * MIB) && ptr == freed);
	return ptr;
}

static void in_order(void)
{
	CUdeviceptr again;
	CUdeviceptr ptr;
	CUstream first;
	CUstream second;

	world_start();
	first = world_stream();
	second = world_stream();
	ptr = free_in_flight(first);
	CHECK(gpc_runtime_duties.n_due == 1);
	CHECK(!world_malloc(&again, 64 * MIB) && again == ptr);
	submit(second, 1);
	CHECK(gpc_runtime_duties.n_due == 0);
	CHECK(is_running(first) && is_running(second)); /* behind it, and nobody waited */
	CHECK(!world.cuStreamSynchronize(second));
	CHECK(!is_running(first));
}

TEST(the_first_submission_after_a_free_is_behind_all_before)
{
	world_run(VIRTUAL, CONF, in_order);
}

static void looks_wait(void)
{
	CUstream before;
	CUstream after;

	world_start();
	before = world_stream();
	after = world_stream();
	(void)free_in_flight(before);
	submit(after, 2 * HOUR_NS);
	look(after);
	CHECK(!is_running(before) && is_running(after));
	CHECK(gpc_runtime_duties.n_unsettled == 0);
}

TEST(a_query_finds_the_work_before_the_free_over)
{
	world_run(VIRTUAL, CONF, looks_wait);
}

static void captured(void)
{
	CUdeviceptr again;
	CUdeviceptr ptr;
	CUgraph graph;
	CUstream capturing;
	CUstream stream;

	world_start();
	stream = world_stream();
	capturing = world_stream();
	ptr = free_in_flight(stream);
	CHECK(world_enter());
	gpc_runtime_capture_begins(capturing);
	gpc_runtime_leave();
	CHECK(gpc_runtime_duties.n_due == 0); /* what was loose is in order */
	CHECK(!world.cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(!world_malloc(&again, 64 * MIB) && again == ptr);
	CHECK(!world_free(again) && COUNTER(pending_bytes) == 64 * MIB);
	submit(stream, 1);
	look(stream);
	CHECK(!world.cuStreamEndCapture(capturing, &graph));
	CHECK(world_enter());
	gpc_runtime_capture_ended(capturing);
	gpc_runtime_leave();
	CHECK(gpc_runtime_duties.n_due == 1 && is_running(stream));
	submit(stream, 1);
	CHECK(gpc_runtime_duties.n_due == 0 && COUNTER(pending_bytes) == 0);
}

TEST(captures_survive_and_the_order_is_kept_until_they_end)
{
	world_run(VIRTUAL, CONF, captured);
}

static void given_away(void)
{
	CUdeviceptr ptr;
	CUstream stream;

	world_start();
	stream = world_stream();
	ptr = reuse_in_flight(stream);
	CHECK(world_enter());
	gpc_runtime_exported(ptr);
	gpc_runtime_leave();
	CHECK(!is_running(stream));
	submit(stream, HOUR_NS);
	CHECK(!world_free(ptr) && COUNTER(reserved_bytes) == 64 * MIB && is_running(stream));
}

TEST(who_is_behind_no_event_gets_memory_after_a_wait)
{
	world_run(VIRTUAL, CONF, given_away);
}

static void peer_comes(void)
{
	CUdeviceptr ptr;
	CUstream stream;

	world_start();
	stream = world_stream();
	(void)free_in_flight(stream);
	(void)world_peer(1);
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(!is_running(stream));
	ptr = free_in_flight(stream);
	CHECK(ptr && COUNTER(pending_bytes) == 64 * MIB);
	CHECK(gpc_runtime_duties.n_due == 1); /* the order is kept all the same */
}

TEST(a_peer_waits_once_and_then_there_are_fences)
{
	world_run(VIRTUAL ",devices:2", CONF, peer_comes);
}

static void green(void)
{
	CUgreenCtx parts;
	CUdeviceptr ptr;
	CUstream stream;
	CUstream of_green;

	world_start();
	CHECK(world_enter());
	gpc_runtime_green_begins();
	gpc_runtime_leave();
	CHECK(!world.cuGreenCtxCreate(&parts, (CUdevResourceDesc)&parts, 0, 1));
	CHECK(!world.cuGreenCtxStreamCreate(&of_green, parts, CU_STREAM_NON_BLOCKING, 0));
	stream = world_stream();
	ptr = reuse_in_flight(of_green);
	submit(stream, 1);
	CHECK(is_running(stream));
	CHECK(!world_free(ptr));
	submit(of_green, 1);
	CHECK(gpc_runtime_duties.n_due == 0);
}

TEST(a_barrier_stands_for_green_contexts_and_they_wait_with_it)
{
	world_run(VIRTUAL, CONF, green);
}

static void two_contexts(void)
{
	CUcontext other;
	CUstream stream;

	world_start();
	stream = world_stream();
	(void)free_in_flight(stream);
	CHECK(!world.cuCtxCreate_v2(&other, 0, 1));
	submit(NULL, 1); /* of another device: it is not in this order */
	CHECK(gpc_runtime_duties.n_due == 1);
	CHECK(!is_running(NULL) || !world.cuStreamSynchronize(NULL));
	CHECK(is_running(stream));
	CHECK(!world.cuCtxSetCurrent(NULL) && !world.cuCtxSetCurrent(NULL)); /* two were pushed */
	CHECK(world_enter());
	gpc_runtime_submits(NULL);
	gpc_runtime_queries(NULL);
	gpc_runtime_leave();
	CHECK(gpc_runtime_duties.n_due == 1);
}

TEST(other_contexts_are_not_stopped)
{
	world_run(VIRTUAL ",devices:2", CONF, two_contexts);
}

static void old_driver(void)
{
	CUstream stream;

	world_start();
	stream = world_stream();
	(void)free_in_flight(stream);
	CHECK(!is_running(stream));
	CHECK(gpc_runtime_duties.n_due + gpc_runtime_duties.n_unsettled == 0);
}

TEST(before_cuda_12_5_the_host_waits)
{
	world_run(VIRTUAL ",driver:12040", CONF, old_driver);
}

static void alone(void)
{
	world_start();
	(void)free_in_flight(CU_STREAM_LEGACY);
	CHECK(is_running(CU_STREAM_LEGACY) && COUNTER(pending_bytes) == 0);
	CHECK(gpc_runtime_duties.n_due + gpc_runtime_duties.n_unsettled == 0);
}

TEST(the_legacy_stream_alone_needs_nothing)
{
	world_run(VIRTUAL, CONF, alone);
	world_run(VIRTUAL ",driver:12040", CONF, alone);
}

static void overlap_with_fences(void)
{
	CUdeviceptr again;
	CUdeviceptr ptr;
	CUstream first;
	CUstream second;

	world_start();
	first = world_stream();
	second = world_stream();
	ptr = free_in_flight(first);
	CHECK(COUNTER(pending_bytes) == 64 * MIB && gpc_runtime_duties.n_due == 0);
	CHECK(!world_malloc(&again, 64 * MIB) && again != ptr);
	submit(second, 1);
	CHECK(!world.cuStreamSynchronize(second) && is_running(first));
}

TEST(with_fences_streams_overlap)
{
	world_run(VIRTUAL, CONF ",free_order:fence", overlap_with_fences);
}

static void overlaps(void)
{
	world_start();
	(void)reuse_in_flight(CU_STREAM_LEGACY);
	CHECK(world_enter());
	gpc_runtime_overlap_used();
	gpc_runtime_leave();
	CHECK(gpc_runtime_overlap_seen && !world_context()->pool.fences.is_one_stream);
	CHECK(is_running(CU_STREAM_LEGACY) ==
		(world_context()->pool.drv->ops->fence_wait(world_context()->pool.drv,
			 world_context()->pool.fences.one_stream_end) == GPC_OK));
	world_reset(); /* a context that comes later knows from the first line on */
	CHECK(!world_context()->pool.fences.is_one_stream);
}

TEST(a_launch_that_may_overlap_ends_the_one_stream_rule)
{
	world_run(VIRTUAL, CONF, overlaps);
	world_run(VIRTUAL, CONF ",free_order:fence", overlaps);
	world_run(VIRTUAL ",driver:12020", CONF, overlaps); /* there the host waits */
}

/* Less than the reserve is left, and 64 MiB are idle: the driver gets them, but not while a malloc waits for it. */
static void keeps_reserve(void)
{
	CUdeviceptr idle;
	CUdeviceptr rest;
	CUdeviceptr more;
	CUstream stream;

	world_start();
	stream = world_stream();
	CHECK(!world_malloc(&idle, 64 * MIB) && !world_free(idle) && !world_sync());
	look(stream);
	CHECK(!world_malloc(&rest, 850 * MIB));
	submit(stream, HOUR_NS);
	gpc_observe_device(world_context(), true);
	CHECK(!world_malloc(&more, 70 * MIB) && is_running(stream));
	CHECK(COUNTER(n_driver_free) == 0);
	CHECK(!world_free(more) && COUNTER(n_driver_free) == 1);
}

TEST(the_reserve_is_given_back_in_a_free)
{
	world_run(VIRTUAL ",memory:1GiB,context:0", CONF ",reserve:120MiB", keeps_reserve);
}

static void dies(void)
{
	CUdeviceptr ptr;
	CUstream stream;

	world_start();
	stream = world_stream();
	CHECK(stream && !world_malloc(&ptr, 1000) && !world_free(ptr));
	CHECK(gpc_runtime_duties.n_due == 1 && gpc_runtime_duties.n_unsettled == 1);
	world_reset();
	CHECK(gpc_runtime_duties.n_due + gpc_runtime_duties.n_unsettled == 0);
}

TEST(a_context_that_dies_owes_nothing)
{
	world_run(VIRTUAL, CONF, dies);
}
