/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts the trace after the failed request, and replays it with one change at a time.  A replay that fails
 * at an earlier request says nothing about this one.
 */
#include "tools/gpumem-report/why/what_if.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/size_class.h"
#include "base/bytes.h"
#include "tools/lib/map.h"
#include "tools/replay/run.h"
#include "why/numbers.h"

enum outcome {
	FAILED_BEFORE, /* at an earlier request, or the replay could not run */
	FAILED,        /* at the request */
	SERVED,
};

struct played {
	enum outcome outcome;
	uint64_t free_bytes; /* on the device at the end; set if SERVED */
	uint64_t live_bytes; /* as requested, at the end of the replay */
};

static uint64_t option_number(const struct gpc_recording *recording, const char *option)
{
	char value[64];

	return gpc_report_read_option(recording, option, value, sizeof value)
		       ? strtoull(value, NULL, 10)
		       : 0;
}

/* True if a caller had a cache of its own: its segments were the driver's, which no setting of ours changes. */
static bool has_whole_segments(const struct gpc_recording *recording)
{
	enum gpc_text_kind kind = GPC_TEXT_DEFAULT;

	for (size_t i = 0; kind != GPC_TEXT_CALLER; i++) {
		GPC_TEXT(text, 256);

		if (!gpc_report_read_line(recording, i, &kind, &text))
			return false;
	}
	return true;
}

/* Sets settings and policy to what the run had.  Returns false if the run had no cache (cache:off). */
static bool read_settings(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_what_if *what_if)
{
	const struct gpc_recording *recording = report->recording;
	uint64_t charged_else = gpc_bytes_less(
		oom->balance.direct, gpc_bytes_less(gpc_balance_taken(&oom->balance),
					     gpc_balance_charged(&oom->balance, oom->kind_bytes)));
	char value[64];

	what_if->settings = (struct gpc_policy_settings){
		.max_split_size = option_number(recording, "max_split_size_mb") * GPC_MIB,
		.roundup_divisions = (uint32_t)option_number(recording, "roundup_power2_divisions"),
		.limit_bytes = oom->limit ? gpc_bytes_less(oom->limit, charged_else) : 0,
	};
	if (gpc_report_read_option(recording, "garbage_collection_threshold", value, sizeof value))
		what_if->settings.gc_threshold_ppm = (uint32_t)(strtod(value, NULL) * 1e6);
	what_if->policy = &gpc_policy_gpucache;
	if (gpc_report_read_option(recording, "vmm", value, sizeof value) &&
		strcmp(value, "off") != 0)
		what_if->policy = strcmp(value, "on") == 0 ? &gpc_policy_vmm : &gpc_policy_vmm_auto;
	if (has_whole_segments(recording))
		what_if->policy = &gpc_policy_none;
	return !gpc_report_read_option(recording, "cache", value, sizeof value) ||
	       strcmp(value, "off") != 0;
}

/* Cuts the trace after the failed request, and makes that an allocation.  Returns false if the trace lacks it. */
static bool cut_at_request(struct gpc_trace *trace, const struct gpucache_oom *oom)
{
	for (uint64_t i = 0; i < trace->n_ops; i++) {
		struct gpc_trace_op *op = &trace->ops[i];

		if (op->kind != GPC_TRACE_FAILURE || op->size != oom->requested ||
			op->time_ns < oom->time_ns)
			continue;
		op->kind = GPC_TRACE_ALLOC;
		trace->n_ops = i + 1;
		trace->n_slots++; /* replays size their arrays by n_slots */
		op->slot = trace->n_slots - 1;
		return true;
	}
	return false;
}

