/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/host_memory.h"
#include "model/balance.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "runtime/rescue/spill.h"
#include "world.h"

#define QUIET "record:off,stacks:off"
#define SMALL "memory:1GiB,context:0"

static const CUresult no_memory = CUDA_ERROR_OUT_OF_MEMORY;

#define SPILLED COUNTER(kind_bytes[GPUCACHE_KIND_SPILLED])

static int is_managed(CUdeviceptr ptr)
{
	unsigned int managed = 2;

	CHECK(!world.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, ptr));
	return (int)managed;
}

static void spills(void)
{
	CUdeviceptr live;
	CUdeviceptr spilled;
	CUdeviceptr small;
	CUdeviceptr next;
	unsigned char byte = 0;

	world_start();
	CHECK(!world_malloc(&live, 900 * MIB) && !is_managed(live) && SPILLED == 0);
	CHECK(!world_malloc(&spilled, 300 * MIB) && is_managed(spilled));
	CHECK(SPILLED == 300 * MIB && COUNTER(peak_spilled_bytes) == 300 * MIB);
	CHECK(COUNTER(n_oom) == 0 && COUNTER(n_rescued) == 1);
	CHECK(COUNTER(direct_bytes) + COUNTER(live_bytes) == 900 * MIB && COUNTER(host_bytes) == 0);
	CHECK(COUNTER(n_malloc) == 2 && COUNTER(n_driver_malloc) == 2);
	CHECK(!world.cuMemsetD8_v2(spilled, 7, 300 * MIB));
	CHECK(!world.cuMemcpyDtoH_v2(&byte, spilled + 299 * MIB, 1) && byte == 7);
	/* What fits is not spilled. */
	CHECK(!world_malloc(&small, 100 * MIB) && !is_managed(small));
	/* It goes back at once, and nothing of it is used again. */
	CHECK(!world_free(spilled) && SPILLED == 0);
	CHECK(!world_free(live));
	CHECK(!world_malloc(&next, 300 * MIB) && !is_managed(next));
	CHECK(COUNTER(peak_spilled_bytes) == 300 * MIB && COUNTER(n_free) == 2);
	CHECK(!gpc_pool_check(&world_context()->pool));
}

TEST(a_request_that_nothing_serves_is_spilled)
{
	world_run(SMALL, QUIET ",spill:1GiB", spills);
	world_assert_says(
		"GPU 0 is full: 300.00 MiB went to host memory (spill:1.00 GiB); the program goes "
		"on");
	world_assert_says("spill: up to 300.00 MiB lay in host memory, in 1 requests, since");
	assert_int_equal(world_count("gpucache:"), 2);
}

TEST(the_same_is_true_without_the_cache)
{
	world_run(SMALL, QUIET ",spill:1GiB,cache:off", spills);
	assert_int_equal(world_count("gpucache:"), 2);
}

static void fails(void)
{
	CUdeviceptr live;
	CUdeviceptr ptr = 5;

	world_start();
	CHECK(!world_malloc(&live, 900 * MIB));
	CHECK(world_malloc(&ptr, 300 * MIB) == no_memory && ptr == 5);
	CHECK(SPILLED == 0 && COUNTER(n_oom) == 1);
}

TEST(without_the_option_nothing_is_spilled)
{
	world_run(SMALL, QUIET, fails);
	assert_int_equal(world_count("host memory"), 0);
}

TEST(a_limit_is_kept)
{
	world_run("memory:8GiB,context:0", QUIET ",spill:auto,limit:1GiB", fails);
	assert_int_equal(world_count("host memory"), 0);
}

TEST(a_device_that_cannot_fault_says_so_once)
{
	world_run(SMALL ",managed:pinned", QUIET ",spill:2GiB", fails);
	assert_int_equal(world_count("spill:2.00 GiB does not apply: this device or driver"), 1);
	assert_int_equal(world_count("spill: up to"), 0);
}

static void fails_without(void)
{
	world_start();
	world.fns.cuMemAllocManaged = NULL;
	fails();
}

TEST(a_driver_without_managed_memory_says_so)
{
	world_run(SMALL, QUIET ",spill:2GiB", fails_without);
	world_assert_says("does not apply: this device or driver");
}

