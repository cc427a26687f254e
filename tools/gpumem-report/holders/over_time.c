/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Undoes the events of the ring from the last to the first, which gives the bytes at its start.  Then repeats them in
 * order, and keeps of each slice the moment with the most live bytes, as deltas.  If there are too many deltas, it
 * repeats them with slices twice as long.
 *
 * The events of several threads, and of a request that waited, are not in the order of their times: no event is dated
 * before the one that precedes it.  So a failure comes after what the ladder gave back for it, as in its balance.
 */
#include "tools/gpumem-report/holders/over_time.h"

#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "tools/gpumem-report/holders/reserved.h"
#include "tools/gpumem-report/holders/torch_pool.h"
#include "tools/lib/map.h"
#include "tools/replay/tensors.h"
#include "why/purposes.h"

struct level {
	int64_t bytes;
	int64_t blocks;
};

/* So many events before the last failure are a slice each, so that the page shows all of them. */
#define CLOSE_EVENTS 200

/* An event that changed the bytes held, or a failure. */
struct step {
	uint64_t time_ns;
	uint32_t holder;
	uint32_t tag;
	struct level change;
	int64_t size; /* of the block, as rounded to its size class */
	/* With sampled stacks: `change` less the block's own bytes.  Blocks without a stack have these bytes, too. */
	struct level surplus;
	uint64_t failed_ns; /* the time of the failure's record; 0: no failure */
};

static struct level add(struct level a, struct level b)
{
	return (struct level){ gpc_signed_add(a.bytes, b.bytes),
		gpc_signed_add(a.blocks, b.blocks) };
}

