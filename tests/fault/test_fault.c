/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every driver call and every mapping of metadata fails once, and from there on for good.
 *
 * One fixed scenario uses all of the allocator.  It is run with the first call of a kind failing, then the
 * second, and so on, until it ends without the fault being met.  After each run the heap is sound, the device has
 * back what it took back, our own memory is all returned, and the program saw nothing but success or the
 * driver's own code.
 */
#include "base/metamem.h"
#include "oom/ladder.h"
#include "sim/driver_sim.h"
#include "unit.h"

#define N_SMALL 5000 /* enough for the address map and the slab of blocks to grow */
#define N_LARGE 20
#define MS      UINT64_C(1000000)

struct fault {
	const char *name;
	const char *entry;
	int code;
	int driver_version;
	enum gpc_vmm vmm;
};

static struct {
	struct gpc_sim *sim;
	struct gpc_sim_driver drv;
	struct gpc_heap heap;
	struct gpc_budget budget;
	struct gpc_pool pool;
	gpc_devptr small[N_SMALL];
	gpc_devptr large[N_LARGE];
	struct gpc_request request;
	gpc_devptr address;
	enum gpc_status allowed; /* what a failed request may answer, besides GPC_LIMIT */
	uint64_t n_failed;
} run;

static uint64_t now_ns(void)
{
	return run.drv.base.ops->now_ns(&run.drv.base);
}

static enum gpc_status attempt(void *arg)
{
	(void)arg;
	return gpc_pool_retry(&run.pool, &run.request, &run.address);
}

/* 0 where it failed, as a program would notice it. */
static gpc_devptr alloc(uint64_t size)
{
	struct gpc_pool *pools[] = { &run.pool };
	struct gpc_ladder ladder = {
		.pool = &run.pool, .pools = pools, .n_pools = 1, .wanted = size, .attempt = attempt
	};
	enum gpc_status st;

	run.request = (struct gpc_request){ .size = size, .now_ns = now_ns() };
	st = gpc_pool_alloc(&run.pool, &run.request, &run.address);
	if (gpc_ladder_helps(st))
		st = gpc_ladder_climb(&ladder, st);
	if (!st)
		return run.address;
	if (st != run.allowed && st != GPC_LIMIT)
		fail_msg("the program was told: %s (%#x)", gpc_status_text(st), (unsigned)st);
	run.n_failed++;
	return 0;
}

static void release(gpc_devptr *address)
{
	struct gpc_request request = { .now_ns = now_ns() };

	if (*address)
		assert_int_equal(gpc_pool_free(&run.pool, *address, &request), GPC_OK);
	*address = 0;
}

static void launch(gpc_stream stream, gpc_devptr address)
{
	if (address)
		assert_int_equal(
			gpc_sim_driver_launch(&run.drv, stream, 2 * MS, address, 512, -1), GPC_OK);
}

/* The program makes a stream; where the fences cannot be told on the device, the host waits, as the library does. */
static gpc_stream make_stream(void)
{
	struct gpc_sim_stream *stream = NULL;
	gpc_stream handle;
	enum gpc_status st;

	assert_int_equal(gpc_sim_stream_create(run.drv.context, CU_STREAM_NON_BLOCKING, 0, &stream),
		CUDA_SUCCESS);
	handle = (gpc_stream)(uintptr_t)stream;
	gpc_lock_take(&run.pool.lock);
	st = gpc_fences_stream_created(&run.pool.fences, handle);
	gpc_lock_release(&run.pool.lock);
	if (st)
		(void)!run.drv.base.ops->context_sync(&run.drv.base);
	return handle;
}

static void one_stream_part(void)
{
	for (size_t i = 0; i < N_SMALL; i++)
		run.small[i] = alloc(512);
	for (size_t i = 0; i < N_SMALL; i += 2)
		release(&run.small[i]);
	for (size_t i = 0; i < N_LARGE; i++)
		run.large[i] = alloc((1 + i) * GPC_MIB);
	for (size_t i = 0; i < N_LARGE; i += 2) {
		launch(0, run.large[i]);
		release(&run.large[i]);
	}
}

static void many_streams_part(void)
{
	gpc_stream stream = make_stream();

	(void)make_stream();
	for (size_t i = 0; i < N_LARGE; i++) {
		if (!run.large[i])
			run.large[i] = alloc((1 + i) * GPC_MIB);
		launch(i % 3 ? stream : 0, run.large[i]);
		release(&run.large[i]);
	}
	for (size_t i = 1; i < N_SMALL; i += 2) {
		if (i % 100 == 1)
			launch(stream, run.small[i]);
		release(&run.small[i]);
	}
	(void)gpc_pool_reap(&run.pool);
	run.large[0] = alloc(8 * GPC_MIB);
	gpc_captures_begin(&run.heap.captures);
	release(&run.large[0]);
	run.large[0] = alloc(8 * GPC_MIB);
	gpc_captures_end(&run.heap.captures);
}

/* More than the limit, unless everything cached is given back and everything pending waited for. */
static void ladder_part(void)
{
	struct gpc_driver *drv = &run.drv.base;
	gpc_devptr base = 0;
	uint64_t number;

	for (int i = 0; i < 2; i++) {
		run.large[1] = alloc(150 * GPC_MIB);
		launch(0, run.large[1]);
		release(&run.large[1]);
		if (i == 0) /* for one event; the second time the ladder waits for all */
			(void)gpc_pool_wait(&run.pool, 150 * GPC_MIB);
	}
	run.large[2] = alloc(180 * GPC_MIB);
	if (run.large[2])
		assert_int_equal(gpc_pool_export(&run.pool, run.large[2], &base), GPC_OK);
	release(&run.large[0]);
	number = gpc_pool_begin_sync(&run.pool);
	if (!drv->ops->context_sync(drv))
		gpc_pool_end_sync(&run.pool, number, now_ns());
	release(&run.large[2]);
	(void)gpc_pool_wait(&run.pool, 0);
	(void)gpc_pool_trim(&run.pool, 4 * GPC_MIB);
	run.large[3] = alloc(3 * GPC_MIB);
}

