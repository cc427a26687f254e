/* SPDX-License-Identifier: Apache-2.0 */
/* The accounting of the driver's pools and of the memory of graphs. */
#include <pthread.h>

#include "runtime/context/contexts.h"
#include "runtime/context/streams.h"
#include "runtime/export/ipc.h"
#include "runtime/ledger/pools.h"
#include "runtime/ledger/track.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "runtime/rescue/rescue.h"
#include "world.h"

#define SLAB (32 * MIB) /* what the simulated driver reserves at once */

static CUstream stream;
static unsigned n_asked;

static uint64_t booked(enum gpucache_kind kind)
{
	return GPC_DEVICE_SUM(&gpc_runtime.devices[0], kind_bytes[kind]);
}

static uint64_t direct(void)
{
	return GPC_DEVICE_SUM(&gpc_runtime.devices[0], direct_bytes);
}

/* What the hooks of cuMemAllocAsync and its kin do. */
struct ordered {
	struct gpc_passed_call call;
	CUdeviceptr ptr;
	CUmemoryPool pool;
};

static CUresult make_ordered(struct gpc_passed_call *call)
{
	struct ordered *ordered = (struct ordered *)call;
	CUresult result = ordered->pool ? world.cuMemAllocFromPoolAsync(
						  &ordered->ptr, call->size, ordered->pool, stream)
					: world.cuMemAllocAsync(&ordered->ptr, call->size, stream);

	call->ret_address = ordered->ptr;
	call->ret_size = call->size;
	return result;
}

static CUdeviceptr take_from(CUmemoryPool pool, size_t size)
{
	struct ordered ordered = { .call = { .make = make_ordered, .size = size }, .pool = pool };

	CHECK(world_enter());
	CHECK(!gpc_runtime_pool_malloc(&ordered.call, pool, stream));
	gpc_runtime_leave();
	return ordered.ptr;
}

static CUdeviceptr take(size_t size)
{
	return take_from(NULL, size);
}

static void give(CUdeviceptr ptr)
{
	struct gpc_tracked *tracked;

	CHECK(world_enter());
	tracked = gpc_runtime_forget(ptr);
	CHECK(tracked);
	gpc_runtime_forgotten(tracked, world.cuMemFreeAsync(ptr, stream));
	gpc_runtime_leave();
}

static void look(void)
{
	CHECK(world_enter());
	gpc_runtime_pools_changed();
	gpc_runtime_leave();
}

static CUmemoryPool make_pool(CUmemLocationType where, int id)
{
	const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { where, id } };
	CUmemoryPool pool = NULL;

	CHECK(!world.cuMemPoolCreate(&pool, &props));
	CHECK(world_enter());
	gpc_runtime_pool_seen(pool, props.location, props.allocType, props.maxSize);
	gpc_runtime_leave();
	return pool;
}

static void destroy_pool(CUmemoryPool pool)
{
	CHECK(world_enter());
	gpc_runtime_pool_destroyed(pool);
	gpc_runtime_leave();
	CHECK(!world.cuMemPoolDestroy(pool));
}

static CUresult count_question(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	n_asked++;
	return CUDA_ERROR_INVALID_VALUE;
}

static void start(void)
{
	world_start();
	stream = world_stream();
}

static void adds_up(void)
{
	CUdeviceptr a;
	CUdeviceptr b;

	start();
	a = take(1000);
	CHECK(booked(GPUCACHE_KIND_ASYNC) == 1000 && booked(GPUCACHE_KIND_POOL) == SLAB - 1000);
	b = take(5 * MIB);
	CHECK(booked(GPUCACHE_KIND_ASYNC) == 5 * MIB + 1000 && direct() == SLAB);
	CHECK(take(40 * MIB) && direct() == 3 * SLAB); /* it grew by two slabs' worth */
	give(a);
	give(b);
	CHECK(booked(GPUCACHE_KIND_ASYNC) == 40 * MIB && direct() == 3 * SLAB);
	CHECK(!world_sync());
	look();
	CHECK(direct() == 2 * SLAB);
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], n_malloc) == 3);
	CHECK(gpc_runtime.devices[0].budget.used_bytes == 40 * MIB);
}

TEST(allocations_and_what_is_idle_add_up_to_what_is_reserved)
{
	world_run(NULL, "stacks:off", adds_up);
	world_assert_is_silent();
}

static void *churn(void *arg)
{
	CHECK(!world.cuCtxSetCurrent(world.context));
	for (unsigned i = 0; i < 300; i++)
		give(take(512 * (1 + i % 7)));
	return NULL;
}

