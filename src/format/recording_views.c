/* SPDX-License-Identifier: Apache-2.0 */
/* Reads fixed-size records by type.  Numbers that callers use as indices are clamped: the file is untrusted. */
#include <string.h>

#include "format/recording_internal.h"

/* Copies record i of a region.  False: there is no such record, or it is torn. */
#define READ(region, i, record)                                                                  \
	(gpc_recording_read(recording, GPUCACHE_REGION_##region, i, record, sizeof *(record)) == \
		GPC_SLOT_OK)

bool gpc_recording_read_device(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_device *ret_device)
{
	struct gpucache_device device;

	if (!READ(DEVICES, i, &device))
		return false;
	/* A slot that was never written is all zeros, and so its `ordinal` is that of device 0. */
	if (device.seq == 0 || device.ordinal < 0)
		return false;
	gpc_recording_clean(device.name, sizeof device.name);
	gpc_recording_clean(device.uuid, sizeof device.uuid);
	gpc_recording_clean(device.pci_bus_id, sizeof device.pci_bus_id);
	*ret_device = device;
	return true;
}

bool gpc_recording_find_device(
	const struct gpc_recording *recording, int32_t ordinal, struct gpucache_device *ret_device)
{
	uint64_t count = recording->regions[GPUCACHE_REGION_DEVICES].count;
	struct gpucache_device device;

	for (uint64_t i = 0; i < count; i++)
		if (gpc_recording_read_device(recording, i, &device) && device.ordinal == ordinal) {
			*ret_device = device;
			return true;
		}
	return false;
}

bool gpc_recording_read_counters(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_counters *ret_counters)
{
	return READ(COUNTERS, i, ret_counters) && ret_counters->context != 0;
}

bool gpc_recording_find_torch(
	const struct gpc_recording *recording, int32_t ordinal, struct gpucache_torch *ret_torch)
{
	struct gpucache_torch torch;

	if (ordinal < 0 || (uint64_t)ordinal >= recording->regions[GPUCACHE_REGION_TORCH].count ||
		!READ(TORCH, (uint64_t)ordinal, &torch) || torch.n_malloc == 0)
		return false;
	*ret_torch = torch;
	return true;
}

bool gpc_recording_read_block(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_block *ret_block)
{
	return READ(BLOCKS, i, ret_block) && ret_block->state != GPUCACHE_BLOCK_UNUSED;
}

bool gpc_recording_read_segment(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_segment *ret_segment)
{
	return READ(SEGMENTS, i, ret_segment) && ret_segment->state != 0;
}

bool gpc_recording_read_oom(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_oom *ret_oom)
{
	struct gpucache_oom oom;

	if (!READ(OOMS, i, &oom) || oom.number == 0)
		return false;
	oom.n_rungs = (uint32_t)gpc_smaller(oom.n_rungs, GPUCACHE_MAX_RUNGS);
	oom.n_holders = (uint32_t)gpc_smaller(oom.n_holders, GPUCACHE_MAX_OOM_HOLDERS);
	oom.n_neighbours = (uint32_t)gpc_smaller(oom.n_neighbours, GPUCACHE_MAX_NEIGHBOURS);
	oom.n_tags = (uint32_t)gpc_smaller(oom.n_tags, GPUCACHE_MAX_OOM_TAGS);
	if (oom.verdict >= GPUCACHE_VERDICT_COUNT)
		oom.verdict = GPUCACHE_VERDICT_NONE;
	if (oom.strength > GPUCACHE_STRENGTH_CERTAIN)
		oom.strength = GPUCACHE_STRENGTH_NONE;
	for (unsigned n = 0; n < GPUCACHE_MAX_NEIGHBOURS; n++)
		gpc_recording_clean(oom.neighbours[n].name, sizeof oom.neighbours[n].name);
	if (!oom.recovered && recording->header.state & GPUCACHE_STATE_SUCCESS)
		oom.recovered = GPC_RECOVERED_BY_END;
	*ret_oom = oom;
	return true;
}

bool gpc_recording_find_peak(
	const struct gpc_recording *recording, int32_t ordinal, struct gpucache_peak *ret_peak)
{
	const struct gpc_region *region = &recording->regions[GPUCACHE_REGION_PEAKS];
	struct gpucache_peak peak;
	uint64_t best = 0;

	for (uint64_t i = 0; i < region->count; i++) {
		if (!READ(PEAKS, i, &peak) || peak.device != ordinal || peak.number <= best)
			continue;
		peak.n_holders = (uint32_t)gpc_smaller(peak.n_holders, GPUCACHE_MAX_HOLDERS);
		best = peak.number;
		*ret_peak = peak;
	}
	return best != 0;
}

bool gpc_recording_find_oom(
	const struct gpc_recording *recording, uint64_t number, struct gpucache_oom *ret_oom)
{
	const struct gpc_region *region = &recording->regions[GPUCACHE_REGION_OOMS];
	struct gpucache_oom oom;
	uint64_t best = 0;

	for (uint64_t i = 0; i < region->count; i++) {
		if (!gpc_recording_read_oom(recording, i, &oom))
			continue;
		if (number ? oom.number != number : oom.number <= best)
			continue;
		best = oom.number;
		*ret_oom = oom;
	}
	return best != 0;
}

bool gpc_recording_read_site(
	const struct gpc_recording *recording, uint64_t i, struct gpucache_site *ret_site)
{
	return READ(SITES, i, ret_site) && ret_site->stack != 0;
}

bool gpc_recording_next_event(const struct gpc_recording *recording,
	struct gpc_event_cursor *cursor, struct gpucache_event *ret_event)
{
	const struct gpc_region *region = &recording->regions[GPUCACHE_REGION_EVENTS];
	struct gpucache_event event;

	if (cursor->next < recording->first_event)
		cursor->next = recording->first_event;
	while (cursor->next < recording->end_event) {
		uint64_t number = cursor->next++;

		if (gpc_recording_read(recording, GPUCACHE_REGION_EVENTS, number % region->count,
			    &event, sizeof event) != GPC_SLOT_OK)
			event.seq = 0;
		if (event.seq == number + 1) {
			*ret_event = event;
			return true;
		}
		cursor->n_holes++;
	}
	return false;
}

bool gpc_recording_read_history(
	const struct gpc_recording *recording, uint64_t i, struct gpc_history_view *ret_history)
{
	const struct gpc_region *region = &recording->regions[GPUCACHE_REGION_HISTORY];
	const struct gpucache_point *points;
	struct gpucache_history_head head;
	const unsigned char *base;
	uint64_t room;

	if (!READ(HISTORY, i, &head))
		return false;
	if (region->record_size < sizeof head || head.device < 0 || head.max_points == 0 ||
		head.live_buffer > 1)
		return false;
	base = recording->data + region->offset + i * region->record_size + sizeof head;
	room = (region->record_size - sizeof head) / (sizeof *points + sizeof(uint64_t)) / 2;
	if (head.max_points > room || head.max_points > GPUCACHE_MAX_POINTS ||
		head.n_points[head.live_buffer] > head.max_points)
		return false;
	ret_history->device = head.device;
	ret_history->interval_ns = head.interval_ns;
	ret_history->n_points = head.n_points[head.live_buffer];
	points = (const void *)base;
	ret_history->points = points + (size_t)head.live_buffer * head.max_points;
	points += (size_t)2 * head.max_points;
	ret_history->pending_bytes =
		(const uint64_t *)(const void *)points + (size_t)head.live_buffer * head.max_points;
	return true;
}

bool gpc_recording_find_history(const struct gpc_recording *recording, int32_t ordinal,
	struct gpc_history_view *ret_history)
{
	uint64_t count = recording->regions[GPUCACHE_REGION_HISTORY].count;

	for (uint64_t i = 0; i < count; i++)
		if (gpc_recording_read_history(recording, i, ret_history) &&
			ret_history->device == ordinal)
			return true;
	*ret_history = (struct gpc_history_view){ .device = ordinal };
	return false;
}

uint64_t gpc_recording_last_ns(const struct gpc_recording *recording)
{
	uint64_t last = recording->header.start_monotonic_ns;
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_counters counters;
	struct gpucache_device device;
	struct gpucache_event event;
	struct gpucache_oom oom;

	if (recording->header.end_ns > last)
		return recording->header.end_ns;
	while (gpc_recording_next_event(recording, &cursor, &event))
		last = gpc_larger(last, event.time_ns);
	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_COUNTERS].count; i++)
		if (gpc_recording_read_counters(recording, i, &counters))
			last = gpc_larger(last, counters.last_driver_malloc_ns);
	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_DEVICES].count; i++)
		if (gpc_recording_read_device(recording, i, &device))
			last = gpc_larger(last, device.look_ns);
	if (gpc_recording_find_oom(recording, 0, &oom))
		last = gpc_larger(last, oom.time_ns);
	return last;
}
