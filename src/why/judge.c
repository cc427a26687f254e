/* SPDX-License-Identifier: Apache-2.0 */
/* judge_<cause>() asks, for each cause of causes.def, whether there would have been room without it. */
#include "model/torch.h"
#include "why/numbers.h"

#define BRIM_PART   16u /* a request below this part of the GPU is small */
#define MINOR_PART  64u
#define FEW_FREES   8u
#define MANY_FREES  8u  /* for each block that is kept */
#define SOME_BLOCKS 12u /* fewer may be of a loop over layers */
#define SPIKE       2u

typedef enum gpucache_strength strength;

#define NONE     GPUCACHE_STRENGTH_NONE
#define POSSIBLE GPUCACHE_STRENGTH_POSSIBLE
#define LIKELY   GPUCACHE_STRENGTH_LIKELY
#define CERTAIN  GPUCACHE_STRENGTH_CERTAIN

static strength weaker(strength a, strength b)
{
	return a < b ? a : b;
}

static bool is_impossible(const struct gpc_facts *f)
{
	return or_none(f->total) && is_below(minus(f->total, or_none(f->reserve)), f->need);
}

/* True if the bytes of another cause are missing, and are more than the cache wastes: it is the better reason. */
static bool outweighs(const struct gpc_facts *f, uint64_t bytes)
{
	return is_below(f->wasted, bytes) && fits(f->need, plus(f->available, bytes));
}

/* LIKELY if room is short, and these bytes, a part of the GPU that counts, would have been enough. */
static strength by_room(const struct gpc_facts *f, uint64_t bytes)
{
	if (is_impossible(f) || !or_none(bytes) || !fits(f->need, plus(f->available, bytes)) ||
		!(f->is_scarce == GPC_YES || outweighs(f, bytes)))
		return NONE;
	return counts(f, bytes) ? LIKELY : POSSIBLE;
}

static strength judge_NONE(const struct gpc_facts *f)
{
	(void)f;
	return NONE;
}

static strength judge_IMPOSSIBLE(const struct gpc_facts *f)
{
	return is_impossible(f) ? CERTAIN : NONE;
}

static strength judge_GROWTH(const struct gpc_facts *f);

/* Certain only if the GPU had room: otherwise a higher limit would not have helped.  What grows fills a larger pool, too. */
static strength judge_LIMIT(const struct gpc_facts *f)
{
	if (f->is_limited != GPC_YES)
		return NONE;
	if (f->is_xla == GPC_YES && judge_GROWTH(f) >= LIKELY)
		return POSSIBLE;
	if (!is_known(f->available))
		return LIKELY;
	return f->would_fit == GPC_YES ? CERTAIN : POSSIBLE;
}

static strength judge_DRIVER(const struct gpc_facts *f)
{
	uint64_t least = gpc_smaller(f->free_before, f->free_after); /* unknown is the largest */

	if (f->is_limited == GPC_YES || is_impossible(f) ||
		!fits(plus(f->need, GPC_DRIVER_STEP), is_known(least) ? least : f->available))
		return NONE;
	return is_known(f->free_before) && is_known(f->free_after) ? CERTAIN : LIKELY;
}

static strength judge_CONTEXTS(const struct gpc_facts *f)
{
	return by_room(f, f->spare_contexts);
}

/* True if what grows took more: without these bytes the program would have failed a little later. */
static bool grew_more(const struct gpc_facts *f, uint64_t bytes)
{
	return gpc_larger(or_none(f->growth), or_none(f->kept_bytes)) > bytes;
}

static strength judge_PREALLOCATED(const struct gpc_facts *f)
{
	if (is_impossible(f))
		return NONE;
	if ((f->framework && is_missing_from(f, f->framework_bytes)) || f->has_taken == GPC_YES)
		return LIKELY;
	if (f->may_be_served == GPC_YES)
		return LIKELY;
	if (f->is_by_other != GPC_YES)
		return NONE;
	/* Nothing can be called within a backward pass. */
	return f->is_in_backward == GPC_YES || grew_more(f, f->torch_spare) ? POSSIBLE : LIKELY;
}

/* How many blocks it got while it grew. */
static uint64_t blocks_gained(const struct gpc_facts *f)
{
	uint64_t mean = f->growth_blocks ? f->growth_held / f->growth_blocks : 0;

	return mean ? gpc_smaller(f->growth / mean, f->growth_blocks) : f->growth_blocks;
}