/* False where there is not even metadata for a heap. */
static bool open_run(int driver_version, enum gpc_vmm vmm)
{
	const struct gpc_pool_params params = { .pending_limit = 64 * GPC_MIB,
		.gc_threshold_ppm = 900000,
		.decay_ns = 500 * MS,
		.vmm = vmm,
		.is_one_stream = true };
	struct gpc_sim_config config = gpc_sim_config_default();

	memset(&run, 0, sizeof run);
	config.virtual_clock = true;
	config.driver_version = driver_version;
	config.memory = 2 * GPC_GIB;
	run.sim = gpc_sim_create(&config);
	assert_non_null(run.sim);
	assert_int_equal(gpc_sim_driver_init(&run.drv, run.sim, 0, NULL), GPC_OK);
	run.budget.limit_bytes = 300 * GPC_MIB;
	if (gpc_heap_init(&run.heap, NULL))
		return false;
	gpc_pool_init(&run.pool, &run.heap, &run.drv.base, &run.budget, &params, 0, 0, NULL);
	return true;
}

static void play(void)
{
	one_stream_part();
	many_streams_part();
	ladder_part();
}

static void check_heap(void)
{
	const char *broken = gpc_pool_check(&run.pool);

	if (broken)
		fail_msg("%s", broken);
}

/* The program ends tidily: nothing may be left but what the driver did not take back. */
static void end_run(uint64_t n_refused_frees)
{
	for (size_t i = 0; i < N_SMALL; i++)
		release(&run.small[i]);
	for (size_t i = 0; i < N_LARGE; i++)
		release(&run.large[i]);
	check_heap();
	gpc_pool_fini(&run.pool);
	assert_int_equal(gpc_sim_device_n_allocations(&run.sim->devices[0]), n_refused_frees);
	assert_int_equal(run.budget.used_bytes, 0);
	gpc_heap_fini(&run.heap);
}

static void close_machine(void)
{
	assert_int_equal(gpc_sim_context_state(run.drv.context), CUDA_SUCCESS);
	gpc_sim_driver_fini(&run.drv);
	gpc_sim_destroy(run.sim);
}

static uint64_t n_met(uint64_t nth, uint64_t count)
{
	uint64_t n_seen = run.sim->faults.n_seen[0];
	uint64_t n = n_seen >= nth ? n_seen - nth + 1 : 0;

	return n < count ? n : count;
}

/* One run with the calls nth .. nth + count - 1 failing.  False where it ended before the fault was met. */
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
	static void name(void **state)                                                          \
	{                                                                                       \
		static const struct fault fault = { #name, entry, code, version, GPC_VMM_OFF }; \
                                                                                                \
		(void)state;                                                                    \
		fail_every_call(&fault);                                                        \
	}

#define PAGE_TEST(name, entry, code)                                                         \
	static void name(void **state)                                                       \
	{                                                                                    \
		static const struct fault fault = { #name, entry, code, 13000, GPC_VMM_ON }; \
                                                                                             \
		(void)state;                                                                 \
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
PAGE_TEST(every_query_beside_pages_that_fails_is_survived, "cuEventQuery", 999)
PAGE_TEST(every_look_beside_pages_that_fails_is_survived, "cuMemGetInfo_v2", 999)

/* One run with the n-th mapping of metadata failing, and all after it.  Returns what was mapped in the end. */
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

static void every_mapping_of_metadata_that_fails_is_survived(void **state)
{
	uint64_t n_failed = 0;
	size_t whole = survive_without_metadata(0, &n_failed);
	unsigned nth = 0;
	size_t mapped;

	(void)state;
	assert_int_equal(n_failed, 0);
	do {
		mapped = survive_without_metadata(++nth, &n_failed);
		assert_true(mapped <= whole);
	} while (n_failed > 0 || mapped < whole);
	printf("metadata: %u mappings made to fail\n", nth - 1);
	assert_true(nth > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_mem_alloc_without_room_is_survived),
		cmocka_unit_test(every_mem_alloc_with_another_error_is_survived),
		cmocka_unit_test(every_mem_free_that_is_refused_is_survived),
		cmocka_unit_test(every_event_that_cannot_be_made_is_survived),
		cmocka_unit_test(every_fence_record_that_fails_is_survived),
		cmocka_unit_test(every_event_query_that_fails_is_survived),
		cmocka_unit_test(every_event_wait_that_fails_is_survived),
		cmocka_unit_test(every_context_sync_that_fails_is_survived),
		cmocka_unit_test(every_context_sync_of_an_old_driver_that_fails_is_survived),
		cmocka_unit_test(every_legacy_record_that_fails_is_survived),
		cmocka_unit_test(every_stream_wait_that_fails_is_survived),
		cmocka_unit_test(every_reservation_of_addresses_that_fails_is_survived),
		cmocka_unit_test(every_page_without_room_is_survived),
		cmocka_unit_test(every_page_with_another_error_is_survived),
		cmocka_unit_test(every_mapping_that_fails_is_survived),
		cmocka_unit_test(every_access_that_is_refused_is_survived),
		cmocka_unit_test(every_unmapping_that_is_refused_is_survived),
		cmocka_unit_test(every_query_beside_pages_that_fails_is_survived),
		cmocka_unit_test(every_look_beside_pages_that_fails_is_survived),
		cmocka_unit_test(every_mapping_of_metadata_that_fails_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
