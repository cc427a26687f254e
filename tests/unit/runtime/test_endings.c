/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of contexts that the driver refuses: nothing is forgotten before the driver's call returns. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "runtime/context/contexts.h"
#include "runtime/context/endings.h"
#include "runtime/context/reach.h"
#include "world.h"

/* Of two contexts, of which one reaches the other's memory. */
static void destroy_fails(void)
{
	struct gpc_context *context;
	struct gpc_context *first;
	CUcontext handle;
	CUdeviceptr ptr;
	CUdeviceptr freed;

	world_start();
	first = world_context();
	handle = world_peer(0);
	context = world_context();
	CHECK(first->pool.fences.n_members == 2);
	CHECK(!world_malloc(&ptr, 1000) && !world_malloc(&freed, 1000) && !world_free(freed));
	CHECK(world_destroy(handle) == CUDA_ERROR_UNKNOWN);
	CHECK(!atomic_load(&context->is_gone) && world_context() == context);
	CHECK(COUNTER(live_bytes) == 1024 && !world_free(ptr));
	CHECK(first->pool.fences.n_members == 2); /* its work is waited for, as before */
	CHECK(context->pool.fences.n_members == 2);
	CHECK(!world_malloc(&ptr, 1000) && !world_destroy(handle));
	CHECK(atomic_load(&context->is_gone) && first->pool.fences.n_members == 1);
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], reserved_bytes) == 0);
}

TEST(a_context_that_the_driver_does_not_destroy_lives_on)
{
	world_run("fail:cuCtxDestroy/1/999", "record:off", destroy_fails);
}

/* The error is a kernel's, reported by the end; the memory is unusable anyway. */
static void destroy_hears(void)
{
	const struct gpc_context *context;
	CUcontext handle;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world.cuCtxCreate_v2(&handle, 0, 0) && !world_malloc(&ptr, 1000));
	context = world_context();
	CHECK(world_destroy(handle) == CUDA_ERROR_LAUNCH_FAILED);
	CHECK(atomic_load(&context->is_gone));
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], reserved_bytes) == 0);
}

TEST(an_end_that_says_what_a_kernel_did_is_an_end)
{
	world_run("fail:cuCtxDestroy/1/719", "record:off", destroy_hears);
}

static CUresult reset(void)
{
	CUresult result;

	CHECK(world_enter());
	gpc_runtime_primary_begin(0);
	gpc_runtime_begin_reset(0);
	result = world.cuDevicePrimaryCtxReset_v2(0);
	if (gpc_runtime_end_reset(0, result))
		gpc_runtime_primary_forget(0);
	gpc_runtime_primary_end(0);
	gpc_runtime_leave();
	return result;
}

static void reset_fails(void)
{
	const struct gpc_context *context;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 1000));
	context = world_context();
	CHECK(reset() == CUDA_ERROR_UNKNOWN && !atomic_load(&context->is_gone));
	CHECK(COUNTER(live_bytes) == 1024 && !world_free(ptr) && !world_malloc(&ptr, 1000));
	CHECK(!reset() && atomic_load(&context->is_gone));
	CHECK(!reset());
}

TEST(a_primary_context_that_the_driver_does_not_reset_lives_on)
{
	world_run("fail:cuDevicePrimaryCtxReset/1/999", "record:off", reset_fails);
}

static atomic_bool has_awaited;

static void *await_end(void *arg)
{
	gpc_context_await_end();
	atomic_store(&has_awaited, true);
	return arg;
}

