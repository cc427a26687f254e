/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's part of gpucache.h; tests/programs/api.c tests the API itself. */
#include <math.h>
#include <pthread.h>

#include "runtime/context/streams.h"
#include "runtime/memory.h"
#include "runtime/process/api.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "world.h"

#define LONG_NS (UINT64_C(400) * 1000 * 1000)

static CUdeviceptr malloc_on(size_t size, CUstream stream)
{
	CUdeviceptr ptr = 0;

	CHECK(world_enter());
	CHECK(!gpc_runtime_malloc_on(&ptr, size, stream));
	gpc_runtime_leave();
	return ptr;
}

static void free_on(CUdeviceptr ptr, CUstream stream)
{
	bool is_ours = false;

	CHECK(world_enter());
	CHECK(!gpc_runtime_free_on(ptr, stream, &is_ours) && is_ours);
	gpc_runtime_leave();
}

/* True if memory that `first` freed while busy is reused by `second` at once. */
static bool goes_over(CUstream first, CUstream second)
{
	CUdeviceptr ptr = malloc_on(4 * MIB, first);
	CUdeviceptr next;

	CHECK(!world.gpusim_launch(first, LONG_NS, 0, NULL));
	free_on(ptr, first);
	next = malloc_on(4 * MIB, second);
	CHECK(world.cuStreamQuery(first) == CUDA_ERROR_NOT_READY);
	return next == ptr;
}

static void keeps_order(void)
{
	CUstream first;
	CUstream second;

	world_start();
	first = world_stream();
	second = world_stream();
	CHECK(goes_over(first, first));
	CHECK(!goes_over(first, second));
	CHECK(goes_over(NULL, NULL));
	CHECK(goes_over(NULL, CU_STREAM_LEGACY));
}

TEST(memory_goes_back_to_the_stream_that_freed_it_and_to_no_other)
{
	world_run("clock:virtual", "record:off", keeps_order);
}

static void forgets_streams(void)
{
	CUstream stream;
	CUdeviceptr ptr;

	world_start();
	stream = world_stream();
	ptr = malloc_on(4 * MIB, stream);
	CHECK(!world.gpusim_launch(stream, LONG_NS, 0, NULL));
	free_on(ptr, stream);
	/* Another context may be current, or none. */
	CHECK(!world.cuCtxSetCurrent(NULL));
	CHECK(world_enter());
	gpc_runtime_stream_destroyed(stream);
	gpc_runtime_leave();
	CHECK(!world.cuCtxSetCurrent(world.context));
	CHECK(malloc_on(4 * MIB, stream) != ptr);
}

TEST(a_destroyed_stream_is_forgotten_whichever_context_is_current)
{
	world_run("clock:virtual", "record:off", forgets_streams);
}

static void per_thread_streams(void)
{
	world_start();
	(void)world_stream();
	CHECK(world_enter());
	gpc_runtime_per_thread_stream_used();
	gpc_runtime_leave();
	CHECK(!goes_over(CU_STREAM_PER_THREAD, CU_STREAM_PER_THREAD));
	CHECK(!goes_over(NULL, NULL)); /* whose, is not known any more */
	CHECK(goes_over(CU_STREAM_LEGACY, CU_STREAM_LEGACY));
}

TEST(no_order_is_kept_for_streams_of_many_threads)
{
	world_run("clock:virtual", "record:off", per_thread_streams);
}

static void records_use(void)
{
	CUstream stream;
	CUdeviceptr ptr;
	bool is_ours = true;

	world_start();
	stream = world_stream();
	ptr = malloc_on(4 * MIB, stream);
	CHECK(world_enter());
	CHECK(!gpc_runtime_record_use(ptr, &is_ours) && is_ours);
	CHECK(gpc_runtime_record_use(ptr + 512, &is_ours) == CUDA_ERROR_INVALID_VALUE && is_ours);
	CHECK(!gpc_runtime_record_use(512, &is_ours) && !is_ours);
	gpc_runtime_leave();
	CHECK(!world.gpusim_launch(stream, LONG_NS, 0, NULL));
	free_on(ptr, stream);
	CHECK(malloc_on(4 * MIB, stream) != ptr);
}

