/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/recording.h"
#include "record/store.h"
#include "runtime/ledger/observe_hot.h"
#include "runtime/process/state.h"
#include "world.h"

static const struct gpucache_event *event(unsigned back)
{
	uint64_t n = atomic_load(&gpc_runtime.record.next_event);

	CHECK(n > back);
	return &gpc_runtime.record.events[(n - 1 - back) & (gpc_runtime.record.n_events - 1)];
}

static const struct gpucache_block *block_at(uint64_t address)
{
	for (uint32_t i = 0; i < gpc_runtime.record.n_blocks; i++) {
		const struct gpucache_block *block = &gpc_runtime.record.blocks[i];

		if (block->state != GPUCACHE_BLOCK_UNUSED && block->address == address)
			return block;
	}
	return NULL;
}

/* What a stack holds on device 0. */
static struct gpucache_site *site_of(uint32_t stack)
{
	return gpc_record_find_site(&gpc_runtime.record, 0, stack);
}

static void blocks_and_events(void)
{
	const struct gpucache_block *block;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 1000));
	CHECK(event(0)->kind == GPUCACHE_EVENT_MALLOC && event(0)->address == ptr);
	CHECK(event(0)->size == 1024 && event(0)->requested == 1000 && event(0)->stack);
	CHECK(event(1)->kind == GPUCACHE_EVENT_SEGMENT_MALLOC && event(1)->size == 2 * MIB);
	block = block_at(ptr);
	CHECK(block && block->state == GPUCACHE_BLOCK_LIVE && block->requested == 1000);
	CHECK(block->stack == event(0)->stack && block->thread);
	CHECK(gpc_runtime.record.segments[block->segment].size == 2 * MIB);
	CHECK(site_of(block->stack)->live_bytes == 1000);
	CHECK(!world_free(ptr));
	CHECK(event(0)->kind == GPUCACHE_EVENT_FREE && event(0)->address == ptr);
	CHECK(block_at(ptr)->state == GPUCACHE_BLOCK_FREE && block_at(ptr)->size == 1024);
	CHECK(!block_at(ptr)->requested && !block_at(ptr)->stack && !block_at(ptr)->thread);
	CHECK(gpc_pool_largest_free(&world_context()->pool) == 2 * MIB); /* the pool looks */
	CHECK(block_at(ptr)->state == GPUCACHE_BLOCK_FREE && block_at(ptr)->size == 2 * MIB);
	CHECK(site_of(event(0)->stack)->live_bytes == 0);
	CHECK(site_of(event(0)->stack)->total_blocks == 1);
	CHECK(gpc_pool_trim(&world_context()->pool, UINT64_MAX, true) == 2 * MIB);
	CHECK(event(0)->kind == GPUCACHE_EVENT_SEGMENT_FREE);
	CHECK(!block_at(ptr) && gpc_runtime.record.segments[0].state == 0);
}

TEST(every_block_and_segment_is_recorded)
{
	world_run(NULL, NULL, blocks_and_events);
}

static void host_and_contexts(void)
{
	struct gpc_observed observed = {
		.kind = GPUCACHE_KIND_HOST,
		.who = 1,
		.address = 4096,
		.size = 500,
		.requested = 500,
		.now_ns = 7,
	};
	uint64_t n;

	world_start();
	n = atomic_load(&gpc_runtime.record.next_event);
	CHECK(world_context());
	CHECK(event(0)->kind == GPUCACHE_EVENT_CONTEXT && event(0)->detail == 1);
	CHECK(event(0)->address == (uintptr_t)world.context);
	CHECK(world_context() && atomic_load(&gpc_runtime.record.next_event) == n + 1);
	observed.context = world_context();
	gpc_observe_malloc(&observed);
	CHECK(event(0)->alloc_kind == GPUCACHE_KIND_HOST);
	CHECK(site_of(1)->live_bytes == 0); /* sites are of the device */
	gpc_observe_free(&observed);
	CHECK(site_of(1)->live_bytes == 0);
	world_reset();
	CHECK(event(0)->kind == GPUCACHE_EVENT_CONTEXT && event(0)->detail == 2);
}

