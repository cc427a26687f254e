/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/sim/machine.h"

FIXTURE(set_up, tear_down);

TEST(a_machine_has_as_many_devices_as_asked_and_their_addresses_differ)
{
	struct gpc_sim_context *other = context_on(1);
	uint64_t ptr;

	uint64_t mine = take(512);
	assert_int_equal(gpc_sim_mem_alloc(other, 512, &ptr), CUDA_SUCCESS);
	assert_ptr_equal(gpc_sim_device_of(sim, mine), &sim->devices[0]);
	assert_ptr_equal(gpc_sim_device_of(sim, ptr), &sim->devices[1]);
	gpc_sim_context_destroy(other);
}

TEST(a_device_that_the_machine_does_not_have_is_refused)
{
	struct gpc_sim_context *none = context;

	assert_int_equal(gpc_sim_context_create(sim, 2, 0, &none), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(
		gpc_sim_context_create(sim, UINT32_MAX, 0, &none), CUDA_ERROR_INVALID_DEVICE);
	assert_ptr_equal(none, context);
}

TEST(an_address_of_the_host_is_its_own_bytes_and_always_valid)
{
	int here = 0;
	uint64_t ptr = (uintptr_t)&here;

	assert_null(gpc_sim_device_of(sim, ptr));
	assert_ptr_equal(gpc_sim_bytes(sim, ptr), &here);
	assert_true(gpc_sim_is_valid(sim, ptr, sizeof here));
	assert_true(gpc_sim_is_valid(sim, 0, 1));
}

TEST(an_address_of_a_device_is_never_the_hosts)
{
	uint64_t ptr = take(2 * GPC_MIB);

	assert_true((uintptr_t)gpc_sim_bytes(sim, ptr) != ptr);
	assert_ptr_equal(gpc_sim_bytes(sim, ptr + 100), (char *)gpc_sim_bytes(sim, ptr) + 100);
	assert_null(gpc_sim_device_of(sim, (uintptr_t)gpc_sim_bytes(sim, ptr)));
}

TEST(bytes_are_valid_only_inside_one_allocation_as_it_was_requested)
{
	uint64_t large = take(2 * GPC_MIB);
	uint64_t small = take(700);

	assert_true(gpc_sim_is_valid(sim, large, 2 * GPC_MIB));
	assert_true(gpc_sim_is_valid(sim, large + GPC_MIB, GPC_MIB));
	assert_false(gpc_sim_is_valid(sim, large, 2 * GPC_MIB + 1));
	assert_false(gpc_sim_is_valid(sim, large + GPC_MIB, GPC_MIB + 1));
	assert_false(gpc_sim_is_valid(sim, large + 1, UINT64_MAX));
	assert_true(gpc_sim_is_valid(sim, small + 600, 100));
	assert_false(gpc_sim_is_valid(sim, small + 600, 101));
	assert_int_equal(gpc_sim_mem_free(sim, large), CUDA_SUCCESS);
	assert_false(gpc_sim_is_valid(sim, large, 1));
}

TEST(no_two_allocations_have_the_same_number)
{
	struct gpc_sim_device *device = &sim->devices[0];
	uint64_t large = take(5 * GPC_MIB);
	uint64_t small = take(5000);
	uint64_t of_large = gpc_sim_number_of(device, large + 4 * GPC_MIB);
	uint64_t of_small = gpc_sim_number_of(device, small + 4999);

	assert_true(of_large && of_small && of_large != of_small);
	assert_int_equal(gpc_sim_number_of(device, small + 5120), 0);
	assert_int_equal(gpc_sim_mem_free(sim, large), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_mem_free(sim, small), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_number_of(device, large), 0);
	assert_int_equal(take(5 * GPC_MIB), large);
	assert_int_equal(take(5000), small);
	assert_true(gpc_sim_number_of(device, large) > of_small);
	assert_true(gpc_sim_number_of(device, small) > of_small);
}

TEST(a_call_costs_what_the_configuration_says_and_fails_on_demand)
{
	sim->config.cost_ns[GPC_SIM_COST_MALLOC] = 3 * MS;
	uint64_t before = now();
	assert_int_equal(gpc_sim_call(sim, GPC_SIM_COST_MALLOC, "cuMemAlloc_v2"), CUDA_SUCCESS);
	assert_int_equal(now() - before, 3 * MS);
	assert_int_equal(gpc_sim_call(sim, GPC_SIM_COST_FREE, "cuMemFree_v2"), CUDA_SUCCESS);
	assert_int_equal(now() - before, 3 * MS);
	assert_true(gpc_sim_fault_add(&sim->faults, "cuMemFree", 1, 1, 999));
	assert_int_equal(gpc_sim_call(sim, GPC_SIM_COST_FREE, "cuMemFree_v2"), CUDA_ERROR_UNKNOWN);
}

TEST(two_machines_do_not_know_each_other)
{
	struct gpc_sim *second = gpc_sim_create(&sim->config);
	struct gpc_sim_context *other = NULL;
	uint64_t ptr;

	assert_non_null(second);
	assert_int_equal(gpc_sim_context_create(second, 0, 0, &other), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_mem_alloc(other, GPC_MIB, &ptr), CUDA_SUCCESS);
	assert_null(gpc_sim_device_of(sim, ptr));
	assert_int_equal(gpc_sim_mem_free(sim, ptr), CUDA_ERROR_INVALID_VALUE);
	gpc_sim_clock_wait_until(&second->clock, 100 * MS);
	assert_int_equal(now(), GPC_SIM_CLOCK_START);
	gpc_sim_context_destroy(other);
	gpc_sim_destroy(second);
}

TEST(a_machine_can_end_with_work_in_flight)
{
	struct gpc_sim *second = gpc_sim_create(&sim->config);
	struct gpc_sim_effect *effect = copy_of(5 * MS, 0, (uintptr_t) "src", 4);

	assert_non_null(second);
	assert_true(gpc_sim_effect_stage(second, effect));
	effect->end_ns = 5 * MS;
	assert_true(gpc_sim_effect_submit(second, effect));
	gpc_sim_destroy(second);
	gpc_sim_destroy(NULL);
}

TEST(counts_beyond_what_a_machine_holds_are_refused)
{
	struct gpc_sim_config config = sim->config;

	config.n_devices = GPC_SIM_MAX_DEVICES + 1;
	assert_null(gpc_sim_create(&config));
	config.n_devices = 1;
	config.n_faults = GPC_SIM_MAX_FAULTS + 1;
	assert_null(gpc_sim_create(&config));
}

TEST(a_machine_without_memory_is_refused)
{
	struct gpc_sim_config config = sim->config;

	config.memory = 0;
	assert_null(gpc_sim_create(&config));
}

/* The thread sanitizer keeps most of the addresses for itself and ends a process that asks for all. */
#ifndef __SANITIZE_THREAD__
static size_t mapped_pages(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%zu", &pages), 1);
	fclose(file);
	return pages;
}

TEST(a_machine_for_which_the_kernel_has_no_addresses_leaves_nothing_behind)
{
	struct gpc_sim_config config = sim->config;

	/* 16 TiB of addresses each: the first ones fit into the 128 TiB of a process, the last do not. */
	config.memory = 2 * GPC_KIB * GPC_GIB;
	config.n_devices = GPC_SIM_MAX_DEVICES;
	size_t before = mapped_pages();
	assert_null(gpc_sim_create(&config));
	/* A quarter of the first device would be seen. */
	assert_true(mapped_pages() < before + config.memory / 4096);
}
#endif
