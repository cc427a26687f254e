/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts the addresses of all tensors.  A gap of more than half of the device's memory begins the next range. */
#include "tools/replay/tensors.h"

#include <stdlib.h>

#include "format/array.h"
#include "format/memory.h"
#include "tools/replay/arenas.h"

/* Collects the addresses of all tensors in `ranges`, unsorted, and sets has_physical.  Returns their number. */
static size_t collect(struct gpc_tensors *tensors, const struct gpc_recording *recording,
	int32_t ordinal, const struct gpucache_event *events, size_t n_events)
{
	bool has_arena = false;
	struct gpucache_block block;
	size_t n = 0;

	for (size_t i = 0; i < n_events; i++) {
		has_arena = has_arena ||
			    (events[i].alloc_kind == GPUCACHE_KIND_DEVICE && tensors->is_arena[i]);
		if (events[i].alloc_kind == GPUCACHE_KIND_TENSOR)
			tensors->ranges[n++] = events[i].address;
	}
	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_BLOCKS].count; i++) {
		if (!gpc_recording_read_block(recording, i, &block) || block.device != ordinal ||
			block.state != GPUCACHE_BLOCK_LIVE)
			continue;
		has_arena = has_arena || (block.kind == GPUCACHE_KIND_DEVICE &&
						 block.flags & GPUCACHE_BLOCK_ARENA);
		if (block.kind == GPUCACHE_KIND_TENSOR)
			tensors->ranges[n++] = block.address;
	}
	tensors->has_physical = tensors->has_torch && !has_arena;
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
