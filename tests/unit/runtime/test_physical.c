/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "base/metamem.h"
#include "runtime/ledger/physical.h"
#include "runtime/ledger/track.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "world.h"

static _Thread_local CUmemGenericAllocationHandle handle;

static CUresult make(struct gpc_passed_call *call)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
	};
	CUresult result = world.cuMemCreate(&handle, call->size, &prop, 0);

	call->ret_address = handle;
	call->ret_size = call->size;
	return result;
}

/* What the hook of cuMemCreate does. */
static CUmemGenericAllocationHandle create(size_t size)
{
	struct gpc_passed_call call = {
		.make = make, .kind = GPUCACHE_KIND_PHYSICAL, .size = size
	};

	CHECK(!gpc_runtime_passed_malloc_of_device(&call, 0));
	gpc_runtime_handle_created(handle);
	return handle;
}

/* Releases as the hook does, with a driver that returns `result`. */
static void release(uint64_t which, CUresult result)
{
	gpc_runtime_end_release(gpc_runtime_begin_release(which), result);
}

static void unmap(uint64_t address, uint64_t size, CUresult result)
{
	gpc_runtime_end_release(gpc_runtime_begin_unmap(address, size), result);
}

static uint64_t books(void)
{
	return GPC_DEVICE_SUM(&gpc_runtime.devices[0], direct_bytes);
}

#define RANGE  UINT64_C(0x100000000)
#define CHUNK  (2 * MIB)
#define REFUSE CUDA_ERROR_INVALID_VALUE

static void held(void)
{
	uint64_t a;

	world_start();
	CHECK(world_enter());
	a = create(CHUNK);
	gpc_runtime_handle_held(a); /* retained */
	gpc_runtime_handle_mapped(a, RANGE, CHUNK);
	gpc_runtime_handle_mapped(a, RANGE + CHUNK, CHUNK);
	release(a, CUDA_SUCCESS);
	unmap(RANGE, CHUNK, CUDA_SUCCESS);
	release(a, CUDA_SUCCESS);
	CHECK(books() == CHUNK);
	unmap(RANGE + CHUNK, CHUNK, CUDA_SUCCESS);
	CHECK(books() == 0);
	a = create(CHUNK);
	gpc_runtime_handle_mapped(a, RANGE, CHUNK);
	unmap(RANGE, CHUNK, CUDA_SUCCESS);
	CHECK(books() == CHUNK);
	release(a, CUDA_SUCCESS);
	CHECK(books() == 0);
	gpc_runtime_leave();
}

TEST(physical_memory_goes_with_its_last_holder_or_mapping)
{
	world_run(NULL, "stacks:off", held);
	world_assert_is_silent();
}

static void refused(void)
{
	uint64_t a;

	world_start();
	CHECK(world_enter());
	a = create(CHUNK);
	release(a, REFUSE);
	CHECK(books() == CHUNK);
	gpc_runtime_handle_mapped(a, RANGE, CHUNK);
	unmap(RANGE, CHUNK, REFUSE);
	release(a, CUDA_SUCCESS);
	release(a, REFUSE); /* nobody holds the handle any more, the mapping does */
	unmap(RANGE, CHUNK, REFUSE);
	CHECK(books() == CHUNK);
	unmap(RANGE, CHUNK, CUDA_SUCCESS);
	CHECK(books() == 0);
	release(a, REFUSE);
	unmap(RANGE, CHUNK, REFUSE);
	CHECK(books() == 0);
	gpc_runtime_leave();
}

TEST(what_the_driver_refuses_changes_nothing)
{
	world_run(NULL, "stacks:off", refused);
}

static void at_once(void)
{
	uint64_t handles[8];

	world_start();
	CHECK(world_enter());
	for (uint64_t i = 0; i < 8; i++) {
		handles[i] = create(CHUNK);
		gpc_runtime_handle_mapped(handles[i], RANGE + i * CHUNK, CHUNK);
		if (i < 7)
			release(handles[i], CUDA_SUCCESS);
	}
	CHECK(books() == 8 * CHUNK);
	unmap(RANGE, 8 * CHUNK, REFUSE);
	CHECK(books() == 8 * CHUNK);
	unmap(RANGE + 2 * CHUNK, 2 * CHUNK, CUDA_SUCCESS);
	CHECK(books() == 6 * CHUNK);
	unmap(RANGE + 4 * CHUNK, 4 * CHUNK, CUDA_SUCCESS);
	CHECK(books() == 3 * CHUNK); /* the last one's handle is held */
	unmap(RANGE, 2 * CHUNK, CUDA_SUCCESS);
	release(handles[7], CUDA_SUCCESS);
	CHECK(books() == 0);
	gpc_runtime_leave();
}

