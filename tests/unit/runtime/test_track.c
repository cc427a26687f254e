/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sched.h>

#include "runtime/context/contexts.h"
#include "runtime/context/endings.h"
#include "runtime/ledger/track.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "world.h"

static CUdeviceptr managed;
static void *host;
static unsigned n_made;

static CUresult make_managed(struct gpc_passed_call *call)
{
	CUresult result = world.cuMemAllocManaged(&managed, call->size, CU_MEM_ATTACH_GLOBAL);

	n_made++;
	call->ret_address = managed;
	call->ret_size = call->size;
	return result;
}

static CUresult make_host(struct gpc_passed_call *call)
{
	CUresult result = world.cuMemHostAlloc(&host, call->size, 0);

	call->ret_address = (uintptr_t)host;
	call->ret_size = call->size;
	return result;
}

static CUresult make_pitched(struct gpc_passed_call *call)
{
	size_t pitch = 0;
	CUresult result = world.cuMemAllocPitch_v2(&managed, &pitch, call->size / 10, 10, 4);

	call->ret_address = managed;
	call->ret_size = pitch * 10;
	call->padding = (pitch - call->size / 10) * 10;
	return result;
}

static CUresult pass(
	CUresult (*make)(struct gpc_passed_call *), enum gpucache_kind kind, size_t size)
{
	struct gpc_passed_call call = { .make = make, .kind = kind, .size = size };
	CUresult result;

	CHECK(world_enter());
	result = gpc_runtime_passed_malloc(&call);
	gpc_runtime_leave();
	return result;
}

static CUresult free_host(void *ptr)
{
	struct gpc_tracked *tracked;
	CUresult result;

	CHECK(world_enter());
	tracked = gpc_runtime_forget((uintptr_t)ptr);
	result = world.cuMemFreeHost(ptr);
	gpc_runtime_forgotten(tracked, result);
	gpc_runtime_leave();
	return result;
}

static void each_kind(void)
{
	world_start();
	CHECK(!pass(make_managed, GPUCACHE_KIND_MANAGED, 5000));
	CHECK(COUNTER(direct_bytes) == 5000 && COUNTER(peak_direct_bytes) == 5000);
	CHECK(gpc_runtime.devices[0].budget.used_bytes == 5000);
	CHECK(!world_free(managed));
	CHECK(!pass(make_pitched, GPUCACHE_KIND_PITCHED, 1000));
	CHECK(COUNTER(direct_bytes) == 5120); /* ten rows of 100 bytes at a pitch of 512 */
	CHECK(gpc_runtime.devices[0].row_padding == 4120);
	CHECK(!world_free(managed) && gpc_runtime.devices[0].row_padding == 0);
	CHECK(!pass(make_host, GPUCACHE_KIND_HOST, 3000));
	CHECK(COUNTER(host_bytes) == 3000 && COUNTER(direct_bytes) == 0);
	CHECK(gpc_runtime.devices[0].budget.used_bytes == 0);
	CHECK(!free_host(host));
	CHECK(COUNTER(host_bytes) == 0 && COUNTER(peak_host_bytes) == 3000);
	CHECK(COUNTER(n_malloc) == 2 && COUNTER(n_free) == 2);
}

TEST(managed_pitched_and_host_memory_is_counted)
{
	world_run(NULL, NULL, each_kind);
	world_assert_is_silent();
}

static void refused(void)
{
	struct gpc_tracked *tracked;

	world_start();
	CHECK(!pass(make_managed, GPUCACHE_KIND_MANAGED, 5000));
	CHECK(world_enter());
	tracked = gpc_runtime_forget(managed);
	CHECK(tracked && !gpc_runtime_forget(managed));
	gpc_runtime_forgotten(tracked, CUDA_ERROR_UNKNOWN);
	CHECK(COUNTER(direct_bytes) == 5000);
	gpc_runtime_forgotten(NULL, CUDA_SUCCESS);
	gpc_runtime_leave();
	CHECK(!world_free(managed));
	CHECK(COUNTER(direct_bytes) == 0);
}

TEST(what_the_driver_refused_to_free_is_remembered)
{
	world_run(NULL, "stacks:off", refused);
}

