/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/sim/machine.h"

#include "sim/gpu/memory/managed.h"

/* What the context leaves of the device. */
#define ROOM (64 * GPC_MIB - CONTEXT_COST)

/* Any addresses will do: no byte is written before the work ends. */
#define A UINT64_C(0x100000000000)
#define B UINT64_C(0x200000000000)

static uint64_t free_bytes(void)
{
	return gpc_sim_device_free_bytes(context->device);
}

static struct gpc_sim_effect read_of(uint64_t src, uint64_t size)
{
	return (struct gpc_sim_effect){
		.kind = GPC_SIM_EFFECT_COPY, .duration_ns = MS, .src = src, .width = size, .rows = 1
	};
}

/* The milliseconds that such a read lasts. */
static unsigned reads(uint64_t src, uint64_t size)
{
	struct gpc_sim_effect work = read_of(src, size);

	return (unsigned)(gpc_sim_managed_duration(context, &work) / MS);
}

/* Moves cost a millisecond for each MiB. */
static int set_up_moves(void **state)
{
	int rc = set_up(state);

	sim->config.migrate_ns_per_mib = MS;
	return rc;
}

FIXTURE(set_up_moves, tear_down);

TEST(the_first_touch_moves_memory_to_the_device)
{
	gpc_sim_managed_add(context->device, A, 20 * GPC_MIB);
	assert_int_equal(free_bytes(), ROOM);
	assert_int_equal(reads(A, 8 * GPC_MIB), 1 + 8);
	assert_int_equal(free_bytes(), ROOM - 8 * GPC_MIB);
	assert_int_equal(reads(A + GPC_MIB, 8 * GPC_MIB), 1);
	assert_int_equal(reads(A, 20 * GPC_MIB), 1 + 12);
	assert_int_equal(context->device->managed.resident, 20 * GPC_MIB);
	gpc_sim_managed_remove(context->device, A);
	assert_int_equal(free_bytes(), ROOM);
	assert_int_equal(reads(A, GPC_MIB), 1); /* no managed memory */
}

TEST(more_than_the_device_holds_goes_and_comes)
{
	gpc_sim_managed_add(context->device, A, 40 * GPC_MIB);
	gpc_sim_managed_add(context->device, B, 40 * GPC_MIB);
	assert_int_equal(reads(A, 40 * GPC_MIB), 1 + 40);
	assert_int_equal(reads(B, 40 * GPC_MIB), 1 + 40 + 20); /* 20 MiB of A give way */
	assert_int_equal(free_bytes(), 0);
	assert_int_equal(reads(B, 40 * GPC_MIB), 1);
	assert_int_equal(reads(A, 40 * GPC_MIB), 1 + 20 + 20);
}

TEST(one_that_is_larger_than_the_device_is_used_in_part_from_the_host)
{
	gpc_sim_managed_add(context->device, A, 100 * GPC_MIB);
	assert_int_equal(reads(A, 100 * GPC_MIB), 1 + 100 + 40);
	assert_int_equal(context->device->managed.resident, ROOM);
	assert_int_equal(free_bytes(), 0);
}

TEST(device_memory_comes_first)
{
	uint64_t ptr = 0;

	gpc_sim_managed_add(context->device, A, ROOM);
	(void)reads(A, ROOM);
	assert_int_equal(free_bytes(), 0);
	assert_int_equal(gpc_sim_mem_alloc(context, 50 * GPC_MIB, &ptr), CUDA_SUCCESS);
	assert_int_equal(context->device->managed.resident, ROOM - 50 * GPC_MIB);
	assert_int_equal(gpc_sim_device_charge(context->device, ROOM - 50 * GPC_MIB), CUDA_SUCCESS);
	assert_int_equal(context->device->managed.resident, 0);
	assert_int_equal(reads(A, GPC_MIB), 1 + 1 + 1); /* there, and at once back */
	gpc_sim_device_uncharge(context->device, ROOM - 50 * GPC_MIB);
	assert_int_equal(gpc_sim_mem_free(sim, ptr), CUDA_SUCCESS);
}

TEST(kernels_and_fills_touch_what_they_name)
{
	struct gpc_sim_range ranges[] = { { A, 4 * GPC_MIB, -1 }, { B, 2 * GPC_MIB, 3 } };
	struct gpc_sim_effect kernel = { .kind = GPC_SIM_EFFECT_KERNEL,
		.duration_ns = 5 * MS,
		.ranges = ranges,
		.n_ranges = 2 };
	struct gpc_sim_effect fill = {
		.kind = GPC_SIM_EFFECT_FILL, .dst = B, .width = 4 * GPC_MIB, .rows = 1
	};

	gpc_sim_managed_add(context->device, A, 20 * GPC_MIB);
	gpc_sim_managed_add(context->device, B, 20 * GPC_MIB);
	assert_int_equal(gpc_sim_managed_duration(context, &kernel) / MS, 5 + 4 + 2);
	assert_int_equal(gpc_sim_managed_duration(context, &kernel) / MS, 5);
	assert_int_equal(gpc_sim_managed_duration(context, &fill) / MS, 2);
	assert_int_equal(gpc_sim_managed_duration(context, NULL), 0);
}

TEST(beyond_the_table_memory_stays_on_the_host)
{
	for (unsigned i = 0; i < GPC_SIM_MAX_MANAGED + 1; i++)
		gpc_sim_managed_add(context->device, A + i * GPC_MIB, GPC_MIB);
	assert_int_equal(reads(A + GPC_SIM_MAX_MANAGED * GPC_MIB, GPC_MIB), 1);
	gpc_sim_managed_remove(context->device, A + GPC_SIM_MAX_MANAGED * GPC_MIB);
	assert_int_equal(reads(A, GPC_MIB), 2);
}
