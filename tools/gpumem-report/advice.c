/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/gpumem-report/advice.h"

#include <string.h>

#include "base/torch.h"
#include "base/verdict.h"
#include "tools/gpumem-report/remedies.h"
#include "tools/gpumem-report/sites.h"
#include "tools/gpumem-report/torch.h"

/* The same as the library's short form advises: large pieces are those above half the request. */
#define SPLIT_LEAST_MIB 32
#define SPLIT_MOST_MIB  512
/* The pending_limit that is advised. */
#define PENDING_ADVICE (UINT64_C(64) << 20)

/* Whether this run set an option itself. */
static bool is_set(const struct gpc_report *report, const char *option)
{
	enum gpc_text_kind kind;

	for (size_t i = 0;; i++) {
		char buf[256];
		struct gpc_text text = gpc_text_init(buf, sizeof buf);

		if (!gpc_report_read_line(report->recording, i, &kind, &text))
			return false;
		if (kind == GPC_TEXT_CHANGED && strncmp(buf, option, strlen(option)) == 0 &&
			buf[strlen(option)] == ' ')
			return true;
	}
}

/*
 * The name that the table of holders gives this stack: a wrapper that everybody calls says
 * nothing.
 */
static void add_site(const struct gpc_report *report, const struct gpucache_oom *oom,
	uint32_t stack, struct gpc_text *text)
{
	const char *where = NULL;
	struct gpc_holdings holdings;
	struct gpc_sites sites;

	if (gpc_holdings_from_oom(&holdings, report, oom) == GPC_OK &&
		gpc_sites_create(&sites, report, &holdings) == GPC_OK) {
		for (size_t i = 0; i < sites.n && !where; i++) {
			if (sites.rows[i].stack == stack)
				where = sites.rows[i].where;
		}
		gpc_text_add(text, "%s", where ? where : "");
		gpc_sites_fini(&sites);
	}
	gpc_holdings_fini(&holdings);
	if (!where)
		gpc_frames_site(report->frames, stack, text);
}

/* Of PyTorch's cache, where they are the cause. */
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

static void add_evidence(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *text)
{
	const struct gpucache_balance *b = &oom->balance;

	switch ((enum gpucache_verdict)oom->verdict) {
	case GPUCACHE_VERDICT_IMPOSSIBLE:
		gpc_text_add(text, " %s were asked for; the GPU has %s in all.",
			gpc_show_bytes(oom->requested), gpc_show_bytes(b->device_total));
		break;
	case GPUCACHE_VERDICT_LIMIT:
		if (oom->kind == GPUCACHE_KIND_TENSOR)
			gpc_text_add(text,
				" It is PyTorch's own (set_per_process_memory_fraction): the "
				"driver was "
				"not asked. PyTorch has %s in its cache, %s of it in no tensor.",
				gpc_show_bytes(oom->torch.reserved),
				gpc_show_bytes(gpc_torch_unused(&oom->torch)));
		else
			gpc_text_add(text, " The limit is %s, and %s of it are in use.",
				gpc_show_bytes(oom->limit), gpc_show_bytes(gpc_balance_taken(b)));
		break;
	case GPUCACHE_VERDICT_FRAGMENTED:
	case GPUCACHE_VERDICT_WRONG_POOL:
		if (add_holes(oom, text))
			break;
		gpc_text_add(text,
			" %s of cached memory are free, at most %s in one piece; %s were asked "
			"for.",
			gpc_show_bytes(b->cached), gpc_show_bytes(b->cached_largest),
			gpc_show_bytes(oom->requested));
		break;
	case GPUCACHE_VERDICT_PENDING:
		gpc_text_add(
			text, " %s were freed and wait for the GPU.", gpc_show_bytes(b->pending));
		break;
	case GPUCACHE_VERDICT_ROUNDING:
		gpc_text_add(text, " %s are lost to it.", gpc_show_bytes(b->rounding));
		break;
	case GPUCACHE_VERDICT_NEIGHBOUR:
		gpc_text_add(text, " Other processes hold %s, this one %s.",
			gpc_show_bytes(b->other_processes), gpc_show_bytes(gpc_balance_taken(b)));
		break;
	case GPUCACHE_VERDICT_UNTRACKED:
		gpc_text_add(text, " It holds %s outside the allocator.",
			gpc_show_bytes(b->process_outside));
		break;
	case GPUCACHE_VERDICT_GROWTH:
		gpc_text_add(text, " In the later part of the run it grew by %s: ",
			gpc_show_bytes(oom->growth_bytes));
		add_site(report, oom, oom->growth_stack, text);
		gpc_text_add(text, ".");
		break;
	case GPUCACHE_VERDICT_SPIKE:
		gpc_text_add(text, " %s were asked for; the peak of the run before was %s.",
			gpc_show_bytes(oom->requested), gpc_show_bytes(oom->peak_requested));
		break;
	case GPUCACHE_VERDICT_EXHAUSTED:
		gpc_text_add(text, " It holds %s of %s.",
			gpc_show_bytes(gpc_bytes_add(b->requested, b->direct)),
			gpc_show_bytes(b->device_total));
		break;
	case GPUCACHE_VERDICT_DRIVER:
		gpc_text_add(text, " It said %s were free; %s were asked for.",
			gpc_show_bytes(b->device_free), gpc_show_bytes(oom->rounded));
		break;
	case GPUCACHE_VERDICT_NONE:
	case GPUCACHE_VERDICT_COUNT:
		break;
	}
}

