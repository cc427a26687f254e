/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "sim/gpu/fault.h"

static struct gpc_sim_faults faults;

static int set_up(void **state)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	gpc_sim_faults_init(&faults, &config);
	return 0;
}

static int tear_down(void **state)
{
	pthread_mutex_destroy(&faults.lock);
	return 0;
}

FIXTURE(set_up, tear_down);

static CUresult call(const char *entry)
{
	return gpc_sim_fault_check(&faults, entry);
}

TEST(without_a_rule_nothing_fails)
{
	assert_int_equal(call("cuMemAlloc_v2"), CUDA_SUCCESS);
}

TEST(the_nth_call_and_those_after_it_fail_as_often_as_told)
{
	assert_true(gpc_sim_fault_add(&faults, "cuMemAlloc_v2", 2, 3, CUDA_ERROR_OUT_OF_MEMORY));
	assert_int_equal(call("cuMemAlloc_v2"), CUDA_SUCCESS);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(call("cuMemAlloc_v2"), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(call("cuMemAlloc_v2"), CUDA_SUCCESS);
}

TEST(a_rule_counts_from_when_it_was_added)
{
	assert_true(gpc_sim_fault_add(&faults, "cuEventQuery", 100, 1, CUDA_ERROR_NOT_READY));
	assert_int_equal(call("cuMemAlloc_v2"), CUDA_SUCCESS);
	assert_true(gpc_sim_fault_add(&faults, "cuMemAlloc_v2", 1, 1, CUDA_ERROR_OUT_OF_MEMORY));
	assert_int_equal(call("cuMemAlloc_v2"), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(a_count_as_large_as_can_be_means_always)
{
	assert_true(gpc_sim_fault_add(
		&faults, "cuMemFree_v2", 3, UINT64_MAX, CUDA_ERROR_INVALID_VALUE));
	assert_int_equal(call("cuMemFree_v2"), CUDA_SUCCESS);
	assert_int_equal(call("cuMemFree_v2"), CUDA_SUCCESS);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(call("cuMemFree_v2"), CUDA_ERROR_INVALID_VALUE);
}

TEST(a_name_without_a_version_means_every_version_and_nothing_else)
{
	static const char *const meant[] = { "cuMemAlloc", "cuMemAlloc_v2", "cuMemAlloc_v3_ptsz",
		"cuMemAlloc_ptds" };
	static const char *const others[] = { "cuMemAllocPitch_v2", "cuMemAllocAsync", "cuMemAllo",
		"cuMemFree_v2", "" };

	assert_true(
		gpc_sim_fault_add(&faults, "cuMemAlloc", 1, UINT64_MAX, CUDA_ERROR_OUT_OF_MEMORY));
	for (size_t i = 0; i < N_OF(meant); i++)
		assert_int_equal(call(meant[i]), CUDA_ERROR_OUT_OF_MEMORY);
	for (size_t i = 0; i < N_OF(others); i++)
		assert_int_equal(call(others[i]), CUDA_SUCCESS);
}

TEST(a_name_with_a_version_means_that_one_in_both_kinds_of_default_stream)
{
	assert_true(
		gpc_sim_fault_add(&faults, "cuMemcpy_v2", 1, UINT64_MAX, CUDA_ERROR_INVALID_VALUE));
	assert_int_equal(call("cuMemcpy_v2"), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(call("cuMemcpy_v2_ptds"), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(call("cuMemcpy"), CUDA_SUCCESS);
	assert_int_equal(call("cuMemcpy_v3"), CUDA_SUCCESS);
}

TEST(rules_for_one_name_count_on_their_own)
{
	assert_true(gpc_sim_fault_add(&faults, "cuMemAlloc", 1, 1, CUDA_ERROR_OUT_OF_MEMORY));
	assert_true(gpc_sim_fault_add(&faults, "cuMemAlloc_v2", 2, 1, CUDA_ERROR_NOT_READY));
	assert_int_equal(call("cuMemAlloc_v2"), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(call("cuMemAlloc_v2"), CUDA_ERROR_NOT_READY);
	assert_int_equal(call("cuMemAlloc_v2"), CUDA_SUCCESS);
}

TEST(a_rule_beyond_the_last_place_is_refused_and_the_others_stay)
{
	for (unsigned i = 0; i < GPC_SIM_MAX_FAULTS; i++)
		assert_true(gpc_sim_fault_add(&faults, "cuMemFree_v2", i + 1, 1, (int)i + 1));
	assert_false(gpc_sim_fault_add(&faults, "cuMemAlloc_v2", 1, 1, 2));
	assert_int_equal(call("cuMemAlloc_v2"), CUDA_SUCCESS);
	for (unsigned i = 0; i < GPC_SIM_MAX_FAULTS; i++)
		assert_int_equal(call("cuMemFree_v2"), i + 1);
}

TEST(clearing_forgets_the_rules_and_what_they_counted)
{
	assert_true(gpc_sim_fault_add(&faults, "cuMemFree_v2", 2, 1, CUDA_ERROR_INVALID_VALUE));
	assert_int_equal(call("cuMemFree_v2"), CUDA_SUCCESS);
	gpc_sim_fault_clear(&faults);
	assert_int_equal(call("cuMemFree_v2"), CUDA_SUCCESS);
	assert_true(gpc_sim_fault_add(&faults, "cuMemFree_v2", 2, 1, CUDA_ERROR_INVALID_VALUE));
	assert_int_equal(call("cuMemFree_v2"), CUDA_SUCCESS);
	assert_int_equal(call("cuMemFree_v2"), CUDA_ERROR_INVALID_VALUE);
}

TEST(rules_of_the_configuration_are_in_force_from_the_start)
{
	struct gpc_sim_config config = gpc_sim_config_default();
	struct gpc_sim_faults configured;

	assert_int_equal(gpc_sim_config_parse(&config, "fail:cuMemAlloc/2/2"), 0);
	gpc_sim_faults_init(&configured, &config);
	assert_int_equal(gpc_sim_fault_check(&configured, "cuMemAlloc_v2"), CUDA_SUCCESS);
	assert_int_equal(
		gpc_sim_fault_check(&configured, "cuMemAlloc_v2"), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_sim_fault_check(&configured, "cuMemAlloc_v2"), CUDA_SUCCESS);
	pthread_mutex_destroy(&configured.lock);
}

/* Calls of each thread, and how many of all of them the rule lets fail. */
#define N_THREADS 4
#define N_CALLS   500
#define N_FAILED  700

static void *count_failures(void *arg)
{
	_Atomic unsigned *n_failed = arg;

	for (unsigned i = 0; i < N_CALLS; i++)
		if (call("cuMemAlloc_v2") != CUDA_SUCCESS)
			atomic_fetch_add(n_failed, 1);
	return NULL;
}

TEST(threads_together_meet_exactly_as_many_faults_as_told)
{
	pthread_t threads[N_THREADS];
	_Atomic unsigned n_failed = 0;

	assert_true(gpc_sim_fault_add(
		&faults, "cuMemAlloc_v2", 50, N_FAILED, CUDA_ERROR_OUT_OF_MEMORY));
	for (unsigned i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_failures, &n_failed), 0);
	for (unsigned i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(n_failed, N_FAILED);
}
