/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the calls of each lane to the counters, and moves the free block of a lane from live bytes to cached bytes. */
#include "format/format_1_2.h"

#include <string.h>

#define N_LANES   8
#define SET_ASIDE (UINT64_C(1) << 63)

/* A lane: one block that one thread frees and reuses.  The record's counters always count the block as live. */
struct lane {
	uint64_t n_malloc; /* each counts as a hit, too */
	uint64_t n_free;
	uint64_t free_bytes;     /* the block's size if it is free, else 0 */
	uint64_t free_requested; /* its requested bytes if it is free, else 0 */
	uint64_t reserved[4];
};

struct record {
	unsigned char counters[576];
	struct lane lanes[N_LANES];
};

void gpc_format_1_2_add_lanes(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_counters *counters)
{
	struct record record;

	if (gpc_recording_read(recording, GPUCACHE_REGION_COUNTERS, i, &record, sizeof record) !=
		GPC_SLOT_OK)
		return;
	/* Where 1.2 has its lanes, later formats have fields of the counters, which stay 0 here. */
	memset(counters, 0, sizeof *counters);
	memcpy(counters, record.counters, sizeof record.counters);
	for (int n = 0; n < N_LANES; n++) {
		const struct lane *lane = &record.lanes[n];

		counters->n_malloc = gpc_bytes_add(counters->n_malloc, lane->n_malloc);
		counters->n_hit = gpc_bytes_add(counters->n_hit, lane->n_malloc);
		counters->n_free = gpc_bytes_add(counters->n_free, lane->n_free);
		/* A running process may change the lane after its counters were read: a difference could be negative. */
		counters->n_blocks = gpc_bytes_less(counters->n_blocks, lane->free_bytes > 0);
		counters->live_bytes = gpc_bytes_less(counters->live_bytes, lane->free_bytes);
		counters->cached_bytes = gpc_bytes_add(counters->cached_bytes, lane->free_bytes);
		counters->requested_bytes =
			gpc_bytes_less(counters->requested_bytes, lane->free_requested);
	}
}

bool gpc_format_1_2_is_set_aside(uint64_t seq, uint64_t number, uint64_t n_slots)
{
	return seq >= SET_ASIDE + number && (seq - SET_ASIDE - number) % n_slots == 0;
}
