/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "runtime/context/contexts.h"
#include "runtime/context/endings.h"
#include "world.h"

static void by_handle(void)
{
	struct gpc_context *primary;
	struct gpc_context *other;
	CUcontext handle;

	world_start();
	primary = world_context();
	CHECK(primary->handle == world.context && primary->generation == 1);
	CHECK(primary->device == &gpc_runtime.devices[0]);
	CHECK(gpc_context_get(world.context) == primary && world_context() == primary);
	CHECK(!world.cuCtxCreate_v2(&handle, 0, 1));
	other = world_context();
	CHECK(other != primary && other->device == &gpc_runtime.devices[1]);
	CHECK(gpc_context_get(world.context) == primary); /* known, though not current */
	CHECK(!world.cuCtxSetCurrent(NULL)); /* the one below it on the thread's stack */
	CHECK(!world.cuCtxSetCurrent(NULL));
	CHECK(!gpc_context_current());
	CHECK(!gpc_context_get((CUcontext)&handle)); /* not known, and not current */
}

TEST(each_context_has_a_pool)
{
	world_run("devices:2", "record:off", by_handle);
}

static void never_mixed(void)
{
	CUcontext handle;
	CUdeviceptr a;
	CUdeviceptr b;

	world_start();
	CHECK(!world_malloc(&a, 1000) && !world_free(a));
	CHECK(!world.cuCtxCreate_v2(&handle, 0, 0));
	CHECK(!world_malloc(&b, 1000));
	CHECK(b != a && COUNTER(n_driver_malloc) == 1);
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], reserved_bytes) == 4 * MIB);
}

TEST(a_context_never_gets_the_memory_of_another)
{
	world_run(NULL, "record:off", never_mixed);
}

static void reset(void)
{
	const struct gpc_context *old;
	CUdeviceptr live;
	CUdeviceptr idle;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&live, 4 * MIB) && !world_malloc(&idle, 4 * MIB) && !world_free(idle));
	old = world_context();
	world_reset();
	CHECK(atomic_load(&old->is_gone));
	CHECK(gpc_runtime.devices[0].budget.used_bytes == 0);
	CHECK(world_context()->generation == 2 && world_context()->handle == world.context);
	CHECK(world_free(live) == CUDA_ERROR_INVALID_VALUE); /* the driver's answer */
	CHECK(!world_malloc(&ptr, 4 * MIB));
	CHECK(COUNTER(n_driver_malloc) == 1 && COUNTER(n_hit) == 0);
	CHECK(!world_free(ptr));
}

TEST(a_reset_forgets_and_a_new_generation_starts)
{
	world_run(NULL, "stacks:off", reset);
	world_assert_is_silent();
}

static void who_holds(void)
{
	CUdeviceptr live;
	CUdeviceptr freed;
	uint64_t bytes = 0;
	uint64_t blocks = 0;

	world_start();
	CHECK(world_stream());
	CHECK(!world_malloc(&live, MIB) && !world_malloc(&freed, MIB) && !world_free(freed));
	CHECK(COUNTER(pending_bytes) == MIB);
	world_reset();
	for (uint32_t i = 0; i < gpc_runtime.record.n_sites; i++) {
		bytes += gpc_runtime.record.sites[i].live_bytes;
		blocks += gpc_runtime.record.sites[i].live_blocks;
	}
	CHECK(bytes == 0 && blocks == 0);
}

TEST(after_a_reset_no_call_site_holds_memory)
{
	world_run(NULL, "free_order:fence", who_holds);
}

static void many_resets(void)
{
	CUdeviceptr ptr;

	world_start();
	for (unsigned i = 1; i <= 3 * GPC_MAX_CONTEXTS; i++) {
		CHECK(!world_malloc(&ptr, 1000));
		CHECK(world_context()->generation == i);
		CHECK(COUNTER(live_bytes) == 1024);
		world_reset();
	}
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], reserved_bytes) == 0);
	CHECK(atomic_load(&gpc_runtime.devices[0].n_contexts) <= 2);
}

TEST(many_generations_take_no_more_room)
{
	world_run(NULL, "stacks:off", many_resets);
}