TEST(a_recorded_use_ends_the_order)
{
	world_run("clock:virtual", "record:off", records_use);
}

static void host_wait(void)
{
	CUstream stream;
	CUdeviceptr ptr;

	world_start();
	stream = world_stream();
	ptr = malloc_on(4 * MIB, stream);
	CHECK(!world.gpusim_launch(stream, LONG_NS, 0, NULL));
	free_on(ptr, stream);
	CHECK(world.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
	CHECK(!world_malloc(&ptr, MIB) && !world_free(ptr));
	CHECK(!world.cuStreamQuery(stream));
}

TEST(the_host_wait_of_cudaFree_is_not_made_where_a_stream_is_named)
{
	world_run("clock:virtual", "record:off,free_order:host", host_wait);
}

static void trims(void)
{
	CUdeviceptr ptr;
	size_t went = 0;

	world_start();
	CHECK(!world_malloc(&ptr, 4 * MIB) && !world_free(ptr));
	CHECK(world_enter());
	CHECK(!gpc_runtime_trim(-1, SIZE_MAX, &went) && went == COUNTER(n_driver_free) * 20 * MIB);
	CHECK(!gpc_runtime_trim(0, SIZE_MAX, &went) && went == 0);
	CHECK(gpc_runtime_trim(1, SIZE_MAX, &went) == CUDA_ERROR_INVALID_DEVICE);
	CHECK(gpc_runtime_trim(-2, SIZE_MAX, &went) == CUDA_ERROR_INVALID_DEVICE);
	CHECK(!world.cuCtxSetCurrent(NULL));
	CHECK(gpc_runtime_trim(-1, SIZE_MAX, &went) == CUDA_ERROR_INVALID_CONTEXT);
	CHECK(gpc_runtime_set_limit(-1, 1) == CUDA_ERROR_INVALID_CONTEXT);
	CHECK(gpc_runtime_set_fraction(-1, 0.5) == CUDA_ERROR_INVALID_CONTEXT);
	gpc_runtime_leave();
}

TEST(idle_memory_of_a_device_goes_back)
{
	world_run(NULL, "record:off", trims);
}

static void counts(void)
{
	struct {
		struct gpucache_stats stats;
		uint64_t beyond;
	} newer = { .stats.size = sizeof newer, .beyond = 7 };
	struct gpucache_stats stats = { .size = sizeof stats };
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 1000));
	CHECK(world_enter());
	CHECK(!gpc_runtime_stats(-1, &stats));
	CHECK(stats.requested_bytes == 1000 && stats.live_bytes == 1024 && stats.n_malloc == 1);
	CHECK(stats.reserved_bytes == 2 * MIB && stats.cached_bytes == 2 * MIB - 1024);
	CHECK(stats.peak_requested_bytes == 1000 && stats.n_driver_malloc == 1);
	CHECK(stats.limit_bytes == 0 && stats.size == sizeof stats);
	/* A program built against a later version, and one that left the size out. */
	CHECK(!gpc_runtime_stats(0, &newer.stats));
	CHECK(newer.stats.size == sizeof stats && newer.beyond == 7);
	stats.size = 0;
	CHECK(gpc_runtime_stats(0, &stats) == CUDA_ERROR_INVALID_VALUE);
	CHECK(gpc_runtime_stats(1, &stats) == CUDA_ERROR_INVALID_DEVICE);
	gpc_runtime_leave();
}

TEST(the_numbers_are_those_of_the_device)
{
	world_run(NULL, "record:off", counts);
}