static void threads(void)
{
	pthread_t thread[4];

	start();
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread[i], NULL, churn, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(thread[i], NULL));
	CHECK(booked(GPUCACHE_KIND_ASYNC) == 0);
	look();
	CHECK(booked(GPUCACHE_KIND_POOL) == direct() && direct() % SLAB == 0);
}

TEST(threads_that_use_one_pool_leave_the_books_right)
{
	world_run(NULL, "stacks:off", threads);
	world_assert_is_silent();
}

static void host(void)
{
	CUmemoryPool pool;
	CUdeviceptr ptr;

	start();
	pool = make_pool(CU_MEM_LOCATION_TYPE_HOST, 0);
	ptr = take_from(pool, 5000);
	CHECK(booked(GPUCACHE_KIND_HOST) == 5000 && direct() == 0);
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], host_bytes) == 5000);
	give(ptr);
	CHECK(booked(GPUCACHE_KIND_HOST) == 0 && direct() == 0);
}

TEST(memory_of_a_pool_of_the_host_is_host_memory)
{
	world_run(NULL, "stacks:off", host);
}

static void of_two_devices(void)
{
	CUmemoryPool pool;

	start();
	pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 1);
	CHECK(take_from(pool, MIB));
	CHECK(direct() == 0);
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[1], direct_bytes) == SLAB);
	CHECK(take(MIB) && direct() == SLAB);
}

TEST(an_allocation_counts_for_the_device_of_its_pool)
{
	world_run("devices:2", "stacks:off", of_two_devices);
}

static void made_current(void)
{
	CUmemoryPool pool;

	start();
	pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	CHECK(world_enter());
	gpc_runtime_pool_made_current(0, pool);
	gpc_runtime_pool_made_current(7, pool);
	gpc_runtime_pool_made_current(-1, pool);
	gpc_runtime_leave();
	/* The simulated driver was not told, so that its own figures tell the two apart. */
	CHECK(take(MIB) && booked(GPUCACHE_KIND_POOL) == 0);
	destroy_pool(pool);
	CHECK(take(MIB) && booked(GPUCACHE_KIND_POOL) == SLAB - MIB);
}

TEST(the_pool_that_the_program_made_current_is_the_one_meant)
{
	world_run(NULL, "stacks:off", made_current);
}

static void from_idle(void)
{
	const struct gpc_context *owner;

	start();
	give(take(20 * MIB));
	CHECK(direct() == SLAB);
	give(take(20 * MIB));
	owner = gpc_context_owner(&gpc_runtime.devices[0]);
	CHECK(direct() == SLAB);
	CHECK(gpc_counter_get(&owner->pool.counters->peak_direct_bytes) == SLAB);
}

TEST(an_allocation_from_what_was_idle_is_no_peak)
{
	world_run(NULL, "stacks:off", from_idle);
}

static void kept(void)
{
	CUmemoryPool standard = NULL;
	CUdeviceptr ptr;

	start();
	ptr = take(MIB);
	CHECK(!world.fns.cuDeviceGetDefaultMemPool(&standard, 0));
	CHECK(world_enter());
	gpc_runtime_pool_destroyed(standard);
	gpc_runtime_leave();
	CHECK(world.cuMemPoolDestroy(standard));
	CHECK(world_enter());
	gpc_runtime_pool_kept(standard);
	gpc_runtime_leave();
	give(take(MIB));
	CHECK(direct() == SLAB);
	give(ptr);
	CHECK(direct() == SLAB);
}

TEST(a_pool_that_the_driver_keeps_stays_in_the_books_once)
{
	world_run(NULL, "stacks:off", kept);
}

static CUresult (*real_default)(CUmemoryPool *pool, CUdevice device);
static CUmemoryPool chosen;

/* Another thread chooses a pool while this one asks for the default one. */
static CUresult choose_meanwhile(CUmemoryPool *pool, CUdevice device)
{
	world.fns.cuDeviceGetDefaultMemPool = real_default;
	gpc_runtime_pool_made_current(device, chosen);
	return real_default(pool, device);
}

static void chosen_at_once(void)
{
	struct ordered ordered = { .call = { .make = make_ordered, .size = MIB } };

	start();
	chosen = make_pool(CU_MEM_LOCATION_TYPE_HOST, 0);
	real_default = world.fns.cuDeviceGetDefaultMemPool;
	world.fns.cuDeviceGetDefaultMemPool = choose_meanwhile;
	CHECK(world_enter());
	CHECK(!gpc_runtime_pool_malloc(&ordered.call, NULL, stream));
	gpc_runtime_leave();
	(void)take(MIB);
	CHECK(booked(GPUCACHE_KIND_HOST) == 2 * MIB); /* what the chosen one gives */
}

