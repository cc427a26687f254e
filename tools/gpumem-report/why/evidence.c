/* SPDX-License-Identifier: Apache-2.0 */
/* Each verdict has a sentence (show_sentence) or a function (`writers`) that appends its numbers, or needs none. */
#include "tools/gpumem-report/why/advice.h"

#include "base/bytes.h"
#include "model/torch.h"
#include "model/verdict.h"
#include "tools/gpumem-report/holders/call_sites.h"
#include "tools/gpumem-report/holders/framework_pools.h"

typedef void writer(const struct gpc_answer *answer, struct gpc_text *text);

/* Names the stack as the table of holders does, which skips wrappers. */
static void add_site(const struct gpc_report *report, const struct gpucache_oom *oom,
	uint32_t stack, struct gpc_text *text)
{
	const char *where = NULL;
	struct gpc_holdings holdings;
	struct gpc_groups sites;

	gpc_holdings_from_oom(&holdings, report, oom);
	gpc_sites_create(&sites, report, &holdings);
	for (size_t i = 0; i < sites.n && !where; i++)
		if (sites.rows[i].stack == stack)
			where = sites.rows[i].name;
	gpc_text_add(text, "%s", where ? where : "");
	gpc_groups_fini(&sites);
	gpc_holdings_fini(&holdings);
	if (!where)
		gpc_frames_site(report->frames, stack, text);
}

static void show_limit(const struct gpc_answer *answer, struct gpc_text *text)
{
	const struct gpucache_oom *oom = &answer->oom;

	if (oom->kind == GPUCACHE_KIND_TENSOR)
		gpc_text_add(text,
			" It is PyTorch's own (set_per_process_memory_fraction): the driver was "
			"not asked. PyTorch has %s in its cache, %s of it in no tensor.",
			gpc_show_bytes(oom->torch.reserved),
			gpc_show_bytes(gpc_torch_unused(&oom->torch)));
	else
		gpc_text_add(text, " The limit is %s, and %s of it are in use.",
			gpc_show_bytes(oom->limit),
			gpc_show_bytes(gpc_balance_charged(&oom->balance, oom->kind_bytes)));
}

/* Appends the holes of PyTorch's cache, and returns true, if they are the cause. */
static bool add_holes(const struct gpucache_oom *oom, struct gpc_text *text)
{
	if (!gpc_torch_is_fragmented(oom))
		return false;
	gpc_text_add(text, " Of PyTorch's cache %s are in no tensor, in %s holes or more, ",
		gpc_show_bytes(gpc_torch_unused(&oom->torch)),
		gpc_show_count(gpc_torch_unused(&oom->torch) / oom->torch.requested));
	gpc_text_add(
		text, "none as large as the %s asked for.", gpc_show_bytes(oom->torch.requested));
	return true;
}

static void show_pieces(const struct gpc_answer *answer, struct gpc_text *text)
{
	const struct gpucache_oom *oom = &answer->oom;
	const struct gpucache_balance *b = &oom->balance;

	if (add_holes(oom, text))
		return;
	gpc_text_add(text,
		" %s of cached memory are free, at most %s in one piece; %s were asked for.",
		gpc_show_bytes(b->cached), gpc_show_bytes(b->cached_largest),
		gpc_show_bytes(oom->requested));
	if (answer->is_served_plain)
		gpc_text_add(text,
			" Replayed on the driver without a cache, the request succeeds, and %s "
			"stay free.",
			gpc_show_bytes(answer->plain_free_bytes));
	else if (answer->is_replayed)
		gpc_text_add(
			text, " Replayed on the driver without a cache, the request fails, too.");
}

static void show_growth(const struct gpc_answer *answer, struct gpc_text *text)
{
	const struct gpucache_oom *oom = &answer->oom;
	const char *bytes = gpc_show_bytes(oom->growth_bytes);

	if (answer->kept.n_passes)
		gpc_text_add(text, " %s are results of %llu earlier passes, most of it from ",
			bytes, (unsigned long long)answer->kept.n_passes - 1);
	else
		gpc_text_add(text, " In the later part of the run it grew by %s: ", bytes);
	add_site(answer->report, oom, oom->growth_stack, text);
	gpc_text_add(
		text, "%s", oom->is_renewed ? ", which replaces its blocks by larger ones." : ".");
}