static struct level less(struct level a, struct level b)
{
	return (struct level){ gpc_signed_less(a.bytes, b.bytes),
		gpc_signed_less(a.blocks, b.blocks) };
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

struct walk {
	const struct gpc_report *report;
	struct gpc_over_time *moments;
	struct gpucache_event
		*events; /* of this device, if they change the bytes held, and failures */
	size_t n_events;
	struct step *steps;
	struct gpc_map numbers; /* 1 + the index of each holder, by key_of */
	/* By holder: */
	struct level *levels;             /* at the present step */
	struct level *said;               /* the sum of the deltas written so far */
	struct level *start;              /* at the start of the ring */
	enum gpc_purpose *purposes;       /* GPC_N_PURPOSES: none */
	int64_t sums[GPC_N_PURPOSES + 1]; /* of the levels, by purpose */
	uint32_t unsampled;               /* the holder without a stack; n_holders: there is none */
	struct level surplus;       /* the sum of step.surplus over the blocks live at present */
	struct level start_surplus; /* the same at the start of the ring */
	int64_t live_bytes;
	int64_t start_bytes;
	struct gpc_reserved reserved;
	struct gpc_taken taken;      /* at the present step */
	size_t close_from, close_to; /* these steps are a slice each */
	size_t n_deltas;
};

static int compare_holders(const void *left, const void *right)
{
	const struct gpc_over_time_holder *a = left;
	const struct gpc_over_time_holder *b = right;

	return GPC_ORDER(a->stack, b->stack) ?: GPC_ORDER(a->kind, b->kind)
		       ?: GPC_ORDER(a->context, b->context);
}

static struct gpc_over_time_holder holder_of(uint32_t stack, unsigned kind, uint32_t context)
{
	return (struct gpc_over_time_holder){ stack, gpc_kind_is_implicit(kind) ? kind : 0,
		context };
}

/* Packs a holder into a key of 64 bits: 1, context (23 bits: they are far fewer), kind (8), stack (32). */
static uint64_t key_of(struct gpc_over_time_holder holder)
{
	return UINT64_C(1) << 63 | (uint64_t)holder.context << 40 |
	       (uint64_t)(holder.kind & 0xff) << 32 | holder.stack;
}

static uint32_t find_holder(struct walk *walk, struct gpc_over_time_holder holder)
{
	return (uint32_t)(*gpc_map_at(&walk->numbers, key_of(holder)) - 1);
}

static void add_holder(struct walk *walk, struct gpc_over_time_holder holder, size_t *room)
{
	struct gpc_over_time *moments = walk->moments;
	uint64_t *number = gpc_map_at(&walk->numbers, key_of(holder));

	if (*number)
		return;
	gpc_array_grow(&moments->holders, sizeof holder, moments->n_holders, room);
	moments->holders[moments->n_holders++] = holder;
	*number = moments->n_holders;
}

static bool is_wanted(const struct gpucache_event *event, int32_t ordinal)
{
	if (event->device != ordinal)
		return false;
	switch (event->kind) {
	case GPUCACHE_EVENT_SEGMENT_MALLOC:
	case GPUCACHE_EVENT_SEGMENT_FREE:
	case GPUCACHE_EVENT_OOM:
		return true;
	case GPUCACHE_EVENT_MALLOC:
	case GPUCACHE_EVENT_FREE:
		return gpucache_kind_is_of_device(event->alloc_kind) ||
		       gpucache_kind_place(event->alloc_kind) == GPUCACHE_WITHIN;
	default:
		return false;
	}
}

static void read_events(struct walk *walk, int32_t ordinal)
{
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_event event;
	size_t room = 0;

	while (gpc_recording_next_event(walk->report->recording, &cursor, &event)) {
		if (!is_wanted(&event, ordinal))
			continue;
		gpc_array_grow(&walk->events, sizeof event, walk->n_events, &room);
		walk->events[walk->n_events++] = event;
	}
	walk->moments->n_events = walk->n_events;
	walk->moments->n_holes = cursor.n_holes;
}

static void find_holders(struct walk *walk, int32_t ordinal)
{
	const bool has_torch = gpc_torch_is_there(walk->report, ordinal);
	struct gpc_over_time *moments = walk->moments;
	struct gpc_over_time_holder *all;
	struct gpucache_block block;
	size_t room = 0;

	for (size_t i = 0; i < walk->n_events; i++)
		add_holder(walk,
			holder_of(walk->events[i].stack, walk->events[i].alloc_kind,
				walk->events[i].context),
			&room);
	for (uint64_t i = 0; gpc_report_next_live(walk->report, ordinal, &i, &block);)
		add_holder(walk, holder_of(block.stack, block.kind, block.context), &room);
	all = moments->holders;
	if (all)
		qsort(all, moments->n_holders, sizeof *all, compare_holders);
	for (size_t i = 0; i < moments->n_holders; i++)
		*gpc_map_at(&walk->numbers, key_of(all[i])) = i + 1;
	walk->unsampled = 0;
	while (walk->unsampled < moments->n_holders &&
		(all[walk->unsampled].stack || all[walk->unsampled].kind))
		walk->unsampled++;
	walk->levels = gpc_new(moments->n_holders + 1, sizeof *walk->levels);
	walk->said = gpc_new(moments->n_holders + 1, sizeof *walk->said);
	walk->start = gpc_new(moments->n_holders + 1, sizeof *walk->start);
	walk->purposes = gpc_new(moments->n_holders + 1, sizeof *walk->purposes);
	for (size_t i = 0; i < moments->n_holders; i++)
		walk->purposes[i] = !has_torch || all[i].kind
					    ? GPC_N_PURPOSES
					    : gpc_purpose_of(gpc_frames_find(
						      walk->report->frames, all[i].stack));
}

/* What an event's block counts for.  Only blocks of segments have sampled stacks (format/recording.h). */
static struct gpc_share share_of(const struct walk *walk, const struct gpucache_event *event)
{
	uint64_t sample = event->alloc_kind == GPUCACHE_KIND_DEVICE
				  ? walk->report->recording->header.sample_bytes
				  : 0;
	struct gpc_share share =
		gpc_share_of(sample, event->stack, event->address, event->requested);