static void limited(void)
{
	world_start();
	CHECK(!pass(make_managed, GPUCACHE_KIND_MANAGED, 6 * MIB));
	n_made = 0;
	CHECK(pass(make_managed, GPUCACHE_KIND_MANAGED, 6 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(n_made == 0); /* the driver was not even asked */
	CHECK(!pass(make_host, GPUCACHE_KIND_HOST, 64 * MIB));
	CHECK(world_oom(0)->limit == 10 * MIB && world_oom(0)->kind == GPUCACHE_KIND_MANAGED);
}

TEST(the_limit_binds_what_is_not_cached_and_not_host_memory)
{
	world_run(NULL, "stacks:off,limit:10MiB,oom_report:never", limited);
}

static void makes_room(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 20 * MIB) && !world_free(ptr));
	CHECK(COUNTER(cached_bytes) == 20 * MIB);
	CHECK(!pass(make_managed, GPUCACHE_KIND_MANAGED, 20 * MIB));
	CHECK(COUNTER(cached_bytes) == 0 && COUNTER(n_rescued) == 1 && COUNTER(n_oom) == 0);
}

TEST(cached_memory_makes_room_for_what_is_not_cached)
{
	world_run(NULL, "stacks:off,limit:32MiB", makes_room);
	world_assert_is_silent();
}

static void freed_unseen(void)
{
	CUdeviceptr first;
	CUdeviceptr second;

	world_start();
	CHECK(!world_malloc(&first, 4096));
	CHECK(!world.fns.cuMemFree_v2(first)); /* by a door that is not ours */
	CHECK(!world_malloc(&second, 8192));
	CHECK(second == first); /* the simulated driver gives it again */
	CHECK(COUNTER(direct_bytes) == 8192);
	CHECK(!world_free(second));
	CHECK(COUNTER(direct_bytes) == 0);
	CHECK(world_enter());
	CHECK(!gpc_runtime_forget(first));
	gpc_runtime_leave();
}

TEST(an_address_that_comes_again_replaces_the_old_entry)
{
	world_run(NULL, "cache:off,stacks:off", freed_unseen);
}

static void reset(void)
{
	const struct gpc_context *old;

	world_start();
	CHECK(!pass(make_managed, GPUCACHE_KIND_MANAGED, 5000));
	CHECK(!pass(make_host, GPUCACHE_KIND_HOST, 3000));
	old = world_context();
	world_reset();
	CHECK(gpc_runtime.devices[0].budget.used_bytes == 0);
	CHECK(gpc_counter_get(&old->pool.counters->direct_bytes) == 0);
	CHECK(gpc_counter_get(&old->pool.counters->host_bytes) == 0);
	CHECK(world_enter());
	CHECK(!gpc_runtime_forget(managed) && !gpc_runtime_forget((uintptr_t)host));
	gpc_runtime_leave();
	CHECK(COUNTER(direct_bytes) == 0);
}

TEST(what_a_context_held_is_forgotten_with_it)
{
	world_run(NULL, "stacks:off", reset);
}

/* Another thread ends the context while the driver is at it. */
static CUresult make_in_a_dying_context(struct gpc_passed_call *call)
{
	CUresult result = make_managed(call);

	gpc_runtime_primary_forget(0);
	return result;
}

static void came_too_late(void)
{
	const struct gpc_context *old;
	struct gpc_tracked *tracked;

	world_start();
	old = world_context();
	CHECK(!pass(make_in_a_dying_context, GPUCACHE_KIND_MANAGED, 5000));
	CHECK(gpc_runtime.devices[0].budget.used_bytes == 0);
	CHECK(gpc_counter_get(&old->pool.counters->direct_bytes) == 0);
	CHECK(world_enter());
	tracked = gpc_runtime_forget(managed);
	gpc_runtime_leave();
	CHECK(!tracked);
}

TEST(what_comes_when_its_context_is_gone_is_not_in_the_books)
{
	world_run(NULL, "record:off,stacks:off", came_too_late);
}