void gpc_advice_why(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text)
{
	if (oom->verdict == GPUCACHE_VERDICT_NONE)
		gpc_text_add(ret_text, "unknown: %s.", gpc_verdict_meaning(oom->verdict));
	else
		gpc_text_add(ret_text, "%s (%s): %s.", gpc_verdict_word(oom->verdict),
			gpc_strength_word(oom->strength), gpc_verdict_meaning(oom->verdict));
	add_evidence(report, oom, ret_text);
}

/* What would have been enough, and what was there. */
static void add_short(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text)
{
	struct gpc_torch torch = gpc_torch_at(report, oom);
	const struct gpucache_balance *b = &oom->balance;

	if (oom->kind == GPUCACHE_KIND_TENSOR) {
		gpc_text_add(ret_text, "%s were asked for, the GPU had %s free.",
			gpc_show_bytes(oom->requested), gpc_show_bytes(b->device_free));
		return;
	}
	if (oom->short_by != GPUCACHE_UNKNOWN && oom->short_by != 0)
		gpc_text_add(ret_text, "by %s: ", gpc_show_bytes(oom->short_by));
	gpc_text_add(ret_text, "%s were needed",
		gpc_show_bytes(oom->rounded ? oom->rounded : oom->requested));
	if (torch.requested) {
		gpc_text_add(ret_text, " by ");
		gpc_remedies_asked(report, oom, ret_text);
	}
	gpc_text_add(ret_text, ", the GPU had %s free, the cache no piece above %s.",
		gpc_show_bytes(b->device_free), gpc_show_bytes(b->cached_largest));
	/* Rounding of less than 1 % would only repeat the number. */
	if (torch.requested && torch.requested + torch.requested / 100 < oom->requested)
		gpc_text_add(ret_text, " PyTorch asked for it to make a tensor of %s.",
			gpc_show_bytes(torch.requested));
	if (torch.reserved) {
		gpc_text_add(ret_text, " PyTorch's cache holds %s", gpc_show_bytes(torch.reserved));
		gpc_text_add(ret_text, ", %s of it in no tensor.", gpc_show_bytes(torch.unused));
	}
}

static void try_fragmented(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *text)
{
	uint64_t need = oom->rounded ? oom->rounded : oom->requested;
	uint64_t half_mib = need >> 21;
	uint64_t room = gpc_bytes_add(oom->balance.device_free, oom->balance.cached);
	uint64_t split_mib = SPLIT_LEAST_MIB;

	while (split_mib * 2 <= half_mib && split_mib * 2 <= SPLIT_MOST_MIB)
		split_mib *= 2;
	if (!is_set(report, "max_split_size_mb") && half_mib >= SPLIT_LEAST_MIB)
		gpc_text_add(text,
			"GPUCACHE_CONF=max_split_size_mb:%llu may keep large pieces whole. ",
			(unsigned long long)split_mib);
	if (!is_set(report, "cache") && room != GPUCACHE_UNKNOWN && room >= need)
		gpc_text_add(text,
			"GPUCACHE_CONF=cache:off is slower, but %s would have been free. ",
			gpc_show_bytes(room));
	gpc_text_add(text, "Allocate what lives long before what comes and goes.");
}

