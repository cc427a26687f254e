/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>

#include "runtime/context/streams.h"
#include "runtime/memory.h"
#include "runtime/process/api.h"
#include "runtime/process/enter.h"
#include "world.h"

static void in_and_out(void)
{
	CUdeviceptr first = 0;
	CUdeviceptr again = 0;

	world_start();
	CHECK(!world_malloc(&first, 1000) && first);
	CHECK(COUNTER(live_bytes) == 1024 && COUNTER(requested_bytes) == 1000);
	CHECK(COUNTER(n_driver_malloc) == 1 && COUNTER(reserved_bytes) == 2 * MIB);
	CHECK(!world_free(first));
	CHECK(COUNTER(live_bytes) == 0 && COUNTER(cached_bytes) == 2 * MIB);
	CHECK(!world_malloc(&again, 700) && again == first);
	CHECK(COUNTER(n_hit) == 1 && COUNTER(n_driver_malloc) == 1);
	CHECK(!world_free(again));
}

TEST(a_freed_block_is_given_again_without_the_driver)
{
	world_run(NULL, "stacks:off", in_and_out);
	world_assert_is_silent();
}

static void again_and_again(void)
{
	struct gpucache_stats stats = { .size = sizeof stats };
	CUdeviceptr first = 0;
	CUdeviceptr again = 0;

	world_start();
	CHECK(!world_malloc(&first, 1000));
	for (int i = 0; i < 100; i++) {
		CHECK(!world_free(first) && !world_malloc(&again, 1000) && again == first);
		CHECK(COUNTER(live_bytes) == 1024 && COUNTER(requested_bytes) == 1000);
	}
	CHECK(!world_free(first));
	CHECK(!gpc_runtime_stats(0, &stats));
	CHECK(stats.n_malloc == 101 && stats.n_free == 101 && stats.n_hit == 100);
	CHECK(stats.live_bytes == 0 && stats.requested_bytes == 0);
	CHECK(stats.cached_bytes == 2 * MIB);
}

TEST(a_thread_that_takes_its_block_back_is_counted_whole)
{
	world_run(NULL, "stacks:off", again_and_again);
	world_assert_is_silent();
}

static void bad_arguments(void)
{
	CUdeviceptr ptr = 77;

	world_start();
	CHECK(world_malloc(&ptr, 0) == CUDA_ERROR_INVALID_VALUE && ptr == 77);
	CHECK(world_malloc(NULL, 512) == CUDA_ERROR_INVALID_VALUE);
	CHECK(world_malloc(&ptr, SIZE_MAX) == CUDA_ERROR_OUT_OF_MEMORY && ptr == 77);
	CHECK(!world.cuCtxSetCurrent(NULL));
	CHECK(world_malloc(&ptr, 512) == CUDA_ERROR_INVALID_CONTEXT && ptr == 77);
	CHECK(world_free(512) == CUDA_ERROR_INVALID_VALUE); /* the address is judged */
}

TEST(errors_of_the_arguments_are_the_drivers)
{
	world_run(NULL, "stacks:off", bad_arguments);
}

static void bad_frees(void)
{
	CUdeviceptr a;
	CUdeviceptr b;

	world_start();
	CHECK(!world_malloc(&a, 4096) && !world_malloc(&b, 4096));
	CHECK(world_free(a + 512) == CUDA_ERROR_INVALID_VALUE);
	CHECK(world_free(a + 1) == CUDA_ERROR_INVALID_VALUE);
	CHECK(!world_free(a));
	CHECK(world_free(a) == CUDA_ERROR_INVALID_VALUE);
	CHECK(world_free(12345) == CUDA_ERROR_INVALID_VALUE);
	CHECK(!world_free(b));
	CHECK(COUNTER(n_free) == 2);
	CHECK(!gpc_pool_check(&world_context()->pool));
}

TEST(a_bad_free_is_an_invalid_value_and_changes_nothing)
{
	world_run(NULL, "stacks:off", bad_frees);
}

