/* SPDX-License-Identifier: Apache-2.0 */
/* The DERIVED facts: each quantity is computed once, and each condition of causes.def is decided here. */
#include "model/torch.h"
#include "why/numbers.h"

#define LEAST_CONTEXT  (64 * GPC_MIB) /* a measured context has more */
#define MOST_CONTEXT   GPC_GIB        /* a context by itself has less */
#define HOLES_PART     4u             /* of PyTorch's cache: much */
#define RAN            12u /* blocks that the place of most activations has freed: more than a pass */
#define LARGE_PART     8u  /* an activation above this part of the GPU is large by itself */
#define RENEWED_BLOCKS 64u /* a buffer that doubles, or what each layer makes of a larger input */
#define JUMP           4u  /* the sum of blocks that double is below this part of the next */
#define LEAKED_BLOCKS  64u /* of a line that keeps all: fewer are seldom a leak */
#define FEW_BLOCKS     2u  /* a buffer, and the one that it replaces */
#define KEPT_BLOCKS    8u  /* fewer may be a program's few buffers */
#define ROUNDED_PART   3u /* rounding to 2^k and 1.5 * 2^k wastes less than this part of a tensor */
#define STATES         4u /* an optimizer keeps at most so many values per weight */
#define INPUTS_PART \
	7u /* results of passes whose graph is gone are below this part of their inputs */
#define STEP_STATES 3u /* Adam's step needs so many: two that it keeps, one for a time */

/* What would be free if every block of our segments were the driver's own. */
static uint64_t plain_room(const struct gpc_facts *f)
{
	uint64_t ours = plus(plus(f->live, f->rounding), plus(f->pending, f->cached));

	if (f->is_caching == GPC_NO)
		return f->available;
	return minus(plus(f->available, ours), f->plain_live);
}

/* An upper bound of resident managed memory: what nothing else explains. */
static uint64_t managed_here(const struct gpc_facts *f)
{
	uint64_t ours = plus(
		plus(f->live, or_none(f->rounding)), plus(or_none(f->pending), or_none(f->cached)));
	uint64_t taken = minus(plus(ours, or_none(f->direct)), or_none(f->managed));
	uint64_t rest = minus(minus(minus(f->total, f->available), taken), or_none(f->others));

	return gpc_smaller(or_none(f->managed), rest);
}

/* XLA's own pool refused. */
static bool is_xla_pool(const struct gpc_facts *f)
{
	return f->is_xla == GPC_YES && f->is_torch_limit == GPC_YES;
}

/* Arguments are in use, although donated ones are no arrays any more. */
static uint64_t xla_used(const struct gpc_facts *f)
{
	return gpc_larger(gpc_larger(or_none(f->pool_in_use), or_none(f->torch_live)),
		or_none(f->program_arguments));
}

/* What XLA's pool had for the request; 0 also where it had enough in all, but not in one piece. */
static uint64_t xla_room(const struct gpc_facts *f)
{
	uint64_t room = minus(f->torch_held, xla_used(f));

	return is_below(room, f->need) ? room : 0;
}

static void derive_limit(struct gpc_facts *f)
{
	bool is_torch = f->is_torch_limit == GPC_YES;
	uint64_t segment = gpc_torch_segment_size(or_none(f->need));
	uint64_t needed = is_xla_pool(f) ? plus(minus(f->torch_held, xla_room(f)), f->need)
			  : is_torch     ? plus(f->torch_held, segment)
					 : plus(f->charged, f->need);

	f->is_pool_full = truth(is_below(f->pool_max, plus(f->pool_used, f->need)));
	f->is_limited = truth(is_torch || is_below(f->limit, needed) || f->is_pool_full == GPC_YES);
	f->would_fit =
		truth(is_xla_pool(f) ? fits(needed, plus(f->torch_held, f->available))
				     : fits(f->need, plus(f->available, or_none(f->cached))));
	if (f->is_limited != GPC_YES || f->would_fit != GPC_YES || !is_known(needed) ||
		f->is_pool_full == GPC_YES)
		return;
	if (!is_torch)
		needed = plus(gpc_round_up(needed, GPC_MIB), GPC_MARGIN);
	/* XLA's message has two decimals. */
	if (is_xla_pool(f))
		needed = plus(needed, f->need / 256);
	if (f->total < 10000 || !fits(needed, f->total))
		return;
	f->needed_mib = needed / GPC_MIB;
	f->needed_fraction =
		gpc_smaller((needed + f->total / 10000 - 1) / (f->total / 10000), 10000);
}

