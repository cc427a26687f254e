/* SPDX-License-Identifier: Apache-2.0 */
/* One context after the other: their places and their objects are used again. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/metamem.h"
#include "runtime/context/contexts.h"
#include "world.h"

static atomic_bool is_over;

/* At most one context holds memory at a time. */
static void *sum_up(void *arg)
{
	while (!atomic_load(&is_over)) {
		CHECK(world_enter());
		CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], live_bytes) <= 8 * MIB);
		gpc_runtime_leave();
	}
	return NULL;
}

static CUcontext make_context(void)
{
	CUcontext handle;
	CUcontext popped;

	CHECK(!world.cuCtxCreate_v2(&handle, 0, 0));
	CHECK(world_context());
	CHECK(!world.fns.cuCtxPopCurrent_v2(&popped));
	return handle;
}

/* Each time the context with memory takes the place of a destroyed one, after many others. */
static void takes_a_place(void)
{
	CUcontext first;
	CUcontext second;
	CUdeviceptr ptr;
	pthread_t thread;

	world_start();
	for (unsigned i = 0; i < GPC_MAX_CONTEXTS - 4; i++)
		(void)make_context();
	first = make_context();
	CHECK(!pthread_create(&thread, NULL, sum_up, NULL));
	for (int i = 0; i < 80; i++) {
		second = make_context();
		CHECK(!world.cuCtxSetCurrent(second));
		CHECK(!world_malloc(&ptr, 8 * MIB));
		CHECK(!world_destroy(first));
		first = make_context();
		CHECK(!world_destroy(second));
	}
	atomic_store(&is_over, true);
	CHECK(!pthread_join(thread, NULL));
}

TEST(a_context_in_the_place_of_another_is_not_counted_twice)
{
	world_run("context:0", "record:off,stacks:off", takes_a_place);
}

/* Makes a context, current, with memory of the cache; destroys it. */
static void live_and_die(void)
{
	CUdeviceptr ptr;
	CUcontext handle;

	CHECK(!world.cuCtxCreate_v2(&handle, 0, 0));
	CHECK(!world_malloc(&ptr, 4096));
	CHECK(world_context()->handle == handle && COUNTER(live_bytes) == 4096);
	CHECK(gpc_heap_find_pool(&gpc_runtime.heap, ptr) == &world_context()->pool);
	CHECK(world_context()->pool.counters != &world_context()->pool.own_counters);
	CHECK(!world_destroy(handle));
}

static void start_over(void)
{
	CUdeviceptr ptr;

	CHECK(!world_malloc(&ptr, 4096));
	CHECK(COUNTER(live_bytes) == 4096);
	CHECK(world_context()->pool.counters != &world_context()->pool.own_counters);
	world_reset();
}

static void thousands_are_cached(void)
{
	size_t bytes = 0;

	world_start();
	for (int i = 0; i < 3000; i++) {
		live_and_die();
		start_over();
		if (i == 10)
			bytes = gpc_metamem_total();
	}
	CHECK(gpc_metamem_total() == bytes);
}

TEST(thousands_of_contexts_are_cached_and_recorded_and_take_no_more_room)
{
	world_run("context:0", "stacks:off", thousands_are_cached);
	world_run("context:0", "stacks:off,record:off", thousands_are_cached);
	world_assert_is_silent();
}

static sem_t is_inside;
static sem_t may_leave;

static void *stay_inside(void *arg)
{
	CHECK(world_enter());
	CHECK(!sem_post(&is_inside) && !sem_wait(&may_leave));
	gpc_runtime_leave();
	return arg;
}

static pthread_t begin_stay(void)
{
	pthread_t thread;

	CHECK(!sem_init(&is_inside, 0, 0) && !sem_init(&may_leave, 0, 0));
	CHECK(!pthread_create(&thread, NULL, stay_inside, NULL));
	CHECK(!sem_wait(&is_inside));
	return thread;
}

static void end_stay(pthread_t thread)
{
	CHECK(!sem_post(&may_leave) && !pthread_join(thread, NULL));
}

/* Another thread was in a call when the context ended. */
static void one_looks_on(void)
{
	const struct gpc_context *old;
	pthread_t thread;

	world_start();
	old = world_context();
	thread = begin_stay();
	start_over();
	CHECK(atomic_load(&old->is_gone) && world_context() != old);
	start_over();
	CHECK(atomic_load(&old->is_gone) && world_context() != old);
	end_stay(thread);
	start_over();
	CHECK(world_context() == old && !atomic_load(&old->is_gone));
	CHECK(old->generation == 4);
}

TEST(an_object_is_reused_when_nobody_can_use_it_any_more)
{
	world_run("context:0", "stacks:off", one_looks_on);
}

static void one_looks_on_for_long(void)
{
	CUcontext context;
	CUdeviceptr ptr = 0;
	pthread_t thread;

	world_start();
	thread = begin_stay();
	for (int i = 0; i < 1100; i++) {
		CHECK(!world.cuCtxCreate_v2(&context, 0, 0));
		CHECK(!world_malloc(&ptr, 4096));
		CHECK(!gpc_heap_find_pool(&gpc_runtime.heap, ptr) == (i >= 1024));
		CHECK(!world_destroy(context));
	}
	end_stay(thread);
	live_and_die();
}

TEST(more_contexts_than_we_keep_pass_and_are_told_so)
{
	world_run("context:0", "stacks:off", one_looks_on_for_long);
	world_assert_says("too many contexts");
}