/* True if what grows was loaded: next to nothing was freed, and the parts are few, or another line asks for more. */
static bool is_loaded(const struct gpc_facts *f)
{
	uint64_t mean = f->growth_blocks ? f->growth_held / f->growth_blocks : 0;

	return is_below(f->n_frees, gpc_smaller(blocks_gained(f), FEW_FREES)) &&
	       (f->growth_blocks < GPC_LOADED_BLOCKS ||
		       (f->asked_site != f->growth_site && f->need / 4 > mean));
}

/*
 * How likely one loop keeps all it allocates, rather than the layers of a model (few blocks, from several sites) or
 * data loaded once (little is freed meanwhile, or weights, which may be many, but of many sizes).
 */
static strength is_loop(const struct gpc_facts *f)
{
	/* The frees are counted in whole windows, of which the growth has some eight. */
	uint64_t gained = blocks_gained(f);
	bool has_freed_less = is_below(f->n_frees, gained - gained / 4);
	bool is_layers;

	if (f->is_renewed == GPC_YES || f->is_repeated == GPC_YES ||
		f->are_frees_refused == GPC_YES)
		return LIKELY;
	if (is_loaded(f))
		return f->growth_blocks >= GPC_MANY_BLOCKS && f->is_varied != GPC_YES ? POSSIBLE
										      : NONE;
	if (f->growth_blocks >= GPC_MANY_BLOCKS)
		return has_freed_less && f->is_varied == GPC_YES ? NONE : LIKELY;
	/* PyTorch makes each weight of a model with a temporary one. */
	if (f->growth_blocks < SOME_BLOCKS || has_freed_less ||
		(or_none(f->torch_held) && is_below(f->n_frees, 2 * gained)))
		return NONE;
	/* Several lines in step may be the layers of a model that PyTorch runs once, unless much was freed meanwhile. */
	is_layers =
		or_none(f->torch_held) && is_below(f->n_frees, gpc_bytes_times(MANY_FREES, gained));
	/* What a line mostly frees is no layer's: one leak may be of several lines. */
	if (!or_none(f->torch_held) && fits(gpc_bytes_times(2, f->growth_held), f->growth_total) &&
		fits(gpc_bytes_times(MANY_FREES, gained), f->n_frees))
		return LIKELY;
	return or_none(f->growth_others) <= (is_layers ? f->growth / 2 : f->growth / 4 * 5)
		       ? LIKELY
		       : POSSIBLE;
}

/*
 * True if the request may be for the next block of a site that replaces its blocks: as large as their mean, and at most
 * half larger.  Its stack does not tell: PyTorch's driver calls have other stacks than its tensors.
 */
static bool is_next_one(const struct gpc_facts *f)
{
	uint64_t mean = f->growth_blocks ? f->growth_held / f->growth_blocks : 0;

	return f->is_renewed == GPC_YES && f->need >= mean && f->need - mean <= mean / 2;
}

/* True if the plain driver, if it did not serve, would be short, too, or if others or spare contexts took more than the cache wastes. */
static bool is_refuted(const struct gpc_facts *f)
{
	return (f->is_caching == GPC_YES && is_below(f->plain, f->need)) ||
	       outweighs(f, f->others) || outweighs(f, f->spare_contexts);
}

/* The request is for the next block of what is renewed: without growth it would have been smaller. */
static bool is_its_next(const struct gpc_facts *f)
{
	return f->is_renewed == GPC_YES && f->asked_site == f->growth_site;
}

/* True if another cause took at least as much: without it the program would have run longer. */
static bool is_outweighed(const struct gpc_facts *f)
{
	bool has_freed = is_below(f->growth_held, f->growth_total / 4 * 3) && !is_its_next(f);

	if (fits(f->growth, f->others) || fits(f->growth, f->spare_contexts))
		return true;
	if ((f->has_holes == GPC_YES || f->is_private == GPC_YES) && f->growth <= f->torch_unused)
		return true;
	if ((f->torch_rounded == GPC_YES && f->growth_blocks < SOME_BLOCKS) ||
		(f->pads_rows == GPC_YES && fits(f->growth / 4, f->row_padding)))
		return true;
	/* Rounding took more, or a part that counts of what may have been loaded, and would have been enough. */
	if (fits(is_below(f->n_frees, blocks_gained(f)) ? f->growth / 4 : f->growth, f->rounding) &&
		fits(or_none(f->short_by), f->rounding) && !is_refuted(f))
		return true;
	/* The request itself is larger than the growth, and comes from another site. */
	if (f->need >= f->growth && f->asked_site != f->growth_site && !is_next_one(f))
		return true;
	/* A site that freed much of what it allocated leaves holes, and need not keep growing. */
	return has_freed && fits(f->growth / 2, f->wasted);
}