TEST(a_pool_chosen_while_the_default_one_is_asked_for_stays_chosen)
{
	world_run(NULL, "stacks:off", chosen_at_once);
}

static void destroyed(void)
{
	CUmemoryPool pool;
	CUdeviceptr ptr;

	start();
	pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	ptr = take_from(pool, MIB);
	destroy_pool(pool);
	world.fns.cuMemPoolGetAttribute = count_question;
	look();
	CHECK(n_asked == 0 && booked(GPUCACHE_KIND_ASYNC) == MIB &&
		booked(GPUCACHE_KIND_POOL) == 0);
	give(ptr);
	CHECK(booked(GPUCACHE_KIND_ASYNC) == 0 && booked(GPUCACHE_KIND_POOL) == 0);
}

TEST(nobody_asks_about_a_pool_that_was_destroyed)
{
	world_run(NULL, "stacks:off", destroyed);
}

static void captured(void)
{
	CUgraph graph = NULL;
	CUstream other;

	start();
	other = world_stream();
	CHECK(take(MIB));
	CHECK(world_enter());
	CHECK(!gpc_runtime_is_captured(stream));
	gpc_runtime_capture_begins(stream);
	CHECK(!world.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(gpc_runtime_is_captured(stream) && !gpc_runtime_is_captured(other));
	gpc_runtime_leave();
	world.fns.cuMemPoolGetAttribute = count_question;
	look();
	CHECK(n_asked == 0);
	CHECK(!world.cuStreamEndCapture(stream, &graph));
	CHECK(world_enter());
	gpc_runtime_capture_ended(stream);
	world.fns.cuStreamIsCapturing = NULL;
	CHECK(!gpc_runtime_is_captured(stream));
	gpc_runtime_leave();
	look();
	CHECK(n_asked == 1);
}

TEST(nobody_asks_while_a_capture_is_open)
{
	world_run(NULL, "stacks:off", captured);
}

static void graphs(void)
{
	CUgraph graph = NULL;
	CUgraphExec exec = NULL;
	CUdeviceptr ptr = 0;

	start();
	CHECK(!world.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(!world.cuMemAllocAsync(&ptr, 3 * MIB, stream));
	CHECK(!world.cuMemFreeAsync(ptr, stream));
	CHECK(!world.cuStreamEndCapture(stream, &graph));
	CHECK(!world.cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(world_enter());
	gpc_runtime_graph_made();
	gpc_runtime_leave();
	CHECK(gpc_runtime_graph_is_new);
	CHECK(!world.cuGraphLaunch(exec, stream));
	look();
	CHECK(!gpc_runtime_graph_is_new && booked(GPUCACHE_KIND_GRAPH) == 4 * MIB);
	CHECK(direct() == 4 * MIB && booked(GPUCACHE_KIND_ASYNC) == 0);
	CHECK(world_enter() && gpc_runtime_make_room());
	gpc_runtime_leave();
	CHECK(direct() == 0);
}

TEST(memory_of_graphs_is_booked_and_trimmed)
{
	world_run(NULL, "stacks:off", graphs);
}

static void room(void)
{
	cuuint64_t keep = UINT64_MAX;
	CUmemoryPool pool;
	CUdeviceptr ptr;

	start();
	pool = make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	CHECK(!world.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
	give(take_from(pool, 700 * MIB));
	CHECK(booked(GPUCACHE_KIND_POOL) == 704 * MIB);
	CHECK(!world_malloc(&ptr, 600 * MIB)); /* the ladder trims */
	CHECK(booked(GPUCACHE_KIND_POOL) == 0 && COUNTER(n_rescued) == 1);
	CHECK(!world_free(ptr) && COUNTER(cached_bytes) == 600 * MIB);
	CHECK(take(700 * MIB) && COUNTER(cached_bytes) == 0); /* and the other way round */
	CHECK(COUNTER(n_rescued) == 2);
}

TEST(pools_and_cache_make_room_for_each_other)
{
	world_run("memory:1GiB", "stacks:off", room);
	world_assert_is_silent();
}

static void reset(void)
{
	start();
	CHECK(take(MIB) && take_from(make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0), MIB));
	CHECK(direct() == 2 * SLAB);
	CHECK(world_enter());
	gpc_runtime_primary_reset(0);
	gpc_runtime_primary_reset(3);
	gpc_runtime_leave();
	CHECK(direct() == 0 && booked(GPUCACHE_KIND_ASYNC) == 0);
	CHECK(gpc_runtime.devices[0].budget.used_bytes == 0);
	world.fns.cuMemPoolGetAttribute = count_question;
	CHECK(!world.cuDevicePrimaryCtxReset_v2(0));
	look();
	CHECK(n_asked == 0);
}

TEST(a_reset_ends_all_pools)
{
	world_run(NULL, "stacks:off", reset);
}

/* Another thread resets the device before we hear of the success. */
static CUresult make_before_reset(struct gpc_passed_call *call)
{
	CUresult result = make_ordered(call);

	CHECK(!world.cuDevicePrimaryCtxReset_v2(0));
	gpc_runtime_primary_reset(0);
	CHECK(!world.cuDevicePrimaryCtxRetain(&world.context, 0));
	CHECK(!world.cuCtxSetCurrent(world.context));
	return result;
}

static void resets_early(void)
{
	struct ordered ordered = { .call = { .make = make_before_reset, .size = MIB } };
	struct gpc_tracked *old;

	start();
	CHECK(world_enter());
	CHECK(!gpc_runtime_pool_malloc(&ordered.call, NULL, stream));
	old = gpc_runtime_forget(ordered.ptr);
	gpc_runtime_leave();
	stream = world_stream();
	(void)take(2 * MIB); /* from the pool that is in the place of the old one */
	CHECK(booked(GPUCACHE_KIND_POOL) == SLAB - 2 * MIB);
	CHECK(world_enter());
	gpc_runtime_forgotten(old, CUDA_SUCCESS);
	gpc_runtime_leave();
	CHECK(booked(GPUCACHE_KIND_POOL) == SLAB - 2 * MIB);
	look();
	CHECK(booked(GPUCACHE_KIND_POOL) == SLAB - 2 * MIB);
}

TEST(what_a_pool_gave_before_a_reset_is_not_the_next_pools)
{
	world_run(NULL, "stacks:off", resets_early);
}

static void many(void)
{
	start();
	for (int i = 0; i < 70; i++)
		CHECK(take_from(make_pool(CU_MEM_LOCATION_TYPE_DEVICE, 0), 512));
	CHECK(booked(GPUCACHE_KIND_ASYNC) == UINT64_C(70) * 512);
	CHECK(booked(GPUCACHE_KIND_POOL) == 64 * (SLAB - 512));
}

static void no_pool(void)
{
	struct ordered ordered = { .call = { .make = make_ordered, .size = MIB } };

	start();
	ordered.pool = (CUmemoryPool)(uintptr_t)42;
	CHECK(world_enter());
	CHECK(gpc_runtime_pool_malloc(&ordered.call, ordered.pool, stream) ==
		CUDA_ERROR_INVALID_VALUE);
	gpc_runtime_leave();
	world.fns.cuMemPoolGetAttribute = count_question;
	look();
	CHECK(n_asked == 0 && direct() == 0);
}

TEST(what_gives_no_memory_is_not_asked_again)
{
	world_run(NULL, "stacks:off", no_pool);
}

TEST(more_pools_than_there_is_room_for_are_used_and_not_looked_into)
{
	world_run("memory:8GiB", "stacks:off", many);
	world_assert_is_silent();
}

static void old(void)
{
	start();
	world.fns.cuMemPoolGetAttribute = NULL;
	world.fns.cuMemPoolTrimTo = NULL;
	world.fns.cuDeviceGraphMemTrim = NULL;
	world.fns.cuDeviceGetGraphMemAttribute = NULL;
	world.fns.cuDeviceGetDefaultMemPool = NULL;
	CHECK(take(MIB) && direct() == MIB);
	CHECK(world_enter());
	gpc_runtime_graph_made();
	CHECK(gpc_runtime_make_room());
	gpc_runtime_leave();
	look();
	CHECK(direct() == MIB);
}

TEST(a_driver_that_lacks_all_of_it_is_not_asked)
{
	world_run(NULL, "stacks:off", old);
}

static void foreign(void)
{
	CUdeviceptr ptr = 0;

	start();
	CHECK(!world.fns.cuMemAlloc_v2(&ptr, 5000)); /* stands for another process's */
	CHECK(world_enter());
	gpc_runtime_imported(ptr);
	gpc_runtime_imported(42);
	gpc_runtime_leave();
	CHECK(booked(GPUCACHE_KIND_IPC) == 5000 && direct() == 0);
	CHECK(!world_free(ptr));
	CHECK(booked(GPUCACHE_KIND_IPC) == 0);
}

TEST(imported_memory_is_known_and_counts_for_nothing)
{
	world_run(NULL, "stacks:off", foreign);
}
