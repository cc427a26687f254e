/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/bytes.h"
#include "sim/gpu/device.h"

static struct gpc_sim_device device;

static int set_up(void **state)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	config.memory = 64 * GPC_MIB;
	return gpc_sim_device_init(&device, &config, 0) ? 0 : -1;
}

static int tear_down(void **state)
{
	gpc_sim_device_fini(&device);
	return 0;
}

FIXTURE(set_up, tear_down);

static uint64_t take(uint64_t size)
{
	uint64_t ptr = 0;

	assert_int_equal(gpc_sim_device_alloc(&device, 1, size, &ptr), CUDA_SUCCESS);
	return ptr;
}

TEST(large_memory_starts_at_2_mib_and_small_at_512)
{
	assert_int_equal(take(2 * GPC_MIB) % GPC_SIM_CHUNK, 0);
	uint64_t a = take(1);
	uint64_t b = take(513);
	uint64_t c = take(1);
	assert_int_equal(b - a, 512);
	assert_int_equal(c - b, 1024);
	assert_int_equal(gpc_sim_device_free_bytes(&device), 60 * GPC_MIB);
}

TEST(bytes_written_read_back)
{
	uint64_t ptr = take(3 * GPC_MIB);
	memset(gpc_sim_device_bytes(&device, ptr), 7, 3 * GPC_MIB);
	assert_int_equal(((char *)gpc_sim_device_bytes(&device, ptr))[3 * GPC_MIB - 1], 7);
}

TEST(only_the_start_of_an_allocation_can_be_freed_once)
{
	uint64_t large = take(4 * GPC_MIB);
	uint64_t small = take(2048);
	assert_int_equal(
		gpc_sim_device_free(&device, large + GPC_SIM_CHUNK), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_device_free(&device, large + 512), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_device_free(&device, small + 512), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_device_free(&device, 42), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_device_free(&device, large), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_device_free(&device, large), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_device_free(&device, small), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_device_free(&device, small), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_device_free_bytes(&device), 64 * GPC_MIB);
}

TEST(memory_runs_out_to_the_chunk_and_comes_back)
{
	uint64_t ptr[32];
	uint64_t more = 42;

	for (unsigned i = 0; i < 32; i++)
		ptr[i] = take(2 * GPC_MIB);
	assert_int_equal(gpc_sim_device_alloc(&device, 1, 1, &more), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(more, 42);
	for (unsigned i = 0; i < 32; i += 2)
		assert_int_equal(gpc_sim_device_free(&device, ptr[i]), CUDA_SUCCESS);
	/* Fragments do not matter: addresses are plenty. */
	assert_int_equal(gpc_sim_device_alloc(&device, 1, 32 * GPC_MIB, &more), CUDA_SUCCESS);
}

TEST(the_end_of_an_owner_frees_its_memory_only)
{
	uint64_t other;

	take(4 * GPC_MIB);
	take(100);
	assert_int_equal(gpc_sim_device_alloc(&device, 2, 2 * GPC_MIB, &other), CUDA_SUCCESS);
	gpc_sim_device_free_owner(&device, 1);
	assert_int_equal(gpc_sim_device_n_allocations(&device), 1);
	assert_int_equal(gpc_sim_device_free_bytes(&device), 62 * GPC_MIB);
	assert_int_equal(gpc_sim_device_free(&device, other), CUDA_SUCCESS);
}

TEST(the_allocation_around_an_address_is_found)
{
	uint64_t base, size;
	uint32_t owner;

	uint64_t large = take(5 * GPC_MIB);
	uint64_t small = take(5000);
	assert_true(gpc_sim_device_find(&device, large + 4 * GPC_MIB + 3, &base, &size, &owner));
	assert_int_equal(base, large);
	assert_int_equal(size, 5 * GPC_MIB);
	assert_int_equal(owner, 1);
	assert_true(gpc_sim_device_find(&device, small + 4999, &base, &size, NULL));
	assert_int_equal(base, small);
	assert_false(gpc_sim_device_find(&device, small + 5000, &base, &size, NULL));
	assert_false(gpc_sim_device_find(&device, large + 5 * GPC_MIB, &base, &size, NULL));
}

TEST(reserved_addresses_cost_nothing_and_are_nobody_elses)
{
	uint64_t before = gpc_sim_device_used_bytes(&device);
	uint64_t ptr = 0;
	uint64_t size = 0;

	assert_int_equal(gpc_sim_device_reserve(&device, 100 * GPC_MIB + 1, &ptr),
		CUDA_SUCCESS); /* more than there is memory */
	assert_int_equal(gpc_sim_device_used_bytes(&device), before);
	assert_true(gpc_sim_device_find(&device, ptr + GPC_MIB, NULL, &size, NULL));
	assert_int_equal(size, 100 * GPC_MIB + 1);
	uint64_t memory = 0;
	assert_int_equal(gpc_sim_device_alloc(&device, 1, 20 * GPC_MIB, &memory), CUDA_SUCCESS);
	assert_true(memory + 20 * GPC_MIB <= ptr || memory >= ptr + size);
	assert_int_equal(gpc_sim_device_free(&device, ptr), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_device_used_bytes(&device), before + 20 * GPC_MIB);
	assert_int_equal(gpc_sim_device_reserve(&device, 0, &ptr), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		gpc_sim_device_reserve(&device, UINT64_C(1) << 50, &ptr), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(random_use_keeps_the_account)
{
	uint64_t ptr[40] = { 0 };
	uint64_t size[40] = { 0 };
	unsigned seed = 1;

	for (unsigned i = 0; i < 20000; i++) {
		unsigned k = (unsigned)rand_r(&seed) % 40;
		if (ptr[k]) {
			assert_int_equal(*(unsigned *)gpc_sim_device_bytes(&device, ptr[k]), k);
			assert_int_equal(gpc_sim_device_free(&device, ptr[k]), CUDA_SUCCESS);
			ptr[k] = 0;
			continue;
		}
		size[k] = (unsigned)rand_r(&seed) % (rand_r(&seed) % 2 ? 5000 : 6000000) + 4;
		if (gpc_sim_device_alloc(&device, 1, size[k], &ptr[k]) == CUDA_SUCCESS)
			*(unsigned *)gpc_sim_device_bytes(&device, ptr[k]) = k;
	}
	for (unsigned k = 0; k < 40; k++)
		if (ptr[k])
			assert_int_equal(gpc_sim_device_free(&device, ptr[k]), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_device_free_bytes(&device), 64 * GPC_MIB);
}