static strength judge_GROWTH(const struct gpc_facts *f)
{
	if (is_impossible(f))
		return NONE;
	if (or_none(f->kept_passes) || f->is_left_over == GPC_YES)
		return LIKELY;
	/* Nothing stays. */
	if (f->needs_more == GPC_YES)
		return NONE;
	/* What is renewed by a larger block would not have asked for so much. */
	if (!or_none(f->growth) || f->outgrows == GPC_YES ||
		(f->growth < or_none(f->short_by) && !is_its_next(f)))
		return NONE;
	/* An optimizer makes its state in its first step, layer by layer, and never again. */
	if (f->growth_purpose == GPC_PURPOSE_OPTIMIZER && f->is_first_step == GPC_YES)
		return NONE;
	/* One pass makes as many gradients as there are weights. */
	if (f->growth_purpose == GPC_PURPOSE_GRADIENTS && or_none(f->weights) &&
		or_none(f->gradients) <= f->weights)
		return NONE;
	return is_outweighed(f) || f->is_one_pass == GPC_YES || f->is_one_model == GPC_YES
		       ? weaker(is_loop(f), POSSIBLE)
		       : is_loop(f);
}

static bool is_short_of_room(const struct gpc_facts *f)
{
	return is_below(f->room, f->need) && or_none(f->piece) < f->need;
}

static strength judge_ROUNDING(const struct gpc_facts *f)
{
	/* A replay with other settings rounds up, too. */
	uint64_t rounded = or_none(f->is_caching == GPC_NO ? f->held : minus(f->held, f->rounding));
	bool is_large = is_below(rounded / 4, f->rounding);
	strength most = f->is_replayed == GPC_YES && !is_large ? POSSIBLE : LIKELY;

	if (f->is_remedy_removal == GPC_YES)
		return f->is_whole == GPC_YES ? CERTAIN : LIKELY;
	if (!is_short_of_room(f) || is_impossible(f))
		return NONE;
	if (f->torch_rounded == GPC_YES || f->pads_rows == GPC_YES)
		return LIKELY;
	if (f->is_rounded_up == GPC_YES)
		return is_refuted(f) ? POSSIBLE : most;
	if (!is_below(rounded / 10, f->rounding))
		return NONE;
	return fits(or_none(f->short_by), f->rounding) && !is_refuted(f) ? most : POSSIBLE;
}

/*
 * True for a small request when little is wasted: the GPU is full, so the next requests would fail under any placement.
 */
static bool is_at_brim(const struct gpc_facts *f)
{
	uint64_t wasted = minus(plus(or_none(f->plain_free), f->asked), f->available);

	return !is_part(f, f->asked, BRIM_PART) && is_known(wasted) &&
	       !is_part(f, wasted, WASTED_PART);
}

/* All free pieces together would have been enough. */
static strength judge_FRAGMENTED(const struct gpc_facts *f)
{
	bool is_cured =
		f->plain_serves == GPC_YES || (f->remedy && f->is_remedy_removal != GPC_YES);

	if (is_impossible(f) || f->is_torch_limit == GPC_YES)
		return NONE;
	/* Our replays move neither PyTorch's tensors nor the driver's steps. */
	if (f->has_holes == GPC_YES || f->has_pinned_pages == GPC_YES || f->pins_pages == GPC_YES ||
		(f->idles_in_pools == GPC_YES && f->pends_in_pools != GPC_YES))
		return LIKELY;
	if (is_cured && (outweighs(f, f->others) || is_at_brim(f)))
		return POSSIBLE;
	if (is_cured)
		return f->is_whole == GPC_YES ? CERTAIN : LIKELY;
	if (!is_missing_from(f, f->cached) || !is_known(f->piece) || f->piece >= f->need)
		return NONE;
	if (outweighs(f, f->others) || outweighs(f, f->spare_contexts) ||
		fits(f->need, f->other_piece) || !is_part(f, f->cached, MINOR_PART))
		return POSSIBLE;
	/* No setting served the request, but much of the GPU may still be free in pieces. */
	if (f->is_replayed == GPC_YES)
		return is_part(f, f->cached, WASTED_PART) ? LIKELY : POSSIBLE;
	return f->is_scarce == GPC_YES ? POSSIBLE : LIKELY;
}

