/* SPDX-License-Identifier: Apache-2.0 */
/* A table by verdict of functions; each writes the numbers of its verdict as one sentence. */
#include "oom/evidence.h"

#include "base/bytes.h"
#include "model/torch.h"

static void explain_impossible(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	gpc_text_add_amounts(text, "@ was asked for, the whole GPU has @", v->need,
		v->oom->balance.device_total);
}

static void explain_limit(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	if (v->oom->kind == GPUCACHE_KIND_TENSOR)
		gpc_text_add_amounts(text,
			"PyTorch holds @ and refused @ by a limit of its own "
			"(set_per_process_memory_fraction)",
			v->oom->torch.reserved, v->need);
	else
		gpc_text_add_amounts(text,
			"@ held and @ asked for pass the limit of @ that is set for this process",
			v->charged, v->need, v->oom->limit);
}

static void explain_fragmented(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	const struct gpucache_oom_torch *torch = &v->oom->torch;
	uint64_t unused = gpc_torch_unused(torch);

	if (gpc_torch_is_fragmented(v->oom)) {
		gpc_text_add_amounts(text, "@ of PyTorch's cache is in no tensor, in ", unused);
		gpc_text_add(text, "%llu", (unsigned long long)(unused / torch->requested));
		gpc_text_add_amounts(
			text, " holes or more, none as large as the @ asked for", torch->requested);
		return;
	}
	gpc_text_add_amounts(text, "@ is cached and free, largest piece @, @ asked for",
		v->oom->balance.cached, v->piece, v->need);
	if (gpc_is_known(v->plain))
		gpc_text_add_amounts(text, "; without a cache about @ would be free", v->plain);
}

static void explain_pending(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	gpc_text_add_amounts(text, "@ was freed but the GPU may still be using it, @ was asked for",
		v->oom->balance.pending, v->need);
	if (v->facts->capturing)
		gpc_text_add(text, "; a stream capture was open, so nothing could wait for it");
}

static void explain_rounding(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	if (v->need > v->oom->requested && v->shortage <= v->need - v->oom->requested)
		gpc_text_add_amounts(text,
			"@ was asked for and would have fitted, rounded up to @ it did not",
			v->oom->requested, v->need);
	else
		gpc_text_add_amounts(text, "@ is lost to rounding @ of live allocations up",
			v->oom->balance.rounding, v->oom->balance.requested);
}

static void explain_neighbour(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	gpc_text_add_amounts(text, "@ is held by other processes, @ more was needed",
		v->oom->balance.other_processes, v->shortage);
}

static void explain_untracked(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	gpc_text_add_amounts(text,
		"@ is held by this process and not tracked (context, kernels, libraries)",
		v->oom->balance.process_outside);
}

static void explain_growth(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	gpc_text_add_amounts(
		text, "one call site grew by @ in the later part of the run", v->oom->growth_bytes);
	if (v->facts->is_renewed)
		gpc_text_add(text, ": it replaces its blocks by larger ones");
	else if (v->facts->growth_blocks > 0)
		gpc_text_add(text, ", in %llu blocks that it keeps",
			(unsigned long long)v->facts->growth_blocks);
}

static void explain_spike(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	if (v->facts->usual_live > 0 && gpc_is_known(v->facts->usual_live))
		gpc_text_add_amounts(text, "@ is needed now, @ was usual in this run",
			gpc_bytes_add(v->held, v->need), v->facts->usual_live);
	else
		gpc_text_add_amounts(text, "@ was asked for at once, @ is usual in this run",
			v->need, v->facts->usual_request);
}

static void explain_exhausted(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	uint64_t managed = v->oom->kind_bytes[GPUCACHE_KIND_MANAGED];

	gpc_text_add_amounts(text, "@ is live here, ", gpc_bytes_less(v->held, managed));
	if (managed)
		gpc_text_add_amounts(
			text, "@ of @ managed memory may be on the GPU, ", v->managed, managed);
	gpc_text_add_amounts(text, "@ in all was left, @ was asked for", v->sum, v->need);
}

static void explain_contexts(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	gpc_text_add(text, "%u", v->facts->n_contexts);
	gpc_text_add_amounts(text, " contexts of this process hold @, @ was asked for",
		v->oom->kind_bytes[GPUCACHE_KIND_CONTEXT], v->need);
}

static void explain_managed(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	gpc_text_add_amounts(text,
		"@ is managed memory, of which @ may lie on the GPU; @ was asked for",
		v->oom->kind_bytes[GPUCACHE_KIND_MANAGED], v->managed, v->need);
}

static void explain_pinned(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	gpc_text_add_amounts(text,
		"@ of the host's memory is pinned by this process, @ more was asked for",
		v->facts->host_bytes, v->oom->requested);
}

static void explain_driver(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	if (gpc_is_known(v->facts->free_before) && gpc_is_known(v->facts->free_after))
		gpc_text_add_amounts(text,
			"the driver refused @ with @ free before and @ free after its refusal",
			v->need, v->facts->free_before, v->facts->free_after);
	else
		gpc_text_add_amounts(text, "the driver refused @ with @ free", v->need, v->driver);
}

static void explain_wrong_pool(const struct gpc_verdict_view *v, struct gpc_text *text)
{
	gpc_text_add_amounts(text,
		"@ is free in one piece in another pool; @ was asked for, the largest piece of its "
		"own pool is @",
		v->facts->largest_other_pool, v->need, v->piece);
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
		gpc_text_add_amounts(
			text, "@ was asked for; the numbers do not say why it failed", view.need);
}
