/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas: walks the events from the last one to the first.  Backwards, a free adds a live block, and an allocation
 * removes it.  The live blocks are sorted by address, so a binary search finds the block that contains a tensor.
 *
 * Ranges: sorts the addresses of all tensors.  A gap of more than half of the device's memory begins the next range.
 */
#include "tools/replay/tensors.h"

#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "format/memory.h"
#include "tools/replay/areas.h"

#define NO_EVENT SIZE_MAX

/* walk() ignores smaller blocks.  No arena is smaller, because PyTorch requests at least 2 MiB. */
#define LEAST_BYTES (UINT64_C(1) << 20)

/* Of an area `event` is the one that frees it, or NO_EVENT; it is marked if it is an arena. */

/* Marks the event that freed the area, if the area is an arena. */
static void mark_free(const struct gpc_area *area, bool *is_arena)
{
	if (area->is_marked && area->event != NO_EVENT)
		is_arena[area->event] = true;
}

/* The walk has reached the allocation of the area at `address`, if it knows that area. */
static void end_area(struct gpc_areas *areas, uint64_t address, size_t event, bool *is_arena)
{
	struct gpc_area *area = gpc_areas_around(areas, address);
	size_t at;

	if (!area || area->address != address)
		return;
	is_arena[event] = area->is_marked;
	mark_free(area, is_arena);
	at = (size_t)(area - areas->rows);
	areas->n--;
	memmove(area, area + 1, (areas->n - at) * sizeof *area);
}

static void add_live_arenas(
	struct gpc_areas *areas, const struct gpc_recording *recording, int32_t ordinal)
{
	struct gpucache_block block;

	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_BLOCKS].count; i++)
		if (gpc_recording_read_block(recording, i, &block) && block.device == ordinal &&
			(block.flags & GPUCACHE_BLOCK_ARENA))
			gpc_areas_add(areas,
				(struct gpc_area){ block.address, block.size, NO_EVENT, true });
}

static void walk(struct gpc_areas *areas, const struct gpucache_event *events, size_t n_events,
	bool *is_arena)
{
	for (size_t i = n_events; i-- > 0;) {
		const struct gpucache_event *event = &events[i];
		struct gpc_area *around;

		if (event->alloc_kind == GPUCACHE_KIND_TENSOR) {
			around = gpc_areas_around(areas, event->address);
			if (around)
				around->is_marked = true;
		} else if (event->size < LEAST_BYTES) {
			continue;
		} else if (event->kind == GPUCACHE_EVENT_MALLOC) {
			end_area(areas, event->address, i, is_arena);
		} else if (event->kind == GPUCACHE_EVENT_FREE) {
			gpc_areas_add(
				areas, (struct gpc_area){ event->address, event->size, i, false });
		}
	}
	for (size_t i = 0; i < areas->n; i++)
		mark_free(&areas->rows[i], is_arena);
}

bool gpc_arenas_are_physical(const struct gpc_recording *recording, int32_t ordinal,
	const struct gpucache_event *events, size_t n_events, const bool *is_arena)
{
	struct gpucache_block block;
	struct gpucache_torch torch;
	bool has_arena = false;

	for (size_t i = 0; i < n_events && !has_arena; i++)
		has_arena = events[i].alloc_kind == GPUCACHE_KIND_DEVICE && is_arena[i];
	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_BLOCKS].count && !has_arena;
		i++)
		has_arena = gpc_recording_read_block(recording, i, &block) &&
			    block.device == ordinal && block.state == GPUCACHE_BLOCK_LIVE &&
			    block.kind == GPUCACHE_KIND_DEVICE &&
			    (block.flags & GPUCACHE_BLOCK_ARENA);
	return !has_arena && gpc_recording_find_torch(recording, ordinal, &torch);
}

void gpc_arenas_mark(const struct gpc_recording *recording, int32_t ordinal,
	const struct gpucache_event *events, size_t n_events, bool *is_arena)
{
	struct gpc_areas areas = { 0 };
	struct gpucache_torch torch;

	if (!gpc_recording_find_torch(recording, ordinal, &torch))
		return;
	add_live_arenas(&areas, recording, ordinal);
	walk(&areas, events, n_events, is_arena);
	free(areas.rows);
	if (!gpc_arenas_are_physical(recording, ordinal, events, n_events, is_arena))
		return;
	for (size_t i = 0; i < n_events; i++)
		is_arena[i] |= events[i].alloc_kind == GPUCACHE_KIND_PHYSICAL;
}

/* Collects the addresses of all tensors in `ranges`, unsorted.  Returns their number. */
static size_t collect(struct gpc_tensors *tensors, const struct gpc_recording *recording,
	int32_t ordinal, const struct gpucache_event *events, size_t n_events)
{
	struct gpucache_block block;
	size_t n = 0;

	for (size_t i = 0; i < n_events; i++)
		if (events[i].alloc_kind == GPUCACHE_KIND_TENSOR)
			tensors->ranges[n++] = events[i].address;
	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_BLOCKS].count; i++)
		if (gpc_recording_read_block(recording, i, &block) && block.device == ordinal &&
			block.state == GPUCACHE_BLOCK_LIVE && block.kind == GPUCACHE_KIND_TENSOR)
			tensors->ranges[n++] = block.address;
	return n;
}

/* Reduces the `n` addresses to the first one of each range. */
static void keep_first_of_each(struct gpc_tensors *tensors, size_t n, uint64_t gap)
{
	uint64_t last = 0;

	qsort(tensors->ranges, n, sizeof *tensors->ranges, gpc_array_by_number);
	for (size_t i = 0; i < n; i++) {
		uint64_t address = tensors->ranges[i];

		if (i == 0 || (tensors->has_physical && gap && address - last > gap))
			tensors->ranges[tensors->n_ranges++] = address;
		last = address;
	}
}

void gpc_tensors_find(struct gpc_tensors *tensors, const struct gpc_recording *recording,
	int32_t ordinal, const struct gpucache_event *events, size_t n_events)
{
	struct gpucache_device device = { .total_bytes = 0 };
	struct gpucache_torch torch;
	size_t n = n_events + recording->regions[GPUCACHE_REGION_BLOCKS].count;

	*tensors = (struct gpc_tensors){
		.has_torch = gpc_recording_find_torch(recording, ordinal, &torch),
		.is_arena = gpc_new(n_events, sizeof *tensors->is_arena),
		.ranges = gpc_new(n, sizeof *tensors->ranges),
	};
	gpc_arenas_mark(recording, ordinal, events, n_events, tensors->is_arena);
	tensors->has_physical =
		gpc_arenas_are_physical(recording, ordinal, events, n_events, tensors->is_arena);
	n = collect(tensors, recording, ordinal, events, n_events);
	(void)gpc_recording_find_device(recording, ordinal, &device);
	keep_first_of_each(tensors, n, device.total_bytes / 2);
}

void gpc_tensors_fini(struct gpc_tensors *tensors)
{
	free(tensors->is_arena);
	free(tensors->ranges);
	*tensors = (struct gpc_tensors){ 0 };
}

uint64_t gpc_tensors_stream(const struct gpc_tensors *tensors, uint64_t address)
{
	size_t n = GPC_ARRAY_COUNT(tensors->n_ranges, i, tensors->ranges[i] <= address);

	return n ? n : 1;
}