static strength judge_PENDING(const struct gpc_facts *f)
{
	uint64_t without = plus(f->room, f->cached);
	bool one_fits = fits(f->need, f->largest_pending) && fits(f->need, f->pending);

	if (!is_short_of_room(f))
		return NONE;
	if (f->pends_in_pools == GPC_YES)
		return LIKELY;
	if (is_below(without, f->need) && fits(f->need, plus(without, f->pending)))
		return one_fits ? CERTAIN : LIKELY;
	return one_fits ? LIKELY : NONE;
}

/* Certain if the others' bytes and the free ones suffice: the driver maps pages, so it needs no contiguous memory. */
static strength judge_NEIGHBOUR(const struct gpc_facts *f)
{
	if (is_impossible(f) || !(f->is_scarce == GPC_YES || outweighs(f, f->others)) ||
		!or_none(f->others) || !fits(f->need, plus(f->left, f->others)))
		return NONE;
	if (!counts(f, f->others))
		return POSSIBLE;
	/* A pool takes a part of what is free when it is made. */
	if (f->is_torch_limit == GPC_YES)
		return fits(f->short_by, f->others / 2) ? LIKELY : POSSIBLE;
	return fits(f->need, plus(f->available, f->others)) ? CERTAIN : LIKELY;
}

static strength judge_MANAGED(const struct gpc_facts *f)
{
	return f->is_scarce == GPC_YES ? by_room(f, f->managed_here) : NONE;
}

static strength judge_UNTRACKED(const struct gpc_facts *f)
{
	uint64_t heap = f->has_heap == GPC_YES ? or_none(f->contexts) : 0;
	uint64_t bytes = plus(minus(or_none(f->outside), or_none(f->page_waste)), heap);
	bool is_big = is_part(f, bytes, 7);
	bool is_enough = or_none(bytes) && fits(or_none(f->short_by), bytes);

	if (f->is_scarce != GPC_YES || is_impossible(f) || !(is_big || is_enough))
		return NONE;
	return is_big && is_enough ? LIKELY : POSSIBLE;
}

/* Without a few steps of its kind before it, a step is no spike. */
#define STEPS 3u

/* What a spike adds is made by larger requests than this part of it. */
#define SPIKE_PART 256u

/* True if more is needed, beyond what stays from step to step or grew, than SPIKE times the most of a usual step. */
static bool is_beyond_usual(const struct gpc_facts *f)
{
	uint64_t base =
		plus(or_none(f->usual_base), plus(or_none(f->contexts), or_none(f->modules)));
	uint64_t usual = minus(f->usual_live, base);
	uint64_t grown = judge_GROWTH(f) >= LIKELY ? or_none(f->growth) : 0;

	/* Weights, and an optimizer's state, are no step's, though they may come after passes. */
	return f->asks_optimizer != GPC_YES && f->asks_weights != GPC_YES &&
	       or_none(f->usual_live) &&
	       is_below(gpc_bytes_times(usual, SPIKE),
		       minus(plus(f->in_use, f->need), plus(base, grown)));
}

static strength judge_SPIKE(const struct gpc_facts *f)
{
	if (is_impossible(f) || !(f->is_scarce == GPC_YES || f->is_limited == GPC_YES) ||
		is_below(f->freed_before, STEPS))
		return NONE;
	if (!is_beyond_usual(f) || !fits(minus(f->in_use, f->usual_live) / SPIKE_PART, f->need))
		return NONE;
	/* What makes it so large is known, and can be dropped. */
	return f->validating_place || f->failed_place || f->loaded_place || f->copy_place ? POSSIBLE
											  : LIKELY;
}

static strength judge_WRONG_POOL(const struct gpc_facts *f)
{
	if (is_short_of_room(f) && is_known(f->piece) && fits(f->need, f->other_piece))
		return CERTAIN;
	return f->is_private == GPC_YES ? LIKELY : NONE;
}

