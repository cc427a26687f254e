/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tables give the advice for each verdict: a fixed text (`texts`), or a function that appends it (`writers`).  The
 * functions append only what a replay (answer.h) or the numbers of the failure support.
 */
#include "tools/gpumem-report/why/advice.h"

#include <string.h>

#include "alloc/size_class.h"
#include "base/bytes.h"
#include "model/torch.h"
#include "model/verdict.h"
#include "tools/gpumem-report/holders/framework_pools.h"
#include "tools/gpumem-report/holders/torch_pool.h"
#include "tools/gpumem-report/output/map.h"
#include "tools/gpumem-report/why/remedies.h"
#include "tools/replay/run.h"

typedef void writer(const struct gpc_answer *answer, struct gpc_text *text);

/* ---- what would have helped ---- */

static void try_settings(const struct gpc_answer *answer, struct gpc_text *text)
{
	if (gpc_torch_is_fragmented(&answer->oom)) {
		gpc_text_add(text,
			"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: it joins the holes.");
		return;
	}
	for (uint32_t i = 0; i < answer->n_remedies; i++) {
		const struct gpc_remedy *remedy = &answer->remedies[i];

		gpc_text_add(text, "%s%s%s", i ? "Or " : "",
			remedy->is_taken_out ? "without " : "GPUCACHE_CONF=", remedy->setting);
		gpc_text_add(text,
			": replayed with it, the request succeeds, and %s of the GPU stay free%s. ",
			gpc_show_bytes(remedy->free_bytes),
			strncmp(remedy->setting, GPC_REMEDY_PAGES, strlen(GPC_REMEDY_PAGES)) == 0
				? " (not for memory that CUDA IPC, MPI or UCX exports)"
				: "");
	}
	if (answer->n_remedies == 0 && answer->is_replayed)
		gpc_text_add(text, "no option: replayed with each, the request fails, too.");
	else if (answer->n_remedies == 0)
		gpc_text_add(text,
			"no option is advised: the recording lacks what a replay of this request "
			"needs.");
}

/*
 * For a request that PyTorch's own limit refused: appends the smallest limit that would have been enough, a fraction of
 * the GPU rounded up to 0.0001.
 */
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

/* The largest size of each thread, rounded up to GPC_RUN_DEVICE_STEP, and the sum of these sizes. */
struct largest {
	struct gpc_memo by_thread;
	uint64_t sum;
};

static void add_size(struct largest *largest, uint32_t thread, uint64_t size)
{
	/* A memo has no key 0, but a recording may name a thread 0. */
	uint64_t *known = gpc_memo_at(&largest->by_thread, (uint64_t)thread + 1);
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
static uint64_t refused_to_others(const struct gpc_report *report, const struct gpucache_oom *oom)
{
	const struct gpc_recording *recording = report->recording;
	struct largest largest = { 0 };
	struct gpucache_oom other;

	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_OOMS].count; i++)
		if (gpc_recording_read_oom(recording, i, &other) && !other.recovered &&
			other.thread != oom->thread && other.device == oom->device &&
			other.verdict == GPUCACHE_VERDICT_LIMIT)
			add_size(&largest, other.thread, other.rounded);
	gpc_memo_fini(&largest.by_thread);
	return largest.sum;
}

/* Only the first MAX_THREADS other threads count: a program may start a thread per task. */
#define MAX_THREADS 8

/*
 * Transient blocks of other threads: the sum of each thread's largest, because all may be live when the program runs
 * again.  Blocks larger than a segment are excluded: they stay live, or count in refused_to_others().
 */
static uint64_t passing_of_others(const struct gpc_report *report, const struct gpucache_oom *oom)
{
	struct gpc_event_cursor cursor = { 0 };
	struct largest largest = { 0 };
	struct gpucache_event event;

	while (gpc_recording_next_event(report->recording, &cursor, &event)) {
		if (event.kind != GPUCACHE_EVENT_MALLOC ||
			event.alloc_kind != GPUCACHE_KIND_DEVICE || event.device != oom->device ||
			event.thread == oom->thread || event.size > GPC_MEDIUM_SEGMENT)
			continue;
		if (largest.by_thread.n < MAX_THREADS ||
			*gpc_memo_at(&largest.by_thread, (uint64_t)event.thread + 1))
			add_size(&largest, event.thread, event.size);
	}
	gpc_memo_fini(&largest.by_thread);
	return largest.sum;
}