static void show_exhausted(const struct gpc_answer *answer, struct gpc_text *text)
{
	const struct gpucache_oom *oom = &answer->oom;
	const struct gpucache_balance *b = &oom->balance;
	uint64_t managed = oom->kind_bytes[GPUCACHE_KIND_MANAGED];

	gpc_text_add(text, " It holds %s of %s.",
		gpc_show_bytes(gpc_bytes_less(gpc_bytes_add(b->requested, b->direct), managed)),
		gpc_show_bytes(b->device_total));
	if (managed)
		gpc_text_add(text,
			" Another %s is managed memory, any part of which may be elsewhere.",
			gpc_show_bytes(managed));
}

static void show_framework(const struct gpc_answer *answer, struct gpc_text *text)
{
	gpc_text_add(text,
		" %s holds %s; it hands out pieces of it itself, so how much is in use cannot be "
		"told from outside.",
		answer->framework->name, gpc_show_bytes(answer->framework_bytes));
}

/* Appends the numbers of a verdict that one sentence explains; false for all other verdicts. */
static bool show_sentence(const struct gpucache_oom *oom, struct gpc_text *text)
{
	const struct gpucache_balance *b = &oom->balance;
	const char *asked = gpc_show_bytes(oom->requested);
	const char *total = gpc_show_bytes(b->device_total);
	const uint64_t *kinds = oom->kind_bytes;

	switch (oom->verdict) {
	case GPUCACHE_VERDICT_IMPOSSIBLE:
		gpc_text_add(text, " %s were asked for; the GPU has %s in all.", asked, total);
		return true;
	case GPUCACHE_VERDICT_PENDING:
		gpc_text_add(
			text, " %s were freed and wait for the GPU.", gpc_show_bytes(b->pending));
		return true;
	case GPUCACHE_VERDICT_ROUNDING:
		gpc_text_add(text, " %s are lost to it.", gpc_show_bytes(b->rounding));
		return true;
	case GPUCACHE_VERDICT_NEIGHBOUR:
		gpc_text_add(text, " Other processes hold %s, this one %s.",
			gpc_show_bytes(b->other_processes), gpc_show_bytes(gpc_balance_taken(b)));
		return true;
	case GPUCACHE_VERDICT_UNTRACKED:
		gpc_text_add(text, " It holds %s outside the allocator.",
			gpc_show_bytes(b->process_outside));
		return true;
	case GPUCACHE_VERDICT_SPIKE:
		gpc_text_add(text, " %s were asked for; the run's earlier peak was %s.", asked,
			gpc_show_bytes(oom->peak_requested));
		return true;
	case GPUCACHE_VERDICT_DRIVER:
		gpc_text_add(text, " It said %s were free; %s were asked for.",
			gpc_show_bytes(b->device_free), gpc_show_bytes(oom->rounded));
		return true;
	case GPUCACHE_VERDICT_CONTEXTS:
		gpc_text_add(text, " They hold %s of %s.",
			gpc_show_bytes(kinds[GPUCACHE_KIND_CONTEXT]), total);
		return true;
	case GPUCACHE_VERDICT_MANAGED:
		gpc_text_add(text, " It is %s.", gpc_show_bytes(kinds[GPUCACHE_KIND_MANAGED]));
		return true;
	case GPUCACHE_VERDICT_PINNED:
		gpc_text_add(text, " %s were asked for.", asked);
		return true;
	default:
		return false;
	}
}

/* For verdicts that need more than a sentence.  A verdict that is in neither table needs no numbers. */
static writer *const writers[GPUCACHE_VERDICT_COUNT] = {
	[GPUCACHE_VERDICT_LIMIT] = show_limit,
	[GPUCACHE_VERDICT_FRAGMENTED] = show_pieces,
	[GPUCACHE_VERDICT_GROWTH] = show_growth,
	[GPUCACHE_VERDICT_EXHAUSTED] = show_exhausted,
	[GPUCACHE_VERDICT_WRONG_POOL] = show_pieces,
	[GPUCACHE_VERDICT_PREALLOCATED] = show_framework,
};

void gpc_evidence_say(const struct gpc_answer *answer, struct gpc_text *ret_text)
{
	const struct gpucache_oom *oom = &answer->oom;

	if (oom->verdict == GPUCACHE_VERDICT_NONE)
		gpc_text_add(ret_text, "unknown: %s.", gpc_verdict_meaning(oom->verdict));
	else
		gpc_text_add(ret_text, "%s (%s): %s.", gpc_verdict_word(oom->verdict),
			gpc_strength_word(oom->strength), gpc_verdict_meaning(oom->verdict));
	if (!show_sentence(oom, ret_text) && writers[oom->verdict])
		writers[oom->verdict](answer, ret_text);
}
