/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross-checks regions.  Recordings before 1.3 lack the region PAGES, which would reveal a lost page; here a region
 * that others refer to and that is missing or too small is a problem.
 *
 * Regions may differ by the operations in flight: in a dead process one per thread, counted by the threads that left
 * their number.  A process killed while it tore a context down may be called damaged.
 */
#include <string.h>

#include "format/recording_internal.h"

/* More threads than any program runs at once: no more missing blocks than this can be operations in flight. */
#define MAX_THREADS 256

/* The most contexts that the library tracks. */
#define MAX_CONTEXTS 64

struct flight {
	uint32_t threads[MAX_THREADS];
	uint64_t n;
};

static void add_thread(struct flight *flight, uint32_t thread)
{
	for (uint64_t i = 0; i < flight->n; i++)
		if (flight->threads[i] == thread)
			return;
	if (thread && flight->n < MAX_THREADS)
		flight->threads[flight->n++] = thread;
}

/* The number of operations that may be half done.  A process that exited by itself has none. */
static uint64_t count_flight(const struct gpc_recording *rec)
{
	struct gpc_event_cursor cursor = { 0 };
	struct flight flight = { .n = 0 };
	struct gpucache_event event;

	while (gpc_recording_next_event(rec, &cursor, &event))
		add_thread(&flight, event.thread);
	if (flight.n == MAX_THREADS || cursor.n_holes)
		return UINT64_MAX;
	return flight.n - (flight.n && rec->run_state == GPC_RUN_ENDED);
}

/* What BLOCKS and SEGMENTS say about one context. */
struct stock {
	uint64_t n_live;
	uint64_t n_free;
	uint64_t n_direct;
	uint64_t n_segments;
};

static void take_stock(const struct gpc_recording *rec, struct stock *stocks)
{
	struct gpucache_segment segment;
	struct gpucache_block block;

	memset(stocks, 0, MAX_CONTEXTS * sizeof *stocks);
	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_BLOCKS].count; i++) {
		if (!gpc_recording_read_block(rec, i, &block) || block.context >= MAX_CONTEXTS)
			continue;
		if (block.segment == GPUCACHE_NO_SEGMENT)
			stocks[block.context].n_direct += block.state == GPUCACHE_BLOCK_LIVE;
		else if (block.state == GPUCACHE_BLOCK_LIVE)
			stocks[block.context].n_live++;
		else
			stocks[block.context].n_free++;
	}
	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_SEGMENTS].count; i++)
		if (gpc_recording_read_segment(rec, i, &segment) && segment.context < MAX_CONTEXTS)
			stocks[segment.context].n_segments++;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void check_stock(struct gpc_recording *rec, uint32_t context, const struct stock *stock,
	const struct gpucache_counters *counters, uint64_t in_flight)
{
	uint64_t idle = counters->kind_bytes[GPUCACHE_KIND_POOL];
	bool is_all = rec->header.dropped_blocks == 0;

	if (is_all && distance(stock->n_live, counters->n_blocks) > in_flight)
		gpc_recording_note(rec, GPUCACHE_REGION_BLOCKS,
			"has %llu live blocks of context %u, and COUNTERS %llu",
			(unsigned long long)stock->n_live, context,
			(unsigned long long)counters->n_blocks);
	else if (is_all && in_flight < UINT64_MAX &&
		 ((counters->direct_bytes > idle && stock->n_direct == 0) ||
			 (counters->cached_bytes && stock->n_free == 0)))
		gpc_recording_note(rec, GPUCACHE_REGION_BLOCKS,
			"has none of context %u for bytes that COUNTERS has", context);
	if (rec->header.dropped_segments == 0 &&
		distance(stock->n_segments, counters->n_segments) > in_flight)
		gpc_recording_note(rec, GPUCACHE_REGION_SEGMENTS,
			"has %llu segments of context %u, and COUNTERS %llu",
			(unsigned long long)stock->n_segments, context,
			(unsigned long long)counters->n_segments);
}

static bool has_device(const struct gpc_recording *rec, int32_t ordinal)
{
	struct gpucache_device device;

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_DEVICES].count; i++)
		if (gpc_recording_read_device(rec, i, &device) && device.ordinal == ordinal)
			return true;
	return false;
}