static void try_limit(const struct gpc_answer *answer, struct gpc_text *text)
{
	const struct gpc_report *report = answer->report;
	const struct gpucache_oom *oom = &answer->oom;
	uint64_t own = answer->enough_bytes ? answer->enough_bytes : oom->short_by;
	uint64_t passing = passing_of_others(report, oom);
	/* At least a segment more: in the next run other threads may request memory earlier, or in another order. */
	uint64_t more = gpc_bytes_add(gpc_bytes_add(own, refused_to_others(report, oom)),
		passing > GPC_MEDIUM_SEGMENT ? passing : GPC_MEDIUM_SEGMENT);
	/* The driver hands out multiples of GPC_RUN_DEVICE_STEP: a limit between two would refuse the request. */
	uint64_t needed =
		gpc_round_up(gpc_bytes_add(oom->limit, more), GPC_RUN_DEVICE_STEP) / GPC_MIB;
	char value[64];
	const char *option = gpc_report_read_option(answer->report->recording,
				     "per_process_memory_fraction", value, sizeof value)
				     ? "per_process_memory_fraction"
				     : "limit";

	if (oom->kind == GPUCACHE_KIND_TENSOR)
		try_torch_limit(oom, text);
	else if (oom->limit == 0 || oom->short_by == GPUCACHE_UNKNOWN ||
		 needed > oom->balance.device_total / GPC_MIB)
		gpc_text_add(text, "raise the option `%s`, or hold less: see HOLDERS.", option);
	else if (strcmp(option, "limit") == 0)
		gpc_text_add(text, "GPUCACHE_CONF=limit:%lluMiB would have been enough.",
			(unsigned long long)needed);
	else
		gpc_text_add(text, "raise the option `%s` so that it allows %llu MiB.", option,
			(unsigned long long)needed);
}

static void try_neighbour(const struct gpc_answer *answer, struct gpc_text *text)
{
	const struct gpucache_neighbour *first = &answer->oom.neighbours[0];
	char value[64];

	if (answer->oom.n_neighbours && first->own_age_s)
		gpc_text_add(text,
			"pid %u%s%s is your own, runs for %s, and holds %s: an earlier job? "
			"`kill %u` ends it. Or ",
			first->pid, first->name[0] ? " " : "", first->name,
			gpc_show_duration(first->own_age_s * UINT64_C(1000000000)),
			gpc_show_bytes(first->bytes), first->pid);
	gpc_text_add(text, "another GPU (CUDA_VISIBLE_DEVICES), or end what else runs on this one");
	if (!gpc_report_read_option(answer->report->recording, "oom_wait_ms", value, sizeof value))
		gpc_text_add(text, "; GPUCACHE_CONF=oom_wait_ms:30000 waits for it");
	gpc_text_add(text, ".");
}

static void try_less(const struct gpc_answer *answer, struct gpc_text *text)
{
	const struct gpucache_oom *oom = &answer->oom;
	bool is_short = oom->short_by != GPUCACHE_UNKNOWN && oom->short_by != 0;

	gpc_text_add(text,
		"hold %s less: a smaller batch, a shorter type, or free earlier what is under "
		"HOLDERS.",
		answer->enough_bytes ? gpc_show_bytes(answer->enough_bytes)
		: is_short           ? gpc_show_bytes(oom->short_by)
				     : "some");
}

static void try_framework(const struct gpc_answer *answer, struct gpc_text *text)
{
	gpc_framework_add_less(answer->framework, text);
}

/* Advice that needs no numbers of the run.  Every other verdict has a function in `writers`. */
static const char *const texts[GPUCACHE_VERDICT_COUNT] = {
	[GPUCACHE_VERDICT_NONE] = "look at what holds the memory, under HOLDERS.",
	[GPUCACHE_VERDICT_IMPOSSIBLE] =
		"look at the shape or the index type at the call site below; no setting can help.",
	[GPUCACHE_VERDICT_PENDING] =
		"wait for the GPU before this request (cudaDeviceSynchronize).",
	[GPUCACHE_VERDICT_UNTRACKED] =
		"CUDA_MODULE_LOADING=LAZY loads only the kernels that are used; fewer processes "
		"and contexts on one GPU.",
	[GPUCACHE_VERDICT_DRIVER] =
		"the same again: another process may have been quicker. If it stays, restart the "
		"process: its address space or the driver's tables may be full.",
	[GPUCACHE_VERDICT_CONTEXTS] =
		"one context per GPU: use the primary one (cudaSetDevice), and one process instead "
		"of many.",
	[GPUCACHE_VERDICT_MANAGED] =
		"free managed memory, or move it away (cudaMemPrefetchAsync to the host).",
	[GPUCACHE_VERDICT_PINNED] = "look at `ulimit -l` and at the host's free memory; pin less.",
};

static void try_growth(const struct gpc_answer *answer, struct gpc_text *text)
{
	if (answer->oom.is_renewed)
		gpc_remedies_add_bound(answer->report, &answer->oom, text);
	else
		gpc_text_add(text,
			"free what is no longer needed at that place; `gpumem-report leaks` shows "
			"whole stacks.");
}

static writer *const writers[GPUCACHE_VERDICT_COUNT] = {
	[GPUCACHE_VERDICT_LIMIT] = try_limit,
	[GPUCACHE_VERDICT_FRAGMENTED] = try_settings,
	[GPUCACHE_VERDICT_ROUNDING] = try_settings,
	[GPUCACHE_VERDICT_NEIGHBOUR] = try_neighbour,
	[GPUCACHE_VERDICT_GROWTH] = try_growth,
	[GPUCACHE_VERDICT_SPIKE] = try_less,
	[GPUCACHE_VERDICT_EXHAUSTED] = try_less,
	[GPUCACHE_VERDICT_WRONG_POOL] = try_settings,
	[GPUCACHE_VERDICT_PREALLOCATED] = try_framework,
};