	return share.blocks ? share : (struct gpc_share){ event->requested, 1 };
}

static void change_holder(
	const struct walk *walk, struct step *step, const struct gpucache_event *event)
{
	const int sign = event->kind == GPUCACHE_EVENT_MALLOC ? 1 : -1;
	const struct gpc_share share = share_of(walk, event);

	step->change.bytes = sign * gpc_signed_of(share.bytes);
	step->change.blocks = sign * gpc_signed_of(share.blocks);
	step->size = sign * gpc_signed_of(event->size);
	step->surplus =
		less(step->change, (struct level){ sign * gpc_signed_of(event->requested), sign });
}

static void make_steps(struct walk *walk, int32_t ordinal)
{
	const struct gpc_recording *rec = walk->report->recording;
	bool *is_arena = gpc_new(walk->n_events, sizeof *is_arena);
	uint64_t now_ns = 0;
	struct gpucache_oom oom;

	walk->steps = gpc_new(walk->n_events, sizeof *walk->steps);
	gpc_arenas_mark(rec, ordinal, walk->events, walk->n_events, is_arena);
	gpc_reserved_find(&walk->reserved, rec, ordinal, walk->events, walk->n_events, is_arena);
	walk->moments->is_exact = walk->reserved.is_exact && walk->moments->n_holes == 0;
	for (size_t i = 0; i < walk->n_events; i++) {
		const struct gpucache_event *event = &walk->events[i];
		struct step *step = &walk->steps[i];

		now_ns = gpc_larger(now_ns, event->time_ns);
		*step = (struct step){ .time_ns = now_ns,
			.tag = event->tag,
			.holder = find_holder(
				walk, holder_of(event->stack, event->alloc_kind, event->context)),
			.failed_ns = gpc_event_failure(rec, event, &oom) ? oom.time_ns : 0 };
		if ((event->kind == GPUCACHE_EVENT_MALLOC || event->kind == GPUCACHE_EVENT_FREE) &&
			!is_arena[i])
			change_holder(walk, step, event);
		if (step->failed_ns)
			walk->close_to = i;
	}
	walk->close_from = walk->close_to > CLOSE_EVENTS ? walk->close_to - CLOSE_EVENTS : 0;
	free(is_arena);
}

static void add_to_purpose(struct walk *walk, uint32_t holder, int64_t bytes)
{
	int64_t *sum = &walk->sums[walk->purposes[holder]];

	*sum = gpc_signed_add(*sum, bytes);
}

static struct level level_of(struct gpc_share share)
{
	return (struct level){ gpc_signed_of(share.bytes), gpc_signed_of(share.blocks) };
}

/* Sets `levels` to the bytes at the end, from the table of live blocks. */
static void go_to_end(struct walk *walk, int32_t ordinal)
{
	const struct gpc_recording *rec = walk->report->recording;
	struct gpc_share surplus = { 0 };
	struct gpucache_block block;

	for (uint64_t i = 0; gpc_report_next_live(walk->report, ordinal, &i, &block);) {
		struct gpc_share share = gpc_recording_share(rec, &block, &surplus);
		uint32_t holder =
			find_holder(walk, holder_of(block.stack, block.kind, block.context));

		walk->levels[holder] = add(walk->levels[holder], level_of(share));
		walk->live_bytes = gpc_signed_add(walk->live_bytes, gpc_signed_of(block.size));
	}
	walk->surplus = level_of(surplus);
}

/*
 * Undoes all steps, the last first.  A table of blocks that has lost some could give a negative level, which becomes 0.
 */
static void go_to_start(struct walk *walk)
{
	for (size_t i = walk->n_events; i-- > 0;) {
		const struct step *step = &walk->steps[i];
		struct level *level = &walk->levels[step->holder];

		*level = less(*level, step->change);
		walk->live_bytes = gpc_signed_less(walk->live_bytes, step->size);
		walk->surplus = less(walk->surplus, step->surplus);
		if (level->bytes < 0 || level->blocks < 0)
			*level = (struct level){ 0 };
	}
	walk->start_bytes = walk->live_bytes < 0 ? 0 : walk->live_bytes;
	walk->start_surplus = walk->surplus;
	memcpy(walk->start, walk->levels, walk->moments->n_holders * sizeof *walk->levels);
}

static void take(struct walk *walk, size_t i)
{
	const struct step *step = &walk->steps[i];
	const struct gpc_taken *change = &walk->reserved.changes[i];

	walk->levels[step->holder] = add(walk->levels[step->holder], step->change);
	add_to_purpose(walk, step->holder, step->change.bytes);
	walk->surplus = add(walk->surplus, step->surplus);
	walk->live_bytes = gpc_signed_add(walk->live_bytes, step->size);
	walk->taken.reserved = gpc_signed_add(walk->taken.reserved, change->reserved);
	walk->taken.idle = gpc_signed_add(walk->taken.idle, change->idle);
}

/*
 * True if the slice that begins with step `from` ends with step `i`, whatever follows.  A segment and its block are of
 * one time, and so in one slice.
 */
static bool ends_slice(const struct walk *walk, size_t from, size_t i, size_t most)
{
	const struct step *step = &walk->steps[i];
	bool is_split = i + 1 < walk->n_events && step[1].time_ns == step->time_ns;

	return step->failed_ns ||
	       (!is_split &&
		       (i + 1 - from >= most || (i >= walk->close_from && i < walk->close_to)));
}

/*
 * Takes the steps from *at to the maximum of the slice that ends at `end_ns`, after `most_steps`, or with a failure;
 * returns the end of the slice.
 */
static size_t climb(struct walk *walk, size_t *at, uint64_t end_ns, size_t most_steps)
{
	const size_t from = *at;
	int64_t live = walk->live_bytes;
	int64_t most = INT64_MIN;
	size_t highest = *at;
	size_t end = *at;

	while (end < walk->n_events && (end == from || walk->steps[end].time_ns < end_ns)) {
		live = gpc_signed_add(live, walk->steps[end].size);
		if (live > most || (live == most && walk->steps[end].time_ns ==
							    walk->steps[highest].time_ns)) {
			most = live;
			highest = end;
		}
		if (ends_slice(walk, from, end++, most_steps))
			break;
	}
	while (*at <= highest)
		take(walk, (*at)++);
	return end;
}

/* Writes the change of a holder since its last delta, if there is one; false if there is no room. */
static bool say_holder(struct walk *walk, uint32_t holder)
{
	struct level *said = &walk->said[holder];
	struct level now = walk->levels[holder];
	struct level change;

	if (holder == walk->unsampled)
		now = less(now, (struct level){ smaller(now.bytes, walk->surplus.bytes),
					smaller(now.blocks, walk->surplus.blocks) });
	if (now.bytes == said->bytes && now.blocks == said->blocks)
		return true;
	if (walk->n_deltas == GPC_OVER_TIME_MAX_DELTAS)
		return false;
	change = less(now, *said);
	walk->moments->deltas[walk->n_deltas++] =
		(struct gpc_over_time_delta){ holder, change.bytes, change.blocks };
	*said = now;
	return true;
}

static uint64_t at_least_0(int64_t value)
{
	return value < 0 ? 0 : (uint64_t)value;
}

/* The level after step `at` - 1. */
static struct gpc_over_time_level level_at(const struct walk *walk, size_t at)
{
	struct gpc_over_time_level level = { .time_ns = walk->steps[at - 1].time_ns,
		.live_bytes = at_least_0(walk->live_bytes),
		.idle_bytes = at_least_0(walk->taken.idle),
		.reserved_bytes = walk->moments->is_exact ? at_least_0(walk->taken.reserved)
							  : GPUCACHE_UNKNOWN };
	int64_t requested = gpc_signed_less(walk->sums[GPC_N_PURPOSES], walk->surplus.bytes);