/* Contexts that threads make at the same time cannot be measured one by one. */
static void derive_contexts(struct gpc_facts *f)
{
	uint64_t n = or_none(f->n_contexts);
	uint64_t bytes = or_none(f->contexts);

	f->are_unmeasured = truth(n > 1 && bytes < gpc_bytes_times(n, LEAST_CONTEXT) &&
				  is_below(n * LEAST_CONTEXT, f->outside));
	if (f->are_unmeasured == GPC_YES)
		bytes = gpc_smaller(plus(bytes, f->outside), gpc_bytes_times(n, MOST_CONTEXT));
	if (n > 0)
		f->spare_contexts = bytes / n * (n - 1);
	f->has_heap = truth(
		n == 1 && bytes > MOST_CONTEXT && fits(or_none(f->short_by), bytes - MOST_CONTEXT));
}

static void derive_sums(struct gpc_facts *f)
{
	uint64_t ours = plus(
		plus(f->live, or_none(f->rounding)), plus(or_none(f->pending), or_none(f->cached)));
	uint64_t implicit = plus(or_none(f->contexts), or_none(f->modules));
	uint64_t best;

	f->need = gpc_larger(f->asked, or_none(f->rounded));
	/* The driver's steps, unless no GPU is so large. */
	if (f->is_segment == GPC_YES && f->need <= f->total)
		f->need = gpc_round_up(f->need, GPC_DRIVER_STEP);
	/* A program needs its outputs and temporaries at once, and was refused a part of them. */
	if (is_xla_pool(f))
		f->need = gpc_larger(f->need,
			plus(or_none(f->program_temporaries), or_none(f->program_outputs)));
	f->held = minus(plus(plus(f->live, or_none(f->rounding)), or_none(f->direct)),
		plus(or_none(f->managed), or_none(f->pool_idle)));
	f->charged = minus(plus(ours, or_none(f->direct)), implicit);
	derive_limit(f);
	f->room = f->available;
	if (f->is_torch_limit == GPC_YES)
		f->room = is_xla_pool(f) ? xla_room(f) : GPUCACHE_UNKNOWN;
	else if (f->is_limited == GPC_YES)
		f->room = gpc_smaller(f->available, f->is_pool_full == GPC_YES
							    ? minus(f->pool_max, f->pool_used)
							    : minus(f->limit, f->charged));
	/* Pages come from the driver, not from our cache. */
	best = gpc_larger(or_none(f->room), f->is_physical == GPC_YES ? 0 : or_none(f->piece));
	/* Pieces cannot be joined, but idle segments would have gone back if that had been enough. */
	if (is_below(plus(f->room, f->returnable), f->need))
		best = gpc_larger(best, plus(f->room, f->returnable));
	f->is_on_gpu = truth(f->is_on_host != GPC_YES);
	f->short_by = is_known(f->room) && f->is_on_gpu == GPC_YES ? minus(f->need, best)
								   : GPUCACHE_UNKNOWN;
	f->to_free = is_known(f->short_by) ? gpc_round_up(f->short_by, GPC_DRIVER_STEP)
					   : GPUCACHE_UNKNOWN;
	f->left = plus(f->available, plus(or_none(f->cached), or_none(f->pending)));
	f->torch_unused = minus(f->torch_held, f->torch_live);
	f->in_use = minus(f->held, or_none(f->torch_unused));
	/* Of a part of a segment it gives back nothing. */
	f->torch_spare = is_known(f->torch_idle) ? f->torch_idle : f->torch_unused;
	f->slack = plus(plus(or_none(f->cached), or_none(f->pending)),
		plus(plus(or_none(f->rounding), or_none(f->pool_idle)),
			plus(or_none(f->page_waste), or_none(f->torch_unused))));
	f->most_room = plus(plus(f->available, or_none(f->cached)), f->held);
	f->most_room = minus(f->most_room, implicit);
	f->plain = plain_room(f);
	/* The driver alone would not round as we do. */
	if (is_known(f->plain) && is_known(f->asked))
		f->plain_fails = truth(f->is_caching == GPC_YES && f->is_on_gpu == GPC_YES &&
				       f->is_assumed != GPC_YES && f->plain_serves != GPC_YES &&
				       f->plain < f->asked);
	f->wasted = minus(f->plain, best);
	f->managed_here = managed_here(f);
	derive_contexts(f);
	f->is_scarce = truth(is_below(f->left, f->need) ||
			     (is_below(f->plain, f->need) && is_known(f->cached) &&
				     is_known(f->total) && f->cached < f->total / WASTED_PART));
}

