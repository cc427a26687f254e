/* SPDX-License-Identifier: Apache-2.0 */
/* Sums the counters, corrects the last reading by our own changes since, and lets model/balance.h compute the lines. */
#include "format/sheet.h"

#include <stdlib.h>

#include "format/array.h"
#include "model/counters.h"

struct gpc_device_totals gpc_recording_totals(
	const struct gpc_recording *recording, int32_t ordinal)
{
	struct gpc_device_totals totals = { .sum.device = ordinal };
	struct gpucache_counters counters;

	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_COUNTERS].count; i++) {
		if (!gpc_recording_read_counters(recording, i, &counters) ||
			counters.device != ordinal)
			continue;
		gpc_counters_add(&totals.sum, &counters);
		totals.n_contexts++;
	}
	return totals;
}

struct piece {
	uint64_t address;
	uint64_t size;
	uint64_t segment;
};

static int by_address(const void *left, const void *right)
{
	const struct piece *a = left;
	const struct piece *b = right;

	return GPC_ORDER(a->address, b->address);
}

/* The pool coalesces what was freed last only when it looks: so neighbours of a segment count as one. */
static uint64_t largest_cached(const struct gpc_recording *recording, int32_t ordinal)
{
	struct piece *pieces = NULL;
	struct gpucache_block block;
	uint64_t largest = 0;
	uint64_t run = 0;
	size_t room = 0;
	size_t n = 0;

	if (recording->regions[GPUCACHE_REGION_BLOCKS].count == 0)
		return GPUCACHE_UNKNOWN;
	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_BLOCKS].count; i++) {
		if (!gpc_recording_read_block(recording, i, &block) || block.device != ordinal ||
			block.state != GPUCACHE_BLOCK_FREE)
			continue;
		gpc_array_grow(&pieces, sizeof *pieces, n, &room);
		pieces[n++] = (struct piece){ block.address, block.size, block.segment };
	}
	if (n)
		qsort(pieces, n, sizeof *pieces, by_address);
	for (size_t i = 0; i < n; i++) {
		bool is_joined = i && pieces[i - 1].segment == pieces[i].segment &&
				 pieces[i].address - pieces[i - 1].address == pieces[i - 1].size;

		run = gpc_bytes_add(is_joined ? run : 0, pieces[i].size);
		largest = gpc_larger(largest, run);
	}
	free(pieces);
	return largest;
}

bool gpc_recording_balance(const struct gpc_recording *recording,
	const struct gpucache_device *device, struct gpucache_balance *ret_balance)
{
	struct gpc_device_totals totals = gpc_recording_totals(recording, device->ordinal);
	uint64_t ours = gpc_bytes_add(totals.sum.reserved_bytes, totals.sum.direct_bytes);
	uint64_t free_without_us = gpc_bytes_add(device->free_bytes, device->ours_bytes);
	struct gpc_balance_facts facts = {
		.requested = totals.sum.requested_bytes,
		.live = totals.sum.live_bytes,
		.pending = totals.sum.pending_bytes,
		.cached = totals.sum.cached_bytes,
		.cached_largest = largest_cached(recording, device->ordinal),
		.direct = totals.sum.direct_bytes,
		.device_free = gpc_bytes_less(free_without_us, ours),
		.device_total = device->total_bytes,
		.process = GPUCACHE_UNKNOWN,
		.others = GPUCACHE_UNKNOWN,
		.driver = GPUCACHE_UNKNOWN,
	};

	if (device->total_bytes == 0 || device->look_ns == 0)
		return false;
	if (device->nvml == 1) {
		/* NVML reports all-ones if it does not know. */
		if (device->process_bytes != GPUCACHE_UNKNOWN)
			facts.process = gpc_bytes_add(
				gpc_bytes_less(device->process_bytes, device->ours_bytes), ours);
		facts.others = device->others_bytes;
		facts.driver = device->driver_bytes;
	}
	gpc_balance_settle(&facts, ret_balance);
	return true;
}