TEST(contexts_are_events_and_host_memory_is_in_no_site)
{
	world_run(NULL, "stacks:off", host_and_contexts);
}

static CUresult says_nothing(size_t *available, size_t *total)
{
	*available = 1;
	*total = 1;
	return CUDA_ERROR_UNKNOWN;
}

static void looks(void)
{
	struct gpc_device *device;
	struct gpc_context *context;
	CUdeviceptr ptr;
	uint64_t seen;

	world_start();
	context = world_context();
	device = context->device;
	gpc_observe_device(context, true);
	seen = device->known.free_bytes;
	CHECK(seen && device->known.total_bytes == GPC_GIB && device->known.look_ns);
	CHECK(!world.fns.cuMemAlloc_v2(&ptr, 64 * MIB));
	atomic_store(&device->next_look_ns, UINT64_MAX);
	gpc_observe_device(context, false); /* too early */
	CHECK(device->known.free_bytes == seen);
	atomic_store(&device->next_look_ns, 0);
	gpc_observe_device(context, false);
	CHECK(device->known.free_bytes == seen - 64 * MIB);
	CHECK(atomic_load(&device->next_look_ns) > 0);
	world.fns.cuMemGetInfo_v2 = says_nothing; /* then the last look stays */
	gpc_observe_device(context, true);
	CHECK(device->known.free_bytes == seen - 64 * MIB);
}

TEST(the_device_is_looked_at_now_and_then)
{
	world_run("memory:1GiB", "stacks:off,record:off", looks);
}

/* --- Read while it runs. ---------------------------------------------------------------------- */

/*
 * Four threads allocate and free without a pause.  Each holds at most MAX_HELD blocks of known sizes, which bounds the
 * counters at every moment.  The reader, gpumem-report's own, only opens and reads the file, so no writer waits for it.
 */
#define N_THREADS 4u
#define MAX_HELD  16u
#define N_READS   1000u
#define MAX_SIZE  65536u /* requests are 1 .. MAX_SIZE bytes */

static _Atomic bool is_over;
static _Atomic uint64_t n_pairs[N_THREADS];

static void *churn(void *arg)
{
	_Atomic uint64_t *count = arg;
	CUdeviceptr held[MAX_HELD] = { 0 };
	struct gpc_sampler random = { (uint64_t)(count - n_pairs) };

	CHECK(!world.cuCtxSetCurrent(world.context));
	while (!is_over) {
		uint64_t number = gpc_sampler_next(&random);
		CUdeviceptr *ptr = &held[number % MAX_HELD];

		if (*ptr)
			CHECK(!world_free(*ptr));
		CHECK(!world_malloc(ptr, 1 + (number >> 8) % MAX_SIZE));
		++*count;
	}
	for (unsigned i = 0; i < MAX_HELD; i += 2)
		if (held[i])
			CHECK(!world_free(held[i]));
	return NULL;
}

struct seen {
	struct gpucache_counters counters;
	uint64_t n_blocks;
	uint64_t bytes;
	uint64_t n_torn;
	uint64_t
		pairs_before; /* that the threads had done when the reader began, and when it was done */
	uint64_t pairs_after;
};

static uint64_t pairs_so_far(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < N_THREADS; i++)
		sum += n_pairs[i];
	return sum;
}

static struct gpc_recording *open_recording(void)
{
	struct gpc_recording *recording = NULL;
	char why[256];
	struct gpc_text text = gpc_text_init(why, sizeof why);

	CHECK(!gpc_recording_open(gpc_runtime.record.path, &recording, &text));
	return recording;
}

static struct seen look(const struct gpc_recording *recording)
{
	const struct gpc_region *region = &recording->regions[GPUCACHE_REGION_BLOCKS];
	struct seen seen = { .n_torn = region->n_torn };
	struct gpucache_block block;