static void resets_peaks(void)
{
	struct gpucache_stats stats = { .size = sizeof stats };
	CUdeviceptr ptr;
	bool is_ours;

	world_start();
	CHECK(!world_malloc(&ptr, 8 * MIB));
	CHECK(world_enter());
	CHECK(!gpc_runtime_free(ptr, &is_ours) && is_ours);
	CHECK(!gpc_runtime_stats(0, &stats) && stats.peak_live_bytes == 8 * MIB);
	CHECK(!gpc_runtime_reset_peaks(0));
	CHECK(!gpc_runtime_stats(0, &stats) && stats.peak_live_bytes == 0);
	CHECK(stats.peak_requested_bytes == 0 && stats.peak_reserved_bytes == stats.reserved_bytes);
	/* Policy and recording keep theirs. */
	CHECK(COUNTER(peak_live_bytes) == 8 * MIB);
	CHECK(gpc_runtime_reset_peaks(1) == CUDA_ERROR_INVALID_DEVICE);
	gpc_runtime_leave();
}

static void counts_parts(void)
{
	struct gpucache_part_stats part = { .size = sizeof part };
	CUstream stream;
	CUdeviceptr ptr;

	world_start();
	stream = world_stream();
	ptr = malloc_on(4 * MIB, stream);
	CHECK(world_enter());
	CHECK(!gpc_runtime_stream_stats(-1, stream, &part));
	CHECK(part.live_bytes == 4 * MIB && part.n_blocks == 1 && part.size == sizeof part);
	/* A stream whose order is not tracked. */
	CHECK(!gpc_runtime_stream_stats(-1, CU_STREAM_PER_THREAD, &part) && part.n_blocks == 0);
	CHECK(gpc_runtime_stream_stats(7, stream, &part) == CUDA_ERROR_INVALID_DEVICE);
	/* Without a recording nobody knows the tags. */
	CHECK(gpc_runtime_tag_stats(-1, "forward", &part) == CUDA_ERROR_NOT_SUPPORTED);
	CHECK(gpc_runtime_tag_stats(7, "forward", &part) == CUDA_ERROR_INVALID_DEVICE);
	part.size = 0;
	CHECK(gpc_runtime_stream_stats(-1, stream, &part) == CUDA_ERROR_INVALID_VALUE);
	gpc_runtime_leave();
	free_on(ptr, stream);
}

static const struct gpucache_event *last_event(void)
{
	return &gpc_runtime.record.events[atomic_load(&gpc_runtime.record.next_event) - 1];
}

static void names_streams(void)
{
	const struct gpucache_stream *streams;
	CUstream stream;
	CUdeviceptr ptr;
	bool is_ours;

	world_start();
	streams = gpc_runtime.record.streams;
	stream = world_stream();
	ptr = malloc_on(4 * MIB, stream);
	CHECK(last_event()->kind == GPUCACHE_EVENT_MALLOC && last_event()->detail == 1);
	CHECK(streams[1].handle == (uintptr_t)stream);
	free_on(ptr, NULL);
	CHECK(last_event()->kind == GPUCACHE_EVENT_FREE && last_event()->detail == 2);
	CHECK(streams[2].handle == GPUCACHE_STREAM_LEGACY);
	ptr = malloc_on(4 * MIB, CU_STREAM_PER_THREAD);
	CHECK(streams[last_event()->detail].handle == GPUCACHE_STREAM_PER_THREAD);
	CHECK(world_enter());
	CHECK(!gpc_runtime_free_async(ptr, stream, &is_ours) && is_ours);
	gpc_runtime_leave();
	CHECK(last_event()->detail == 1);
	/* The name is that call's alone: a plain cudaMalloc has none. */
	CHECK(!world_malloc(&ptr, 4 * MIB));
	CHECK(last_event()->kind == GPUCACHE_EVENT_MALLOC && last_event()->detail == 0);
	CHECK(world_enter());
	gpc_runtime_stream_destroyed(stream);
	gpc_runtime_leave();
	CHECK(streams[1].end_ns > 0 && streams[2].end_ns == 0);
}

