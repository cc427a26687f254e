/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `causes` lists the possible causes of a failure.  Replays with and without a cause decide how certain the cause is.
 * If no replay is possible, a cause is at most as certain as the library's own verdict.
 */
#include "tools/gpumem-report/why/answer.h"

#include <string.h>

#include "base/bytes.h"
#include "model/torch.h"
#include "tools/gpumem-report/holders/by_library.h"
#include "tools/gpumem-report/holders/framework_pools.h"
#include "tools/gpumem-report/why/counterfactuals.h"

/* Waste below 1/WASTED_PART of the device is little, a request below 1/SMALL_PART of it is small. */
#define WASTED_PART 8
#define SMALL_PART  16

/* A framework's own pool: at least 1/FRAMEWORK_PART of the device, in at most FRAMEWORK_BLOCKS blocks. */
#define FRAMEWORK_PART   2
#define FRAMEWORK_BLOCKS 4

/* ---- the causes: how certain each is, judged by what would have happened without it ---- */

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

/* True if other processes hold more than the cache wastes, and at least as much as the request lacks. */
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
 * True for a small request when little is wasted: the device is full, so the next requests would fail under any
 * placement.
 */
static bool is_at_brim(const struct gpc_answer *answer)
{
	const struct gpucache_balance *b = &answer->oom.balance;
	uint64_t wasted = gpc_bytes_less(
		gpc_bytes_add(answer->plain_free_bytes, answer->oom.requested), b->device_free);

	return wasted < b->device_total / WASTED_PART &&
	       answer->oom.requested < b->device_total / SMALL_PART;
}

/* Results that the program keeps too long (kept_results.h) are likely the cause; the library cannot recognize them. */
static enum gpucache_strength judge_growth(const struct gpc_answer *answer)
{
	enum gpucache_strength strength = recorded(answer, GPUCACHE_VERDICT_GROWTH);

	if (answer->kept.stack)
		return GPUCACHE_STRENGTH_LIKELY;
	return answer->may_be_one_pass ? weaker(strength, GPUCACHE_STRENGTH_POSSIBLE) : strength;
}

static enum gpucache_strength judge_fragmented(const struct gpc_answer *answer)
{
	enum gpucache_strength strength = recorded(answer, GPUCACHE_VERDICT_FRAGMENTED);
	const struct gpucache_balance *b = &answer->oom.balance;

	/* Our replays cannot move PyTorch's tensors, so they neither prove nor refute holes in its cache. */
	if (!answer->is_replayed || gpc_torch_is_fragmented(&answer->oom))
		return weaker(strength, GPUCACHE_STRENGTH_LIKELY);
	/* Other processes hold more than the cache wastes, so that NEIGHBOUR is the better verdict. */
	if ((answer->is_served_plain || answer->n_remedies) && is_outweighed(answer))
		return GPUCACHE_STRENGTH_POSSIBLE;
	if (answer->is_served_plain || answer->n_remedies)
		return is_at_brim(answer) ? GPUCACHE_STRENGTH_POSSIBLE : proven(answer);
	/* No setting served the request, but much of the device may still be free in pieces. */
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

	if (answer->may_be_one_pass && strength)
		return GPUCACHE_STRENGTH_LIKELY;
	if (!answer->is_replayed)
		return strength;
	if ((answer->is_served_plain || answer->n_remedies) && !is_at_brim(answer))
		return GPUCACHE_STRENGTH_NONE;
	/*
	 * The library blamed the cache, or nothing.  But the request fails without the cache, too, or the device is so
	 * full that the next request would (is_at_brim()).
	 */
	if (answer->oom.verdict == GPUCACHE_VERDICT_FRAGMENTED ||
		answer->oom.verdict == GPUCACHE_VERDICT_NONE ||
		answer->oom.verdict == GPUCACHE_VERDICT_ROUNDING)
		return GPUCACHE_STRENGTH_LIKELY;
	return strength;
}

static enum gpucache_strength judge_preallocated(const struct gpc_answer *answer)
{
	uint64_t free_bytes = answer->oom.balance.device_free;

	if (!answer->framework || free_bytes == GPUCACHE_UNKNOWN ||
		gpc_bytes_add(free_bytes, answer->framework_bytes) < answer->oom.rounded)
		return GPUCACHE_STRENGTH_NONE;
	return GPUCACHE_STRENGTH_LIKELY;
}

