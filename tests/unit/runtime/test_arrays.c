/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/ledger/arrays.h"

#include "record/store.h"
#include "runtime/context/contexts.h"
#include "runtime/ledger/tensors.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "world.h"

#define CONF  "stacks:all"
#define POOL  (64 * MIB)
#define FIRST UINT64_C(0x1000)
#define NEXT  UINT64_C(0x2000)

static const struct gpucache_torch *sums(void)
{
	return &gpc_runtime.record.torch[0];
}

/* XLA takes its pool. */
static CUdeviceptr take_pool(void)
{
	CUdeviceptr pool = 0;

	world_start();
	CHECK(world_enter());
	gpc_runtime_arrays_pool(0, POOL);
	gpc_runtime_leave();
	CHECK(!world_malloc(&pool, POOL));
	return pool;
}

static void make(uint64_t buffer, uint64_t address, uint64_t size)
{
	CHECK(world_enter());
	gpc_runtime_array(0, &(struct gpc_array){ buffer, address, size, true }, 0);
	gpc_runtime_leave();
}

static void end(uint64_t buffer)
{
	CHECK(world_enter());
	gpc_runtime_array_end(buffer);
	gpc_runtime_leave();
}

static void donate(void)
{
	CUdeviceptr pool = take_pool();

	make(FIRST, pool, MIB);
	CHECK(sums()->framework == GPUCACHE_FRAMEWORK_XLA);
	CHECK(sums()->allocated_bytes == MIB && sums()->reserved_bytes == POOL);
	end(FIRST); /* donated: the output has its memory */
	make(NEXT, pool, MIB);
	end(FIRST); /* destroyed later */
	CHECK(sums()->allocated_bytes == MIB && sums()->n_malloc == 2 && sums()->n_free == 1);
	end(NEXT);
	end(NEXT);
	CHECK(sums()->allocated_bytes == 0 && sums()->n_free == 2);
	CHECK(gpc_tensors_idle_bytes(&gpc_runtime.devices[0]) == POOL);
}

TEST(a_donated_array_leaves_and_its_end_does_not_take_the_next_one)
{
	world_run(NULL, CONF, donate);
}

static void lose(void)
{
	CUdeviceptr pool = take_pool();

	make(FIRST, pool, MIB);
	make(FIRST, pool + MIB, 2 * MIB); /* the same handle: its end passed us by */
	CHECK(sums()->allocated_bytes == 2 * MIB);
	make(NEXT, pool, 0);
	gpc_runtime_array_end(7);
	CHECK(sums()->allocated_bytes == 2 * MIB && sums()->n_malloc == 2);
}

TEST(a_handle_that_comes_again_replaces_its_array)
{
	world_run(NULL, CONF, lose);
}

static void refuse(void)
{
	const struct gpucache_oom_program program = { "jit_step", 30 * MIB, 4 * MIB, 2 * MIB, 1,
		0 };
	CUdeviceptr pool = take_pool();
	const struct gpucache_oom *oom;

	make(FIRST, pool, 40 * MIB);
	CHECK(world_enter());
	gpc_runtime_array_failed(-1, 30 * MIB, 41 * MIB, &program);
	gpc_runtime_leave();
	oom = world_oom(0);
	CHECK(oom && oom->number == 1 && oom->requested == 30 * MIB &&
		oom->kind == GPUCACHE_KIND_TENSOR);
	CHECK(oom->framework == GPUCACHE_FRAMEWORK_XLA);
	CHECK(oom->torch.allocated == 40 * MIB && oom->torch.reserved == POOL);
	CHECK(oom->program.temporaries == 30 * MIB && oom->program.pool_in_use == 41 * MIB);
	CHECK(oom->program.name[4] == 's' && sums()->n_failed == 1);
	CHECK(gpc_arrays_program().temporaries == 0);
}

TEST(a_failure_has_the_pool_and_what_the_program_needs)
{
	world_run(NULL, CONF, refuse);
}

static void shrink(void)
{
	world_start();
	CHECK(world_enter());
	gpc_runtime_arrays_pool(0, POOL);
	gpc_runtime_arrays_pool(0, -(int64_t)POOL);
	gpc_runtime_arrays_pool(7, POOL);
	gpc_runtime_leave();
	CHECK(sums()->reserved_bytes == 0);
}

TEST(a_pool_that_did_not_come_is_none)
{
	world_run(NULL, CONF, shrink);
}

static void give_back(void)
{
	CUdeviceptr pool = take_pool();
	CUdeviceptr more;

	CHECK(world_enter());
	gpc_runtime_arrays_pool(0, POOL);
	gpc_runtime_leave();
	CHECK(!world_malloc(&more, POOL));
	CHECK(world_enter());
	gpc_arrays_piece(0, pool, POOL);
	gpc_arrays_piece(0, more, POOL);
	gpc_arrays_piece(7, more + POOL, POOL);
	gpc_runtime_leave();
	make(FIRST, pool, MIB);
	CHECK(sums()->reserved_bytes == 2 * POOL);
	CHECK(!world_free(more));
	CHECK(sums()->reserved_bytes == POOL && sums()->peak_reserved_bytes == 2 * POOL);
	CHECK(world_enter());
	gpc_runtime_arrays_pool(0, POOL);
	gpc_arrays_piece(0, pool, POOL); /* the end of the one before passed us by */
	gpc_runtime_leave();
	CHECK(sums()->reserved_bytes == POOL);
	CHECK(!world_free(pool) && sums()->reserved_bytes == MIB);
}

TEST(a_pool_shrinks_by_each_piece_that_is_freed)
{
	world_run(NULL, CONF, give_back);
}

/* An array without an owner counts in no sum; its end looks for an owner again, with no lock held. */
static void be_without_owner(void)
{
	CUdeviceptr pool = take_pool();
	struct gpc_device *device = &gpc_runtime.devices[0];

	for (uint32_t i = 0; i < GPC_MAX_CONTEXTS; i++)
		if (!atomic_load(&device->contexts[i]))
			atomic_store(&device->contexts[i], world_context());
	make(FIRST, pool, MIB);
	CHECK(sums()->n_malloc == 1 && sums()->allocated_bytes == 0);
	end(FIRST);
	CHECK(sums()->n_free == 0 && sums()->allocated_bytes == 0);
}

TEST(an_array_without_an_owner_ends_in_the_order_of_locks)
{
	world_run(NULL, CONF, be_without_owner);
}