TEST(peaks_start_anew_for_the_program_only)
{
	world_run(NULL, "record:off", resets_peaks);
}

TEST(a_stream_has_numbers_of_its_own)
{
	world_run(NULL, "record:off", counts_parts);
}

TEST(the_recording_names_the_stream_of_a_request_and_of_a_free)
{
	world_run(NULL, "stacks:off", names_streams);
}

static void takes_snapshots(void)
{
	char path[4096] = "?";
	uint64_t look_ns;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 1000));
	look_ns = gpc_runtime.devices[0].known.look_ns;
	CHECK(world_enter());
	CHECK(!gpc_runtime_snapshot(path, sizeof path));
	CHECK(strcmp(path, gpc_runtime.record.path) == 0);
	CHECK(gpc_runtime.devices[0].known.look_ns > look_ns);
	CHECK(gpc_runtime_snapshot(path, strlen(path)) == CUDA_ERROR_INVALID_VALUE);
	CHECK(!gpc_runtime_snapshot(NULL, 0));
	gpc_runtime_leave();
}

TEST(a_snapshot_looks_at_the_device)
{
	world_run(NULL, "record:off", takes_snapshots);
}

static void limits(void)
{
	const struct gpc_budget *budget = &gpc_runtime.devices[0].budget;
	CUdeviceptr ptr;
	CUdeviceptr idle;

	world_start();
	CHECK(!world_malloc(&ptr, 64 * MIB) && !world_malloc(&idle, 64 * MIB));
	CHECK(!world_free(idle));
	CHECK(world_enter());
	/* Idle memory is returned; live memory stays. */
	CHECK(!gpc_runtime_set_limit(0, 32 * MIB));
	CHECK(COUNTER(reserved_bytes) == 64 * MIB);
	gpc_runtime_leave();
	CHECK(world_malloc(&idle, 64 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(world_enter());
	CHECK(!gpc_runtime_set_limit(0, 128 * MIB));
	gpc_runtime_leave();
	CHECK(!world_malloc(&idle, 64 * MIB));
	CHECK(world_enter());
	CHECK(!gpc_runtime_set_fraction(0, 0.5));
	CHECK(atomic_load(&budget->limit_bytes) == budget->device_bytes / 2 + 1);
	CHECK(gpc_runtime_set_fraction(0, 1.5) == CUDA_ERROR_INVALID_VALUE);
	CHECK(gpc_runtime_set_fraction(0, -0.5) == CUDA_ERROR_INVALID_VALUE);
	CHECK(gpc_runtime_set_fraction(0, (double)NAN) == CUDA_ERROR_INVALID_VALUE);
	CHECK(!gpc_runtime_set_fraction(0, 1.0) && atomic_load(&budget->limit_bytes) == 0);
	CHECK(gpc_runtime_set_limit(1, 0) == CUDA_ERROR_INVALID_DEVICE);
	CHECK(gpc_runtime_set_fraction(1, 0.5) == CUDA_ERROR_INVALID_DEVICE);
	gpc_runtime_leave();
}

TEST(a_limit_can_be_set_while_the_program_runs)
{
	world_run(NULL, "record:off,oom_report:never", limits);
}

static struct {
	CUdeviceptr memory;
	unsigned n_calls;
} spare;

static int free_spare(void *arg, size_t wanted, int device)
{
	CUdeviceptr more;

	CHECK(arg == &spare && wanted >= 64 * MIB && device == 0);
	spare.n_calls++;
	CHECK(world_malloc(&more, 4096 * MIB) == CUDA_ERROR_OUT_OF_MEMORY); /* asks nobody */
	if (!spare.memory)
		return 0;
	CHECK(!world_free(spare.memory));
	spare.memory = 0;
	return 1;
}

static void asks_the_handler(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&spare.memory, 512 * MIB));
	gpc_runtime_set_oom_handler(free_spare, &spare);
	CHECK(!world_malloc(&ptr, 600 * MIB));
	CHECK(spare.n_calls == 1 && !spare.memory && COUNTER(n_rescued) == 1);
	CHECK(world_malloc(&ptr, 600 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(spare.n_calls == 2);
	gpc_runtime_set_oom_handler(NULL, NULL);
	CHECK(world_malloc(&ptr, 600 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(spare.n_calls == 2);
	CHECK(world_enter());
	gpc_runtime_leave();
}

TEST(the_handler_is_asked_before_the_program_is_told_and_may_call_us)
{
	world_run("memory:1GiB", "record:off,oom_report:never", asks_the_handler);
}

static void enters_devices(void)
{
	CUcontext current = NULL;
	CUdeviceptr base = 0;
	CUdeviceptr ptr;
	size_t size = 0;
	bool must_pop = true;

	world_start();
	CHECK(world_malloc(&ptr, 1000) == 0);
	CHECK(world_enter());
	CHECK(!gpc_runtime_enter_device(0, &must_pop) && !must_pop);
	CHECK(!world.cuCtxSetCurrent(NULL));
	CHECK(!gpc_runtime_enter_device(0, &must_pop) && must_pop);
	CHECK(!world.fns.cuCtxGetCurrent(&current) && current == world.context);
	gpc_runtime_leave_device(must_pop);
	CHECK(!world.fns.cuCtxGetCurrent(&current) && current == NULL);
	/* The second device has no context. */
	CHECK(gpc_runtime_enter_device(1, &must_pop) == CUDA_ERROR_INVALID_CONTEXT);
	CHECK(gpc_runtime_enter_device(2, &must_pop) == CUDA_ERROR_INVALID_DEVICE);
	CHECK(gpc_runtime_enter_device(-1, &must_pop) == CUDA_ERROR_INVALID_DEVICE);
	CHECK(!gpc_runtime_segment_of(ptr + 100, &base, &size) && base == ptr && size == 2 * MIB);
	CHECK(gpc_runtime_segment_of(512, &base, &size) == CUDA_ERROR_NOT_FOUND);
	gpc_runtime_leave();
}

TEST(a_thread_without_a_context_gets_the_primary_one_for_a_call)
{
	world_run("devices:2", "record:off", enters_devices);
}

#define N_THREADS 4

static void *use_streams(void *arg)
{
	CUstream stream = arg;
	bool is_ours;

	CHECK(!world.cuCtxSetCurrent(world.context));
	for (size_t i = 0; i < 500; i++) {
		CUdeviceptr own = malloc_on((1 + i % 7) * MIB, stream);
		CUdeviceptr any = malloc_on((1 + i % 5) * MIB, NULL);

		CHECK(world_enter());
		CHECK(!gpc_runtime_record_use(any, &is_ours) && is_ours);
		gpc_runtime_leave();
		free_on(any, NULL);
		free_on(own, stream);
		if (i % 100 == 0)
			(void)world_stream();
		if (i % 50 == 0)
			CHECK(!world_sync());
	}
	CHECK(world_enter());
	gpc_runtime_stream_destroyed(stream);
	gpc_runtime_set_oom_handler(NULL, NULL);
	CHECK(!gpc_runtime_set_limit(0, 512 * MIB));
	gpc_runtime_leave();
	return NULL;
}

static void many_threads(void)
{
	pthread_t threads[N_THREADS];

	world_start();
	for (int i = 0; i < N_THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, use_streams, world_stream()));
	for (int i = 0; i < N_THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(COUNTER(live_bytes) == 0 && COUNTER(n_malloc) == N_THREADS * 1000);
	CHECK(!gpc_pool_check(&world_context()->pool));
}

TEST(any_thread_may_call_anything_at_any_time)
{
	world_run(NULL, "record:off", many_threads);
}