bool gpc_what_if_open(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_what_if *what_if)
{
	const struct gpucache_balance *b = &oom->balance;
	uint64_t ours = gpc_bytes_add(
		gpc_bytes_add(b->requested, b->rounding), gpc_bytes_add(b->pending, b->cached));

	*what_if = (struct gpc_what_if){ .recording = report->recording,
		.device_bytes = b->device_total };
	if (b->device_total == GPUCACHE_UNKNOWN || b->device_free == GPUCACHE_UNKNOWN ||
		oom->device < 0 || oom->kind != GPUCACHE_KIND_DEVICE ||
		!read_settings(report, oom, what_if))
		return false;
	what_if->fixed_bytes = gpc_bytes_less(b->device_total, gpc_bytes_add(b->device_free, ours));
	gpc_trace_from_recording(report->recording, oom->device, false, &what_if->trace);
	if (cut_at_request(&what_if->trace, oom))
		return true;
	gpc_trace_fini(&what_if->trace);
	return false;
}

void gpc_what_if_close(struct gpc_what_if *what_if)
{
	gpc_trace_fini(&what_if->trace);
}

static struct played play(const struct gpc_what_if *what_if, const struct gpc_policy_ops *policy,
	const struct gpc_policy_settings *settings)
{
	const struct gpc_run_settings how = {
		.policy = *settings, .device_bytes = what_if->device_bytes, .is_unwatched = true
	};
	struct played played = { .outcome = FAILED_BEFORE };
	struct gpc_trace trace = what_if->trace;
	struct gpc_run run;

	trace.fixed_bytes = what_if->fixed_bytes;
	if (gpc_run_once(&trace, policy, &how, &run) || run.broken)
		return played;
	played.live_bytes = run.live_at_end_bytes;
	if (run.has_failed && run.failed_event == trace.n_ops)
		played.outcome = FAILED;
	if (run.has_failed)
		return played;
	played.outcome = SERVED;
	played.free_bytes = gpc_bytes_less(what_if->device_bytes,
		gpc_bytes_add(what_if->fixed_bytes, run.reserved_at_end_bytes));
	return played;
}

/* True if the request is served with a device larger by `bytes`, or if the run had a limit, with the limit higher. */
static bool is_served_with_less(const struct gpc_what_if *what_if, uint64_t bytes)
{
	struct gpc_what_if more = *what_if;

	if (more.settings.limit_bytes)
		more.settings.limit_bytes = gpc_bytes_add(more.settings.limit_bytes, bytes);
	else
		more.device_bytes = gpc_bytes_add(more.device_bytes, bytes);
	return play(&more, more.policy, &more.settings).outcome == SERVED;
}

/* True if no allocator can serve the request: live bytes, the request and what others use exceed the device. */
static bool is_hopeless(const struct gpc_what_if *what_if)
{
	return gpc_bytes_add(what_if->live_bytes, what_if->fixed_bytes) > what_if->device_bytes;
}

/* ---- remedies ---- */

struct trial {
	const struct gpc_what_if *what_if;
	struct gpc_facts *facts;
	struct gpc_replayed_texts *texts;
	unsigned n; /* remedies found */
};

static void add_remedy(struct trial *trial, const char *setting, uint64_t free_bytes)
{
	char *text = trial->texts->remedies[trial->n];

	if (trial->n == GPC_MAX_REMEDIES)
		return;
	gpc_format(text, sizeof trial->texts->remedies[0], "%s", setting);
	if (trial->n++ == 0) {
		trial->facts->remedy = text;
		trial->facts->remedy_free = free_bytes;
	} else {
		trial->facts->remedy2 = text;
		trial->facts->remedy2_free = free_bytes;
	}
}

/* Adds the setting if a replay with this policy and these settings serves the request; returns whether it does. */
static bool try(struct trial *trial, const struct gpc_policy_ops *policy,
	const struct gpc_policy_settings *settings, const char *setting)
{
	struct played played = play(trial->what_if, policy, settings);

	if (played.outcome == SERVED)
		add_remedy(trial, setting, played.free_bytes);
	return played.outcome == SERVED;
}

static void try_without_roundup(struct trial *trial)
{
	struct gpc_policy_settings settings = trial->what_if->settings;

	settings.roundup_divisions = 0;
	if (trial->what_if->settings.roundup_divisions &&
		try(trial, trial->what_if->policy, &settings, "roundup_power2_divisions"))
		trial->facts->is_remedy_removal = GPC_YES;
}