/* The driver has destroyed the context of a segment, and we have not heard of it yet. */
static void in_a_dead_segment(void)
{
	struct gpc_ending ending;
	CUdeviceptr old;
	CUcontext handle;

	world_start();
	CHECK(!world.cuCtxCreate_v2(&handle, 0, 0) && !world_malloc(&old, 4096));
	CHECK(world_enter());
	ending = gpc_runtime_begin_destroy(handle);
	gpc_runtime_leave();
	CHECK(!world.cuCtxDestroy_v2(handle) && !world.cuCtxSetCurrent(world.context));
	CHECK(!pass(make_pitched, GPUCACHE_KIND_PITCHED, 4000) && managed == old);
	CHECK(COUNTER(direct_bytes) > 0);
	CHECK(!world_free(managed) && COUNTER(direct_bytes) == 0);
	CHECK(world_enter());
	gpc_runtime_end_destroy(ending, CUDA_SUCCESS);
	gpc_runtime_leave();
}

TEST(what_lies_where_a_dead_segment_was_is_freed_by_the_driver)
{
	world_run("memory:1GiB,context:0", "stacks:off", in_a_dead_segment);
}

#define N_THREADS 3
#define N_MADE    200000

static atomic_uint n_given;

/* Allocates and frees in the primary context, whether it is there or not. */
static void *allocate(void *primary)
{
	CUdeviceptr ptrs[4];

	CHECK(!world.cuCtxSetCurrent(primary));
	while (atomic_load(&n_given) < N_MADE) {
		unsigned n = 0;

		for (unsigned i = 0; i < 4; i++)
			n += !world_malloc(&ptrs[n], (i + 1) * MIB);
		atomic_fetch_add(&n_given, n);
		while (n > 0)
			(void)world_free(ptrs[--n]);
	}
	return NULL;
}

static void many_resets(void)
{
	pthread_t threads[N_THREADS];

	world_start();
	for (unsigned i = 0; i < N_THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, allocate, world.context));
	while (atomic_load(&n_given) < N_MADE) {
		world_reset();
		sched_yield();
	}
	for (unsigned i = 0; i < N_THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	world_reset();
	CHECK(gpc_runtime.devices[0].budget.used_bytes == 0);
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], direct_bytes) == 0);
}

TEST(a_thread_may_allocate_while_another_one_resets_the_device)
{
	world_run("context:0", "stacks:off", many_resets);
	world_run("context:0", "stacks:off,record:off", many_resets);
	world_run("context:0", "stacks:off,cache:off", many_resets);
}

static void refused_too_late(void)
{
	struct gpc_tracked *tracked;

	world_start();
	CHECK(!pass(make_managed, GPUCACHE_KIND_MANAGED, 5000));
	CHECK(world_enter());
	tracked = gpc_runtime_forget(managed);
	gpc_runtime_leave();
	/* Freed by a door that is not ours, and given to another thread. */
	CHECK(!world.fns.cuMemFree_v2(managed));
	CHECK(!pass(make_managed, GPUCACHE_KIND_MANAGED, 6000));
	CHECK(world_enter());
	gpc_runtime_forgotten(tracked, CUDA_ERROR_UNKNOWN);
	gpc_runtime_leave();
	CHECK(COUNTER(direct_bytes) == 6000);
	CHECK(!world_free(managed));
	CHECK(COUNTER(direct_bytes) == 0);
}

TEST(what_was_refused_does_not_come_back_beside_another)
{
	world_run(NULL, "stacks:off", refused_too_late);
}

static void without_context(void)
{
	world_start();
	CHECK(pass(make_managed, GPUCACHE_KIND_MANAGED, 0) == CUDA_ERROR_INVALID_VALUE);
	CHECK(!world.cuCtxSetCurrent(NULL));
	CHECK(pass(make_managed, GPUCACHE_KIND_MANAGED, 512) == CUDA_ERROR_INVALID_CONTEXT);
}

static uint64_t same_key;

static CUresult make_nothing(struct gpc_passed_call *call)
{
	call->ret_address = same_key;
	call->ret_size = call->size;
	return CUDA_SUCCESS;
}

/* Whatever is known by this key under that kind is gone now. */
static void drop(enum gpucache_kind kind)
{
	CHECK(world_enter());
	gpc_runtime_forgotten(gpc_runtime_forget_key(kind, same_key), CUDA_SUCCESS);
	gpc_runtime_leave();
}