/* The driver's call may take as long as the context's kernels. */
static void ends_slowly(void)
{
	const struct gpc_context *context;
	struct gpc_ending ending;
	CUcontext handle;
	pthread_t thread;

	world_start();
	CHECK(!world.cuCtxCreate_v2(&handle, 0, 0));
	CHECK(world_enter());
	context = world_context();
	ending = gpc_runtime_begin_destroy(handle);
	CHECK(ending.context == context);
	CHECK(!gpc_runtime_begin_destroy(handle).context); /* one thread ends it */
	gpc_runtime_primary_begin(0);                      /* others may retain meanwhile */
	gpc_runtime_primary_end(0);
	CHECK(!pthread_create(&thread, NULL, await_end, NULL));
	for (int i = 0; i < 100; i++)
		sched_yield();
	CHECK(!atomic_load(&has_awaited));
	CHECK(!world.cuCtxDestroy_v2(handle));
	gpc_runtime_end_destroy(ending, CUDA_SUCCESS);
	CHECK(!pthread_join(thread, NULL) && atomic_load(&has_awaited));
	CHECK(atomic_load(&context->is_gone) && atomic_load(&gpc_runtime.n_ending) == 0);
	gpc_runtime_leave();
}

TEST(an_end_is_awaited_and_holds_no_lock)
{
	world_run("", "record:off", ends_slowly);
}

/* The driver has destroyed the context, and we have not heard of it yet. */
static void given_again(void)
{
	const struct gpc_context *first;
	struct gpc_ending ending;
	CUdeviceptr old;
	CUdeviceptr ptr;
	CUcontext handle;

	world_start();
	first = world_context();
	CHECK(!world.cuCtxCreate_v2(&handle, 0, 0) && !world_malloc(&old, 1000));
	CHECK(world_enter());
	ending = gpc_runtime_begin_destroy(handle);
	gpc_runtime_leave();
	CHECK(!world.cuCtxDestroy_v2(handle) && !world.cuCtxSetCurrent(world.context));
	CHECK(!world_malloc(&ptr, 1000) && ptr == old);
	CHECK(gpc_heap_find_pool(&gpc_runtime.heap, ptr) == &first->pool);
	CHECK(!world_free(ptr) && !world_malloc(&ptr, 1000) && ptr == old);
	CHECK(world_enter());
	gpc_runtime_end_destroy(ending, CUDA_SUCCESS);
	gpc_runtime_leave();
	CHECK(gpc_heap_find_pool(&gpc_runtime.heap, ptr) == &first->pool);
	CHECK(COUNTER(n_hit) == 1 && !world_free(ptr));
}

TEST(what_the_driver_gives_again_is_its_new_owners_at_once)
{
	world_run("memory:1GiB,context:0", "record:off", given_again);
}

static CUdeviceptr given;
static CUresult (*allocate)(CUdeviceptr *ptr, size_t size);

/* The context ends, by a call that we do not see, before the thread gets its memory, which another owner has then. */
static CUresult allocate_in_vain(CUdeviceptr *ptr, size_t size)
{
	CUresult result = allocate(ptr, size);

	world.fns.cuMemAlloc_v2 = allocate;
	CHECK(!world.cuDevicePrimaryCtxReset_v2(0));
	gpc_runtime_primary_forget(0);
	CHECK(!world.cuDevicePrimaryCtxRetain(&world.context, 0));
	CHECK(!allocate(&given, size) && given == *ptr);
	return result;
}

static void comes_too_late(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(world_context());
	allocate = world.fns.cuMemAlloc_v2;
	world.fns.cuMemAlloc_v2 = allocate_in_vain;
	CHECK(!world_malloc(&ptr, 4096) && ptr != given);
	CHECK(!world.cuMemsetD8_v2(given, 1, 4096)); /* it was not freed */
	CHECK(!world.fns.cuMemFree_v2(given) && !world_free(ptr));
}

TEST(memory_that_died_with_its_context_is_not_given_back)
{
	world_run("memory:1GiB,context:0", "record:off", comes_too_late);
}

static sem_t is_moving;
static sem_t may_move;
static atomic_bool has_begun;

static CUresult allocate_slowly(CUdeviceptr *ptr, size_t size)
{
	CHECK(!sem_post(&is_moving) && !sem_wait(&may_move));
	return allocate(ptr, size);
}

static void *grow(void *arg)
{
	CUdeviceptr ptr;

	CHECK(!world.cuCtxSetCurrent(arg) && !world_malloc(&ptr, 4096));
	return NULL;
}

static void *begin_reset(void *arg)
{
	CHECK(world_enter());
	gpc_runtime_begin_reset(0);
	atomic_store(&has_begun, true);
	gpc_runtime_leave();
	return arg;
}