/*
 * Tries vmm:auto, then vmm:on.  With vmm:auto, segments have pages only from the driver's first refusal on, which may
 * be too late.
 */
static void try_pages(struct trial *trial)
{
	const struct gpc_policy_settings *settings = &trial->what_if->settings;
	const bool is_first = trial->n == 0;

	if (trial->what_if->policy != &gpc_policy_gpucache ||
		!(try(trial, &gpc_policy_vmm_auto, settings, "vmm:auto") ||
			try(trial, &gpc_policy_vmm, settings, "vmm:on")))
		return;
	if (is_first)
		trial->facts->is_remedy_pages = GPC_YES;
}

/* The size of the largest segment before the request: that of the largest block, or GPC_MEDIUM_SEGMENT. */
static uint64_t find_largest_segment(const struct gpc_what_if *what_if)
{
	uint64_t largest = GPC_MEDIUM_SEGMENT;

	for (uint64_t i = 0; i + 1 < what_if->trace.n_ops; i++) {
		const struct gpc_trace_op *op = &what_if->trace.ops[i];
		uint64_t size =
			op->kind == GPC_TRACE_ALLOC && op->size <= GPC_SIZE_MAX
				? gpc_size_round(op->size, what_if->settings.roundup_divisions)
				: 0;

		if (size > largest)
			largest = gpc_round_up(size, GPC_SEGMENT_ALIGN);
	}
	return largest;
}

static bool serves_with(void *arg, uint64_t max_split_size)
{
	struct trial *trial = arg;
	struct gpc_policy_settings settings = trial->what_if->settings;
	char setting[48];

	settings.max_split_size = max_split_size;
	gpc_format(setting, sizeof setting, "max_split_size_mb:%llu",
		(unsigned long long)(max_split_size / GPC_MIB));
	return try(trial, trial->what_if->policy, &settings, setting);
}

/* Values above the largest segment have no effect. */
static void try_max_split(struct trial *trial)
{
	const struct gpc_what_if *what_if = trial->what_if;

	if (!what_if->settings.max_split_size)
		(void)gpc_run_find_max_split(find_largest_segment(what_if), serves_with, trial);
}

void gpc_what_if_try_settings(const struct gpc_what_if *what_if, struct gpc_facts *facts,
	struct gpc_replayed_texts *texts)
{
	struct trial trial = { .what_if = what_if, .facts = facts, .texts = texts };

	facts->is_remedy_removal = GPC_NO;
	facts->is_remedy_pages = GPC_NO;
	if (!is_hopeless(what_if)) {
		try_without_roundup(&trial);
		try_pages(&trial);
		try_max_split(&trial);
	}
	if (facts->plain_serves == GPC_YES && facts->limit == GPUCACHE_UNKNOWN)
		add_remedy(&trial, "cache:off", facts->plain_free);
}

/*
 * Tries the bytes that were missing.  With more room, the replay may cut blocks elsewhere, and so need more: tries a
 * segment more, and then as many bytes as the request has.  0: unknown.
 */
static uint64_t find_enough(const struct gpc_what_if *what_if, const struct gpucache_oom *oom)
{
	const uint64_t missing = gpc_round_up(oom->short_by, GPC_RUN_DEVICE_STEP);
	const uint64_t tries[] = { missing, gpc_bytes_add(missing, GPC_MEDIUM_SEGMENT),
		gpc_round_up(oom->rounded > oom->requested ? oom->rounded : oom->requested,
			GPC_RUN_DEVICE_STEP) };

	for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++)
		if (tries[i] && is_served_with_less(what_if, tries[i]))
			return tries[i];
	return 0;
}

/* The largest size of each thread, rounded up to GPC_RUN_DEVICE_STEP, and the sum of these sizes. */
struct largest {
	struct gpc_map by_thread;
	uint64_t sum;
};