/* Its own limit: the least fraction, upwards in hundredths of a percent, that would have been enough. */
static void try_torch_limit(const struct gpucache_oom *oom, struct gpc_text *text)
{
	uint64_t need =
		gpc_bytes_add(oom->torch.reserved, gpc_torch_segment_size(oom->torch.requested));
	uint64_t total = oom->balance.device_total;
	uint64_t parts =
		total ? (uint64_t)(((unsigned __int128)need * 10000 + total - 1) / total) : 0;

	if (parts && parts <= 10000 && oom->balance.device_free >= oom->requested)
		gpc_text_add(text,
			"torch.cuda.set_per_process_memory_fraction(%llu.%04llu) would have been "
			"enough.",
			(unsigned long long)(parts / 10000), (unsigned long long)(parts % 10000));
	else
		gpc_text_add(text, "hold less: see HOLDERS; the GPU has no more to give.");
}

static void try_limit(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *text)
{
	/* Whole MiB, upwards: the line can be pasted as it is. */
	uint64_t needed =
		gpc_bytes_add(gpc_bytes_add(oom->limit, oom->short_by), (UINT64_C(1) << 20) - 1) >>
		20;
	const char *option = is_set(report, "per_process_memory_fraction")
				     ? "per_process_memory_fraction"
				     : "limit";

	if (oom->kind == GPUCACHE_KIND_TENSOR)
		try_torch_limit(oom, text);
	else if (oom->limit == 0 || oom->short_by == GPUCACHE_UNKNOWN ||
		 needed > oom->balance.device_total >> 20)
		gpc_text_add(text, "raise the option `%s`, or hold less: see HOLDERS.", option);
	else if (strcmp(option, "limit") == 0)
		gpc_text_add(text, "GPUCACHE_CONF=limit:%lluMiB would have been enough.",
			(unsigned long long)needed);
	else
		gpc_text_add(text, "raise the option `%s` so that it allows %llu MiB.", option,
			(unsigned long long)needed);
}

static void try_rounding(const struct gpc_report *report, struct gpc_text *text)
{
	if (is_set(report, "roundup_power2_divisions"))
		gpc_text_add(text,
			"leave out the option `roundup_power2_divisions`, or give it more steps.");
	else
		gpc_text_add(text,
			"fewer and larger allocations: no option makes rounding smaller than it "
			"is.");
}

static void try_pending(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *text)
{
	gpc_text_add(text, "wait for the GPU before this request (cudaDeviceSynchronize)");
	if (!is_set(report, "pending_limit") && oom->balance.pending > PENDING_ADVICE)
		gpc_text_add(text, ", or GPUCACHE_CONF=pending_limit:64MiB");
	gpc_text_add(text, ".");
}

static void try_neighbour(const struct gpc_report *report, struct gpc_text *text)
{
	gpc_text_add(text, "another GPU (CUDA_VISIBLE_DEVICES), or end what else runs on this one");
	if (!is_set(report, "oom_wait_ms"))
		gpc_text_add(text, "; GPUCACHE_CONF=oom_wait_ms:30000 waits for it");
	gpc_text_add(text, ".");
}

/* Before 1.4 nothing else is known of PyTorch's cache but how much of it was in no tensor. */
static void try_torch(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *text)
{
	struct gpc_torch torch = gpc_torch_at(report, oom);

	/* Of growth and of a limit it would only change the hour; with its segments it has it already. */
	if (oom->torch.reserved || oom->verdict == GPUCACHE_VERDICT_GROWTH ||
		oom->verdict == GPUCACHE_VERDICT_LIMIT ||
		oom->verdict == GPUCACHE_VERDICT_IMPOSSIBLE ||
		torch.reserved > oom->balance.requested)
		return;
	if (!torch.reserved || oom->short_by == GPUCACHE_UNKNOWN || torch.unused < oom->short_by)
		return;
	gpc_text_add(text,
		"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: of PyTorch's cache %s are in no "
		"tensor, more than was short. Or ",
		gpc_show_bytes(torch.unused));
}