TEST(one_call_may_unmap_several_mappings)
{
	world_run(NULL, "stacks:off", at_once);
}

static void unseen(void)
{
	uint64_t a;

	world_start();
	CHECK(world_enter());
	gpc_runtime_handle_mapped(0x99, RANGE, CHUNK); /* made before we were there */
	release(0x99, CUDA_SUCCESS);
	unmap(RANGE, CHUNK, CUDA_SUCCESS);
	a = create(CHUNK);
	release(a, CUDA_SUCCESS);
	CHECK(books() == 0);
	gpc_runtime_handle_held(0); /* no handle of any driver */
	release(0, CUDA_SUCCESS);
	unmap(RANGE, 0, CUDA_SUCCESS);
	gpc_runtime_leave();
}

TEST(handles_that_nobody_saw_made_do_no_harm)
{
	world_run(NULL, "stacks:off", unseen);
}

static void again(void)
{
	uint64_t a;

	world_start();
	CHECK(world_enter());
	a = create(CHUNK);
	gpc_runtime_handle_mapped(a, RANGE, CHUNK);
	CHECK(!world.cuMemRelease(a)); /* by a door that is not ours */
	CHECK(create(3 * CHUNK) == a);
	CHECK(books() == 3 * CHUNK);
	unmap(RANGE, CHUNK, CUDA_SUCCESS); /* of the old one */
	CHECK(books() == 3 * CHUNK);
	release(a, CUDA_SUCCESS);
	CHECK(books() == 0);
	gpc_runtime_leave();
}

TEST(a_handle_that_comes_again_is_a_new_one)
{
	world_run(NULL, "stacks:off", again);
}

static void without_metadata(void)
{
	uint64_t a;

	world_start();
	CHECK(world_enter());
	a = create(CHUNK);
	release(a, CUDA_SUCCESS);
	/* The maps have grown; further growth fails. */
	gpc_metamem_fail_at(1);
	for (uint64_t i = 1; i < 5000; i++) {
		gpc_runtime_handle_held(i << 20);
		gpc_runtime_handle_mapped(i << 20, RANGE + i * CHUNK, CHUNK);
	}
	for (uint64_t i = 1; i < 5000; i++) {
		unmap(RANGE + i * CHUNK, CHUNK, i % 2 ? CUDA_SUCCESS : REFUSE);
		release(i << 20, i % 2 ? CUDA_SUCCESS : REFUSE);
	}
	gpc_metamem_fail_at(0);
	a = create(CHUNK);
	CHECK(books() == CHUNK);
	release(a, CUDA_SUCCESS);
	CHECK(books() == 0);
	gpc_runtime_leave();
}

#define N_THREADS 4

static void *hold_and_let_go(void *arg)
{
	const uint64_t range = RANGE + (uint64_t)(uintptr_t)arg * 64 * CHUNK;

	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(world_enter());
	for (int i = 0; i < 300; i++) {
		uint64_t mine = create(CHUNK);

		gpc_runtime_handle_mapped(mine, range, CHUNK);
		if (i % 2) {
			release(mine, CUDA_SUCCESS);
			unmap(range, CHUNK, CUDA_SUCCESS);
		} else {
			unmap(range, CHUNK, CUDA_SUCCESS);
			CHECK(books() >= CHUNK);
			release(mine, REFUSE);
			unmap(range, CHUNK, REFUSE);
			release(mine, CUDA_SUCCESS);
		}
		/* Last: a driver gives no handle again that is still mapped. */
		CHECK(!world.cuMemRelease(mine));
	}
	gpc_runtime_leave();
	return NULL;
}

static void many_threads(void)
{
	pthread_t threads[N_THREADS];

	world_start();
	for (uintptr_t i = 0; i < N_THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, hold_and_let_go, (void *)i));
	for (int i = 0; i < N_THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(books() == 0);
}

TEST(threads_hold_memory_independently)
{
	world_run(NULL, "stacks:off", many_threads);
}

TEST(without_metadata_a_handle_goes_with_its_release)
{
	world_run(NULL, "stacks:off", without_metadata);
}