static void up_to_most(void)
{
	CUdeviceptr live;
	CUdeviceptr first;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&live, 1000 * MIB));
	CHECK(!world_malloc(&first, 100 * MIB) && SPILLED == 100 * MIB);
	CHECK(world_malloc(&ptr, 101 * MIB) == no_memory && SPILLED == 100 * MIB);
	CHECK(!world_malloc(&ptr, 100 * MIB) && SPILLED == 200 * MIB);
	CHECK(world_malloc(&ptr, 100 * MIB) == no_memory);
	CHECK(!world_free(first) && !world_malloc(&ptr, 100 * MIB));
}

TEST(no_more_than_the_option_allows_is_spilled)
{
	world_run(SMALL, QUIET ",spill:200MiB", up_to_most);
	assert_int_equal(world_count("spill:200.00 MiB does not apply: more than that"), 1);
	world_assert_says("up to 200.00 MiB lay in host memory, in 3 requests");
}

/* By quarters: other processes may take or free some of the host's memory meanwhile. */
static void beyond_the_host(void)
{
	uint64_t room = gpc_host_memory_read("").room_bytes;
	uint64_t quarter = room / 4 / MIB * MIB;
	CUdeviceptr ptr;

	world_start();
	CHECK(world_malloc(&ptr, room + quarter) == no_memory && SPILLED == 0);
	CHECK(!world_malloc(&ptr, 2 * quarter) && SPILLED == 2 * quarter);
	/* Nothing of that is touched yet, so the host still has it free. */
	CHECK(world_malloc(&ptr, 3 * quarter) == no_memory && SPILLED == 2 * quarter);
}

TEST(an_eighth_of_the_host_stays_free)
{
	world_run(SMALL, QUIET ",spill:1000GiB", beyond_the_host);
	assert_int_equal(
		world_count("does not apply: less than 1/8 of the memory of this host"), 1);
}

static void measures(void)
{
	uint64_t available = gpc_host_memory_read("").free_bytes;
	CUdeviceptr ptr;

	world_start();
	/* The host has less than 20 times 2 GiB free, or so much that 40 GiB fit. */
	CHECK((world_malloc(&ptr, 40 * GPC_GIB) == 0) == (available > 82 * GPC_GIB));
	CHECK(!world_malloc(&ptr, 1100 * MIB));
}

TEST(auto_is_half_of_what_the_host_has)
{
	world_run(SMALL, QUIET ",spill:auto", measures);
}

static void offers(void)
{
	uint64_t half = gpc_host_memory_read("").free_bytes / 2;
	uint64_t offer;

	world_start();
	offer = gpc_spill_offer(&gpc_runtime.devices[0]);
	CHECK(offer > half / 2 && offer < half + half / 2);
}

TEST(what_is_offered_is_what_auto_would_allow)
{
	world_run(SMALL, QUIET, offers);
}

static void small_ones(void)
{
	CUdeviceptr live;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&live, 1024 * MIB));
	CHECK(!world_malloc(&ptr, 1) && SPILLED == GPC_SPILL_GRAIN && is_managed(ptr));
	CHECK(!world_free(ptr) && SPILLED == 0);
}

TEST(a_small_request_takes_whole_pages)
{
	world_run(SMALL, QUIET ",spill:1MiB", small_ones);
}

static void fail_once(void)
{
	CUdeviceptr live;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&live, 1000 * MIB));
	CHECK(world_malloc(&ptr, 100 * MIB) == no_memory && SPILLED == 0);
	CHECK(!world_malloc(&ptr, 200 * MIB) && SPILLED == 200 * MIB);
}

TEST(if_the_driver_refuses_the_program_gets_its_error)
{
	world_run(SMALL ",fail:cuMemAllocManaged/1", QUIET ",spill:200MiB", fail_once);
	/* It is that of cuMemAlloc, whatever the driver says of managed memory. */
	world_run(SMALL ",fail:cuMemAllocManaged/1/801", QUIET ",spill:200MiB", fail_once);
}

static void advice_fails(void)
{
	CUdeviceptr live;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&live, 1000 * MIB));
	CHECK(!world_malloc(&ptr, 100 * MIB) && SPILLED == 100 * MIB);
}

TEST(advice_that_the_driver_refuses_changes_nothing)
{
	world_run(SMALL ",fail:cuMemAdvise/1/801", QUIET ",spill:200MiB", advice_fails);
}

/* ---- callers with a cache of their own ---- */

