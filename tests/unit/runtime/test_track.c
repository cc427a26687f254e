/* SPDX-License-Identifier: Apache-2.0 */
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
	CHECK(!world_free(managed));
	CHECK(!pass(make_host, GPUCACHE_KIND_HOST, 3000));
	CHECK(COUNTER(host_bytes) == 3000 && COUNTER(direct_bytes) == 0);
	CHECK(gpc_runtime.devices[0].budget.used_bytes == 0);
	CHECK(!free_host(host));
	CHECK(COUNTER(host_bytes) == 0 && COUNTER(peak_host_bytes) == 3000);
	CHECK(COUNTER(n_malloc) == 2 && COUNTER(n_free) == 2);
}

static void managed_pitched_and_host_memory_is_counted(void **state)
{
	(void)state;
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

static void what_the_driver_refused_to_free_is_remembered(void **state)
{
	(void)state;
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

static void the_limit_binds_what_is_not_cached_and_not_host_memory(void **state)
{
	(void)state;
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

static void cached_memory_makes_room_for_what_is_not_cached(void **state)
{
	(void)state;
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

static void an_address_that_comes_again_replaces_the_old_entry(void **state)
{
	(void)state;
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

static void what_a_context_held_is_forgotten_with_it(void **state)
{
	(void)state;
	world_run(NULL, "stacks:off", reset);
}

static void without_context(void)
{
	world_start();
	CHECK(pass(make_managed, GPUCACHE_KIND_MANAGED, 0) == CUDA_ERROR_INVALID_VALUE);
	CHECK(!world.cuCtxSetCurrent(NULL));
	CHECK(pass(make_managed, GPUCACHE_KIND_MANAGED, 512) == CUDA_ERROR_INVALID_CONTEXT);
}

static void size_0_and_no_context_get_the_drivers_answer(void **state)
{
	(void)state;
	world_run(NULL, "stacks:off", without_context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(managed_pitched_and_host_memory_is_counted),
		cmocka_unit_test(what_the_driver_refused_to_free_is_remembered),
		cmocka_unit_test(the_limit_binds_what_is_not_cached_and_not_host_memory),
		cmocka_unit_test(cached_memory_makes_room_for_what_is_not_cached),
		cmocka_unit_test(an_address_that_comes_again_replaces_the_old_entry),
		cmocka_unit_test(what_a_context_held_is_forgotten_with_it),
		cmocka_unit_test(size_0_and_no_context_get_the_drivers_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
