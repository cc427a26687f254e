/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of tests, in order of precedence.  Each asks whether the request would have succeeded without its cause; the
 * first that is at least likely is the verdict, and the others that hold are kept as "also".
 */
#include "oom/verdict.h"

#include <stddef.h>

#include "base/bytes.h"
#include "model/balance.h"
#include "model/torch.h"
#include "stats/growth.h"

/* Other processes that hold less than 1 / SMALL_PART of the device are too small to be the cause. */
#define SMALL_PART 20u

/* A site with fewer blocks may be in a loop over the layers of a model: several sites keep one block of each layer. */
#define SOME_BLOCKS 12u

/* True if part > percent % of whole, and both are known.  Exact: the products fit into 128 bits. */
static bool passes_percent(uint64_t part, uint64_t whole, unsigned percent)
{
	return gpc_is_known(part) && gpc_is_known(whole) &&
	       (unsigned __int128)part * 100 > (unsigned __int128)whole * percent;
}

static bool is_impossible(const struct gpc_verdict_view *v)
{
	uint64_t total = v->oom->balance.device_total;
	uint64_t reserve = v->oom->balance.driver_reserve;

	if (!gpc_is_known(total) || total == 0)
		return false;
	return v->need > gpc_bytes_less(total, gpc_is_known(reserve) ? reserve : 0);
}

static enum gpucache_strength test_impossible(const struct gpc_verdict_view *v)
{
	return is_impossible(v) ? GPUCACHE_STRENGTH_CERTAIN : GPUCACHE_STRENGTH_NONE;
}

/* Certain only if the device had room: otherwise a higher limit would not have helped. */
static enum gpucache_strength test_limit(const struct gpc_verdict_view *v)
{
	if (!v->limited)
		return GPUCACHE_STRENGTH_NONE;
	if (!gpc_is_known(v->driver))
		return GPUCACHE_STRENGTH_LIKELY;
	return v->driver >= v->need ? GPUCACHE_STRENGTH_CERTAIN : GPUCACHE_STRENGTH_POSSIBLE;
}

/*
 * True if the request would have succeeded without another cause, which took `bytes`, and that cause took more than the
 * cache wastes.  Then that cause is the reason: without it the program would have run longer.
 */
static bool outweighs_waste(const struct gpc_verdict_view *v, uint64_t bytes)
{
	return gpc_is_known(v->plain) && gpc_is_known(bytes) && bytes > v->wasted &&
	       gpc_is_at_least(gpc_bytes_add(v->driver, bytes), v->need);
}

/* True if the plain driver would be short, too, or if neighbours or spare contexts took more than the cache wastes. */
static bool is_refuted(const struct gpc_verdict_view *v)
{
	return gpc_is_below(v->plain, v->need) || outweighs_waste(v, v->others) ||
	       outweighs_waste(v, v->contexts);
}

/*
 * All free pieces together would have been enough.  Only a replay can tell whether another placement of the blocks
 * would have left one piece that is large enough, so this verdict is never certain.
 */
static enum gpucache_strength test_fragmented(const struct gpc_verdict_view *v)
{
	uint64_t cached = v->oom->balance.cached;

	if (gpc_torch_is_fragmented(v->oom))
		return GPUCACHE_STRENGTH_LIKELY;
	if (!gpc_is_below(v->room, v->need) || !v->piece_known || v->piece >= v->need)
		return GPUCACHE_STRENGTH_NONE;
	if (!gpc_is_at_least(gpc_bytes_add(cached, v->room), v->need))
		return GPUCACHE_STRENGTH_NONE;
	if (v->scarce || outweighs_waste(v, v->others) || outweighs_waste(v, v->contexts) ||
		gpc_is_at_least(v->facts->largest_other_pool, v->need))
		return GPUCACHE_STRENGTH_POSSIBLE;
	return GPUCACHE_STRENGTH_LIKELY;
}

static enum gpucache_strength test_pending(const struct gpc_verdict_view *v)
{
	const struct gpucache_balance *sheet = &v->oom->balance;
	uint64_t without = gpc_bytes_add(v->room, sheet->cached);
	bool one_fits = gpc_is_at_least(v->facts->largest_pending, v->need) &&
			gpc_is_at_least(sheet->pending, v->need);

	if (!gpc_is_below(v->room, v->need) || v->piece >= v->need)
		return GPUCACHE_STRENGTH_NONE;
	if (gpc_is_below(without, v->need) &&
		gpc_is_at_least(gpc_bytes_add(without, sheet->pending), v->need))
		return one_fits ? GPUCACHE_STRENGTH_CERTAIN : GPUCACHE_STRENGTH_LIKELY;
	return one_fits ? GPUCACHE_STRENGTH_LIKELY : GPUCACHE_STRENGTH_NONE;
}