/* In order of precedence, not quite that of oom/verdict.c.  If `judge` is NULL, the library's judgement stands. */
static const struct {
	enum gpucache_verdict verdict;
	enum gpucache_strength (*judge)(const struct gpc_answer *answer);
} causes[] = {
	{ GPUCACHE_VERDICT_IMPOSSIBLE, NULL },
	{ GPUCACHE_VERDICT_LIMIT, NULL },
	{ GPUCACHE_VERDICT_CONTEXTS, NULL },
	{ GPUCACHE_VERDICT_PREALLOCATED, judge_preallocated },
	{ GPUCACHE_VERDICT_GROWTH, judge_growth },
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

static enum gpucache_strength judge(const struct gpc_answer *answer, size_t cause)
{
	return causes[cause].judge ? causes[cause].judge(answer)
				   : recorded(answer, causes[cause].verdict);
}

/* True if all causes before ROUNDING are less than likely.  ROUNDING is the first cause that a setting can remove. */
static bool is_up_to_settings(const struct gpc_answer *answer)
{
	for (size_t i = 0; causes[i].verdict != GPUCACHE_VERDICT_ROUNDING; i++)
		if (judge(answer, i) >= GPUCACHE_STRENGTH_LIKELY)
			return false;
	return true;
}

/* True if the advice for the verdict gives the number of bytes that would have been enough. */
static bool is_told_by_bytes(const struct gpc_answer *answer)
{
	return answer->oom.verdict == GPUCACHE_VERDICT_LIMIT ||
	       answer->oom.verdict == GPUCACHE_VERDICT_SPIKE ||
	       answer->oom.verdict == GPUCACHE_VERDICT_EXHAUSTED;
}

static void decide(struct gpc_answer *answer)
{
	enum gpucache_verdict best = GPUCACHE_VERDICT_NONE;
	enum gpucache_strength best_strength = GPUCACHE_STRENGTH_NONE;
	uint32_t holds = 0;

	for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
		enum gpucache_strength strength = judge(answer, i);

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

static void find_kept(struct gpc_answer *answer)
{
	answer->may_be_one_pass = gpc_kept_may_be_one_pass(answer->report, &answer->oom);
	answer->kept = gpc_kept_find(answer->report, &answer->oom);
	if (!answer->kept.stack)
		return;
	answer->oom.growth_stack = answer->kept.stack;
	answer->oom.growth_bytes = answer->kept.bytes;
	answer->oom.is_renewed = 0;
}

/* Finds the largest holder, if it is a framework with an allocator of its own. */
static void find_framework(struct gpc_answer *answer)
{
	const struct gpucache_oom *oom = &answer->oom;
	GPC_TEXT(library, 64);

	if (oom->n_holders == 0 || oom->balance.device_total == GPUCACHE_UNKNOWN ||
		oom->holders[0].n_blocks > FRAMEWORK_BLOCKS ||
		oom->holders[0].bytes < oom->balance.device_total / FRAMEWORK_PART)
		return;
	gpc_library_name(answer->report->recording, oom->holders[0].stack, &library);
	answer->framework = gpc_framework_of(library.buf);
	if (answer->framework)
		answer->framework_bytes = oom->holders[0].bytes;
}

void gpc_answer_find(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_answer *ret_answer)
{
	struct gpc_answer *answer = ret_answer;
	struct gpc_what_if what_if;
	bool is_up_to;
	bool is_open;

	*answer = (struct gpc_answer){ .report = report, .oom = *oom };
	find_kept(answer);
	find_framework(answer);
	is_up_to = is_up_to_settings(answer);
	is_open = (is_up_to || is_told_by_bytes(answer)) && gpc_what_if_open(report, oom, &what_if);
	if (is_open)
		gpc_what_if_play(&what_if, answer);
	if (answer->is_replayed && is_up_to)
		gpc_what_if_try_settings(&what_if, answer);
	decide(answer);
	if (answer->is_replayed && is_told_by_bytes(answer))
		answer->enough_bytes = gpc_what_if_enough(&what_if, oom);
	if (is_open)
		gpc_what_if_close(&what_if);
}