static CUresult ask_exactly(CUdeviceptr *ret_ptr, size_t size)
{
	struct gpc_rescue rescue = {
		.context = world_context(),
		.kind = GPUCACHE_KIND_DEVICE,
		.size = size,
		.rounded = size,
		.request = { .size = size, .is_exact = true },
	};
	enum gpc_status st = gpc_spill_take(&rescue);

	if (st)
		gpc_spill_refused(&rescue);
	*ret_ptr = rescue.spilled;
	return (CUresult)gpc_status_to_device(st);
}

static void asks_again(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(world_enter());
	CHECK(ask_exactly(&ptr, 10 * MIB) == no_memory);
	CHECK(ask_exactly(&ptr, 20 * MIB) == no_memory); /* another request */
	CHECK(ask_exactly(&ptr, 10 * MIB) == no_memory);
	CHECK(!ask_exactly(&ptr, 10 * MIB) && SPILLED == 10 * MIB);
	gpc_spill_served();
	CHECK(ask_exactly(&ptr, 10 * MIB) == no_memory); /* a new one */
	CHECK(!ask_exactly(&ptr, 10 * MIB) && SPILLED == 20 * MIB);
	gpc_runtime_leave();
}

TEST(a_caller_with_a_cache_gives_that_back_first)
{
	world_run(SMALL, QUIET ",spill:1GiB", asks_again);
}

static void is_captured(void)
{
	CUstream stream;
	CUdeviceptr ptr;
	CUgraph graph;

	world_start();
	stream = world_stream();
	gpc_captures_begin(&gpc_runtime.heap.captures);
	CHECK(!world.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(world_enter());
	CHECK(!ask_exactly(&ptr, 10 * MIB));
	gpc_runtime_leave();
	CHECK(!world.cuStreamEndCapture(stream, &graph));
}

TEST(during_a_capture_a_cache_gives_nothing_back)
{
	world_run(SMALL, QUIET ",spill:1GiB", is_captured);
}

static void asks_for_pages(void)
{
	struct gpc_rescue rescue = { .kind = GPUCACHE_KIND_PHYSICAL, .size = MIB };
	unsigned i;

	world_start();
	rescue.context = world_context();
	CHECK(world_enter());
	for (i = 0; i < 2; i++)
		CHECK(gpc_spill_take(&rescue) == GPC_DEVICE_NO_MEMORY && !rescue.spilled);
	rescue.kind = GPUCACHE_KIND_PITCHED;
	CHECK(gpc_spill_take(&rescue) == GPC_DEVICE_NO_MEMORY && !rescue.spilled);
	gpc_runtime_leave();
}

TEST(physical_memory_cannot_be_managed)
{
	world_run(SMALL, QUIET ",spill:1GiB", asks_for_pages);
	assert_int_equal(world_count("does not apply"), 1);
	world_assert_says(
		"(cuMemCreate) cannot be managed; for PyTorch, set expandable_segments:False");
}

/* ---- the end of contexts ---- */

static void is_reset(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 1100 * MIB) && SPILLED == 1100 * MIB);
	world_reset();
	CHECK(!world.cuDevicePrimaryCtxRetain(&world.context, 0));
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(!world_malloc(&ptr, 1100 * MIB) && SPILLED == 1100 * MIB);
}

TEST(spilled_memory_ends_with_its_context)
{
	world_run(SMALL, QUIET ",spill:1200MiB", is_reset);
	assert_int_equal(world_count("does not apply"), 0);
}

static void is_freed_in_vain(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 1100 * MIB));
	CHECK(world_free(ptr) == CUDA_ERROR_UNKNOWN && SPILLED == 1100 * MIB);
	CHECK(!world_free(ptr) && SPILLED == 0);
}

TEST(a_free_that_the_driver_refuses_keeps_it)
{
	world_run(SMALL ",fail:cuMemFree_v2/1/999", QUIET ",spill:1200MiB", is_freed_in_vain);
}

static void resident(void)
{
	CUdeviceptr cached;
	CUdeviceptr spilled;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&cached, 600 * MIB) && !world_malloc(&spilled, 800 * MIB));
	CHECK(is_managed(spilled) && !world.cuMemsetD8_v2(spilled, 1, 800 * MIB));
	CHECK(!world_free(
		cached)); /* the driver says that nothing is free: managed memory has it */
	CHECK(!world_malloc(&ptr, 1000 * MIB) && !is_managed(ptr));
}

TEST(managed_memory_on_the_device_gives_way)
{
	world_run(SMALL, QUIET ",spill:2GiB", resident);
}