static enum gpucache_strength test_rounding(const struct gpc_verdict_view *v)
{
	const struct gpucache_balance *sheet = &v->oom->balance;
	uint64_t best = gpc_is_known(v->room) && v->room > v->piece ? v->room : v->piece;

	if (!gpc_is_below(v->room, v->need) || v->piece >= v->need || is_impossible(v))
		return GPUCACHE_STRENGTH_NONE;
	if (best >= v->oom->requested)
		return is_refuted(v) ? GPUCACHE_STRENGTH_POSSIBLE : GPUCACHE_STRENGTH_LIKELY;
	if (!passes_percent(sheet->rounding, sheet->requested, 10))
		return GPUCACHE_STRENGTH_NONE;
	return sheet->rounding >= v->shortage && !is_refuted(v) ? GPUCACHE_STRENGTH_LIKELY
								: GPUCACHE_STRENGTH_POSSIBLE;
}

static bool is_small(const struct gpc_verdict_view *v, uint64_t bytes)
{
	uint64_t total = v->oom->balance.device_total;

	return gpc_is_known(total) && gpc_is_at_least(total / SMALL_PART, bytes);
}

/* Certain if the others' bytes and the free ones suffice: the driver maps pages, so it needs no contiguous memory. */
static enum gpucache_strength test_neighbour(const struct gpc_verdict_view *v)
{
	uint64_t others = v->others;

	if (!(v->scarce || outweighs_waste(v, others)) || !gpc_is_known(others) || others == 0 ||
		!gpc_is_at_least(gpc_bytes_add(v->sum, others), v->need))
		return GPUCACHE_STRENGTH_NONE;
	if (is_small(v, others))
		return GPUCACHE_STRENGTH_POSSIBLE;
	return gpc_is_at_least(gpc_bytes_add(v->driver, others), v->need)
		       ? GPUCACHE_STRENGTH_CERTAIN
		       : GPUCACHE_STRENGTH_LIKELY;
}

static enum gpucache_strength test_contexts(const struct gpc_verdict_view *v)
{
	if (!(v->scarce || outweighs_waste(v, v->contexts)) || is_impossible(v) ||
		v->contexts == 0 ||
		!gpc_is_at_least(gpc_bytes_add(v->driver, v->contexts), v->need))
		return GPUCACHE_STRENGTH_NONE;
	return is_small(v, v->contexts) ? GPUCACHE_STRENGTH_POSSIBLE : GPUCACHE_STRENGTH_LIKELY;
}

static enum gpucache_strength test_managed(const struct gpc_verdict_view *v)
{
	if (!v->scarce || is_impossible(v) || v->managed == 0 ||
		!gpc_is_at_least(gpc_bytes_add(v->driver, v->managed), v->need))
		return GPUCACHE_STRENGTH_NONE;
	return is_small(v, v->managed) ? GPUCACHE_STRENGTH_POSSIBLE : GPUCACHE_STRENGTH_LIKELY;
}

static enum gpucache_strength test_untracked(const struct gpc_verdict_view *v)
{
	uint64_t outside = v->oom->balance.process_outside;
	bool big = passes_percent(outside, v->oom->balance.device_total, 15);
	bool enough = gpc_is_known(outside) && outside >= v->shortage;

	if (!v->scarce || is_impossible(v) || !(big || enough))
		return GPUCACHE_STRENGTH_NONE;
	return big && enough ? GPUCACHE_STRENGTH_LIKELY : GPUCACHE_STRENGTH_POSSIBLE;
}

/*
 * How likely it is that one loop keeps all it allocates, rather than the layers of a model (few blocks, from several
 * sites) or data loaded once (nothing is freed meanwhile; weights may be many, but of many sizes).  If several sites
 * keep as much, only their names tell a training loop from a loop over layers: gpumem-report looks at them.
 */
static enum gpucache_strength is_loop(const struct gpc_verdict_view *v)
{
	const struct gpc_verdict_facts *facts = v->facts;
	bool is_loaded = facts->n_free < facts->growth_blocks;

	if (facts->is_renewed)
		return GPUCACHE_STRENGTH_LIKELY;
	if (facts->growth_held_blocks >= GPC_GROWTH_MANY_BLOCKS)
		return is_loaded && facts->is_varied ? GPUCACHE_STRENGTH_NONE
						     : GPUCACHE_STRENGTH_LIKELY;
	if (facts->growth_blocks < SOME_BLOCKS || is_loaded)
		return GPUCACHE_STRENGTH_NONE;
	return facts->growth_others <= v->oom->growth_bytes / 2 ? GPUCACHE_STRENGTH_LIKELY
								: GPUCACHE_STRENGTH_POSSIBLE;
}

