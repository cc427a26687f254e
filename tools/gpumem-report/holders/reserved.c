/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undoes the segments' events to find those at the start, then walks forwards with the segments sorted by address: a
 * binary search tells whether a block lies in one.
 *
 * When a context ends, its segments are given back before its blocks are freed.  So a segment stays in the list until
 * the next event that frees nothing.
 */
#include "tools/gpumem-report/holders/reserved.h"

#include <stdlib.h>

#include "format/array.h"
#include "format/sheet.h"
#include "tools/replay/areas.h"
#include "tools/replay/tensors.h"

/* Our segments; those that are marked are gone. */
struct segments {
	struct gpc_areas areas;
	bool has_gone;
};

static void add(struct segments *segments, uint64_t address, uint64_t size)
{
	gpc_areas_add(&segments->areas, (struct gpc_area){ .address = address, .size = size });
}

static void mark_gone(struct segments *segments, uint64_t address)
{
	struct gpc_area *area = gpc_areas_around(&segments->areas, address);

	if (area && area->address == address)
		area->is_marked = segments->has_gone = true;
}

static void drop_gone(struct segments *segments)
{
	struct gpc_areas *areas = &segments->areas;
	size_t n = 0;

	if (!segments->has_gone)
		return;
	for (size_t i = 0; i < areas->n; i++)
		if (!areas->rows[i].is_marked)
			areas->rows[n++] = areas->rows[i];
	areas->n = n;
	segments->has_gone = false;
}

/* The segments at the start of the ring. */
static void find_first(struct segments *segments, const struct gpc_recording *rec, int32_t ordinal,
	const struct gpucache_event *events, size_t n_events)
{
	struct gpucache_segment segment;

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_SEGMENTS].count; i++)
		if (gpc_recording_read_segment(rec, i, &segment) && segment.device == ordinal)
			add(segments, segment.address, segment.size);
	for (size_t i = n_events; i-- > 0;) {
		if (events[i].kind == GPUCACHE_EVENT_SEGMENT_FREE)
			add(segments, events[i].address, events[i].size);
		else if (events[i].kind == GPUCACHE_EVENT_SEGMENT_MALLOC)
			mark_gone(segments, events[i].address);
		drop_gone(segments);
	}
}

/* The sign of a change of memory: 0 for an event that changes none. */
static int sign_of(const struct gpucache_event *event)
{
	switch (event->kind) {
	case GPUCACHE_EVENT_MALLOC:
	case GPUCACHE_EVENT_SEGMENT_MALLOC:
		return 1;
	case GPUCACHE_EVENT_FREE:
	case GPUCACHE_EVENT_SEGMENT_FREE:
		return -1;
	default:
		return 0;
	}
}

static bool is_of_segment(const struct gpucache_event *event)
{
	return event->kind == GPUCACHE_EVENT_SEGMENT_MALLOC ||
	       event->kind == GPUCACHE_EVENT_SEGMENT_FREE;
}

static struct gpc_taken change_of(
	struct segments *segments, const struct gpucache_event *event, bool is_arena)
{
	const int64_t size = sign_of(event) * gpc_signed_of(event->size);
	struct gpc_taken change = { 0 };

	if (sign_of(event) >= 0)
		drop_gone(segments);
	if (event->kind == GPUCACHE_EVENT_SEGMENT_MALLOC)
		add(segments, event->address, event->size);
	else if (event->kind == GPUCACHE_EVENT_SEGMENT_FREE)
		mark_gone(segments, event->address);
	if (event->alloc_kind == GPUCACHE_KIND_TENSOR)
		change.idle = -size;
	else if (is_arena && !is_of_segment(event))
		change.idle = size;
	if (is_of_segment(event) ||
		(gpucache_kind_place(event->alloc_kind) == GPUCACHE_ON_DEVICE &&
			!(event->alloc_kind == GPUCACHE_KIND_DEVICE &&
				gpc_areas_around(&segments->areas, event->address))))
		change.reserved = size;
	return change;
}

static struct gpc_taken at_end(const struct gpc_recording *rec, int32_t ordinal, bool is_physical)
{
	const struct gpucache_counters sum = gpc_recording_totals(rec, ordinal).sum;
	struct gpc_taken end = { .reserved = gpc_signed_of(
					 gpc_bytes_add(sum.reserved_bytes, sum.direct_bytes)) };
	struct gpucache_block block;

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_BLOCKS].count; i++) {
		if (!gpc_recording_read_block(rec, i, &block) || block.device != ordinal ||
			block.state != GPUCACHE_BLOCK_LIVE)
			continue;
		if (block.kind == GPUCACHE_KIND_TENSOR)
			end.idle = gpc_signed_less(end.idle, gpc_signed_of(block.size));
		else if (block.flags & GPUCACHE_BLOCK_ARENA ||
			 (is_physical && block.kind == GPUCACHE_KIND_PHYSICAL))
			end.idle = gpc_signed_add(end.idle, gpc_signed_of(block.size));
	}
	return end;
}