	for (unsigned i = 0; i < GPC_N_PURPOSES; i++) {
		level.purposes[i] = at_least_0(walk->sums[i]);
		requested = gpc_signed_add(requested, walk->sums[i]);
	}
	level.requested_bytes = at_least_0(requested);
	/* What sampled stacks stand for is of blocks without a stack, which are of no known purpose. */
	if (walk->unsampled < walk->moments->n_holders)
		level.purposes[GPC_PURPOSE_OTHER] = at_least_0(
			gpc_signed_less(walk->sums[GPC_PURPOSE_OTHER], walk->surplus.bytes));
	return level;
}

/* Writes a row for the moment after step `at` - 1; `from` is the first step since the last row.  False: no room. */
static bool say(struct walk *walk, size_t from, size_t at)
{
	struct gpc_over_time *moments = walk->moments;
	bool is_all = moments->n == 0;

	for (size_t i = from; i < at && !is_all; i++)
		if (!say_holder(walk, walk->steps[i].holder))
			return false;
	for (uint32_t h = 0; is_all && h < moments->n_holders; h++)
		if (!say_holder(walk, h))
			return false;
	if (walk->unsampled < moments->n_holders && !say_holder(walk, walk->unsampled))
		return false;
	moments->rows[moments->n++] = (struct gpc_over_time_row){
		.most = level_at(walk, at),
		.last = level_at(walk, at),
		.tag = walk->steps[at - 1].tag,
		.end_delta = walk->n_deltas,
		.n_events = at,
	};
	return true;
}

static void note_failure(struct walk *walk, const struct step *step)
{
	struct gpc_over_time *moments = walk->moments;

	if (step->failed_ns && moments->n_failures < GPUCACHE_MAX_OOMS)
		moments->failures[moments->n_failures++] =
			(struct gpc_over_time_failure){ step->failed_ns, step->time_ns };
}

/* Writes the rows for this many slices of time, and as many of events; false if there is no room for the deltas. */
static bool walk_slices(struct walk *walk, unsigned n_slices)
{
	uint64_t first_ns = walk->steps[0].time_ns;
	uint64_t last_ns = walk->steps[walk->n_events - 1].time_ns;
	uint64_t width_ns = gpc_bytes_less(last_ns, first_ns) / n_slices + 1;
	size_t most_steps = walk->n_events / n_slices + 1;
	size_t said = 0;
	size_t at = 0;

	memcpy(walk->levels, walk->start, walk->moments->n_holders * sizeof *walk->levels);
	memset(walk->said, 0, walk->moments->n_holders * sizeof *walk->said);
	memset(walk->sums, 0, sizeof walk->sums);
	for (uint32_t i = 0; i < walk->moments->n_holders; i++)
		add_to_purpose(walk, i, walk->start[i].bytes);
	walk->live_bytes = walk->start_bytes;
	walk->taken = walk->reserved.start;
	walk->surplus = walk->start_surplus;
	walk->n_deltas = walk->moments->n = walk->moments->n_failures = 0;
	for (size_t end = 0; end < walk->n_events;) {
		uint64_t slice = gpc_bytes_less(walk->steps[end].time_ns, first_ns) / width_ns;

		end = climb(walk, &at,
			gpc_bytes_add(first_ns, gpc_bytes_times(slice + 1, width_ns)), most_steps);
		if (!say(walk, said, at))
			return false;
		said = at;
		while (at < end)
			take(walk, at++);
		walk->moments->rows[walk->moments->n - 1].last = level_at(walk, at);
		note_failure(walk, &walk->steps[end - 1]);
	}
	return said == walk->n_events || say(walk, said, walk->n_events);
}

static void walk_all(struct walk *walk)
{
	struct gpc_over_time *moments = walk->moments;
	unsigned n_slices = GPC_OVER_TIME_MAX / 2;

	moments->rows = gpc_new(
		GPC_OVER_TIME_MAX + CLOSE_EVENTS + GPUCACHE_MAX_OOMS + 2, sizeof *moments->rows);
	moments->deltas = gpc_new(GPC_OVER_TIME_MAX_DELTAS, sizeof *moments->deltas);
	while (!walk_slices(walk, n_slices)) {
		if (n_slices == 1) {
			moments->n = 0;
			break;
		}
		n_slices /= 2;
	}
}

void gpc_over_time_create(
	struct gpc_over_time *moments, const struct gpc_report *report, int32_t ordinal)
{
	struct walk walk = { .report = report, .moments = moments };

	*moments = (struct gpc_over_time){ 0 };
	read_events(&walk, ordinal);
	find_holders(&walk, ordinal);
	make_steps(&walk, ordinal);
	go_to_end(&walk, ordinal);
	go_to_start(&walk);
	if (walk.n_events)
		walk_all(&walk);
	free(walk.events);
	free(walk.steps);
	free(walk.levels);
	free(walk.said);
	free(walk.start);
	free(walk.purposes);
	gpc_reserved_fini(&walk.reserved);
	gpc_map_fini(&walk.numbers);
}

void gpc_over_time_fini(struct gpc_over_time *moments)
{
	free(moments->holders);
	free(moments->rows);
	free(moments->deltas);
	*moments = (struct gpc_over_time){ 0 };
}

uint64_t gpc_over_time_time_of(const struct gpc_over_time *moments, const struct gpucache_oom *oom)
{
	for (size_t i = 0; i < moments->n_failures; i++)
		if (moments->failures[i].asked_ns == oom->time_ns)
			return moments->failures[i].time_ns;
	return oom->time_ns;
}