static void uncached(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 1000));
	CHECK(COUNTER(direct_bytes) == 1000 && COUNTER(reserved_bytes) == 0);
	CHECK(!world_free(ptr));
	CHECK(COUNTER(direct_bytes) == 0 && COUNTER(n_malloc) == 1 && COUNTER(n_free) == 1);
	CHECK(world_free(ptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST(cache_off_tracks_and_passes)
{
	world_run(NULL, "cache:off", uncached);
}

static void free_of_another_context(void)
{
	CUcontext other;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 4 * MIB));
	CHECK(!world.cuCtxCreate_v2(&other, 0, 0));
	CHECK(!world_free(ptr));
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(COUNTER(live_bytes) == 0);
}

TEST(memory_is_freed_by_address_whatever_is_current)
{
	world_run(NULL, "stacks:off", free_of_another_context);
}

static void told_free(void)
{
	CUdeviceptr ptr;
	size_t before;
	size_t after;
	size_t total = 0;

	world_start();
	CHECK(!world_info(&before, &total));
	CHECK(!world_malloc(&ptr, 64 * MIB));
	CHECK(!world_info(&after, &total) && after == before - 64 * MIB);
	CHECK(!world_free(ptr));
	CHECK(!world_info(&after, &total) && after == before && total == GPC_GIB);
	CHECK(!world.fns.cuMemGetInfo_v2(&after, &total) && after == before - 64 * MIB);
	CHECK(!world_info(&after, NULL) && after == before);
	CHECK(!world_info(NULL, &total) && !world_info(NULL, NULL));
	after = GPC_GIB - MIB; /* the answer is never more than there is */
	CHECK(world_enter());
	gpc_runtime_adjust_free(&after, &total);
	CHECK(after == GPC_GIB);
	after = GPC_GIB - MIB;
	gpc_runtime_adjust_free(&after, NULL);
	CHECK(after == GPC_GIB);
	gpc_runtime_leave();
}

/* A segment of 20 MiB with one live medium block: its free memory is not in one piece. */
static void told_one_piece(void)
{
	CUdeviceptr blocks[5];
	CUdeviceptr all;
	size_t before;
	size_t after;
	size_t total;

	world_start();
	CHECK(!world_info(&before, &total));
	for (int i = 0; i < 5; i++)
		CHECK(!world_malloc(&blocks[i], 4 * MIB));
	for (int i = 1; i < 5; i++)
		CHECK(!world_free(blocks[i]));
	CHECK(!world_info(&after, &total) && after == before - 20 * MIB);
	CHECK(!world_malloc(&all, after)); /* to the byte */
	CHECK(!world_free(all) && !world_free(blocks[0]));
	CHECK(!world_info(&after, &total) && after == before);
	CHECK(!world_malloc(&all, after));
	CHECK(!world_free(all));
}

TEST(cached_memory_counts_as_free)
{
	world_run("memory:1GiB", "stacks:off", told_free);
}

TEST(what_is_free_can_be_had_in_one_piece)
{
	world_run("memory:1GiB", "stacks:off", told_one_piece);
	world_run("memory:1GiB", "stacks:off,limit:500MiB", told_one_piece);
}