/*
 * Before PyTorch gives up it returns each whole idle segment that it may: those that are left belong to pools of their own
 * (torch.cuda.MemPool, CUDA graphs), which no other request is served from.
 */
static bool is_private(const struct gpc_facts *f)
{
	return or_none(f->torch_asked) && f->is_first_ask != GPC_YES &&
	       f->is_torch_limit != GPC_YES && f->is_xla != GPC_YES &&
	       is_missing_from(f, f->torch_idle) && fits(f->torch_held / REAL_PART, f->torch_idle);
}

/*
 * With expandable segments the tensors and the request would have fitted, even if so many bytes and two large buffers
 * were wasted.  If so much is in holes, free memory may have to help.  PyTorch with expandable segments reserves more
 * than it asks our cache for.
 */
static bool has_holes(const struct gpc_facts *f, uint64_t wasted, uint64_t much)
{
	uint64_t tensors = plus(f->torch_live, wasted);
	uint64_t asked = gpc_larger(f->torch_asked, or_none(f->step_left));
	/* What is in pools of their own is joined to nothing; holes of graphs' pools are not told from others. */
	uint64_t idle = or_none(f->torch_idle);
	uint64_t holes = minus(f->torch_unused, idle);
	uint64_t needed = fits(much, holes) ? minus(asked, f->available) : asked;

	return or_none(f->torch_asked) && f->is_torch_limit != GPC_YES &&
	       f->has_graphs != GPC_YES && fits(f->torch_held, f->live) && fits(needed, holes) &&
	       fits(f->torch_held / REAL_PART, holes) &&
	       fits(plus(tensors, plus(asked, 2 * GPC_TORCH_LARGE_BUFFER)),
		       plus(minus(f->torch_held, idle), f->available));
}

/* As the runtime decides: not against a limit, and not beside processes that would run short. */
static void derive_spill(struct gpc_facts *f)
{
	bool has_room = is_known(f->host_room) && is_known(f->need) && f->need <= f->host_room;

	if (has_room && f->is_segment == GPC_YES && f->is_limited != GPC_YES &&
		or_none(f->others) <= f->total / GPC_SPILL_OTHERS)
		f->spillable = f->need;
}

/*
 * With expandable segments PyTorch gives back each page without a tensor, so what is in none lies beside tensors that pin
 * its pages.
 */
static bool has_pinned_pages(const struct gpc_facts *f)
{
	return f->is_physical == GPC_YES && or_none(f->torch_asked) && f->has_graphs != GPC_YES &&
	       is_known(f->freed_before) && f->freed_before >= RAN &&
	       fits(gpc_larger(f->need, f->torch_held / HOLES_PART), f->torch_unused);
}

