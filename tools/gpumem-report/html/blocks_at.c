/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of the events after the moment the first at an address decides: one that frees means that the block was there.  Sorts
 * all events by address, then by number: O(n log n).
 */
#include "tools/gpumem-report/html/blocks_at.h"

#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "tools/replay/tensors.h"

/* Segments, blocks and the tensors in them may have one address. */
enum layer {
	SEGMENT,
	BLOCK,
	TENSOR,
};

struct change {
	const struct gpucache_event *event;
	enum layer layer;
	bool is_arena;
};

struct events {
	struct gpucache_event *rows; /* of the device, of memory with an address */
	size_t n;
	bool is_whole; /* from the moment on */
};

static bool is_placed(unsigned kind)
{
	/* Contexts and modules (gpc_kind_is_implicit) have no address; that of physical memory is a handle. */
	return !gpc_kind_is_implicit(kind) && kind != GPUCACHE_KIND_PHYSICAL &&
	       (gpucache_kind_is_of_device(kind) || gpucache_kind_place(kind) == GPUCACHE_WITHIN);
}

static enum layer layer_of(const struct gpucache_event *event)
{
	if (event->kind == GPUCACHE_EVENT_SEGMENT_MALLOC ||
		event->kind == GPUCACHE_EVENT_SEGMENT_FREE)
		return SEGMENT;
	return event->alloc_kind == GPUCACHE_KIND_TENSOR ? TENSOR : BLOCK;
}

static bool is_change(const struct gpucache_event *event)
{
	switch (event->kind) {
	case GPUCACHE_EVENT_SEGMENT_MALLOC:
	case GPUCACHE_EVENT_SEGMENT_FREE:
		return true;
	case GPUCACHE_EVENT_MALLOC:
	case GPUCACHE_EVENT_FREE:
		return is_placed(event->alloc_kind) && event->size;
	default:
		return false;
	}
}

static void read_tables(struct gpc_blocks_at *at, const struct gpc_recording *rec, int32_t ordinal,
	uint64_t time_ns)
{
	const bool is_end = time_ns == GPC_TIME_OF_END;
	uint64_t n_blocks = rec->regions[GPUCACHE_REGION_BLOCKS].count;
	uint64_t n_segments = rec->regions[GPUCACHE_REGION_SEGMENTS].count;
	struct gpucache_segment segment;
	struct gpucache_block block;

	at->blocks = gpc_new(n_blocks, sizeof *at->blocks);
	at->segments = gpc_new(n_segments, sizeof *at->segments);
	for (uint64_t i = 0; i < n_segments; i++)
		if (gpc_recording_read_segment(rec, i, &segment) && segment.device == ordinal &&
			segment.time_ns <= time_ns)
			at->segments[at->n_segments++] = segment;
	for (uint64_t i = 0; i < n_blocks; i++)
		if (gpc_recording_read_block(rec, i, &block) && block.device == ordinal &&
			block.state != GPUCACHE_BLOCK_UNUSED && block.size &&
			is_placed(block.kind) &&
			(is_end ||
				(block.state == GPUCACHE_BLOCK_LIVE && block.time_ns <= time_ns)))
			at->blocks[at->n_blocks++] = block;
}

static void read_events(
	struct events *events, const struct gpc_recording *rec, int32_t ordinal, uint64_t time_ns)
{
	struct gpc_event_cursor cursor = { 0 };
	uint64_t holes_before = 0;
	struct gpucache_event event;
	size_t room = 0;

	events->is_whole = rec->first_event == 0;
	while (gpc_recording_next_event(rec, &cursor, &event)) {
		if (event.time_ns <= time_ns) {
			events->is_whole = true;
			holes_before = cursor.n_holes;
		}
		if (event.device != ordinal)
			continue;
		if (!is_change(&event))
			continue;
		gpc_array_grow(&events->rows, sizeof event, events->n, &room);
		events->rows[events->n++] = event;
	}
	events->is_whole = events->is_whole && cursor.n_holes == holes_before;
}

static int by_layer(const void *left, const void *right)
{
	const struct change *a = left;
	const struct change *b = right;

	return GPC_ORDER(a->layer, b->layer) ?: GPC_ORDER(a->event->address, b->event->address)
		       ?: GPC_ORDER(a->event, b->event);
}

/* `before` is the last event at the address up to the moment, or NULL if the ring has none. */
static void put_back(
	struct gpc_blocks_at *at, const struct change *change, const struct gpucache_event *before)
{
	const struct gpucache_event *event = change->event;
	const uint64_t time_ns = before ? before->time_ns : GPUCACHE_UNKNOWN;

	if (change->layer == SEGMENT)
		at->segments[at->n_segments++] = (struct gpucache_segment){
			.state = 1,
			.device = event->device,
			.address = event->address,
			.size = event->size,
			.time_ns = time_ns,
			.context = event->context,
			.stack = event->stack,
		};
	else
		at->blocks[at->n_blocks++] = (struct gpucache_block){
			.state = GPUCACHE_BLOCK_LIVE,
			.kind = event->alloc_kind,
			.device = event->device,
			.address = event->address,
			.size = event->size,
			.requested = event->requested,
			.time_ns = time_ns,
			.stack = event->stack,
			.thread = event->thread,
			.context = event->context,
			.tag = event->tag,
			.flags = change->is_arena ? GPUCACHE_BLOCK_ARENA : 0,
		};
}

static void undo(struct gpc_blocks_at *at, const struct gpc_recording *rec, int32_t ordinal,
	const struct events *events, uint64_t time_ns)
{
	bool *is_arena = gpc_new(events->n, sizeof *is_arena);
	struct change *changes = gpc_new(events->n, sizeof *changes);

	gpc_arenas_mark(rec, ordinal, events->rows, events->n, is_arena);
	for (size_t i = 0; i < events->n; i++)
		changes[i] = (struct change){ &events->rows[i], layer_of(&events->rows[i]),
			is_arena[i] };
	qsort(changes, events->n, sizeof *changes, by_layer);
	at->blocks = gpc_resize(at->blocks, at->n_blocks + events->n, sizeof *at->blocks);
	at->segments = gpc_resize(at->segments, at->n_segments + events->n, sizeof *at->segments);
	for (size_t i = 0; i < events->n; i++) {
		const struct gpucache_event *event = changes[i].event;
		const bool is_same = i > 0 && changes[i - 1].layer == changes[i].layer &&
				     changes[i - 1].event->address == event->address;
		const struct gpucache_event *before = is_same ? changes[i - 1].event : NULL;

		if (event->time_ns > time_ns && (!before || before->time_ns <= time_ns) &&
			(event->kind == GPUCACHE_EVENT_FREE ||
				event->kind == GPUCACHE_EVENT_SEGMENT_FREE))
			put_back(at, &changes[i], before);
	}
	free(changes);
	free(is_arena);
}

bool gpc_blocks_at_create(struct gpc_blocks_at *at, const struct gpc_recording *recording,
	int32_t ordinal, uint64_t time_ns)
{
	struct events events = { .is_whole = true };

	*at = (struct gpc_blocks_at){ 0 };
	if (time_ns != GPC_TIME_OF_END)
		read_events(&events, recording, ordinal, time_ns);
	if (events.is_whole) {
		read_tables(at, recording, ordinal, time_ns);
		undo(at, recording, ordinal, &events, time_ns);
	}
	free(events.rows);
	return events.is_whole;
}

void gpc_blocks_at_fini(struct gpc_blocks_at *at)
{
	free(at->blocks);
	free(at->segments);
	*at = (struct gpc_blocks_at){ 0 };
}