/*
 * True if the request may be for the next block of a site that replaces its blocks: it is at least as large as their
 * mean, and at most half larger.  Its stack does not tell: PyTorch's driver calls have other stacks than its tensors.
 */
static bool is_next_one(const struct gpc_verdict_view *v)
{
	const struct gpc_verdict_facts *facts = v->facts;
	uint64_t mean =
		facts->growth_held_blocks ? facts->growth_held / facts->growth_held_blocks : 0;

	return facts->is_renewed && v->need >= mean && v->need - mean <= mean / 2;
}

/* True if another cause took at least as much as the growth: without it the program would have run longer. */
static bool is_outweighed(const struct gpc_verdict_view *v)
{
	const struct gpc_verdict_facts *facts = v->facts;
	uint64_t growth = v->oom->growth_bytes;
	bool has_freed = facts->growth_held < facts->growth_total / 4 * 3;

	if (gpc_is_at_least(v->others, growth) || v->contexts >= growth)
		return true;
	/* The request itself is larger than the growth, and comes from another site. */
	if (v->need >= growth && v->oom->stack != v->oom->growth_stack && !is_next_one(v))
		return true;
	/* A site that freed much of what it allocated leaves holes, and need not keep growing. */
	return has_freed && v->wasted >= growth / 2;
}

static enum gpucache_strength test_growth(const struct gpc_verdict_view *v)
{
	uint64_t growth = v->oom->growth_bytes;
	enum gpucache_strength strength = is_loop(v);

	if (is_impossible(v) || !gpc_is_known(growth) || growth == 0 || growth < v->shortage)
		return GPUCACHE_STRENGTH_NONE;
	return strength && is_outweighed(v) ? GPUCACHE_STRENGTH_POSSIBLE : strength;
}

static enum gpucache_strength test_spike(const struct gpc_verdict_view *v)
{
	const struct gpc_verdict_facts *facts = v->facts;

	if (!(v->scarce || v->limited) || is_impossible(v))
		return GPUCACHE_STRENGTH_NONE;
	if (facts->usual_live > 0 &&
		passes_percent(gpc_bytes_add(v->held, v->need), facts->usual_live, 200))
		return GPUCACHE_STRENGTH_LIKELY;
	if (facts->usual_request > 0 && passes_percent(v->need, facts->usual_request, 200))
		return GPUCACHE_STRENGTH_POSSIBLE;
	return GPUCACHE_STRENGTH_NONE;
}

static enum gpucache_strength test_exhausted(const struct gpc_verdict_view *v)
{
	const struct gpucache_balance *sheet = &v->oom->balance;
	uint64_t sum = gpc_bytes_add(v->sum, v->managed);

	if (!v->scarce || is_impossible(v))
		return GPUCACHE_STRENGTH_NONE;
	if (is_small(v, v->most_other))
		return v->contexts || !gpc_is_below(sum, v->need) || test_growth(v)
			       ? GPUCACHE_STRENGTH_LIKELY
			       : GPUCACHE_STRENGTH_CERTAIN;
	if (gpc_is_below(gpc_bytes_add(sum, v->most_other), v->need))
		return GPUCACHE_STRENGTH_LIKELY;
	/* If NVML reports the others' bytes, the missing memory is theirs, not the program's. */
	if (gpc_is_known(sheet->other_processes) || !gpc_is_known(sheet->device_total))
		return GPUCACHE_STRENGTH_NONE;
	return v->held >= sheet->device_total / 2 ? GPUCACHE_STRENGTH_LIKELY
						  : GPUCACHE_STRENGTH_POSSIBLE;
}

static enum gpucache_strength test_pinned(const struct gpc_verdict_view *v)
{
	return gpucache_kind_place(v->oom->kind) == GPUCACHE_ON_HOST ? GPUCACHE_STRENGTH_LIKELY
								     : GPUCACHE_STRENGTH_NONE;
}

static enum gpucache_strength test_driver(const struct gpc_verdict_view *v)
{
	uint64_t before = v->facts->free_before;
	uint64_t after = v->facts->free_after;
	uint64_t lowest = before < after ? before : after; /* unknown is the largest value */