static void add_size(struct largest *largest, uint32_t thread, uint64_t size)
{
	/* A map has no key 0, but a recording may name a thread 0. */
	uint64_t *known = gpc_map_at(&largest->by_thread, (uint64_t)thread + 1);
	uint64_t rounded = gpc_round_up(size, GPC_RUN_DEVICE_STEP);

	if (rounded <= *known)
		return;
	largest->sum = gpc_bytes_add(largest->sum, rounded - *known);
	*known = rounded;
}

/*
 * The sum of each other thread's largest request that the limit refused: a limit with room for one of these requests
 * would still refuse the others.
 */
static uint64_t refused_to_others(
	const struct gpc_recording *recording, const struct gpucache_oom *oom)
{
	struct largest largest = { 0 };
	struct gpucache_oom other;

	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_OOMS].count; i++)
		if (gpc_recording_read_oom(recording, i, &other) && !other.recovered &&
			other.thread != oom->thread && other.device == oom->device &&
			other.verdict == GPUCACHE_VERDICT_LIMIT)
			add_size(&largest, other.thread, other.rounded);
	gpc_map_fini(&largest.by_thread);
	return largest.sum;
}

/* Only the first MAX_THREADS other threads count: a program may start a thread per task. */
#define MAX_THREADS 8

/*
 * Transient blocks of other threads: the sum of each thread's largest, because all may be live when the program runs
 * again.  Blocks larger than a segment are excluded: they stay live, or count in refused_to_others().
 */
static uint64_t passing_of_others(
	const struct gpc_recording *recording, const struct gpucache_oom *oom)
{
	struct gpc_event_cursor cursor = { 0 };
	struct largest largest = { 0 };
	struct gpucache_event event;

	while (gpc_recording_next_event(recording, &cursor, &event)) {
		if (event.kind != GPUCACHE_EVENT_MALLOC ||
			event.alloc_kind != GPUCACHE_KIND_DEVICE || event.device != oom->device ||
			event.thread == oom->thread || event.size > GPC_MEDIUM_SEGMENT)
			continue;
		if (largest.by_thread.n < MAX_THREADS ||
			*gpc_map_at(&largest.by_thread, (uint64_t)event.thread + 1))
			add_size(&largest, event.thread, event.size);
	}
	gpc_map_fini(&largest.by_thread);
	return largest.sum;
}

void gpc_what_if_enough(
	const struct gpc_what_if *what_if, const struct gpucache_oom *oom, struct gpc_facts *facts)
{
	uint64_t enough = find_enough(what_if, oom);
	uint64_t passing = passing_of_others(what_if->recording, oom);
	uint64_t more =
		gpc_bytes_add(gpc_bytes_add(enough, refused_to_others(what_if->recording, oom)),
			gpc_larger(passing, GPC_MARGIN));
	uint64_t limit = gpc_round_up(gpc_bytes_add(oom->limit, more), GPC_RUN_DEVICE_STEP);

	if (!enough)
		return;
	facts->enough = enough;
	if (oom->limit && limit <= oom->balance.device_total)
		facts->enough_mib = limit / GPC_MIB;
}

void gpc_what_if_play(struct gpc_what_if *what_if, struct gpc_facts *facts)
{
	const uint64_t requested = what_if->trace.ops[what_if->trace.n_ops - 1].size;
	struct played as_it_was = play(what_if, what_if->policy, &what_if->settings);
	struct played plain;

	what_if->live_bytes = gpc_bytes_add(as_it_was.live_bytes, requested);
	facts->is_whole = truth(gpc_trace_is_whole(&what_if->trace));
	facts->is_replayed = truth(as_it_was.outcome == FAILED);
	if (facts->is_replayed == GPC_NO || is_hopeless(what_if))
		return;
	plain = play(what_if, &gpc_policy_none, &what_if->settings);
	facts->plain_serves = truth(plain.outcome == SERVED);
	if (plain.outcome == SERVED)
		facts->plain_free = plain.free_bytes;
}
