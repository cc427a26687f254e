/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered allocation, under the race detector. */
#include "tests/unit/sim/racing.h"

static struct gpc_sim_mempool *pool;

/* 160 MiB, so that four slabs fit beside the context. */
static int set_up_pool(void **state)
{
	if (set_up_streams(160 * GPC_MIB))
		return -1;
	pool = sim->mempools.defaults[0];
	return 0;
}

FIXTURE(set_up_pool, tear_down);

static uint64_t take_from(struct gpc_sim_stream *stream, uint64_t size)
{
	uint64_t ptr = 0;

	assert_int_equal(gpc_sim_mempool_alloc(pool, stream, size, &ptr), CUDA_SUCCESS);
	return ptr;
}

static void give(struct gpc_sim_stream *stream, uint64_t ptr)
{
	assert_int_equal(gpc_sim_mempool_free_async(stream, ptr), CUDA_SUCCESS);
}

static uint64_t figure(CUmemPool_attribute attribute)
{
	uint64_t value = 0;

	assert_int_equal(gpc_sim_mempool_get(sim, pool, attribute, &value), CUDA_SUCCESS);
	return value;
}

static CUresult set(CUmemPool_attribute attribute, uint64_t value)
{
	return gpc_sim_mempool_set(sim, pool, attribute, &value);
}

static uint64_t device_used(void)
{
	return gpc_sim_device_used_bytes(&sim->devices[0]) - CONTEXT_COST;
}

TEST(an_allocation_reserves_a_slab_and_uses_its_own_size)
{
	uint64_t base = 0;
	uint64_t size = 0;
	struct gpc_sim_mempool *found = NULL;

	uint64_t ptr = take_from(one, 1000);
	assert_int_equal(figure(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), GPC_SIM_SLAB);
	assert_int_equal(figure(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1024);
	assert_int_equal(device_used(), GPC_SIM_SLAB);
	assert_true(gpc_sim_mempool_find(sim, ptr + 1023, &base, &size, &found));
	assert_int_equal(base, ptr);
	assert_int_equal(size, 1024);
	assert_ptr_equal(found, pool);
	assert_false(gpc_sim_mempool_find(sim, ptr + 1024, NULL, NULL, NULL));
	assert_true(gpc_sim_mempool_has(sim, ptr + 1024));
	assert_false(gpc_sim_mempool_has(sim, ptr + GPC_SIM_SLAB));
}

TEST(the_same_stream_gets_at_once_what_it_freed)
{
	uint64_t ptr = take_from(one, GPC_SIM_SLAB);
	submit(one, kernel_of(5 * MS, ptr, 512, 1));
	give(one, ptr);
	assert_int_equal(take_from(one, GPC_SIM_SLAB), ptr);
	submit(one, kernel_of(5 * MS, ptr, 512, 2));
	assert_int_equal(gpc_sim_race_n_violations(sim), 0);
	/* The end of the first free is nothing to the second owner. */
	pass(20 * MS);
	assert_true(gpc_sim_mempool_find(sim, ptr, NULL, NULL, NULL));
	assert_int_equal(bytes_at(ptr)[0], 2);
}

TEST(another_stream_gets_it_when_the_free_is_over)
{
	uint64_t ptr = take_from(one, GPC_SIM_SLAB);
	assert_int_equal(set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX), CUDA_SUCCESS);
	submit(one, kernel_of(5 * MS, ptr, 512, 1));
	give(one, ptr);
	uint64_t other = take_from(two, GPC_SIM_SLAB);
	assert_int_not_equal(other, ptr);
	pass(10 * MS);
	assert_int_equal(take_from(two, GPC_SIM_SLAB), ptr);
	submit(two, kernel_of(MS, ptr, 512, 2));
	assert_int_equal(gpc_sim_race_n_violations(sim), 0);
}

TEST(use_by_a_stream_that_is_not_ordered_behind_the_old_owner_is_a_race)
{
	uint64_t ptr = take_from(one, GPC_SIM_SLAB);
	submit(one, kernel_of(5 * MS, ptr, 512, 1));
	give(one, ptr);
	assert_int_equal(take_from(one, GPC_SIM_SLAB), ptr);
	submit(two, kernel_of(MS, ptr, 512, 2));
	assert_int_equal(gpc_sim_race_n_violations(sim), 1);
	assert_int_equal(sim->race->violations[0].kind, GPC_SIM_RACE_OVERTAKEN);
}