static void one_number(void)
{
	static const enum gpucache_kind kinds[] = {
		GPUCACHE_KIND_PITCHED,
		GPUCACHE_KIND_REGISTERED,
		GPUCACHE_KIND_PHYSICAL,
		GPUCACHE_KIND_ARRAY,
		GPUCACHE_KIND_EXTERNAL,
	};
	const size_t n = sizeof kinds / sizeof kinds[0];

	world_start();
	same_key = 0x7000;
	for (size_t i = 0; i < n; i++)
		CHECK(!pass(make_nothing, kinds[i], (size_t)512 << i));
	CHECK(COUNTER(direct_bytes) == 512 + 2048 + 4096 && COUNTER(host_bytes) == 1024);
	CHECK(COUNTER(kind_bytes[GPUCACHE_KIND_EXTERNAL]) == 8192);
	for (size_t i = 0; i < n; i++) {
		CHECK(COUNTER(kind_bytes[kinds[i]]) == (uint64_t)512 << i);
		drop(kinds[i]);
		CHECK(COUNTER(kind_bytes[kinds[i]]) == 0);
	}
	CHECK(COUNTER(direct_bytes) == 0 && COUNTER(host_bytes) == 0);
}

TEST(an_address_a_handle_and_an_array_may_be_the_same_number)
{
	world_run(NULL, "stacks:off", one_number);
}

static void nothing_given(void)
{
	world_start();
	same_key = 0;
	CHECK(!pass(make_nothing, GPUCACHE_KIND_ARRAY, 512));
	CHECK(COUNTER(direct_bytes) == 0);
}

TEST(a_success_without_memory_is_not_in_the_books)
{
	world_run(NULL, "stacks:off", nothing_given);
}

static CUresult pass_on(int device, enum gpucache_kind kind)
{
	struct gpc_passed_call call = { .make = make_nothing, .kind = kind, .size = MIB };
	CUresult result;

	CHECK(world_enter());
	same_key += 16;
	result = gpc_runtime_passed_malloc_of_device(&call, device);
	gpc_runtime_leave();
	return result;
}

static uint64_t direct_on(unsigned device)
{
	return GPC_DEVICE_SUM(&gpc_runtime.devices[device], direct_bytes);
}

static void of_devices(void)
{
	world_start();
	same_key = 0x7000;
	CHECK(!pass_on(1, GPUCACHE_KIND_PHYSICAL)); /* where no context is */
	CHECK(!pass_on(-1, GPUCACHE_KIND_PHYSICAL));
	CHECK(!pass_on(7, GPUCACHE_KIND_PHYSICAL)); /* no such device: the driver judges */
	CHECK(direct_on(0) == MIB && direct_on(1) == MIB);
	CHECK(COUNTER(direct_bytes) == 0); /* of the context */
	world_reset();
	CHECK(direct_on(0) == MIB);
	CHECK(!world.cuCtxSetCurrent(NULL));
	CHECK(!pass_on(-1, GPUCACHE_KIND_PHYSICAL_HOST));
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], host_bytes) == MIB);
	drop(GPUCACHE_KIND_PHYSICAL_HOST);
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], host_bytes) == 0);
}

TEST(what_belongs_to_a_device_needs_no_context_and_outlives_it)
{
	world_run("devices:2", "stacks:off", of_devices);
	world_run("devices:2", "stacks:off,record:off", of_devices);
}

static CUresult make_too_much(struct gpc_passed_call *call)
{
	n_made++;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static void nothing_to_give(void)
{
	struct gpc_passed_call call = {
		.make = make_too_much, .kind = GPUCACHE_KIND_PHYSICAL, .size = MIB
	};

	world_start();
	CHECK(world_enter());
	CHECK(gpc_runtime_passed_malloc_of_device(&call, 1) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(n_made == 1);
	CHECK(gpc_runtime_passed_malloc_of_device(&call, 0) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(n_made > 1); /* the ladder was climbed */
	gpc_runtime_leave();
}

TEST(where_no_context_is_there_is_no_ladder)
{
	world_run("devices:2", "stacks:off,oom_report:never", nothing_to_give);
}

TEST(size_0_and_no_context_get_the_drivers_answer)
{
	world_run(NULL, "stacks:off", without_context);
}