static void moves_slowly(void)
{
	const struct gpc_context *context;
	pthread_t growing;
	pthread_t ending;
	CUdeviceptr ptr;

	world_start();
	context = world_context();
	allocate = world.fns.cuMemAlloc_v2;
	world.fns.cuMemAlloc_v2 = allocate_slowly;
	CHECK(!sem_init(&is_moving, 0, 0) && !sem_init(&may_move, 0, 0));
	CHECK(!pthread_create(&growing, NULL, grow, world.context) && !sem_wait(&is_moving));
	CHECK(!pthread_create(&ending, NULL, begin_reset, NULL));
	for (int i = 0; i < 100; i++)
		sched_yield();
	CHECK(!atomic_load(&has_begun));
	world.fns.cuMemAlloc_v2 = allocate;
	CHECK(!sem_post(&may_move) && !pthread_join(growing, NULL));
	CHECK(!pthread_join(ending, NULL));
	CHECK(COUNTER(n_segments) == 1);
	/* Until the driver has answered, the pool takes nothing and gives nothing back. */
	CHECK(!world_malloc(&ptr, 8 * MIB) && COUNTER(n_segments) == 1);
	CHECK(COUNTER(direct_bytes) == 8 * MIB && !world_free(ptr));
	CHECK(gpc_context_find_own(world.context) == context);
	CHECK(world_enter());
	CHECK(!gpc_runtime_end_reset(0, CUDA_ERROR_UNKNOWN)); /* it lives on */
	gpc_runtime_leave();
	CHECK(!world_malloc(&ptr, 8 * MIB) && COUNTER(n_segments) == 2);
}

TEST(an_end_waits_for_memory_on_the_move)
{
	world_run("memory:1GiB,context:0", "record:off", moves_slowly);
}

static struct gpc_context *attached_context(CUcontext *ret_handle)
{
	CUcontext same;

	world_start();
	CHECK(!world.cuCtxCreate_v2(ret_handle, 0, 0) && !world.cuCtxAttach(&same, 0));
	CHECK(world_enter() && world_context());
	gpc_runtime_context_attached();
	return world_context();
}

/* One thread detaches, without ending the context, while another destroys it. */
static void is_detached_and_destroyed(void)
{
	CUcontext handle;
	const struct gpc_context *context = attached_context(&handle);
	struct gpc_ending detach = gpc_runtime_begin_detach(handle);
	struct gpc_ending destroy = gpc_runtime_begin_destroy(handle);

	CHECK(detach.context == context && destroy.context == context);
	CHECK(!world.cuCtxDetach(handle));
	gpc_runtime_end_destroy(detach, CUDA_SUCCESS);
	CHECK(!atomic_load(&context->is_gone) && atomic_load(&gpc_runtime.n_ending) == 1);
	CHECK(!world.cuCtxDestroy_v2(handle));
	gpc_runtime_end_destroy(destroy, CUDA_SUCCESS);
	CHECK(atomic_load(&context->is_gone) && atomic_load(&gpc_runtime.n_ending) == 0);
	gpc_runtime_leave();
}

/* Both driver calls return before the library hears of either. */
static void is_detached_twice(void)
{
	CUcontext handle;
	const struct gpc_context *context = attached_context(&handle);
	struct gpc_ending first = gpc_runtime_begin_detach(handle);
	struct gpc_ending second = gpc_runtime_begin_detach(handle);

	CHECK(!world.cuCtxDetach(handle) && !world.cuCtxDetach(handle));
	gpc_runtime_end_destroy(second, CUDA_SUCCESS);
	CHECK(atomic_load(&context->is_gone));
	gpc_runtime_end_destroy(first, CUDA_SUCCESS);
	CHECK(atomic_load(&gpc_runtime.n_ending) == 0);
	gpc_runtime_leave();
}

TEST(a_detach_beside_an_end_is_no_end_of_its_own)
{
	world_run("", "record:off", is_detached_and_destroyed);
	world_run("", "record:off", is_detached_twice);
}