/* Without the names of frames nobody knows whether PyTorch's tensors are results that a program keeps, which is growth. */
static bool may_be_results(const struct gpc_facts *f)
{
	return or_none(f->torch_held) && f->is_xla != GPC_YES && !is_known(f->by_purpose);
}

/*
 * Many blocks that one line of a C program keeps may be a leak though little was freed beside them; and many small ones
 * beyond a usual step one that began too late for the windows of the run.
 */
static bool may_be_leak(const struct gpc_facts *f)
{
	if (f->keeps_all == GPC_YES || f->outgrows == GPC_YES || or_none(f->retried_bytes))
		return true;
	if (!or_none(f->torch_held) && or_none(f->growth) && f->growth >= or_none(f->short_by) &&
		f->growth_blocks >= GPC_MANY_BLOCKS)
		return true;
	return is_beyond_usual(f) && !judge_SPIKE(f) && !is_below(f->freed_before, STEPS);
}

/*
 * Certain if even a perfect placement of what is live has no room; likely if a real one has none, such as the driver's
 * (`plain`).  What is placed is what the program asked for: PyTorch's tensors, and not the cache that they lie in.
 */
static strength judge_EXHAUSTED(const struct gpc_facts *f)
{
	uint64_t tensors = or_none(f->torch_held) && fits(f->torch_held, f->live)
				   ? plus(f->live - f->torch_held, f->torch_live)
				   : f->live;
	uint64_t room = plus(f->available, f->slack);
	uint64_t waste = plus(or_none(tensors) / REAL_PART,
		or_none(f->torch_held) ? 2 * GPC_TORCH_LARGE_BUFFER : 0);
	uint64_t others = is_known(f->others) ? f->others : f->unattributed;
	uint64_t need = gpc_larger(f->need, or_none(f->step_left));
	bool is_cured = f->plain_serves == GPC_YES || f->remedy;

	if (is_impossible(f) || !or_none(f->short_by) || judge_WRONG_POOL(f) == CERTAIN ||
		(f->is_limited == GPC_YES && f->would_fit == GPC_YES))
		return NONE;
	/* The missing memory is theirs. */
	if (counts(f, others) && fits(f->need, plus(plus(f->left, or_none(f->managed)), others)))
		return is_known(f->others)                    ? NONE
		       : fits(or_none(f->total) / 2, f->held) ? LIKELY
							      : POSSIBLE;
	if (is_cured)
		return is_at_brim(f) ? LIKELY : NONE;
	/* PyTorch's cache can give it. */
	if (f->is_by_other == GPC_YES || f->may_be_served == GPC_YES || f->has_holes == GPC_YES ||
		f->is_private == GPC_YES || f->pends_in_pools == GPC_YES ||
		f->has_pinned_pages == GPC_YES)
		return POSSIBLE;
	if (!is_below(room, plus(need, waste)) && !is_below(f->plain, need) &&
		f->is_replayed != GPC_YES)
		return NONE;
	if (!is_below(room, f->need) || !is_known(f->growth) || judge_GROWTH(f) ||
		may_be_results(f) || may_be_leak(f) || f->torch_rounded == GPC_YES ||
		f->pads_rows == GPC_YES || or_none(f->spare_contexts) || f->managed_here ||
		counts(f, others))
		return LIKELY;
	return CERTAIN;
}

static strength judge_PINNED(const struct gpc_facts *f)
{
	return f->is_on_host == GPC_YES ? LIKELY : NONE;
}

/* ---- the table ---- */

enum basis {
	NUMBERS,
	RECORDS
};