/* Returns the number of contexts. */
static unsigned check_contexts(struct gpc_recording *rec)
{
	uint64_t in_flight = count_flight(rec);
	struct stock stocks[MAX_CONTEXTS];
	struct gpucache_counters counters;
	struct gpucache_peak peak;
	unsigned n = 0;

	take_stock(rec, stocks);
	for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
		if (!gpc_recording_read_counters(rec, i, &counters))
			continue;
		n++;
		check_stock(rec, i, &stocks[i], &counters, in_flight);
		if (!has_device(rec, counters.device))
			gpc_recording_note(rec, GPUCACHE_REGION_DEVICES,
				"lacks GPU %d, on which COUNTERS has a context", counters.device);
		if (counters.n_malloc > in_flight && counters.peak_live_bytes &&
			!gpc_recording_find_peak(rec, counters.device, &peak))
			gpc_recording_note(rec, GPUCACHE_REGION_PEAKS, "lacks the peak of GPU %d",
				counters.device);
		if (counters.n_malloc > in_flight && rec->end_event == 0)
			gpc_recording_note(rec, GPUCACHE_REGION_EVENTS,
				"is empty, and COUNTERS has %llu allocations",
				(unsigned long long)counters.n_malloc);
	}
	return n;
}

/* Checks that a recording without a context has no allocations. */
static void check_without_context(struct gpc_recording *rec)
{
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_event event;

	while (gpc_recording_next_event(rec, &cursor, &event)) {
		if (event.kind != GPUCACHE_EVENT_MALLOC)
			continue;
		gpc_recording_note(rec, GPUCACHE_REGION_COUNTERS,
			"has no context, and EVENTS has allocations");
		return;
	}
}

/* The ring is filled from its start, so no page before the newest event is empty. */
static uint64_t count_empty_pages(const struct gpc_recording *rec)
{
	static const unsigned char zeros[GPUCACHE_PAGE];
	const struct gpc_region *region = &rec->regions[GPUCACHE_REGION_EVENTS];
	uint64_t n_slots = rec->end_event < region->count ? rec->end_event : region->count;
	uint64_t n = 0;

	for (uint64_t at = 0; at + GPUCACHE_PAGE <= n_slots * region->record_size;
		at += GPUCACHE_PAGE)
		n += memcmp(rec->data + region->offset + at, zeros, GPUCACHE_PAGE) == 0;
	return n;
}

/* Live blocks whose allocation would be an event newer than the newest. */
static uint64_t count_newer(const struct gpc_recording *rec)
{
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_event event;
	struct gpucache_block block;
	uint64_t newest = 0;
	uint64_t n = 0;

	while (gpc_recording_next_event(rec, &cursor, &event))
		newest = event.time_ns > newest ? event.time_ns : newest;
	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_BLOCKS].count; i++)
		n += gpc_recording_read_block(rec, i, &block) &&
		     block.state == GPUCACHE_BLOCK_LIVE && block.time_ns > newest;
	return n;
}

static void check_events(struct gpc_recording *rec)
{
	uint64_t n_empty = count_empty_pages(rec);

	if (n_empty)
		gpc_recording_note(rec, GPUCACHE_REGION_EVENTS,
			"has lost %llu of its pages: newer events are there",
			(unsigned long long)n_empty);
	else if (rec->end_event && count_newer(rec) > count_flight(rec))
		gpc_recording_note(rec, GPUCACHE_REGION_EVENTS, "ends before what BLOCKS knows of");
}

static void check_oom(struct gpc_recording *rec)
{
	struct gpucache_oom oom;

	if (rec->header.state & GPUCACHE_STATE_OOM_SEEN && !gpc_recording_find_oom(rec, 0, &oom))
		gpc_recording_note(rec, GPUCACHE_REGION_OOMS,
			"is empty, and the header says that a request failed");
}

/* Counts frames outside all recorded modules and code objects. */
static void check_frames(struct gpc_recording *rec)
{
	uint64_t n_codes = 0;
	uint64_t n_native = 0;
	struct gpc_stack_view stack;
	struct gpc_code_view code;

	for (size_t i = 0; i < rec->n_stacks; i++) {
		if (!gpc_recording_find_stack(rec, rec->stacks[i].id, &stack))
			continue;
		n_native += stack.n_native;
		for (unsigned f = 0; f < stack.n_python; f++)
			n_codes += !gpc_recording_find_code(
				rec, GPUCACHE_FRAME_CODE(stack.python[f]), &code);
	}
	if (n_codes && !gpc_recording_dropped(rec, GPUCACHE_REGION_CODES))
		gpc_recording_note(rec, GPUCACHE_REGION_CODES,
			"lacks what %llu Python frames are of", (unsigned long long)n_codes);
	if (n_native && !rec->n_modules && !gpc_recording_dropped(rec, GPUCACHE_REGION_MODULES))
		gpc_recording_note(
			rec, GPUCACHE_REGION_MODULES, "is empty, and STACKS has native frames");
}