	CHECK(recording->run_state == GPC_RUN_ALIVE && recording->n_problems == 0);
	CHECK(gpc_recording_read_counters(recording, 0, &seen.counters));
	for (uint64_t i = 0; i < region->count; i++) {
		if (!gpc_recording_read_block(recording, i, &block) ||
			!gpc_recording_holds_device_memory(&block))
			continue;
		CHECK(block.requested >= 1 && block.requested <= MAX_SIZE);
		CHECK(block.size >= block.requested && block.size % 512 == 0);
		CHECK(block.address && block.segment != GPUCACHE_NO_SEGMENT && block.thread);
		seen.n_blocks++;
		seen.bytes += block.requested;
	}
	return seen;
}

/*
 * Checks the invariants that hold although reading is not atomic.
 *
 * A record of counters is not read at one moment: a reader preempted between two words sees the first as it was
 * thousands of calls before the second, so two counters of one record are not related.  Each counter lies between its
 * values at the start and at the end of the read; and a counter that only grows can be compared with one that was read
 * before it.
 */
static void check_moment(const struct seen *seen, const struct seen *before)
{
	const struct gpucache_counters *c = &seen->counters;
	const uint64_t most = N_THREADS * MAX_HELD;
	const uint64_t in_flight = N_THREADS; /* calls that are counted, and their pair is not */

	CHECK(c->n_malloc >= seen->pairs_before && c->n_malloc <= seen->pairs_after + in_flight);
	CHECK(c->n_free + most >= seen->pairs_before && c->n_free <= seen->pairs_after + in_flight);
	CHECK(c->n_malloc >= before->counters.n_malloc && c->n_free >= before->counters.n_free);
	CHECK(c->requested_bytes <= (most + in_flight) * MAX_SIZE);
	/* Nothing goes back to the driver here; live_bytes lies before reserved_bytes, its peak behind. */
	CHECK(c->live_bytes <= c->reserved_bytes);
	CHECK(before->counters.peak_live_bytes <= c->reserved_bytes);
	/* A block that changes place while the table is read may be met twice, or not at all. */
	CHECK(seen->n_blocks <= 2 * most && seen->bytes <= 2 * most * MAX_SIZE);
	/* A writer that was put aside in the middle of a slot. */
	CHECK(seen->n_torn <= in_flight);
}

static void read_while_busy(void)
{
	pthread_t threads[N_THREADS];
	struct gpc_recording *recording;
	struct seen before = { .n_torn = 0 };
	struct seen seen = before;

	world_start();
	/* Whoever may only read is enough. */
	CHECK(!chmod(gpc_runtime.record.path, 0400));
	for (unsigned i = 0; i < N_THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, churn, &n_pairs[i]));
	for (unsigned i = 0; i < N_THREADS; i++)
		while (!n_pairs[i])
			usleep(100);
	for (unsigned i = 0; i < N_READS; i++) {
		uint64_t pairs = pairs_so_far();

		recording = open_recording();
		seen = look(recording);
		seen.pairs_before = pairs;
		seen.pairs_after = pairs_so_far();
		check_moment(&seen, &before);
		before = seen;
		/* The writers go on while somebody holds what he read. */
		if (i % 100 == 0) {
			uint64_t target = n_pairs[i / 100 % N_THREADS] + 100;

			while (n_pairs[i / 100 % N_THREADS] < target)
				usleep(100);
		}
		gpc_recording_close(recording);
	}
	is_over = true;
	for (unsigned i = 0; i < N_THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));

	recording = open_recording();
	seen = look(recording);
	CHECK(seen.n_blocks > 0 && seen.counters.n_malloc - seen.counters.n_free == seen.n_blocks);
	CHECK(seen.counters.requested_bytes == seen.bytes);
	gpc_recording_close(recording);
}

TEST(a_thousand_reads_of_a_busy_process_are_consistent)
{
	world_run(NULL, "recording_size:1MiB", read_while_busy);
	world_assert_is_silent();
}