static void derive_program(struct gpc_facts *f)
{
	uint64_t without = plus(f->program_arguments, or_none(f->program_temporaries));

	f->is_program = truth(is_xla_pool(f) && f->program);
	f->is_temporary =
		truth(or_none(f->program_temporaries) && fits(f->need / 2, f->program_temporaries));
	f->is_donatable = truth(or_none(f->program_outputs) &&
				fits(f->program_outputs, f->program_arguments) &&
				fits(or_none(f->short_by), f->program_outputs) &&
				fits(without, f->torch_held) && f->is_temporary != GPC_YES);
	f->is_output = truth(f->is_program == GPC_YES && fits(f->need / 2, f->program_outputs) &&
			     f->is_temporary != GPC_YES && f->is_donatable != GPC_YES);
	f->is_from_host =
		truth(is_xla_pool(f) && !f->program && is_below(f->torch_held / 2, f->need));
}

/* State, then temporaries, of one weight after the other, but of none that is frozen: it has no gradient. */
static uint64_t step_left(const struct gpc_facts *f)
{
	uint64_t trained =
		or_none(f->gradients) ? gpc_smaller(f->weights, f->gradients) : f->weights;

	uint64_t states = f->is_sgd == GPC_YES ? STEP_STATES - 1 : STEP_STATES;

	return is_known(trained) ? minus(gpc_bytes_times(trained, states), f->optimizer)
				 : GPUCACHE_UNKNOWN;
}

/* Frames do not tell a leak from what is needed if nothing is freed beside it. */
static bool keeps_all(const struct gpc_facts *f)
{
	/* Of PyTorch, what a step makes for itself is no leak, and weights are loaded once. */
	const bool may_be = !or_none(f->torch_held) || f->growth_purpose == GPC_PURPOSE_INPUTS ||
			    f->growth_purpose == GPC_PURPOSE_OTHER;

	return may_be && or_none(f->growth_site) && f->is_renewed != GPC_YES &&
	       f->needs_more != GPC_YES && fits(KEPT_BLOCKS, f->growth_blocks) &&
	       fits(f->growth_total, f->growth_held) &&
	       fits(f->held / 2, plus(f->growth_held, f->growth_others));
}

/* A buffer that doubles needs the old block beside the new one; a leak would ask for as much as it did before. */
static bool outgrows(const struct gpc_facts *f)
{
	bool is_next = !or_none(f->torch_held) && f->growth_blocks <= FEW_BLOCKS &&
		       f->asked_site == f->growth_site && is_below(f->growth_held, f->need);

	return is_next || is_below(gpc_bytes_times(f->growth_total, JUMP), f->need);
}

