/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/context/contexts.h"
#include "runtime/context/endings.h"
#include "runtime/context/green.h"
#include "runtime/context/reach.h"
#include "runtime/context/streams.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "world.h"

static void peers(void)
{
	struct gpc_context *owner;
	CUdeviceptr ptr;

	world_start();
	owner = world_context();
	(void)world_peer(1);
	CHECK(world_enter());
	gpc_runtime_peer_enabled(world.context); /* once more */
	gpc_runtime_leave();
	CHECK(owner->pool.fences.n_members == 2);
	CHECK(owner->pool.fences.members[1] == &world_context()->drv.base);
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(!world_malloc(&ptr, 1000) && !world_free(ptr));
	CHECK(COUNTER(pending_bytes) == 1024); /* no longer safe at once */
}

TEST(a_peer_becomes_a_member_of_the_fences)
{
	world_run("devices:2", "record:off", peers);
}

static void peer_dies(void)
{
	struct gpc_context *owner;
	CUcontext reaching;
	CUdeviceptr ptr;

	world_start();
	owner = world_context();
	reaching = world_peer(1);
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(!world_malloc(&ptr, 600 * MIB) && !world_free(ptr));
	CHECK(!world_malloc(&ptr, 600 * MIB) && COUNTER(n_hit) == 1);
	CHECK(!world_free(ptr) && COUNTER(n_fence) >= 1); /* its events are made */
	CHECK(!world_destroy(reaching));
	CHECK(owner->pool.fences.n_members == 1);
	CHECK(!world_malloc(&ptr, 600 * MIB) && COUNTER(n_oom) == 0);
	CHECK(!world_free(ptr) && !world_sync() && COUNTER(pending_bytes) == 0);
}

TEST(a_peer_that_dies_holds_no_fence_back)
{
	world_run("memory:1GiB,devices:2,context:0", "record:off", peer_dies);
	world_assert_is_silent();
}

static CUcontext joining;

/* While the thread that makes `joining` a member waits here, another one ends that context. */
static CUresult end_joining(CUevent event)
{
	struct gpc_ending ending = gpc_runtime_begin_destroy(joining);

	gpc_runtime_end_destroy(ending, CUDA_SUCCESS);
	return CUDA_SUCCESS;
}

static void dies_while_it_joins(void)
{
	const struct gpc_context *owner;
	CUdeviceptr ptr;

	world_start();
	owner = world_context();
	CHECK(!world_malloc(&ptr, 1000) && !world_free(ptr));
	CHECK(!world.cuCtxCreate_v2(&joining, 0, 1) && world_context());
	world.fns.cuEventSynchronize = end_joining;
	CHECK(world_enter());
	gpc_runtime_peer_enabled(world.context);
	gpc_runtime_leave();
	CHECK(!gpc_context_find_own(joining) && owner->pool.fences.n_members == 1);
}

TEST(a_peer_that_dies_while_it_joins_is_no_member)
{
	world_run("devices:2,context:0", "record:off", dies_while_it_joins);
}

#define KERNEL_NS UINT64_C(5000000)