/* Checks the tags of blocks and events; ids are in the order of the records. */
static void check_tags(struct gpc_recording *rec)
{
	uint32_t last = rec->n_tags ? rec->tags[rec->n_tags - 1].id : 0;
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_event event;
	struct gpucache_block block;
	uint64_t n = 0;

	while (gpc_recording_next_event(rec, &cursor, &event))
		n += event.tag > last;
	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_BLOCKS].count; i++)
		n += gpc_recording_read_block(rec, i, &block) && block.tag > last;
	if (n && !gpc_recording_dropped(rec, GPUCACHE_REGION_TAGS))
		gpc_recording_note(rec, GPUCACHE_REGION_TAGS, "lacks those of %llu records",
			(unsigned long long)n);
}

/* Checks the stacks and sites of live blocks. */
static void check_names(struct gpc_recording *rec)
{
	uint64_t n_stacks = 0;
	uint64_t n_sites = 0;
	struct gpc_stack_view stack;
	struct gpucache_block block;
	struct gpucache_site site;

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_BLOCKS].count; i++) {
		if (!gpc_recording_read_block(rec, i, &block) ||
			!gpc_recording_holds_device_memory(&block) || block.stack == 0)
			continue;
		n_stacks += !gpc_recording_find_stack(rec, block.stack, &stack);
		n_sites += !gpc_recording_read_site(rec, block.stack, &site);
	}
	if (n_stacks)
		gpc_recording_note(rec, GPUCACHE_REGION_STACKS, "lacks those of %llu live blocks",
			(unsigned long long)n_stacks);
	/* A block becomes live before its site counts it. */
	if (n_sites > count_flight(rec))
		gpc_recording_note(rec, GPUCACHE_REGION_SITES, "lacks those of %llu live blocks",
			(unsigned long long)n_sites);
}

static size_t count_lines(const struct gpc_recording *rec)
{
	const char *line;
	size_t size;
	size_t n = 0;

	while (gpc_recording_read_text(rec, n, &line, &size))
		n++;
	return n;
}

/* `used` is stored before the number, so a record may not be counted yet. */
static void check_number(
	struct gpc_recording *rec, enum gpucache_region_kind kind, uint64_t n, bool must_be)
{
	const struct gpc_region *region = &rec->regions[kind];
	struct gpucache_append_head head;

	if (!region->present || gpc_recording_has_problem(rec, kind))
		return;
	memcpy(&head, rec->data + region->offset, sizeof head);
	if (n != head.n_records && n != head.n_records + 1)
		gpc_recording_note(rec, kind, "has %llu records, and its head counts %llu",
			(unsigned long long)n, (unsigned long long)head.n_records);
	else if (must_be && n == 0)
		gpc_recording_note(rec, kind, "is empty");
}

void gpc_recording_check_agreement(struct gpc_recording *recording)
{
	unsigned n_contexts;

	if (recording->header.minor >= 3 || recording->n_problems ||
		recording->run_state == GPC_RUN_ALIVE ||
		recording->header.state & GPUCACHE_STATE_PASS)
		return;
	n_contexts = check_contexts(recording);
	if (n_contexts == 0)
		check_without_context(recording);
	check_events(recording);
	check_oom(recording);
	check_number(recording, GPUCACHE_REGION_STACKS, recording->n_stacks, false);
	check_number(recording, GPUCACHE_REGION_CODES, recording->n_codes, false);
	check_number(recording, GPUCACHE_REGION_MODULES, recording->n_modules, false);
	check_number(recording, GPUCACHE_REGION_TAGS, recording->n_tags, false);
	/* The library writes its options there before the first context. */
	check_number(recording, GPUCACHE_REGION_TEXT, count_lines(recording), n_contexts > 0);
	check_names(recording);
	check_tags(recording);
	check_frames(recording);
}