/* What grows, and of which use of PyTorch's memory. */
static void derive_growth(struct gpc_facts *f)
{
	uint64_t left = gpc_larger(or_none(f->retried_bytes), or_none(f->failed_bytes));
	bool grows = or_none(f->growth) != 0 || or_none(f->kept_passes) != 0;

	f->grows_graphs = truth(grows && f->is_captured == GPC_YES);
	f->grows_weights = truth(grows && f->growth_purpose == GPC_PURPOSE_WEIGHTS);
	f->grows_optimizer = truth(grows && f->growth_purpose == GPC_PURPOSE_OPTIMIZER);
	f->grows_results = truth(grows && f->growth_purpose == GPC_PURPOSE_ACTIVATIONS);
	/* A pass makes one for each weight, and needs a few more on its way. */
	f->grows_gradients = truth(
		grows && is_known(f->gradients) && is_known(f->weights) &&
		f->gradients / 2 > f->weights &&
		fits(gpc_larger(or_none(f->growth), or_none(f->kept_bytes)) / 2, f->gradients));
	/* A backward pass has freed what the results needed. */
	f->grows_inputs =
		truth(f->grows_results == GPC_YES && f->had_backward == GPC_YES &&
			is_known(f->inputs) && is_below(f->activations, f->inputs / INPUTS_PART));
	f->grew_all = truth(grows && fits(f->growth_held - f->growth_held / 16, f->growth));
	f->grows_single = truth(f->grows_results == GPC_YES && f->is_result_alone == GPC_YES);
	f->grows_some = truth(f->grows_results == GPC_YES && !or_none(f->kept_passes) &&
			      is_below(f->growth_held, f->growth_total / 2));
	f->grows_summed = truth(f->grows_results == GPC_YES && f->had_backward == GPC_NO);
	/* Many blocks do not get larger: a line that frees nearly all of them keeps some. */
	f->is_replaced = truth(f->is_renewed == GPC_YES && !or_none(f->kept_passes) &&
			       f->growth_blocks < RENEWED_BLOCKS);
	f->keeps_all = truth(keeps_all(f));
	/* A load of few blocks, or a request of another kind, is rather a need. */
	f->may_leak = truth(f->keeps_all == GPC_YES && f->growth_blocks >= LEAKED_BLOCKS &&
			    f->need / 2 <= f->growth_held / f->growth_blocks);
	f->outgrows = truth(f->is_renewed == GPC_YES && outgrows(f));
	f->is_left_over = truth(left && fits(gpc_larger(f->held / 2, or_none(f->short_by)), left));
	f->are_frees_refused = truth(grows && fits(f->growth_blocks / 2, f->refused_frees));
}

static void derive_request(struct gpc_facts *f)
{
	f->is_least_handle = truth(f->is_physical == GPC_YES && f->asked <= GPC_DRIVER_STEP);
	f->is_sized = truth(f->is_assumed != GPC_YES);
	f->is_missing = truth(or_none(f->short_by) != 0 && f->is_sized == GPC_YES);
	f->holds_enough = truth(
		or_none(f->short_by) != 0 && (!is_xla_pool(f) || fits(f->to_free, f->torch_live)));
	f->is_rounded_up = truth(is_below(f->asked, f->need) && is_known(f->room) &&
				 fits(f->asked, gpc_larger(f->room, or_none(f->piece))));
	f->pads_rows = truth(or_none(f->row_padding) && fits(f->short_by, f->row_padding) &&
			     is_part(f, f->row_padding, WASTED_PART));
	f->is_padded =
		truth(!is_xla_pool(f) && is_known(f->need) && f->need - f->asked > f->need / 100);
	f->is_for_tensor = truth(or_none(f->torch_asked) && f->is_torch_limit != GPC_YES &&
				 is_below(f->torch_asked + f->torch_asked / 100, f->asked));
	f->has_piece = truth(f->is_segment == GPC_YES && or_none(f->piece) != 0);
	f->is_negative = truth(is_known(f->asked) && f->asked > INT64_MAX);
	f->is_too_large = truth(is_below(f->most_room, f->need));
	f->has_batch = truth(or_none(f->torch_held) || f->is_xla == GPC_YES);
	f->can_replay = truth(f->is_caching == GPC_YES && f->is_replayed == GPC_NOT_KNOWN);
}