TEST(the_detector_finds_memory_given_out_to_a_stream_too_early)
{
	const struct gpc_sim_race_stack stack = { .n = 0 };

	uint64_t ptr = take_from(one, 4096);
	submit(one, kernel_of(5 * MS, ptr, 512, 1));
	gpc_sim_race_disown(sim, ptr);
	assert_true(gpc_sim_race_own_on(sim, one, ptr, 4096, &stack));
	assert_int_equal(gpc_sim_race_n_violations(sim), 0);
	gpc_sim_race_disown(sim, ptr);
	assert_true(gpc_sim_race_own_on(sim, two, ptr, 4096, &stack));
	assert_int_equal(gpc_sim_race_n_violations(sim), 1);
	assert_int_equal(sim->race->violations[0].kind, GPC_SIM_RACE_HANDED_OUT);
	gpc_sim_race_disown(sim, ptr);
}

TEST(what_passes_the_threshold_goes_back_at_a_synchronization)
{
	assert_int_equal(set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, GPC_SIM_SLAB), CUDA_SUCCESS);
	uint64_t a = take_from(one, GPC_SIM_SLAB);
	uint64_t b = take_from(one, GPC_SIM_SLAB);
	give(one, a);
	give(one, b);
	pass(MS);
	assert_int_equal(device_used(), 2 * GPC_SIM_SLAB);
	assert_int_equal(gpc_sim_stream_sync(one), CUDA_SUCCESS);
	assert_int_equal(device_used(), GPC_SIM_SLAB);
	assert_int_equal(set(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_event_sync(event_create()), CUDA_SUCCESS);
	assert_int_equal(device_used(), 0);
	give(one, take_from(one, 512));
	assert_int_equal(gpc_sim_context_sync(context), CUDA_SUCCESS);
	assert_int_equal(device_used(), 0);
}

TEST(a_free_that_the_stream_did_not_get_to_holds_its_slab)
{
	uint64_t ptr = take_from(one, 512);
	submit(one, kernel_of(5 * MS, ptr, 512, 1));
	give(one, ptr);
	gpc_sim_mempool_trim(sim, pool, 0);
	assert_int_equal(device_used(), GPC_SIM_SLAB);
	assert_int_equal(gpc_sim_stream_sync(two), CUDA_SUCCESS);
	assert_int_equal(device_used(), GPC_SIM_SLAB);
	pass(5 * MS);
	gpc_sim_mempool_trim(sim, pool, 0);
	assert_int_equal(device_used(), 0);
}

TEST(cuMemFree_does_not_wait)
{
	uint64_t start = now();

	uint64_t ptr = take_from(one, 512);
	busy(one, 5 * MS);
	assert_int_equal(gpc_sim_mempool_free(sim, ptr), CUDA_SUCCESS);
	assert_int_equal(now(), start);
	assert_int_equal(gpc_sim_mempool_free(sim, ptr), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_mempool_free_async(one, ptr), CUDA_ERROR_INVALID_VALUE);
	ptr = take_from(one, 1024);
	assert_int_equal(gpc_sim_mempool_free(sim, ptr + 512), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_mempool_free_async(one, ptr + 512), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_mempool_free(sim, 512), CUDA_ERROR_INVALID_VALUE);
}

