/* SPDX-License-Identifier: Apache-2.0 */
#include "format/balance.h"

static void add_counters(struct gpucache_counters *sum, const struct gpucache_counters *one)
{
	sum->requested_bytes += one->requested_bytes;
	sum->live_bytes += one->live_bytes;
	sum->pending_bytes += one->pending_bytes;
	sum->cached_bytes += one->cached_bytes;
	sum->reserved_bytes += one->reserved_bytes;
	sum->direct_bytes += one->direct_bytes;
	sum->host_bytes += one->host_bytes;
	sum->peak_requested_bytes += one->peak_requested_bytes;
	sum->peak_live_bytes += one->peak_live_bytes;
	sum->peak_pending_bytes += one->peak_pending_bytes;
	sum->peak_reserved_bytes += one->peak_reserved_bytes;
	sum->peak_direct_bytes += one->peak_direct_bytes;
	sum->peak_host_bytes += one->peak_host_bytes;
	for (unsigned kind = 0; kind < GPUCACHE_MAX_KINDS; kind++)
		sum->kind_bytes[kind] += one->kind_bytes[kind];
	sum->n_malloc += one->n_malloc;
	sum->n_free += one->n_free;
	sum->n_hit += one->n_hit;
	sum->n_driver_malloc += one->n_driver_malloc;
	sum->n_driver_free += one->n_driver_free;
	sum->n_driver_failed += one->n_driver_failed;
	sum->n_fence += one->n_fence;
	sum->n_sync += one->n_sync;
	sum->n_oom += one->n_oom;
	sum->n_rescued += one->n_rescued;
	for (unsigned i = 0; i < GPUCACHE_MAX_RUNGS; i++)
		sum->n_rescued_by[i] += one->n_rescued_by[i];
	sum->n_gc_segments += one->n_gc_segments;
	sum->n_blocks += one->n_blocks;
	sum->n_segments += one->n_segments;
	if (one->last_driver_malloc_ns > sum->last_driver_malloc_ns)
		sum->last_driver_malloc_ns = one->last_driver_malloc_ns;
}

struct gpc_device_totals gpc_recording_totals(
	const struct gpc_recording *recording, int32_t ordinal)
{
	struct gpc_device_totals totals = { .sum.device = ordinal };
	struct gpucache_counters counters;

	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_COUNTERS].count; i++) {
		if (!gpc_recording_read_counters(recording, i, &counters) ||
			counters.device != ordinal)
			continue;
		add_counters(&totals.sum, &counters);
		totals.n_contexts++;
	}
	return totals;
}

static uint64_t largest_cached(const struct gpc_recording *recording, int32_t ordinal)
{
	struct gpucache_block block;
	uint64_t largest = 0;

	if (recording->regions[GPUCACHE_REGION_BLOCKS].count == 0)
		return GPUCACHE_UNKNOWN;
	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_BLOCKS].count; i++)
		if (gpc_recording_read_block(recording, i, &block) && block.device == ordinal &&
			block.state == GPUCACHE_BLOCK_FREE && block.size > largest)
			largest = block.size;
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
		/* NVML says all-ones for what it cannot see. */
		if (device->process_bytes != GPUCACHE_UNKNOWN)
			facts.process = gpc_bytes_add(
				gpc_bytes_less(device->process_bytes, device->ours_bytes), ours);
		facts.others = device->others_bytes;
		facts.driver = device->driver_bytes;
	}
	gpc_balance_settle(&facts, ret_balance);
	return true;
}