void gpc_advice_try(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text)
{
	bool may_be_told_by_use = oom->verdict == GPUCACHE_VERDICT_GROWTH ||
				  oom->verdict == GPUCACHE_VERDICT_SPIKE ||
				  oom->verdict == GPUCACHE_VERDICT_EXHAUSTED ||
				  gpucache_kind_place(oom->kind) == GPUCACHE_ON_HOST;

	try_torch(report, oom, ret_text);
	if (may_be_told_by_use && gpc_remedies_try(report, oom, ret_text))
		return;
	switch ((enum gpucache_verdict)oom->verdict) {
	case GPUCACHE_VERDICT_IMPOSSIBLE:
		gpc_text_add(ret_text,
			"look at the shape or the index type at the call site below; no setting "
			"can help.");
		break;
	case GPUCACHE_VERDICT_LIMIT:
		try_limit(report, oom, ret_text);
		break;
	case GPUCACHE_VERDICT_FRAGMENTED:
	case GPUCACHE_VERDICT_WRONG_POOL:
		if (gpc_torch_is_fragmented(oom))
			gpc_text_add(ret_text,
				"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: it joins the "
				"holes.");
		else
			try_fragmented(report, oom, ret_text);
		break;
	case GPUCACHE_VERDICT_PENDING:
		try_pending(report, oom, ret_text);
		break;
	case GPUCACHE_VERDICT_ROUNDING:
		try_rounding(report, ret_text);
		break;
	case GPUCACHE_VERDICT_NEIGHBOUR:
		try_neighbour(report, ret_text);
		break;
	case GPUCACHE_VERDICT_UNTRACKED:
		gpc_text_add(ret_text,
			"CUDA_MODULE_LOADING=LAZY loads only the kernels that are used; fewer "
			"processes "
			"and contexts on one GPU.");
		break;
	case GPUCACHE_VERDICT_GROWTH:
		gpc_text_add(ret_text,
			"free what is no longer needed at that place; `gpumem-report leaks` shows "
			"whole stacks.");
		break;
	case GPUCACHE_VERDICT_SPIKE:
		gpc_text_add(ret_text, "a smaller batch for this step, or the step in parts.");
		break;
	case GPUCACHE_VERDICT_EXHAUSTED:
		gpc_text_add(ret_text,
			"hold %s less: a smaller batch, a shorter type, or free earlier what is "
			"under "
			"HOLDERS.",
			oom->short_by == GPUCACHE_UNKNOWN || !oom->short_by
				? "some"
				: gpc_show_bytes(oom->short_by));
		break;
	case GPUCACHE_VERDICT_DRIVER:
		gpc_text_add(ret_text,
			"the same again: another process may have been quicker. If it stays, "
			"restart the "
			"process: its address space or the driver's tables may be full.");
		break;
	case GPUCACHE_VERDICT_NONE:
	case GPUCACHE_VERDICT_COUNT:
		gpc_text_add(ret_text, "look at what holds the memory, under HOLDERS.");
		break;
	}
}

/* The other verdicts, as words; nothing where there are none. */
static void add_also(const struct gpucache_oom *oom, struct gpc_text *ret_text)
{
	for (unsigned v = 1; v < GPUCACHE_VERDICT_COUNT; v++)
		if ((oom->also >> v & 1) && v != oom->verdict)
			gpc_text_add(ret_text, "%s%s (%s)", ret_text->len ? "; " : "",
				gpc_verdict_word(v), gpc_verdict_meaning(v));
}

void gpc_advice_print(
	const struct gpc_report *report, const struct gpucache_oom *oom, bool with_also)
{
	char buf[800];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_advice_why(report, oom, &text);
	gpc_paper_wrap(&report->paper, "WHY", buf);
	text = gpc_text_init(buf, sizeof buf);
	add_also(oom, &text);
	if (with_also && text.len)
		gpc_paper_wrap(&report->paper, "ALSO", buf);
	text = gpc_text_init(buf, sizeof buf);
	gpc_remedies_held(report, oom, &text);
	if (text.len)
		gpc_paper_wrap(&report->paper, "HELD", buf);
	text = gpc_text_init(buf, sizeof buf);
	add_short(report, oom, &text);
	gpc_paper_wrap(&report->paper, "SHORT", buf);
	text = gpc_text_init(buf, sizeof buf);
	gpc_advice_try(report, oom, &text);
	gpc_paper_wrap(&report->paper, "TRY", buf);
}