static bool has_eventless(const uint64_t kind_bytes[GPUCACHE_MAX_KINDS])
{
	return kind_bytes[GPUCACHE_KIND_POOL] || kind_bytes[GPUCACHE_KIND_GRAPH] ||
	       kind_bytes[GPUCACHE_KIND_REFUSED];
}

/* True if memory of the device came or went without an event. */
static bool has_changed_unseen(const struct gpc_recording *rec, int32_t ordinal,
	const struct gpucache_event *events, size_t n_events)
{
	struct gpucache_peak peak;
	struct gpucache_oom oom;
	bool is_unseen =
		has_eventless(gpc_recording_totals(rec, ordinal).sum.kind_bytes) ||
		(gpc_recording_find_peak(rec, ordinal, &peak) && has_eventless(peak.kind_bytes));

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_OOMS].count; i++)
		is_unseen = is_unseen ||
			    (gpc_recording_read_oom(rec, i, &oom) && oom.device == ordinal &&
				    has_eventless(oom.kind_bytes));
	for (size_t i = 0; i < n_events && !is_unseen; i++)
		is_unseen = events[i].alloc_kind == GPUCACHE_KIND_ASYNC;
	return is_unseen;
}

bool gpc_event_failure(const struct gpc_recording *rec, const struct gpucache_event *event,
	struct gpucache_oom *ret_oom)
{
	if (event->kind != GPUCACHE_EVENT_OOM)
		return false;
	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_OOMS].count; i++)
		if (gpc_recording_read_oom(rec, i, ret_oom) && ret_oom->device == event->device &&
			ret_oom->time_ns == event->time_ns)
			return true;
	return false;
}

/* True if the sums are never negative, meet the balance of each failure, and the counters at the end. */
static bool is_sound(const struct gpc_reserved *reserved, const struct gpc_recording *rec,
	const struct gpucache_event *events, size_t n_events, int64_t end)
{
	int64_t sum = reserved->start.reserved;
	bool is_sound = sum >= 0;
	struct gpucache_oom oom;

	for (size_t i = 0; i < n_events && is_sound; i++) {
		sum = gpc_signed_add(sum, reserved->changes[i].reserved);
		is_sound = sum >= 0;
		/* The balance of an expandable segment's failure is that after its pages have gone back. */
		if (is_sound && gpc_event_failure(rec, &events[i], &oom) &&
			oom.kind != GPUCACHE_KIND_PHYSICAL)
			is_sound = (uint64_t)sum == gpc_balance_taken(&oom.balance);
	}
	return is_sound && (sum == end || rec->run_state == GPC_RUN_ALIVE);
}

void gpc_reserved_find(struct gpc_reserved *reserved, const struct gpc_recording *recording,
	int32_t ordinal, const struct gpucache_event *events, size_t n_events, const bool *is_arena)
{
	const bool is_physical =
		gpc_arenas_are_physical(recording, ordinal, events, n_events, is_arena);
	const struct gpc_taken end = at_end(recording, ordinal, is_physical);
	const bool is_whole = recording->first_event == 0;
	struct gpc_taken sum = { 0 };
	struct segments segments = { 0 };

	*reserved =
		(struct gpc_reserved){ .changes = gpc_new(n_events, sizeof *reserved->changes) };
	find_first(&segments, recording, ordinal, events, n_events);
	for (size_t i = 0; i < n_events; i++) {
		const struct gpc_taken change = change_of(&segments, &events[i], is_arena[i]);

		reserved->changes[i] = change;
		sum.reserved = gpc_signed_add(sum.reserved, change.reserved);
		sum.idle = gpc_signed_add(sum.idle, change.idle);
	}
	free(segments.areas.rows);
	if (!is_whole)
		reserved->start = (struct gpc_taken){ gpc_signed_less(end.reserved, sum.reserved),
			gpc_signed_less(end.idle, sum.idle) };
	reserved->is_exact = !has_changed_unseen(recording, ordinal, events, n_events) &&
			     is_sound(reserved, recording, events, n_events, end.reserved);
}

void gpc_reserved_fini(struct gpc_reserved *reserved)
{
	free(reserved->changes);
	*reserved = (struct gpc_reserved){ 0 };
}
