/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 100,000,000 events into one recording.
 *
 *   ring_event      nanoseconds an event; baseline: the first million of them
 *   ring_file_size  bytes of the file after all of them; baseline: before the first.  Fails if
 *                   they differ, or if the last events cannot be read.
 */
#include <sys/stat.h>

#include "record/store.h"
#include "tests/bench/bench.h"

#define N_EVENTS 100000000u
#define N_FIRST  1000000u

static struct gpc_record rec;

static struct stat look_at_file(void)
{
	struct stat st;

	bench_check("fstat", fstat(rec.fd, &st) == 0);
	return st;
}

static double add_events(uint64_t first, uint64_t end)
{
	uint64_t start = gpc_clock_monotonic_ns();

	for (uint64_t i = first; i < end; i++) {
		struct gpucache_event event = {
			.time_ns = i,
			.address = i * 512,
			.size = 512,
			.requested = 500,
			.stack = 1,
			.kind = GPUCACHE_EVENT_MALLOC,
			.alloc_kind = GPUCACHE_KIND_DEVICE,
		};

		gpc_record_event(&rec, &event);
	}
	return (double)(gpc_clock_monotonic_ns() - start) / (double)(end - first);
}

int main(void)
{
	char pattern[] = "/dev/shm/bench_ring.%p.gpucache";
	struct gpc_record_params params = { .pattern = pattern, .version = "bench", .rank = -1 };
	struct stat before, after;
	double first, all;

	bench_check("gpc_record_open", gpc_record_open(&rec, &params) == GPC_OK);
	before = look_at_file();
	first = add_events(0, N_FIRST);
	all = add_events(N_FIRST, N_EVENTS);
	after = look_at_file();
	for (uint64_t i = N_EVENTS - rec.n_events; i < N_EVENTS; i++) {
		const struct gpucache_event *event = &rec.events[i & (rec.n_events - 1)];

		bench_check("the ring", event->seq == i + 1 && event->time_ns == i);
	}
	unlink(rec.path);
	gpc_record_close(&rec);
	bench_check("a file of constant size",
		after.st_size == before.st_size && after.st_blocks == before.st_blocks);
	bench_row("ring_event", all, "ns", first);
	bench_row("ring_file_size", (double)after.st_size, "bytes", (double)before.st_size);
	return 0;
}