TEST(a_full_device_is_out_of_memory_and_stays_usable)
{
	uint64_t ptr = 0;

	uint64_t big = take_from(one, 150 * GPC_MIB);
	assert_int_equal(
		gpc_sim_mempool_alloc(pool, one, 20 * GPC_MIB, &ptr), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(
		gpc_sim_mempool_alloc(pool, one, UINT64_MAX, &ptr), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_sim_mempool_alloc(pool, one, 0, &ptr), CUDA_ERROR_INVALID_VALUE);
	/* Idle in the pool is not free for anybody else. */
	give(one, big);
	assert_int_equal(gpc_sim_mem_alloc(context, 20 * GPC_MIB, &ptr), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(take_from(one, 20 * GPC_MIB), big);
}

TEST(high_marks_are_kept_until_they_are_reset)
{
	uint64_t ptr = take_from(one, 40 * GPC_MIB);
	give(one, ptr);
	assert_int_equal(gpc_sim_stream_sync(one), CUDA_SUCCESS);
	assert_int_equal(figure(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	assert_int_equal(figure(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 64 * GPC_MIB);
	assert_int_equal(figure(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 40 * GPC_MIB);
	assert_int_equal(set(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0), CUDA_SUCCESS);
	assert_int_equal(set(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0), CUDA_SUCCESS);
	assert_int_equal(figure(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 0);
	assert_int_equal(figure(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
	assert_int_equal(set(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(set(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_mempool_get(sim, pool, 99, &ptr), CUDA_ERROR_INVALID_VALUE);
}

TEST(reuse_attributes_are_ints)
{
	int value[2] = { 0, 77 };

	assert_int_equal(gpc_sim_mempool_get(
				 sim, pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &value[0]),
		CUDA_SUCCESS);
	assert_int_equal(value[0], 1);
	assert_int_equal(value[1], 77);
	value[0] = 0;
	assert_int_equal(gpc_sim_mempool_set(
				 sim, pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &value[0]),
		CUDA_SUCCESS);
	assert_int_equal(pool->reuse[1], 0);
}

static struct gpc_sim_mempool *create(CUmemLocationType type, int id, CUresult wanted)
{
	const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { type, id } };
	struct gpc_sim_mempool *made = NULL;

	assert_int_equal(gpc_sim_mempool_create(sim, &props, &made), wanted);
	return made;
}

TEST(pools_are_of_a_device_or_of_the_host)
{
	CUmemPoolProps managed = { .allocType = CU_MEM_ALLOCATION_TYPE_MANAGED };

	(void)create(CU_MEM_LOCATION_TYPE_DEVICE, 2, CUDA_ERROR_INVALID_VALUE);
	(void)create(CU_MEM_LOCATION_TYPE_DEVICE, -1, CUDA_ERROR_INVALID_VALUE);
	(void)create(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0, CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_mempool_create(sim, &managed, &pool), CUDA_ERROR_INVALID_VALUE);
	pool = create(CU_MEM_LOCATION_TYPE_HOST, 0, CUDA_SUCCESS);
	(void)take_from(one, 512);
	assert_int_equal(device_used(), 0);
	pool = create(CU_MEM_LOCATION_TYPE_DEVICE, 1, CUDA_SUCCESS);
	(void)take_from(one, 512);
	assert_int_equal(gpc_sim_device_used_bytes(&sim->devices[1]), GPC_SIM_SLAB);
}

TEST(a_destroyed_pool_lives_until_its_last_memory_came_back)
{
	pool = create(CU_MEM_LOCATION_TYPE_DEVICE, 0, CUDA_SUCCESS);
	CUmemoryPool handle = (CUmemoryPool)(void *)pool;
	assert_ptr_equal(gpc_sim_mempool_of(sim, handle), pool);
	assert_int_equal(gpc_sim_mempool_set_current(sim, 0, pool), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_mempool_set_current(sim, 1, pool), CUDA_ERROR_INVALID_VALUE);
	uint64_t ptr = take_from(one, 512);
	assert_int_equal(gpc_sim_mempool_destroy(sim, pool), CUDA_SUCCESS);
	assert_null(gpc_sim_mempool_of(sim, handle));
	assert_ptr_equal(sim->mempools.currents[0], sim->mempools.defaults[0]);
	assert_int_equal(device_used(), GPC_SIM_SLAB);
	give(one, ptr);
	pass(MS);
	assert_int_equal(device_used(), 0);
	assert_int_equal(
		gpc_sim_mempool_destroy(sim, sim->mempools.defaults[0]), CUDA_ERROR_INVALID_VALUE);
}

TEST(a_shared_pool_shows_the_same_bytes_at_other_addresses)
{
	const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	struct gpc_sim_mempool *imported = NULL;
	uint64_t alias = 0;

	assert_int_equal(gpc_sim_mempool_import(sim, pool, &imported), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_mempool_import_pointer(sim, take_from(one, 512), &alias),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_mempool_create(sim, &props, &pool), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_mempool_import(sim, pool, &imported), CUDA_SUCCESS);
	assert_int_equal(
		gpc_sim_mempool_alloc(imported, one, 512, &alias), CUDA_ERROR_INVALID_VALUE);
	uint64_t ptr = take_from(one, 4096);
	uint64_t before = device_used();
	assert_int_equal(gpc_sim_mempool_import_pointer(sim, ptr, &alias), CUDA_SUCCESS);
	assert_int_not_equal(alias, ptr);
	bytes_at(ptr)[4095] = 5;
	assert_int_equal(bytes_at(alias + 4095)[0], 5);
	assert_true(gpc_sim_is_valid(sim, alias, 4096));
	assert_int_equal(device_used(), before);
	assert_false(gpc_sim_mempool_forget_import(sim, alias + 1));
	assert_true(gpc_sim_mempool_forget_import(sim, alias));
	assert_false(gpc_sim_mempool_forget_import(sim, alias));
	assert_int_equal(device_used(), before);
}

TEST(its_memory_outlives_contexts_but_not_a_reset)
{
	struct gpc_sim_context *second = context_on(0);
	struct gpc_sim_stream *stream = stream_in(second, CU_STREAM_NON_BLOCKING);

	uint64_t ptr = take_from(stream, 512);
	gpc_sim_context_destroy(second);
	assert_true(gpc_sim_mempool_find(sim, ptr, NULL, NULL, NULL));
	gpc_sim_mempools_reset(sim, &sim->devices[1]);
	assert_int_equal(device_used(), GPC_SIM_SLAB);
	gpc_sim_mempools_reset(sim, &sim->devices[0]);
	assert_int_equal(device_used(), 0);
	assert_int_equal(figure(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
}
