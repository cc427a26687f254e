/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes every driver call and every mapping of metadata fail, once and from then on.
 *
 * One fixed scenario uses all of the allocator.  It runs with the first call of a kind failing, then the second, and so
 * on, until a run does not reach the fault.  After each run the heap must be sound, the device must have all memory
 * that it did not refuse, all metadata must be returned, and the program must have seen only success or the driver's
 * own code.
 */
#include "base/metamem.h"
#include "tests/fault/scenario.h"

struct fault {
	const char *name;
	const char *entry;
	int code;
	int driver_version;
	enum gpc_vmm vmm;
};

/* Ends the program in order: only memory whose free the driver refused may be left. */
static void end_run(uint64_t n_refused_frees)
{
	release_all();
	gpc_pool_fini(&run.pool);
	assert_int_equal(gpc_sim_device_n_allocations(&run.sim->devices[0]), n_refused_frees);
	assert_int_equal(run.budget.used_bytes, 0);
	gpc_heap_fini(&run.heap);
}

static uint64_t n_met(uint64_t nth, uint64_t count)
{
	uint64_t n_seen = run.sim->faults.n_seen[0];
	uint64_t n = n_seen >= nth ? n_seen - nth + 1 : 0;

	return n < count ? n : count;
}

/* One run in which the calls nth .. nth + count - 1 fail.  False if the run did not reach the fault. */
static bool survives(const struct fault *fault, uint64_t nth, uint64_t count)
{
	bool is_free = !strcmp(fault->entry, "cuMemFree_v2");
	uint64_t met;

	assert_true(open_run(fault->driver_version, fault->vmm));
	run.allowed = gpc_status_from_device(fault->code);
	assert_true(gpc_sim_fault_add(&run.sim->faults, fault->entry, nth, count, fault->code));
	play();
	check_heap();
	met = n_met(nth, count);
	gpc_sim_fault_clear(&run.sim->faults);
	assert_true(met > 0 || run.n_failed == 0);
	end_run(is_free ? met : 0);
	close_machine();
	return met > 0;
}

static void fail_every_call(const struct fault *fault)
{
	static const uint64_t counts[] = { 1, UINT32_MAX };

	for (size_t i = 0; i < N_OF(counts); i++) {
		uint64_t nth = 1;

		while (survives(fault, nth, counts[i]))
			nth++;
		printf("%s: %llu calls made to fail, %s\n", fault->name,
			(unsigned long long)(nth - 1),
			counts[i] == 1 ? "once each" : "and all after each");
		assert_true(nth > 1);
	}
}

#define FAULT_TEST(name, entry, code, version)                                                  \
	TEST(name)                                                                              \
	{                                                                                       \
		static const struct fault fault = { #name, entry, code, version, GPC_VMM_OFF }; \
                                                                                                \
		fail_every_call(&fault);                                                        \
	}

#define PAGE_TEST(name, entry, code)                                                         \
	TEST(name)                                                                           \
	{                                                                                    \
		static const struct fault fault = { #name, entry, code, 13000, GPC_VMM_ON }; \
                                                                                             \
		fail_every_call(&fault);                                                     \
	}

FAULT_TEST(every_mem_alloc_without_room_is_survived, "cuMemAlloc_v2", 2, 13000)
FAULT_TEST(every_mem_alloc_with_another_error_is_survived, "cuMemAlloc_v2", 999, 13000)
FAULT_TEST(every_mem_free_that_is_refused_is_survived, "cuMemFree_v2", 999, 13000)
FAULT_TEST(every_event_that_cannot_be_made_is_survived, "cuEventCreate", 2, 13000)
FAULT_TEST(every_fence_record_that_fails_is_survived, "cuCtxRecordEvent", 999, 13000)
FAULT_TEST(every_event_query_that_fails_is_survived, "cuEventQuery", 999, 13000)
FAULT_TEST(every_event_wait_that_fails_is_survived, "cuEventSynchronize", 999, 13000)
FAULT_TEST(every_context_sync_that_fails_is_survived, "cuCtxSynchronize", 999, 13000)
FAULT_TEST(
	every_context_sync_of_an_old_driver_that_fails_is_survived, "cuCtxSynchronize", 999, 12040)
FAULT_TEST(every_legacy_record_that_fails_is_survived, "cuEventRecord", 999, 13000)
FAULT_TEST(every_stream_wait_that_fails_is_survived, "cuStreamWaitEvent", 999, 13000)

PAGE_TEST(every_reservation_of_addresses_that_fails_is_survived, "cuMemAddressReserve", 2)
PAGE_TEST(every_page_without_room_is_survived, "cuMemCreate", 2)
PAGE_TEST(every_page_with_another_error_is_survived, "cuMemCreate", 999)
PAGE_TEST(every_mapping_that_fails_is_survived, "cuMemMap", 999)
PAGE_TEST(every_access_that_is_refused_is_survived, "cuMemSetAccess", 999)
PAGE_TEST(every_unmapping_that_is_refused_is_survived, "cuMemUnmap", 999)
PAGE_TEST(every_failing_query_with_pages_is_survived, "cuEventQuery", 999)
PAGE_TEST(every_failing_device_query_with_pages_is_survived, "cuMemGetInfo_v2", 999)

/* One run in which the n-th and all later mappings of metadata fail.  Returns the bytes mapped at the end. */
static size_t survive_without_metadata(unsigned nth, uint64_t *ret_n_failed)
{
	size_t before = gpc_metamem_total();
	size_t mapped;

	gpc_metamem_fail_at(nth);
	if (!open_run(13000, GPC_VMM_OFF)) {
		gpc_metamem_fail_at(0);
		assert_int_equal(gpc_metamem_total(), before);
		close_machine();
		*ret_n_failed = 1;
		return 0;
	}
	run.allowed = GPC_NO_METADATA;
	play();
	mapped = gpc_metamem_total() - before;
	gpc_metamem_fail_at(0);
	check_heap();
	*ret_n_failed = run.n_failed;
	end_run(0);
	close_machine();
	assert_int_equal(gpc_metamem_total(), before);
	return mapped;
}

TEST(every_mapping_of_metadata_that_fails_is_survived)
{
	uint64_t n_failed = 0;
	size_t whole = survive_without_metadata(0, &n_failed);
	unsigned nth = 0;
	size_t mapped;

	assert_int_equal(n_failed, 0);
	do {
		mapped = survive_without_metadata(++nth, &n_failed);
		assert_true(mapped <= whole);
	} while (n_failed > 0 || mapped < whole);
	printf("metadata: %u mappings made to fail\n", nth - 1);
	assert_true(nth > 5);
}
