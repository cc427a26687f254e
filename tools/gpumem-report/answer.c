/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/gpumem-report/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/torch.h"
#include "tools/gpumem-report/libraries.h"
#include "tools/replay/run.h"

/* As in oom/verdict.c: smaller parts of the device are not the reason. */
#define WASTED_PART 8
#define SMALL_PART  16

/* A framework preallocates half of the device or more, in a block or a few. */
#define FRAMEWORK_PART   2
#define FRAMEWORK_BLOCKS 4

struct replay {
	struct gpc_trace trace; /* the request is its last operation */
	struct gpc_policy_settings settings;
	uint64_t device_bytes;
	uint64_t fixed_bytes; /* what lies outside our segments */
	bool has_cache;
};

enum outcome {
	FAILED_BEFORE, /* at an earlier request, or it could not be run */
	FAILED,
	SERVED,
};

/* ---- the replay ---- */

static uint64_t option_number(const struct gpc_recording *recording, const char *option)
{
	char value[64];

	return gpc_report_read_option(recording, option, value, sizeof value)
		       ? strtoull(value, NULL, 10)
		       : 0;
}

static void read_settings(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct replay *replay)
{
	const struct gpc_recording *recording = report->recording;
	char value[64];

	replay->settings = (struct gpc_policy_settings){
		.max_split_size = option_number(recording, "max_split_size_mb") * GPC_MIB,
		.roundup_divisions = (uint32_t)option_number(recording, "roundup_power2_divisions"),
		.limit_bytes = oom->limit ? gpc_bytes_less(oom->limit, oom->balance.direct) : 0,
	};
	if (gpc_report_read_option(recording, "garbage_collection_threshold", value, sizeof value))
		replay->settings.gc_threshold_ppm = (uint32_t)(strtod(value, NULL) * 1e6);
	replay->has_cache = !gpc_report_read_option(recording, "cache", value, sizeof value) ||
			    strcmp(value, "off") != 0;
}

/* The trace up to the request, which becomes an allocation like the others.  False: it is not in there. */
static bool cut_at_request(struct gpc_trace *trace, const struct gpucache_oom *oom)
{
	for (uint64_t i = 0; i < trace->n_ops; i++) {
		struct gpc_trace_op *op = &trace->ops[i];

		if (op->kind != GPC_TRACE_FAILURE || op->size != oom->requested ||
			op->time_ns < oom->time_ns)
			continue;
		op->kind = GPC_TRACE_ALLOC;
		trace->n_ops = i + 1;
		trace->n_slots++; /* an empty trace has room for this one */
		op->slot = trace->n_slots - 1;
		return true;
	}
	return false;
}

static bool open_replay(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct replay *replay)
{
	const struct gpucache_balance *b = &oom->balance;
	uint64_t ours = gpc_bytes_add(
		gpc_bytes_add(b->requested, b->rounding), gpc_bytes_add(b->pending, b->cached));

	*replay = (struct replay){ .device_bytes = b->device_total };
	if (b->device_total == GPUCACHE_UNKNOWN || b->device_free == GPUCACHE_UNKNOWN ||
		oom->device < 0 || oom->kind != GPUCACHE_KIND_DEVICE)
		return false;
	read_settings(report, oom, replay);
	replay->fixed_bytes = gpc_bytes_less(b->device_total, gpc_bytes_add(b->device_free, ours));
	if (!replay->has_cache ||
		gpc_trace_from_recording(report->recording, oom->device, &replay->trace))
		return false;
	if (cut_at_request(&replay->trace, oom))
		return true;
	gpc_trace_fini(&replay->trace);
	return false;
}

static enum outcome play(const struct replay *replay, const struct gpc_policy_ops *policy,
	const struct gpc_policy_settings *settings, uint64_t fixed_bytes, uint64_t *ret_free_bytes)
{
	const struct gpc_run_settings how = { .policy = *settings,
		.device_bytes = replay->device_bytes };
	struct gpc_trace trace = replay->trace;
	struct gpc_run run;

	trace.fixed_bytes = fixed_bytes;
	*ret_free_bytes = 0;
	if (gpc_run_once(&trace, policy, &how, &run) || run.broken)
		return FAILED_BEFORE;
	if (run.has_failed)
		return run.failed_event == trace.n_ops ? FAILED : FAILED_BEFORE;
	*ret_free_bytes = gpc_bytes_less(
		replay->device_bytes, gpc_bytes_add(fixed_bytes, run.reserved_at_end_bytes));
	return SERVED;
}