static void destroys(void)
{
	const struct gpc_context *gone;
	CUcontext handle;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world.cuCtxCreate_v2(&handle, 0, 0));
	CHECK(!world_malloc(&ptr, 1000));
	gone = world_context();
	CHECK(!world_destroy(handle));
	CHECK(world_destroy(handle) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
	CHECK(atomic_load(&gone->is_gone));
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(world_free(ptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST(a_destroyed_context_is_forgotten)
{
	world_run(NULL, "record:off", destroys);
}

static void refuses(void)
{
	CUdeviceptr first;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&first, 1000) && !world_malloc(&ptr, 1000));
	CHECK(world_destroy(world.context) == CUDA_ERROR_INVALID_CONTEXT);
	CHECK(COUNTER(live_bytes) == 2048);
	CHECK(!world_free(ptr) && !world_free(first));
}

TEST(a_primary_context_cannot_be_destroyed_and_keeps_its_memory)
{
	world_run(NULL, "record:off", refuses);
}

static CUresult release(CUdevice device)
{
	CUresult result;

	CHECK(world_enter());
	gpc_runtime_primary_begin(device);
	result = world.cuDevicePrimaryCtxRelease_v2(device);
	gpc_runtime_primary_released(device);
	gpc_runtime_primary_end(device);
	gpc_runtime_leave();
	return result;
}

static void releases(void)
{
	const struct gpc_context *context;
	CUdeviceptr ptr;

	world_start();
	/* Retained by a route that we do not intercept, as a runtime library may. */
	CHECK(!world.cuDevicePrimaryCtxRetain(&world.context, 0));
	CHECK(!world_malloc(&ptr, 1000));
	context = world_context();
	CHECK(!release(0) && !atomic_load(&context->is_gone));
	CHECK(!world_free(ptr) && !world_malloc(&ptr, 1000));
	CHECK(!release(0) && atomic_load(&context->is_gone));
	CHECK(release(0) == CUDA_ERROR_INVALID_CONTEXT);
	CHECK(release(-1) == CUDA_ERROR_INVALID_DEVICE);
	CHECK(release(99) == CUDA_ERROR_INVALID_DEVICE);
	CHECK(world_malloc(&ptr, 1000) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
	gpc_runtime_primary_forget(99);
	gpc_runtime_primary_retained(world.context, 99);
}

TEST(the_last_release_forgets_and_only_the_driver_knows_which_it_is)
{
	world_run(NULL, "record:off", releases);
}

static void releases_unasked(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 1000));
	world.fns.cuDevicePrimaryCtxGetState = NULL;
	CHECK(!release(0));
	CHECK(world_malloc(&ptr, 1000) ==
		CUDA_SUCCESS); /* the pool lives on: nobody said otherwise */
}

TEST(a_driver_that_cannot_be_asked_is_not_guessed_about)
{
	world_run(NULL, "record:off", releases_unasked);
}

struct range {
	CUdeviceptr ptr;
	uint64_t size;
	int fill;
};

