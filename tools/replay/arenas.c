/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the events from the last one to the first.  Backwards, a free adds a live block, and an allocation removes it.
 * The live blocks are sorted by address, so a binary search finds the block that contains a tensor.
 */
#include "tools/replay/arenas.h"

#include <stdlib.h>
#include <string.h>

#include "format/array.h"

#define NO_EVENT SIZE_MAX

/* The walk ignores smaller blocks.  No arena is smaller, because PyTorch requests at least 2 MiB. */
#define LEAST_BYTES (UINT64_C(1) << 20)

struct area {
	uint64_t address;
	uint64_t size;
	size_t freed_at; /* the index of the event that frees it, or NO_EVENT */
	bool is_arena;
};

struct areas {
	struct area *rows; /* by address */
	size_t n;
	size_t room;
};

static size_t count_up_to(const struct areas *areas, uint64_t address)
{
	return GPC_ARRAY_COUNT(areas->n, i, areas->rows[i].address <= address);
}

static struct area *area_around(const struct areas *areas, uint64_t address)
{
	size_t i = count_up_to(areas, address);

	if (i == 0 || address - areas->rows[i - 1].address >= areas->rows[i - 1].size)
		return NULL;
	return &areas->rows[i - 1];
}

static void add(struct areas *areas, struct area area)
{
	size_t at = count_up_to(areas, area.address);

	gpc_array_grow(&areas->rows, sizeof area, areas->n, &areas->room);
	memmove(&areas->rows[at + 1], &areas->rows[at], (areas->n - at) * sizeof *areas->rows);
	areas->rows[at] = area;
	areas->n++;
}

/* Marks the event that freed the area. */
static void mark_free(const struct area *area, bool *is_arena)
{
	if (area->is_arena && area->freed_at != NO_EVENT)
		is_arena[area->freed_at] = true;
}

/* The walk has reached the allocation of the area at `address`, if it knows that area. */
static void end_area(struct areas *areas, uint64_t address, size_t event, bool *is_arena)
{
	struct area *area = area_around(areas, address);
	size_t at;

	if (!area || area->address != address)
		return;
	is_arena[event] = area->is_arena;
	mark_free(area, is_arena);
	at = (size_t)(area - areas->rows);
	areas->n--;
	memmove(area, area + 1, (areas->n - at) * sizeof *area);
}

static void add_live_arenas(
	struct areas *areas, const struct gpc_recording *recording, int32_t ordinal)
{
	struct gpucache_block block;

	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_BLOCKS].count; i++)
		if (gpc_recording_read_block(recording, i, &block) && block.device == ordinal &&
			(block.flags & GPUCACHE_BLOCK_ARENA))
			add(areas, (struct area){ block.address, block.size, NO_EVENT, true });
}

static void walk(
	struct areas *areas, const struct gpucache_event *events, size_t n_events, bool *is_arena)
{
	for (size_t i = n_events; i-- > 0;) {
		const struct gpucache_event *event = &events[i];
		struct area *around;

		if (event->alloc_kind == GPUCACHE_KIND_TENSOR) {
			around = area_around(areas, event->address);
			if (around)
				around->is_arena = true;
		} else if (event->size < LEAST_BYTES) {
			continue;
		} else if (event->kind == GPUCACHE_EVENT_MALLOC) {
			end_area(areas, event->address, i, is_arena);
		} else if (event->kind == GPUCACHE_EVENT_FREE) {
			add(areas, (struct area){ event->address, event->size, i, false });
		}
	}
	for (size_t i = 0; i < areas->n; i++)
		mark_free(&areas->rows[i], is_arena);
}

void gpc_arenas_mark(const struct gpc_recording *recording, int32_t ordinal,
	const struct gpucache_event *events, size_t n_events, bool *is_arena)
{
	struct areas areas = { 0 };
	struct gpucache_torch torch;

	if (gpc_recording_find_torch(recording, ordinal, &torch)) {
		add_live_arenas(&areas, recording, ordinal);
		walk(&areas, events, n_events, is_arena);
	}
	free(areas.rows);
}
