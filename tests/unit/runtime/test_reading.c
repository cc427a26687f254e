/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording is read, as gpumem-report reads it, while the process that writes it is busy.
 *
 * Four threads take and free without a pause.  Each holds at most MAX_HELD blocks of known sizes, so
 * whatever moment a reader sees, the books must lie within that.  The reader only opens and reads the
 * file, so there is nothing of its that a writer could wait for.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/recording.h"
#include "world.h"

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
};

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

/* What no moment can have, however the reader's gaze wanders while it reads. */
static void check_moment(const struct seen *seen, const struct seen *before)
{
	const struct gpucache_counters *c = &seen->counters;
	const uint64_t most = N_THREADS * MAX_HELD;
	/* Calls that were under way while it read one record: one a thread. */
	const uint64_t in_flight = N_THREADS;

	CHECK(c->n_malloc + in_flight >= c->n_free && c->n_malloc <= c->n_free + most + in_flight);
	CHECK(c->n_malloc >= before->counters.n_malloc && c->n_free >= before->counters.n_free);
	CHECK(c->requested_bytes <= (most + in_flight) * MAX_SIZE);
	CHECK(c->live_bytes <= c->reserved_bytes && c->peak_live_bytes <= c->reserved_bytes);
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
		recording = open_recording();
		seen = look(recording);
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

static void a_thousand_reads_of_a_busy_process_are_consistent(void **state)
{
	(void)state;
	world_run(NULL, "recording_size:1MiB", read_while_busy);
	world_assert_is_silent();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thousand_reads_of_a_busy_process_are_consistent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