/* As the run was, but for so many bytes that nobody took. */
static bool is_served_with_less(const struct replay *replay, uint64_t bytes)
{
	struct gpc_policy_settings settings = replay->settings;
	uint64_t free_bytes;

	if (settings.limit_bytes)
		settings.limit_bytes = gpc_bytes_add(settings.limit_bytes, bytes);
	return bytes <= replay->fixed_bytes &&
	       play(replay, &gpc_policy_gpucache, &settings, replay->fixed_bytes - bytes,
		       &free_bytes) == SERVED;
}

/* ---- remedies ---- */

static void add_remedy(
	struct gpc_answer *answer, const char *setting, bool is_taken_out, uint64_t free_bytes)
{
	struct gpc_remedy *remedy;

	if (answer->n_remedies == GPC_MAX_REMEDIES)
		return;
	remedy = &answer->remedies[answer->n_remedies++];
	*remedy = (struct gpc_remedy){ .is_taken_out = is_taken_out, .free_bytes = free_bytes };
	gpc_format(remedy->setting, sizeof remedy->setting, "%s", setting);
}

static void try_without_roundup(const struct replay *replay, struct gpc_answer *answer)
{
	struct gpc_policy_settings settings = replay->settings;
	uint64_t free_bytes;

	settings.roundup_divisions = 0;
	if (replay->settings.roundup_divisions &&
		play(replay, &gpc_policy_gpucache, &settings, replay->fixed_bytes, &free_bytes) ==
			SERVED)
		add_remedy(answer, "roundup_power2_divisions", true, free_bytes);
}

/* The largest that helps keeps most of the cache's speed. */
static void try_max_split(const struct replay *replay, struct gpc_answer *answer)
{
	struct gpc_policy_settings settings = replay->settings;
	uint64_t free_bytes;
	char setting[48];

	for (uint64_t mib = 512; mib >= 32 && !replay->settings.max_split_size; mib /= 2) {
		settings.max_split_size = mib * GPC_MIB;
		if (play(replay, &gpc_policy_gpucache, &settings, replay->fixed_bytes,
			    &free_bytes) != SERVED)
			continue;
		gpc_format(
			setting, sizeof setting, "max_split_size_mb:%llu", (unsigned long long)mib);
		add_remedy(answer, setting, false, free_bytes);
		return;
	}
}

static void try_remedies(const struct replay *replay, struct gpc_answer *answer)
{
	try_without_roundup(replay, answer);
	try_max_split(replay, answer);
	if (answer->is_served_plain && answer->oom.limit == 0)
		add_remedy(answer, "cache:off", false, answer->plain_free_bytes);
}

/* How much less would have been enough: what was short, or a whole segment. */
static uint64_t find_enough(const struct replay *replay, const struct gpucache_oom *oom)
{
	const uint64_t tries[] = { gpc_round_up(oom->short_by, GPC_RUN_DEVICE_STEP),
		gpc_round_up(oom->rounded > oom->requested ? oom->rounded : oom->requested,
			GPC_RUN_DEVICE_STEP) };

	for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++)
		if (tries[i] && is_served_with_less(replay, tries[i]))
			return tries[i];
	return 0;
}

/* ---- the causes: how sure each is, by what would have happened without it ---- */

static enum gpucache_strength recorded(
	const struct gpc_answer *answer, enum gpucache_verdict verdict)
{
	if (answer->oom.verdict == verdict)
		return (enum gpucache_strength)answer->oom.strength;
	return answer->oom.also >> verdict & 1 ? GPUCACHE_STRENGTH_POSSIBLE
					       : GPUCACHE_STRENGTH_NONE;
}

static enum gpucache_strength weaker(enum gpucache_strength a, enum gpucache_strength b)
{
	return a < b ? a : b;
}

static enum gpucache_strength proven(const struct gpc_answer *answer)
{
	return answer->is_whole ? GPUCACHE_STRENGTH_CERTAIN : GPUCACHE_STRENGTH_LIKELY;
}