static void told_limit(void)
{
	CUdeviceptr blocks[3];
	size_t available;
	size_t total;

	world_start();
	CHECK(!world_info(&available, &total) && total == 400 * MIB && available == 400 * MIB);
	CHECK(!world_malloc(&blocks[0], 3000));
	CHECK(!world_info(&available, &total) && total == 400 * MIB);
	CHECK(available <= 400 * MIB - 3000 && available >= 396 * MIB);
	CHECK(!world_malloc(&blocks[1], available / 10 * 9));
	CHECK(!world_free(blocks[1]));
	/* What is cached counts, and all of it can be had in one piece. */
	CHECK(!world_info(&available, NULL) && available >= 396 * MIB);
	CHECK(!world_malloc(&blocks[1], available - 2 * MIB));
	CHECK(!world_info(&available, &total) && available <= 2 * MIB);
	CHECK(world_malloc(&blocks[2], 4 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(a_limit_is_what_the_program_is_told_of_the_device)
{
	world_run("memory:1GiB", "stacks:off,oom_report:never,limit:400MiB", told_limit);
	world_run("memory:1000MiB", "stacks:off,oom_report:never,per_process_memory_fraction:0.4",
		told_limit);
}

static struct {
	CUresult (*malloc)(CUdeviceptr *ptr, size_t size);
	CUresult (*free)(CUdeviceptr ptr);
	unsigned n_malloc;
	unsigned n_free;
} driver;

#define OFF_GRID ((CUdeviceptr)64 << 10)

static CUresult malloc_off_grid(CUdeviceptr *ptr, size_t size)
{
	CUresult result = driver.malloc(ptr, size + OFF_GRID);

	driver.n_malloc++;
	*ptr += OFF_GRID;
	return result;
}

static CUresult free_off_grid(CUdeviceptr ptr)
{
	driver.n_free++;
	return driver.free(ptr - OFF_GRID);
}

static void place_off_grid(void)
{
	world_start();
	driver.malloc = world.fns.cuMemAlloc_v2;
	driver.free = world.fns.cuMemFree_v2;
	world.fns.cuMemAlloc_v2 = malloc_off_grid;
	world.fns.cuMemFree_v2 = free_off_grid;
}

static void off_grid(void)
{
	CUdeviceptr ptr;

	place_off_grid();
	for (int i = 0; i < 100; i++)
		CHECK(!world_malloc(&ptr, 4096));
	CHECK(driver.n_malloc == 1 + 100 && driver.n_free == 1);
	CHECK(COUNTER(reserved_bytes) == 0);
}

TEST(memory_that_cannot_be_cached_costs_one_question_and_one_line)
{
	const char *line;

	world_run(NULL, "stacks:off", off_grid);
	line = strstr(world_text, "not multiples of 2 MiB");
	assert_non_null(line);
	assert_null(strstr(line + 1, "not multiples of 2 MiB"));
}

static void off_grid_in_a_capture(void)
{
	CUgraph graph;
	CUdeviceptr ptr;
	CUstream stream;

	place_off_grid();
	stream = world_stream();
	CHECK(world_enter());
	gpc_runtime_capture_begins(stream);
	gpc_runtime_leave();
	CHECK(!world.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK(!world_malloc(&ptr, 4096));
	CHECK(driver.n_malloc == 2 && driver.n_free == 0);
	CHECK(!world.cuStreamEndCapture(stream, &graph));
}

TEST(memory_that_cannot_be_cached_breaks_no_capture)
{
	world_run(NULL, "stacks:off", off_grid_in_a_capture);
}

static void broken(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 512));
	atomic_store(&world_context()->drv.sticky, CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(world_free(ptr) == CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(world_malloc(&ptr, 512) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(a_broken_context_answers_its_error)
{
	world_run(NULL, "stacks:off", broken);
}

struct range {
	CUdeviceptr ptr;
	uint64_t size;
	int fill;
};

/* After the kernel failed, only a fence calls the driver. */
static void breaks_unseen(void)
{
	struct range nowhere = { .size = 4 };
	CUdeviceptr small;
	CUdeviceptr large;

	world_start();
	CHECK(world_stream());
	CHECK(!world_malloc(&small, 512) && !world_free(small) && !world_sync());
	CHECK(!world_malloc(&large, 32 * MIB) && !world_free(large));
	CHECK(COUNTER(pending_bytes) == 32 * MIB);
	nowhere.ptr = large + GPC_GIB;
	CHECK(!world.gpusim_launch(NULL, 0, 1, &nowhere));
	CHECK(world_malloc(&large, 32 * MIB) == CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(COUNTER(cached_bytes) > 0);
	CHECK(world_malloc(&small, 512) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(what_a_fence_hears_breaks_the_context)
{
	world_run(NULL, "stacks:off,free_order:fence", breaks_unseen);
}

static void frees_without_a_context(void)
{
	CUcontext other;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 512));
	CHECK(!world.cuCtxSetCurrent(NULL));
	CHECK(!world_free(ptr));
	CHECK(!world.cuCtxCreate_v2(&other, 0, 0));
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(COUNTER(live_bytes) == 0);
	CHECK(!world_malloc(&ptr, 512));
	CHECK(!world.cuCtxSetCurrent(other));
	CHECK(world_free(ptr + 512) == CUDA_ERROR_INVALID_VALUE);
	atomic_store(&world_context()->drv.sticky, CUDA_ERROR_LAUNCH_FAILED);
	CHECK(world_free(ptr) == CUDA_ERROR_LAUNCH_FAILED);
	atomic_store(&world_context()->drv.sticky, 0);
	CHECK(!world_free(ptr));
}

TEST(a_free_needs_no_context_and_any_that_works_will_do)
{
	world_run(NULL, "stacks:off", frees_without_a_context);
}

static void fails_for_another_reason(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(world_malloc(&ptr, 512) == CUDA_ERROR_UNKNOWN);
	CHECK(COUNTER(n_oom) == 0);
	CHECK(!world_malloc(&ptr, 512));
}

TEST(another_error_of_the_driver_is_carried_up)
{
	world_run("fail:cuMemAlloc_v2/1/999", "stacks:off", fails_for_another_reason);
	world_assert_is_silent();
}

static void waits(void)
{
	CUdeviceptr ptr;
	CUstream stream;

	world_start();
	stream = world_stream();
	CHECK(!world_malloc(&ptr, 512));
	CHECK(!world.gpusim_launch(stream, 30 * 1000 * 1000, 0, NULL));
	CHECK(!world_free(ptr));
	CHECK(!world.cuStreamQuery(stream));
	CHECK(COUNTER(live_bytes) == 0);
}

TEST(host_order_waits_for_the_device)
{
	world_run("clock:virtual", "stacks:off,free_order:host", waits);
}

static void waits_not(void)
{
	CUgraph graph;
	CUdeviceptr ptr;
	CUstream stream;

	world_start();
	stream = world_stream();
	CHECK(!world_malloc(&ptr, 512));
	CHECK(world_enter());
	gpc_runtime_capture_begins(stream);
	gpc_runtime_leave();
	CHECK(!world.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(!world_free(ptr));
	CHECK(!world.cuStreamEndCapture(stream, &graph)); /* the capture is still valid */
	CHECK(COUNTER(pending_bytes) == 512);
}

TEST(host_order_does_not_break_a_capture)
{
	world_run(NULL, "stacks:off,free_order:host", waits_not);
}

static unsigned n_waits;

/* While the host waits, no thread can begin a capture. */
static CUresult wait_and_try(void)
{
	CHECK(pthread_rwlock_trywrlock(&gpc_runtime.heap.captures.lock) == EBUSY);
	n_waits++;
	return CUDA_SUCCESS;
}

static void holds_captures(void)
{
	CUdeviceptr first;
	CUdeviceptr second;

	world_start();
	(void)world_stream();
	CHECK(!world_malloc(&first, 512) && !world_malloc(&second, 512));
	world.fns.cuCtxSynchronize = wait_and_try;
	CHECK(!world_free(first) && n_waits == 1);
	/* Nor does it make a thread wait that is about to begin one. */
	gpc_captures_announce(&gpc_runtime.heap.captures);
	CHECK(!world_free(second) && n_waits == 1);
}

TEST(no_capture_begins_while_a_free_waits)
{
	world_run(NULL, "stacks:off,free_order:host", holds_captures);
}