	if (!gpc_is_known(lowest))
		lowest = v->driver;
	if (v->limited || !gpc_is_at_least(lowest, gpc_bytes_add(v->need, GPC_DRIVER_STEP)))
		return GPUCACHE_STRENGTH_NONE;
	return gpc_is_known(before) && gpc_is_known(after) ? GPUCACHE_STRENGTH_CERTAIN
							   : GPUCACHE_STRENGTH_LIKELY;
}

static enum gpucache_strength test_wrong_pool(const struct gpc_verdict_view *v)
{
	if (!gpc_is_below(v->room, v->need) || !v->piece_known || v->piece >= v->need)
		return GPUCACHE_STRENGTH_NONE;
	return gpc_is_at_least(v->facts->largest_other_pool, v->need) ? GPUCACHE_STRENGTH_CERTAIN
								      : GPUCACHE_STRENGTH_NONE;
}

static const struct {
	enum gpucache_verdict verdict;
	enum gpucache_place place; /* of the requested memory */
	enum gpucache_strength (*test)(const struct gpc_verdict_view *view);
} tests[] = {
	{ GPUCACHE_VERDICT_IMPOSSIBLE, GPUCACHE_ON_DEVICE, test_impossible },
	{ GPUCACHE_VERDICT_LIMIT, GPUCACHE_ON_DEVICE, test_limit },
	{ GPUCACHE_VERDICT_CONTEXTS, GPUCACHE_ON_DEVICE, test_contexts },
	{ GPUCACHE_VERDICT_GROWTH, GPUCACHE_ON_DEVICE, test_growth },
	{ GPUCACHE_VERDICT_FRAGMENTED, GPUCACHE_ON_DEVICE, test_fragmented },
	{ GPUCACHE_VERDICT_PENDING, GPUCACHE_ON_DEVICE, test_pending },
	{ GPUCACHE_VERDICT_ROUNDING, GPUCACHE_ON_DEVICE, test_rounding },
	{ GPUCACHE_VERDICT_NEIGHBOUR, GPUCACHE_ON_DEVICE, test_neighbour },
	{ GPUCACHE_VERDICT_MANAGED, GPUCACHE_ON_DEVICE, test_managed },
	{ GPUCACHE_VERDICT_UNTRACKED, GPUCACHE_ON_DEVICE, test_untracked },
	{ GPUCACHE_VERDICT_SPIKE, GPUCACHE_ON_DEVICE, test_spike },
	{ GPUCACHE_VERDICT_EXHAUSTED, GPUCACHE_ON_DEVICE, test_exhausted },
	{ GPUCACHE_VERDICT_DRIVER, GPUCACHE_ON_DEVICE, test_driver },
	{ GPUCACHE_VERDICT_WRONG_POOL, GPUCACHE_ON_DEVICE, test_wrong_pool },
	{ GPUCACHE_VERDICT_PINNED, GPUCACHE_ON_HOST, test_pinned },
};

#define N_TESTS (sizeof tests / sizeof tests[0])

/*
 * True if test i applies to a request of this kind.  Kind TENSOR is PyTorch's own refusal, which depended neither on
 * our memory nor on the device's, so only four tests apply to it.
 */
static bool applies(size_t i, uint8_t kind)
{
	enum gpucache_verdict verdict = tests[i].verdict;

	if (kind == GPUCACHE_KIND_TENSOR)
		return verdict == GPUCACHE_VERDICT_IMPOSSIBLE ||
		       verdict == GPUCACHE_VERDICT_LIMIT || verdict == GPUCACHE_VERDICT_GROWTH ||
		       verdict == GPUCACHE_VERDICT_SPIKE;
	return gpucache_kind_place(kind) == tests[i].place;
}

void gpc_verdict_find(struct gpucache_oom *oom, const struct gpc_verdict_facts *facts)
{
	enum gpucache_verdict best = GPUCACHE_VERDICT_NONE;
	enum gpucache_strength best_strength = GPUCACHE_STRENGTH_NONE;
	struct gpc_verdict_view view;
	uint32_t holds = 0;

	gpc_verdict_view(oom, facts, &view);
	for (size_t i = 0; i < N_TESTS; i++) {
		enum gpucache_strength strength =
			applies(i, oom->kind) ? tests[i].test(&view) : GPUCACHE_STRENGTH_NONE;

		if (strength == GPUCACHE_STRENGTH_NONE)
			continue;
		holds |= 1u << tests[i].verdict;
		if (best_strength < GPUCACHE_STRENGTH_LIKELY && strength > best_strength) {
			best = tests[i].verdict;
			best_strength = strength;
		}
	}
	oom->verdict = (uint8_t)best;
	oom->strength = (uint8_t)best_strength;
	oom->also = holds & ~(1u << best);
	oom->short_by = view.shortage;
}