static void hears(void)
{
	struct range nowhere = { .size = 4 };
	struct gpc_context *context;
	CUdeviceptr ptr;
	CUcontext other;

	world_start();
	CHECK(!world_malloc(&ptr, 1000));
	context = world_context();
	CHECK(!world.cuCtxCreate_v2(&other, 0, 0));
	CHECK(!world_malloc(&nowhere.ptr, 1000));
	nowhere.ptr += 512 * MIB;
	CHECK(world_enter());
	gpc_runtime_answered(CUDA_ERROR_NOT_READY);
	gpc_runtime_answered(CUDA_ERROR_ILLEGAL_ADDRESS); /* this one says that it is whole */
	CHECK(!atomic_load(&context->drv.sticky));
	CHECK(!world.gpusim_launch(NULL, 0, 1, &nowhere));
	gpc_runtime_answered(CUDA_ERROR_ILLEGAL_ADDRESS);
	gpc_runtime_leave();
	CHECK(world_malloc(&ptr, 1000) == CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(atomic_load(&context->drv.sticky) == CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(world_malloc(&ptr, 1000) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(an_error_that_the_context_itself_confirms_breaks_its_device)
{
	world_run(NULL, "record:off", hears);
}

static void two_contexts_hear(void)
{
	struct gpc_context *first;
	struct gpc_sync sync;
	CUdeviceptr ptr;
	CUcontext other;

	world_start();
	CHECK(!world_malloc(&ptr, 1000));
	first = world_context();
	CHECK(!world.cuCtxCreate_v2(&other, 0, 0));
	CHECK(!world_malloc(&ptr, 1000));
	CHECK(world_enter());
	sync = gpc_runtime_begin_sync(other);
	gpc_runtime_end_sync(sync, CUDA_ERROR_ASSERT);
	CHECK(atomic_load(&world_context()->drv.sticky) == CUDA_ERROR_ASSERT);
	CHECK(!atomic_load(&first->drv.sticky));
	gpc_runtime_end_sync(sync, CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(atomic_load(&first->drv.sticky) == CUDA_ERROR_ILLEGAL_ADDRESS);
	gpc_runtime_leave();
}

TEST(a_fault_breaks_the_device_and_an_assertion_its_context)
{
	world_run(NULL, "record:off", two_contexts_hear);
}

static void syncs(void)
{
	CUdeviceptr ptr;
	struct gpc_sync sync;

	world_start();
	CHECK(world_stream());
	CHECK(!world_malloc(&ptr, 1000) && !world_free(ptr));
	CHECK(COUNTER(pending_bytes) == 1024);
	CHECK(!world_sync());
	CHECK(COUNTER(pending_bytes) == 0);
	CHECK(world_enter());
	sync = gpc_runtime_begin_sync((CUcontext)&sync); /* nobody knows this one */
	CHECK(!sync.context);
	gpc_runtime_end_sync(sync, CUDA_SUCCESS);
	sync = gpc_runtime_begin_sync(world.context);
	gpc_runtime_end_sync(sync, CUDA_ERROR_NOT_READY);
	CHECK(!atomic_load(&world_context()->drv.sticky));
	gpc_runtime_end_sync(sync, CUDA_ERROR_LAUNCH_FAILED);
	CHECK(atomic_load(&world_context()->drv.sticky) == CUDA_ERROR_LAUNCH_FAILED);
	gpc_runtime_leave();
}

TEST(the_programs_own_wait_passes_the_fences_or_breaks_the_context)
{
	world_run(NULL, "record:off,free_order:fence", syncs);
}

#define N_THREADS 3
#define N_ROUNDS  40

/* Contexts come and go while other threads allocate and read the device's sums. */
static void *come_and_go(void *arg)
{
	CUcontext handle;
	CUdeviceptr ptr;
	size_t available;
	size_t total;

	for (int i = 0; i < N_ROUNDS; i++) {
		CHECK(!world.cuCtxCreate_v2(&handle, 0, 0));
		for (int k = 0; k < 20; k++) {
			CHECK(!world_malloc(&ptr, 3 * MIB) && !world_free(ptr));
			CHECK(!world_info(&available, &total) && available <= total);
		}
		CHECK(!world_destroy(handle));
	}
	return NULL;
}

static void many_at_once(void)
{
	pthread_t threads[N_THREADS];

	world_start();
	CHECK(world_context());
	for (int i = 0; i < N_THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, come_and_go, NULL));
	for (int i = 0; i < N_THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(gpc_runtime.devices[0].budget.used_bytes == 0);
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], reserved_bytes) == 0);
}

TEST(contexts_come_and_go_in_many_threads)
{
	world_run(NULL, "stacks:off", many_at_once);
	world_assert_is_silent();
}

static atomic_bool is_released;

static void *release_slowly(void *arg)
{
	CHECK(world_enter());
	gpc_runtime_primary_begin(0);
	CHECK(!world.cuDevicePrimaryCtxRelease_v2(0));
	atomic_store(&is_released, true);
	usleep(50000);
	gpc_runtime_primary_released(0);
	gpc_runtime_primary_end(0);
	gpc_runtime_leave();
	return NULL;
}

static void takes_over(void)
{
	pthread_t thread;
	CUcontext other;
	CUdeviceptr of_primary;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&of_primary, 64 * MIB));
	CHECK(!world.cuCtxCreate_v2(&other, 0, 0));
	CHECK(!pthread_create(&thread, NULL, release_slowly, NULL));
	while (!atomic_load(&is_released))
		sched_yield();
	CHECK(!world_malloc(&ptr, 64 * MIB));
	CHECK(ptr == of_primary &&
		gpc_heap_find_pool(&gpc_runtime.heap, ptr) == &world_context()->pool);
	CHECK(!world_free(ptr) && !pthread_join(thread, NULL));
}

static CUresult detach(CUcontext handle)
{
	struct gpc_ending ending;
	CUresult result;

	CHECK(world_enter());
	ending = gpc_runtime_begin_detach(handle);
	result = world.cuCtxDetach(handle);
	gpc_runtime_end_destroy(ending, result);
	gpc_runtime_leave();
	return result;
}

static void detaches(void)
{
	const struct gpc_context *context;
	CUcontext handle;
	CUcontext again;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world.cuCtxCreate_v2(&handle, 0, 0) && !world_malloc(&ptr, 1000));
	context = world_context();
	CHECK(!world.cuCtxAttach(&again, 0) && again == handle && world_enter());
	gpc_runtime_context_attached();
	gpc_runtime_leave();
	CHECK(!detach(handle) && !atomic_load(&context->is_gone));
	CHECK(!world_free(ptr) && !world_malloc(&ptr, 1000));
	CHECK(detach(handle) == CUDA_ERROR_UNKNOWN && !atomic_load(&context->is_gone));
	CHECK(!world_free(ptr) && !world_malloc(&ptr, 1000));
	CHECK(!detach(handle) && atomic_load(&context->is_gone));
	CHECK(world_context()->handle == world.context);
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], reserved_bytes) == 0);
	CHECK(world_free(ptr) == CUDA_ERROR_INVALID_VALUE);
}

static void detaches_another(void)
{
	const struct gpc_context *context;
	CUcontext handle;

	world_start();
	CHECK(!world.cuCtxCreate_v2(&handle, 0, 0));
	context = world_context();
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(detach(handle) && !atomic_load(&context->is_gone));
}

TEST(the_last_detach_forgets)
{
	world_run("fail:cuCtxDetach/2/999", "record:off", detaches);
}

TEST(only_the_current_context_can_be_detached)
{
	world_run(NULL, "record:off", detaches_another);
}

TEST(addresses_of_a_primary_context_that_ends_are_given_out_at_once)
{
	world_run("memory:1GiB", "record:off", takes_over);
}