static void peer_dies_at_work(void)
{
	struct gpc_ending ending;
	CUcontext reaching;
	CUdeviceptr ptr;
	CUdeviceptr again;
	CUstream stream;

	world_start();
	CHECK(world_context());
	reaching = world_peer(1);
	CHECK(!world.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(!world.gpusim_launch(stream, KERNEL_NS, 0, NULL));
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(!world_malloc(&ptr, 64 * MIB) && !world_free(ptr));
	CHECK(!world_malloc(&again, 64 * MIB) && again != ptr);
	CHECK(!world_free(again));
	CHECK(world_enter());
	ending = gpc_runtime_begin_destroy(reaching);
	/* Before the driver is told: another thread may be given the memory now. */
	CHECK(!world.cuCtxSetCurrent(reaching) && !world.cuStreamQuery(stream));
	CHECK(!world.cuCtxSetCurrent(world.context));
	gpc_runtime_end_destroy(ending, world.cuCtxDestroy_v2(reaching));
	gpc_runtime_leave();
}

TEST(the_work_of_a_peer_that_dies_is_waited_for)
{
	world_run("devices:2,clock:virtual", "record:off", peer_dies_at_work);
}

struct range {
	CUdeviceptr ptr;
	uint64_t size;
	int fill;
};
/* Memory of the first context, freed while a stream of the second, which is no peer, still works on it. */
static void freed_under_work_of_another_context(bool is_told)
{
	struct range range = { .size = 600 * MIB, .fill = -1 };
	CUstream stream;
	CUcontext other;

	world_start();
	CHECK(!world_malloc(&range.ptr, 600 * MIB));
	CHECK(!world.cuCtxCreate_v2(&other, 0, 1));
	CHECK(!world.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	/* The copy may be given to its stream while another context is current. */
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(world_enter());
	if (is_told)
		gpc_runtime_reached(stream, 0, range.ptr + 5);
	gpc_runtime_leave();
	CHECK(!world.cuCtxSetCurrent(other));
	CHECK(!world.gpusim_launch(stream, KERNEL_NS, 1, &range));
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(!world_free(range.ptr));
	CHECK(!world_malloc(&range.ptr, 600 * MIB));
	CHECK(!world.cuCtxSetCurrent(other));
	CHECK(world.cuStreamQuery(stream) == (is_told ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY));
}

static void told(void)
{
	freed_under_work_of_another_context(true);
}

static void not_told(void)
{
	freed_under_work_of_another_context(false);
}

TEST(memory_that_another_contexts_copy_uses_is_not_given_out)
{
	world_run("memory:1GiB,devices:2,context:0,clock:virtual", "record:off", told);
	/* What the call is for: without it the same memory comes back at once. */
	world_run("memory:1GiB,devices:2,context:0,clock:virtual", "record:off", not_told);
}

static uint32_t members_of(CUcontext handle)
{
	const struct gpc_context *context = gpc_context_find(handle);

	return context ? context->pool.fences.n_members : 0;
}

static void reaches(void)
{
	CUstream stream;
	CUcontext other;
	CUdeviceptr ours;
	CUdeviceptr theirs;

	world_start();
	CHECK(gpc_runtime_many_contexts); /* two devices */
	CHECK(!world_malloc(&ours, 1000));
	CHECK(!world.cuCtxCreate_v2(&other, 0, 1));
	CHECK(!world_malloc(&theirs, 1000));
	CHECK(!world.cuStreamCreate(&stream, 0));
	CHECK(world_enter());
	gpc_runtime_reached(NULL, theirs, 0);
	gpc_runtime_reached(stream, theirs, 0x1234);
	CHECK(members_of(world.context) == 1 && members_of(other) == 1);
	gpc_runtime_reached(CU_STREAM_PER_THREAD, theirs, ours);
	gpc_runtime_reached(stream, theirs, ours);
	CHECK(members_of(world.context) == 2 && members_of(other) == 1);
	gpc_runtime_leave();
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(world_enter());
	world.fns.cuStreamGetCtx = NULL; /* an old driver: then the current context's it is */
	gpc_runtime_reached(stream, GPC_ANYWHERE, 0);
	CHECK(members_of(other) == 2);
	CHECK(!world.cuCtxSetCurrent(NULL));
	gpc_runtime_reached(NULL, theirs, ours); /* the driver will refuse it */
	gpc_runtime_leave();
}

TEST(a_copy_joins_the_fences_of_the_memory_it_touches)
{
	world_run("devices:2", "record:off", reaches);
	world_assert_is_silent();
}

static void one_context(void)
{
	CUcontext other;

	world_start();
	CHECK(world_context() && !gpc_runtime_many_contexts);
	CHECK(!world.cuCtxCreate_v2(&other, 0, 0));
	CHECK(world_context() && gpc_runtime_many_contexts);
}

TEST(with_one_context_copies_look_at_nothing)
{
	world_run(NULL, "record:off", one_context);
}

/* ---- why one stream does not order reuse any more ---- */

#define END(name) (COUNTER(one_stream_end) == GPUCACHE_ONE_STREAM_END_##name)

static void start_with_one_stream(void)
{
	world_start();
	CHECK(world_context()->pool.fences.is_one_stream);
	CHECK(COUNTER(one_stream_end) == GPUCACHE_ONE_STREAM_HOLDS);
}

static void is_kept(void)
{
	CUdeviceptr ptr;

	start_with_one_stream();
	CHECK(!world_malloc(&ptr, 1000));
	CHECK(world_enter());
	gpc_runtime_leaves_order(ptr);
	CHECK(END(EXPORT));
	gpc_runtime_per_thread_stream_used();
	gpc_runtime_overlap_used();
	CHECK(END(EXPORT)); /* the first reason stays */
	gpc_runtime_leave();
	world_reset(); /* in a context that comes later it never held */
	CHECK(world_context() && END(PER_THREAD));
}

static void of_a_stream(void)
{
	start_with_one_stream();
	(void)world_stream();
	CHECK(END(STREAM));
}

static void of_a_launch(void)
{
	start_with_one_stream();
	CHECK(world_enter());
	gpc_runtime_overlap_used();
	gpc_runtime_leave();
	CHECK(END(OVERLAP));
}

static void of_a_green_context(void)
{
	start_with_one_stream();
	CHECK(world_enter());
	gpc_runtime_green_begins();
	gpc_runtime_leave();
	CHECK(END(GREEN));
}

static void of_a_peer(void)
{
	start_with_one_stream();
	(void)world_peer(1);
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(END(PEER));
}

TEST(the_reason_why_one_stream_orders_reuse_no_more_is_kept)
{
	world_run(NULL, "record:off,stacks:off", is_kept);
	world_run(NULL, "record:off,stacks:off", of_a_stream);
	world_run(NULL, "record:off,stacks:off", of_a_launch);
	world_run(NULL, "record:off,stacks:off", of_a_green_context);
	world_run("devices:2", "record:off,stacks:off", of_a_peer);
}

static void near_host(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(world_context() && END(HOST) && !world_context()->pool.fences.is_one_stream);
	CHECK(!world_malloc(&ptr, 1000));
	CHECK(!world.gpusim_launch(CU_STREAM_LEGACY, 5 * 1000 * 1000, 0, NULL));
	CHECK(!world_free(ptr));
	CHECK(COUNTER(pending_bytes) == 1024); /* no barrier holds the host back */
	CHECK(gpc_runtime_duties.n_due == 1);
}

TEST(where_the_host_reaches_the_memory_every_block_waits_for_its_fence)
{
	world_run("host_access:direct,clock:virtual", "record:off,stacks:off", near_host);
}