static const struct cause {
	enum gpucache_verdict id;
	enum basis basis;
	const char *word;
	const char *meaning;
	strength (*judge)(const struct gpc_facts *facts);
} causes[] = {
#define CAUSE(id, basis, word, meaning, cure) \
	{ GPUCACHE_VERDICT_##id, basis, word, meaning, judge_##id },
#define BECAUSE(...)
#define AND(...)
#define TRY(...)
#define ELSE(...)
#define RERUN(...)
#define SHORT(...)
#include "why/causes.def"
};

#define N_CAUSES (sizeof causes / sizeof causes[0])

_Static_assert(
	N_CAUSES == GPUCACHE_VERDICT_COUNT, "each cause of the format has a row in causes.def");

/*
 * A refusal by PyTorch depends on neither our memory nor the GPU's; one of host memory on neither, too.  XLA's pool is
 * most of the GPU: what it refuses may fit nowhere.
 */
static bool is_asked_about(const struct gpc_facts *f, enum gpucache_verdict id)
{
	if (f->is_on_host == GPC_YES || id == GPUCACHE_VERDICT_PINNED)
		return f->is_on_host == GPC_YES && id == GPUCACHE_VERDICT_PINNED;
	return f->is_torch_limit != GPC_YES || id == GPUCACHE_VERDICT_IMPOSSIBLE ||
	       id == GPUCACHE_VERDICT_LIMIT || id == GPUCACHE_VERDICT_GROWTH ||
	       id == GPUCACHE_VERDICT_SPIKE ||
	       (f->is_xla == GPC_YES &&
		       (id == GPUCACHE_VERDICT_EXHAUSTED || id == GPUCACHE_VERDICT_NEIGHBOUR));
}

static strength judge(const struct gpc_facts *f, const struct cause *cause)
{
	strength found = is_asked_about(f, cause->id) ? cause->judge(f) : NONE;

	return cause->basis == RECORDS && f->n_dropped != 0 ? weaker(found, LIKELY) : found;
}

/* The first cause that is at least likely, else the first of the most certain ones. */
static struct gpc_answer judge_all(const struct gpc_facts *facts)
{
	struct gpc_answer answer = { .cause = GPUCACHE_VERDICT_NONE };

	for (size_t i = 0; i < N_CAUSES; i++) {
		strength found = judge(facts, &causes[i]);

		if (found)
			answer.possible |= 1u << causes[i].id;
		if (found >= LIKELY)
			answer.also |= 1u << causes[i].id;
		if (answer.strength < LIKELY && found > answer.strength) {
			answer.cause = causes[i].id;
			answer.strength = found;
		}
	}
	return answer;
}

struct gpc_answer gpc_why_then(struct gpc_facts *facts)
{
	struct gpc_answer answer;

	gpc_facts_derive(facts);
	answer = judge_all(facts);
	answer.also &= ~(1u << answer.cause);
	/* What grows fills the GPU in the end: nobody learns from that. */
	if (answer.cause == GPUCACHE_VERDICT_GROWTH)
		answer.also &= ~(1u << GPUCACHE_VERDICT_EXHAUSTED);
	if (answer.cause == GPUCACHE_VERDICT_EXHAUSTED && facts->may_leak == GPC_YES)
		answer.also |= 1u << GPUCACHE_VERDICT_GROWTH;
	answer.then_cause = answer.cause;
	answer.then_strength = answer.strength;
	return answer;
}

struct gpc_answer gpc_why(struct gpc_facts *facts)
{
	struct gpc_facts moment = *facts;
	struct gpc_answer answer;
	struct gpc_answer then;

	gpc_facts_forget(&moment, GPC_FROM_NAMES);
	gpc_facts_forget(&moment, GPC_FROM_REPLAY);
	then = gpc_why_then(&moment);
	answer = gpc_why_then(facts);
	answer.then_cause = then.cause;
	answer.then_strength = then.strength;
	if (then.strength == CERTAIN && answer.cause != then.cause) {
		answer.also = (answer.also | 1u << answer.cause) & ~(1u << then.cause);
		answer.cause = then.cause;
		answer.strength = CERTAIN;
	}
	return answer;
}

bool gpc_why_is_up_to_settings(const struct gpc_facts *facts)
{
	struct gpc_facts judged = *facts;

	gpc_facts_derive(&judged);
	for (size_t i = 0; causes[i].id != GPUCACHE_VERDICT_ROUNDING; i++)
		if (judge(&judged, &causes[i]) >= LIKELY)
			return false;
	return true;
}

static const struct cause *cause_of(unsigned id)
{
	size_t i = 0;

	while (i < N_CAUSES - 1 && causes[i].id != id)
		i++;
	return &causes[i]; /* the last one is NONE */
}

const char *gpc_cause_word(unsigned cause)
{
	return cause_of(cause)->word;
}

const char *gpc_cause_meaning(unsigned cause)
{
	return cause_of(cause)->meaning;
}

const char *gpc_strength_word(unsigned of)
{
	static const char *const words[] = { "unknown", "possible", "likely", "certain" };

	return words[of <= CERTAIN ? of : NONE];
}