/* ---- the sections ---- */

/* Appends how many bytes were needed, and how many the GPU and the cache had. */
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
		gpc_remedies_add_site(report, oom->stack, ret_text);
	}
	gpc_text_add(ret_text, ", the GPU had %s free, the cache no piece above %s.",
		gpc_show_bytes(b->device_free), gpc_show_bytes(b->cached_largest));
	/* If the sizes differ by less than 1 %, they may print the same digits. */
	if (torch.requested &&
		gpc_bytes_add(torch.requested, torch.requested / 100) < oom->requested)
		gpc_text_add(ret_text, " PyTorch asked for it to make a tensor of %s.",
			gpc_show_bytes(torch.requested));
	if (torch.reserved) {
		gpc_text_add(ret_text, " PyTorch's cache holds %s", gpc_show_bytes(torch.reserved));
		gpc_text_add(ret_text, ", %s of it in no tensor.", gpc_show_bytes(torch.unused));
	}
}

/*
 * Advises PyTorch's expandable segments from a recording older than format 1.4.  Such a recording tells how many bytes
 * of PyTorch's cache are in no tensor, but not the sizes of the holes.
 */
static void try_torch(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *text)
{
	struct gpc_torch torch = gpc_torch_at(report, oom);

	/*
	 * Since format 1.4 the verdict accounts for PyTorch's cache.  With growth or a limit, expandable segments would
	 * only postpone the failure.
	 */
	if (oom->torch.reserved || oom->verdict == GPUCACHE_VERDICT_GROWTH ||
		oom->verdict == GPUCACHE_VERDICT_LIMIT ||
		oom->verdict == GPUCACHE_VERDICT_IMPOSSIBLE ||
		torch.reserved > oom->balance.requested)
		return;
	if (!torch.reserved || oom->short_by == GPUCACHE_UNKNOWN || torch.unused < oom->short_by)
		return;
	gpc_text_add(text,
		"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: %s of PyTorch's cache are in no "
		"tensor, more than was missing. Or ",
		gpc_show_bytes(torch.unused));
}

void gpc_advice_try(const struct gpc_answer *answer, struct gpc_text *ret_text)
{
	const struct gpc_report *report = answer->report;
	const struct gpucache_oom *oom = &answer->oom;
	bool may_be_told_by_use = oom->verdict == GPUCACHE_VERDICT_GROWTH ||
				  oom->verdict == GPUCACHE_VERDICT_SPIKE ||
				  oom->verdict == GPUCACHE_VERDICT_EXHAUSTED ||
				  gpucache_kind_place(oom->kind) == GPUCACHE_ON_HOST;

	try_torch(report, oom, ret_text);
	if (may_be_told_by_use && gpc_remedies_try(report, oom, ret_text))
		return;
	if (texts[oom->verdict])
		gpc_text_add(ret_text, "%s", texts[oom->verdict]);
	else
		writers[oom->verdict](answer, ret_text);
}

/* Appends the other verdicts that hold, with their meaning; appends nothing if there are none. */
static void add_also(const struct gpucache_oom *oom, struct gpc_text *ret_text)
{
	for (unsigned v = 1; v < GPUCACHE_VERDICT_COUNT; v++) {
		if (!(oom->also >> v & 1) || v == oom->verdict)
			continue;
		gpc_text_add(ret_text, "%s%s (%s", ret_text->len ? "; " : "", gpc_verdict_word(v),
			gpc_verdict_meaning(v));
		if (v == GPUCACHE_VERDICT_FRAGMENTED)
			gpc_text_add(ret_text, ": %s", gpc_show_bytes(oom->balance.cached));
		gpc_text_add(ret_text, ")");
	}
}

void gpc_advice_print(const struct gpc_answer *answer, bool with_also)
{
	const struct gpc_report *report = answer->report;
	const struct gpucache_oom *oom = &answer->oom;
	GPC_TEXT(text, 800);

	gpc_evidence_say(answer, &text);
	gpc_paper_wrap(&report->paper, "WHY", text.buf);
	gpc_text_clear(&text);
	add_also(oom, &text);
	if (with_also && text.len)
		gpc_paper_wrap(&report->paper, "ALSO", text.buf);
	gpc_text_clear(&text);
	gpc_remedies_held(report, oom, &text);
	if (text.len)
		gpc_paper_wrap(&report->paper, "HELD", text.buf);
	gpc_text_clear(&text);
	add_short(report, oom, &text);
	gpc_paper_wrap(&report->paper, "SHORT", text.buf);
	gpc_text_clear(&text);
	gpc_advice_try(answer, &text);
	gpc_paper_wrap(&report->paper, "TRY", text.buf);
}
