/* SPDX-License-Identifier: Apache-2.0 */
/* A table by verdict of the sentences that give its numbers. */
#include "oom/evidence.h"

#include "base/bytes.h"
#include "model/torch.h"

/* Appends "<bytes><rest>". */
static void add(struct gpc_text *text, uint64_t bytes, const char *rest)
{
	gpc_text_add_bytes(text, bytes);
	gpc_text_add(text, "%s", rest);
}

static void explain_impossible(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	add(text, v->need, " was asked for, the whole GPU has ");
	add(text, v->oom->balance.device_total, "");
}

static void explain_limit(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	if (v->oom->kind == GPUCACHE_KIND_TENSOR) {
		gpc_text_add(text, "PyTorch holds ");
		add(text, v->oom->torch.reserved, " and refused ");
		add(text, v->need, " by a limit of its own (set_per_process_memory_fraction)");
		return;
	}
	add(text, v->charged, " held and ");
	add(text, v->need, " asked for pass the limit of ");
	add(text, v->oom->limit, " that is set for this process");
}

static void explain_fragmented(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	const struct gpucache_oom_torch *torch = &v->oom->torch;
	uint64_t unused = gpc_torch_unused(torch);

	if (gpc_torch_is_fragmented(v->oom)) {
		add(text, unused, " of PyTorch's cache is in no tensor, in ");
		gpc_text_add(text, "%llu holes or more, none as large as the ",
			(unsigned long long)(unused / torch->requested));
		add(text, torch->requested, " asked for");
		return;
	}
	add(text, v->oom->balance.cached, " is cached and free, largest piece ");
	add(text, v->piece, ", ");
	add(text, v->need, " asked for");
	if (gpc_is_known(v->plain)) {
		gpc_text_add(text, "; without a cache about ");
		add(text, v->plain, " would be free");
	}
}

static void explain_pending(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	add(text, v->oom->balance.pending, " was freed but the GPU may still be using it, ");
	add(text, v->need, " was asked for");
	if (v->facts->capturing)
		gpc_text_add(text, "; a stream capture was open, so nothing could wait for it");
}

static void explain_rounding(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	if (v->need > v->oom->requested && v->shortage <= v->need - v->oom->requested) {
		add(text, v->oom->requested,
			" was asked for and would have fitted, rounded up to ");
		add(text, v->need, " it did not");
		return;
	}
	add(text, v->oom->balance.rounding, " is lost to rounding ");
	add(text, v->oom->balance.requested, " of live allocations up");
}

static void explain_neighbour(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	add(text, v->oom->balance.other_processes, " is held by other processes, ");
	add(text, v->shortage, " more was needed");
}

static void explain_untracked(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	add(text, v->oom->balance.process_outside,
		" is held by this process and not tracked (context, kernels, libraries)");
}

static void explain_growth(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	gpc_text_add(text, "one call site grew by ");
	add(text, v->oom->growth_bytes, " in the later part of the run");
	if (v->facts->is_renewed)
		gpc_text_add(text, ": it replaces its blocks by larger ones");
	else if (v->facts->growth_blocks > 0)
		gpc_text_add(text, ", in %llu blocks that it keeps",
			(unsigned long long)v->facts->growth_blocks);
}

static void explain_spike(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	if (v->facts->usual_live > 0 && gpc_is_known(v->facts->usual_live)) {
		add(text, gpc_bytes_add(v->held, v->need), " is needed now, ");
		add(text, v->facts->usual_live, " was usual in this run");
		return;
	}
	add(text, v->need, " was asked for at once, ");
	add(text, v->facts->usual_request, " is usual in this run");
}

static void explain_exhausted(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	add(text, gpc_bytes_less(v->held, v->oom->kind_bytes[GPUCACHE_KIND_MANAGED]),
		" is live here, ");
	if (v->oom->kind_bytes[GPUCACHE_KIND_MANAGED]) {
		add(text, v->managed, " of ");
		add(text, v->oom->kind_bytes[GPUCACHE_KIND_MANAGED],
			" managed memory may be on the GPU, ");
	}
	add(text, v->sum, " in all was left, ");
	add(text, v->need, " was asked for");
}

static void explain_contexts(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	gpc_text_add(text, "%u contexts of this process hold ", v->facts->n_contexts);
	add(text, v->oom->kind_bytes[GPUCACHE_KIND_CONTEXT], ", ");
	add(text, v->need, " was asked for");
}

static void explain_managed(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	add(text, v->oom->kind_bytes[GPUCACHE_KIND_MANAGED], " is managed memory, of which ");
	add(text, v->managed, " may lie on the GPU; ");
	add(text, v->need, " was asked for");
}

static void explain_pinned(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	add(text, v->facts->host_bytes, " of the host's memory is pinned by this process, ");
	add(text, v->oom->requested, " more was asked for");
}

static void explain_driver(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	bool both = gpc_is_known(v->facts->free_before) && gpc_is_known(v->facts->free_after);

	gpc_text_add(text, "the driver refused ");
	if (both) {
		add(text, v->need, " with ");
		add(text, v->facts->free_before, " free before and ");
		add(text, v->facts->free_after, " free after its refusal");
		return;
	}
	add(text, v->need, " with ");
	add(text, v->driver, " free");
}

static void explain_wrong_pool(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	add(text, v->facts->largest_other_pool, " is free in one piece in another pool; ");
	add(text, v->need, " was asked for, the largest piece of its own pool is ");
	add(text, v->piece, "");
}

static void (*const explainers[GPUCACHE_VERDICT_COUNT])(
	const struct gpc_verdict_view *v, struct gpc_text *text) = {
	[GPUCACHE_VERDICT_IMPOSSIBLE] = explain_impossible,
	[GPUCACHE_VERDICT_LIMIT] = explain_limit,
	[GPUCACHE_VERDICT_FRAGMENTED] = explain_fragmented,
	[GPUCACHE_VERDICT_PENDING] = explain_pending,
	[GPUCACHE_VERDICT_ROUNDING] = explain_rounding,
	[GPUCACHE_VERDICT_NEIGHBOUR] = explain_neighbour,
	[GPUCACHE_VERDICT_UNTRACKED] = explain_untracked,
	[GPUCACHE_VERDICT_GROWTH] = explain_growth,
	[GPUCACHE_VERDICT_SPIKE] = explain_spike,
	[GPUCACHE_VERDICT_EXHAUSTED] = explain_exhausted,
	[GPUCACHE_VERDICT_DRIVER] = explain_driver,
	[GPUCACHE_VERDICT_WRONG_POOL] = explain_wrong_pool,
	[GPUCACHE_VERDICT_CONTEXTS] = explain_contexts,
	[GPUCACHE_VERDICT_MANAGED] = explain_managed,
	[GPUCACHE_VERDICT_PINNED] = explain_pinned,
};

void gpc_evidence_write(const struct gpucache_oom *oom, const struct gpc_verdict_facts *facts,
	struct gpc_text *text)
{
	struct gpc_verdict_view view;

	gpc_verdict_view(oom, facts, &view);
	if (oom->verdict < GPUCACHE_VERDICT_COUNT && explainers[oom->verdict])
		explainers[oom->verdict](&view, text);
	else
		add(text, view.need, " was asked for; the numbers do not say why it failed");
}