/* Whether others took more than the cache's pieces do, and enough. */
static bool is_outweighed(const struct gpc_answer *answer)
{
	const struct gpucache_balance *b = &answer->oom.balance;
	uint64_t need = answer->oom.rounded ? answer->oom.rounded : answer->oom.requested;
	uint64_t wasted =
		gpc_bytes_less(gpc_bytes_add(answer->plain_free_bytes, need), b->device_free);

	return b->other_processes != GPUCACHE_UNKNOWN && b->other_processes > wasted &&
	       b->other_processes >= gpc_bytes_less(need, b->device_free);
}

/*
 * A small request of a program that fills the device: the next ones would have failed, wherever the
 * blocks had been placed.
 */
static bool is_at_brim(const struct gpc_answer *answer)
{
	const struct gpucache_balance *b = &answer->oom.balance;
	uint64_t wasted = gpc_bytes_less(
		gpc_bytes_add(answer->plain_free_bytes, answer->oom.requested), b->device_free);

	return wasted < b->device_total / WASTED_PART &&
	       answer->oom.requested < b->device_total / SMALL_PART;
}

static enum gpucache_strength judge_fragmented(const struct gpc_answer *answer)
{
	enum gpucache_strength strength = recorded(answer, GPUCACHE_VERDICT_FRAGMENTED);
	const struct gpucache_balance *b = &answer->oom.balance;

	/* Holes of PyTorch's cache: no replay of ours can join them. */
	if (!answer->is_replayed || gpc_torch_is_fragmented(&answer->oom))
		return weaker(strength, GPUCACHE_STRENGTH_LIKELY);
	/* The library weighed it against what others hold, who took more. */
	if ((answer->is_served_plain || answer->n_remedies) && is_outweighed(answer))
		return GPUCACHE_STRENGTH_POSSIBLE;
	if (answer->is_served_plain || answer->n_remedies)
		return is_at_brim(answer) ? GPUCACHE_STRENGTH_POSSIBLE : proven(answer);
	/* Whoever had placed the blocks would have failed; still much is free, in pieces between them. */
	return weaker(strength, b->cached >= b->device_total / WASTED_PART
					? GPUCACHE_STRENGTH_LIKELY
					: GPUCACHE_STRENGTH_POSSIBLE);
}

static enum gpucache_strength judge_rounding(const struct gpc_answer *answer)
{
	if (answer->n_remedies && answer->remedies[0].is_taken_out)
		return proven(answer);
	return weaker(recorded(answer, GPUCACHE_VERDICT_ROUNDING),
		answer->is_replayed ? GPUCACHE_STRENGTH_POSSIBLE : GPUCACHE_STRENGTH_LIKELY);
}

static enum gpucache_strength judge_exhausted(const struct gpc_answer *answer)
{
	enum gpucache_strength strength = recorded(answer, GPUCACHE_VERDICT_EXHAUSTED);

	if (!answer->is_replayed)
		return strength;
	if ((answer->is_served_plain || answer->n_remedies) && !is_at_brim(answer))
		return GPUCACHE_STRENGTH_NONE;
	/* The library took free pieces for the reason, and no way to place the blocks would have joined them. */
	if (answer->oom.verdict == GPUCACHE_VERDICT_FRAGMENTED ||
		answer->oom.verdict == GPUCACHE_VERDICT_NONE ||
		answer->oom.verdict == GPUCACHE_VERDICT_ROUNDING)
		return GPUCACHE_STRENGTH_LIKELY;
	return strength;
}

static enum gpucache_strength judge_preallocated(const struct gpc_answer *answer)
{
	uint64_t free_bytes = answer->oom.balance.device_free;

	if (!answer->framework[0] || free_bytes == GPUCACHE_UNKNOWN ||
		gpc_bytes_add(free_bytes, answer->framework_bytes) < answer->oom.rounded)
		return GPUCACHE_STRENGTH_NONE;
	return GPUCACHE_STRENGTH_LIKELY;
}