/* What the request is for, and what is held for that. */
static void derive_purposes(struct gpc_facts *f)
{
	f->asks_optimizer = truth(f->asked_purpose == GPC_PURPOSE_OPTIMIZER);
	if (f->asks_optimizer == GPC_YES)
		f->step_left = step_left(f);
	f->asks_weights = truth(f->asked_purpose == GPC_PURPOSE_WEIGHTS);
	f->is_first_step = truth(f->asks_optimizer == GPC_YES && or_none(f->weights) &&
				 fits(f->optimizer, f->weights * STATES));
	f->asks_at_once = truth(f->asked_purpose == GPC_PURPOSE_ACTIVATIONS &&
				is_part(f, f->torch_asked, LARGE_PART));
	f->asks_in_training = truth(
		f->asks_at_once == GPC_YES && f->is_generating != GPC_YES && or_none(f->gradients));
	/* The thread of the backward pass has workspaces of its own. */
	f->asks_gradients =
		truth((f->asked_purpose == GPC_PURPOSE_GRADIENTS ||
			      f->asked_purpose == GPC_PURPOSE_WORKSPACES) &&
			or_none(f->gradients) && is_below(f->gradients, or_none(f->weights)));
	f->asks_backward = truth(f->asked_purpose == GPC_PURPOSE_GRADIENTS &&
				 is_below(f->weights, f->torch_asked) &&
				 is_part(f, f->torch_asked, LARGE_PART));
	if (is_known(f->by_purpose))
		f->states = plus(
			plus(or_none(f->weights), or_none(f->gradients)), or_none(f->optimizer));
	f->is_states =
		truth(f->asks_weights == GPC_YES || f->asks_optimizer == GPC_YES ||
			f->asks_gradients == GPC_YES ||
			(f->asks_at_once != GPC_YES && f->asks_backward != GPC_YES &&
				is_known(f->by_purpose) && fits(f->by_purpose / 2, f->states)));
	f->is_activations =
		truth(is_known(f->activations) && fits(f->by_purpose / 2, f->activations) &&
			fits(or_none(f->short_by), f->activations));
	f->is_activations_again =
		truth(f->is_activations == GPC_YES && f->is_checkpointed == GPC_YES);
	f->holds_inputs = truth(is_known(f->inputs) && fits(f->by_purpose / 2, f->inputs));
	f->is_input = truth(f->is_activations == GPC_YES && f->is_generating == GPC_YES);
	f->is_trained = truth(f->trainer && f->is_phase != GPC_YES);
}

/* Free memory that the request could not use: of PyTorch's cache, and of others. */
static void derive_unused(struct gpc_facts *f)
{
	const bool is_torch = or_none(f->torch_held) && f->is_xla != GPC_YES;
	const bool has_run = is_known(f->freed_before) && f->freed_before >= RAN;
	const bool has_spare =
		is_torch && is_missing_from(f, plus(or_none(f->cached), f->torch_spare));

	f->has_unused =
		truth(f->is_xla != GPC_YES && fits(or_none(f->short_by) / 2, f->torch_unused));
	f->may_be_served = truth(has_spare && f->is_first_ask == GPC_YES);
	f->is_by_other = truth(has_spare && f->torch_asked == 0);
	f->torch_rounded = truth(f->torch_rounds == GPC_YES && is_below(f->room, f->need) &&
				 fits(or_none(f->short_by), f->torch_live / ROUNDED_PART));
	f->is_private = truth(is_private(f));
	f->is_of_graphs = truth(f->is_private == GPC_YES && f->has_graphs == GPC_YES);
	f->has_holes = truth(has_holes(f, f->torch_live / REAL_PART,
		has_run ? f->torch_held / HOLES_PART : f->torch_live));
	f->has_pinned_pages = truth(has_pinned_pages(f));
	f->pins_holes = truth(f->has_holes == GPC_YES && f->is_small == GPC_YES);
	f->may_join = truth(f->has_holes != GPC_YES && has_holes(f, 0, f->torch_held / HOLES_PART));
	/* What the same line asks for next is of the same use. */
	f->has_taken = truth(is_missing_from(f, f->taken) && f->taken_site != f->asked_site);
	f->idles_in_pools = truth(is_missing_from(f, f->pool_idle));
	f->pends_in_pools = truth(f->idles_in_pools == GPC_YES && f->pools_live == 0);
	f->pins_pages = truth(is_missing_from(f, f->page_waste));
}

void gpc_facts_derive(struct gpc_facts *facts)
{
	gpc_facts_forget(facts, GPC_FROM_DERIVED);
	facts->always = GPC_YES;
	derive_sums(facts);
	derive_request(facts);
	derive_program(facts);
	derive_purposes(facts);
	derive_unused(facts);
	derive_growth(facts);
	derive_spill(facts);
}