/* In the order of the library's tests; NULL: as the library found. */
static const struct {
	enum gpucache_verdict verdict;
	enum gpucache_strength (*judge)(const struct gpc_answer *answer);
} causes[] = {
	{ GPUCACHE_VERDICT_IMPOSSIBLE, NULL },
	{ GPUCACHE_VERDICT_LIMIT, NULL },
	{ GPUCACHE_VERDICT_CONTEXTS, NULL },
	{ GPUCACHE_VERDICT_PREALLOCATED, judge_preallocated },
	{ GPUCACHE_VERDICT_GROWTH, NULL },
	{ GPUCACHE_VERDICT_ROUNDING, judge_rounding },
	{ GPUCACHE_VERDICT_FRAGMENTED, judge_fragmented },
	{ GPUCACHE_VERDICT_PENDING, NULL },
	{ GPUCACHE_VERDICT_NEIGHBOUR, NULL },
	{ GPUCACHE_VERDICT_MANAGED, NULL },
	{ GPUCACHE_VERDICT_UNTRACKED, NULL },
	{ GPUCACHE_VERDICT_SPIKE, NULL },
	{ GPUCACHE_VERDICT_EXHAUSTED, judge_exhausted },
	{ GPUCACHE_VERDICT_DRIVER, NULL },
	{ GPUCACHE_VERDICT_WRONG_POOL, NULL },
	{ GPUCACHE_VERDICT_PINNED, NULL },
};

_Static_assert(
	sizeof causes / sizeof causes[0] + 1 == GPUCACHE_VERDICT_COUNT, "a cause is missing");

static void decide(struct gpc_answer *answer)
{
	enum gpucache_verdict best = GPUCACHE_VERDICT_NONE;
	enum gpucache_strength best_strength = GPUCACHE_STRENGTH_NONE;
	uint32_t holds = 0;

	for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
		enum gpucache_strength strength = causes[i].judge
							  ? causes[i].judge(answer)
							  : recorded(answer, causes[i].verdict);

		if (strength == GPUCACHE_STRENGTH_NONE)
			continue;
		holds |= 1u << causes[i].verdict;
		if (best_strength < GPUCACHE_STRENGTH_LIKELY && strength > best_strength) {
			best = causes[i].verdict;
			best_strength = strength;
		}
	}
	answer->oom.verdict = (uint8_t)best;
	answer->oom.strength = (uint8_t)best_strength;
	answer->oom.also = holds & ~(1u << best);
}

/* The biggest holder, where it is a framework that hands memory out itself. */
static void find_framework(const struct gpc_report *report, struct gpc_answer *answer)
{
	static const char *const frameworks[] = { "XLA", "TensorFlow" };
	const struct gpucache_oom *oom = &answer->oom;
	struct gpc_text text = gpc_text_init(answer->framework, sizeof answer->framework);

	if (oom->n_holders == 0 || oom->balance.device_total == GPUCACHE_UNKNOWN ||
		oom->holders[0].n_blocks > FRAMEWORK_BLOCKS ||
		oom->holders[0].bytes < oom->balance.device_total / FRAMEWORK_PART)
		return;
	gpc_library_name(report->recording, oom->holders[0].stack, &text);
	for (size_t i = 0; i < sizeof frameworks / sizeof frameworks[0]; i++)
		if (strcmp(answer->framework, frameworks[i]) == 0)
			answer->framework_bytes = oom->holders[0].bytes;
	if (!answer->framework_bytes)
		answer->framework[0] = '\0';
}

static void replay_all(const struct gpc_report *report, struct gpc_answer *answer)
{
	const struct gpc_trace_recorded *recorded_part;
	struct replay replay;
	uint64_t free_bytes;

	if (!open_replay(report, &answer->oom, &replay))
		return;
	recorded_part = &replay.trace.recorded;
	answer->is_whole = recorded_part->n_held_before == 0 && recorded_part->n_missing == 0 &&
			   recorded_part->n_torn == 0 && !replay.trace.is_damaged;
	answer->is_replayed = play(&replay, &gpc_policy_gpucache, &replay.settings,
				      replay.fixed_bytes, &free_bytes) == FAILED;
	if (answer->is_replayed) {
		answer->is_served_plain =
			play(&replay, &gpc_policy_none, &replay.settings, replay.fixed_bytes,
				&answer->plain_free_bytes) == SERVED;
		try_remedies(&replay, answer);
		answer->enough_bytes = find_enough(&replay, &answer->oom);
	}
	gpc_trace_fini(&replay.trace);
}

void gpc_answer_find(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_answer *ret_answer)
{
	*ret_answer = (struct gpc_answer){ .oom = *oom };
	replay_all(report, ret_answer);
	find_framework(report, ret_answer);
	decide(ret_answer);
}
