/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of `fit`.
 *
 *      FIT      the requested bytes; the bytes of contexts, library code and others
 *      SIZED    a hint, if it took much of a GPU without limit
 *      POOL     with JAX: what the answer is about
 *      NEEDS    the smallest GPU for each allocator: in MiB, and from the table; of a run that failed, that it is more than it had
 *      ON       the given GPU: the bytes left or missing
 *      TRY      if bytes are missing: settings with which it fits, by a replay or by their bytes; or a smaller batch
 *      ...      the holders of the peak: sections of the other views
 */
#include <string.h>

#include "tools/gpumem-report/fit/smallest_gpu.h"
#include "tools/gpumem-report/holders/purposes.h"
#include "tools/gpumem-report/output/page.h"
#include "tools/gpumem-report/sweep/sized.h"
#include "why/torch_facts.h"
#include "why/torch_stacks.h"
#include "why/words.h"

#define N_HOLDERS  5
#define MOST_PLACE 400 /* bytes of a line with its callers */

static bool find_holdings(
	const struct gpc_report *report, const struct gpc_fit *fit, struct gpc_holdings *holdings)
{
	struct gpucache_peak peak;

	if (!gpc_recording_find_peak(report->recording, fit->device.ordinal, &peak))
		return false;
	gpc_holdings_from_peak(holdings, report, &peak);
	/* Lets gpc_holdings_show() add the section CATEGORY: the list of a peak has every tensor. */
	holdings->has_torch = fit->has_torch;
	return true;
}

/* Fills the rows of PyTorch's memory at the peak by purpose; false if nothing is known of it. */
static bool find_purposes(const struct gpc_report *report, const struct gpc_fit *fit,
	struct gpc_purpose_row rows[GPC_N_PURPOSES])
{
	struct gpc_holdings holdings;
	uint64_t sum;

	if (!fit->has_torch || !find_holdings(report, fit, &holdings))
		return false;
	sum = gpc_purposes_sum(&holdings, report, rows);
	gpc_holdings_fini(&holdings);
	return sum > 0;
}

static uint64_t sum_of(const struct gpc_purpose_row rows[GPC_N_PURPOSES], enum gpc_purpose a,
	enum gpc_purpose b, enum gpc_purpose c)
{
	return gpc_bytes_add(gpc_purpose_row_of(rows, a)->bytes,
		gpc_bytes_add(
			gpc_purpose_row_of(rows, b)->bytes, gpc_purpose_row_of(rows, c)->bytes));
}

static void show_cut_short(struct gpc_document *doc, const struct gpc_fit *fit)
{
	if (!fit->failure.number) {
		gpc_document_member(doc, "cut_short", gpc_blank());
		return;
	}
	gpc_document_open_object(doc, "cut_short");
	gpc_document_member(doc, "number", gpc_number(fit->failure.number));
	gpc_document_member(doc, "requested_bytes", gpc_bytes(fit->failure.requested));
	gpc_document_close(doc);
	gpc_document_say(doc, "the run ran out of memory at a request for %s",
		gpc_show_bytes(fit->failure.requested));
}

static void show_asked(const struct gpc_report *report, const struct gpc_fit *fit)
{
	static const struct gpc_section section = { NULL, "FIT", .flags = GPC_MEMBERS };
	struct gpc_document *doc = report->doc;

	gpc_document_open_object(doc, "device");
	gpc_page_tell_device(doc, &fit->device);
	gpc_document_close(doc);
	gpc_document_open(doc, &section);
	gpc_document_member(doc, "asked_bytes", gpc_bytes(fit->asked_bytes));
	gpc_document_member(doc, "contexts_bytes", gpc_bytes(fit->contexts_bytes));
	gpc_document_member(doc, "modules_bytes", gpc_bytes(fit->modules_bytes));
	gpc_document_member(doc, "others_bytes", gpc_bytes(fit->others_bytes));
	gpc_document_member(doc, "steps", gpc_count(fit->steps.n));
	gpc_document_member(doc, "peak_step", gpc_count(fit->steps.n_peak));
	gpc_document_member(doc, "growth_bytes", gpc_bytes(fit->steps.growth));
	gpc_document_member(doc, "outgrown", gpc_truth(fit->is_outgrown));
	gpc_document_member(doc, "whole", gpc_truth(fit->is_whole));
	gpc_document_say(doc, "%s asked for at the peak, %s after the start%s",
		gpc_show_bytes(fit->asked_bytes), gpc_show_duration(fit->peak_ns),
		report->recording->run_state == GPC_RUN_ALIVE ? ", so far" : "");
	if (fit->steps.n > 1)
		gpc_document_say(doc, "in step %s of %s", gpc_show_count(fit->steps.n_peak),
			gpc_show_count(fit->steps.n));
	gpc_document_say(doc, "plus: %s contexts, %s library code, %s others",
		gpc_show_bytes(fit->contexts_bytes), gpc_show_bytes(fit->modules_bytes),
		gpc_show_bytes(fit->others_bytes));
	gpc_document_say(doc, "as on GPU %d, %s", fit->device.ordinal, fit->device.name);
	show_cut_short(doc, fit);
	if (fit->is_growing && !fit->failure.number)
		gpc_document_say(doc,
			"it still grew, by %s in the last quarter: the longer it runs, the more it "
			"needs",
			gpc_show_bytes(fit->steps.growth));
	if (!fit->is_whole)
		gpc_document_say(doc,
			"incomplete: the first events were overwritten; a larger recording_size "
			"keeps them");
	gpc_document_close(doc);
}

/* Run without a limit, a program that sizes itself by what is free needs what there was. */
static void show_sized(const struct gpc_report *report, const struct gpc_fit *fit)
{
	struct gpc_document *doc = report->doc;
	const bool is_suspect = report->options->ended && !fit->is_outgrown &&
				gpc_sized_is_suspect(fit->asked_bytes, fit->device.total_bytes);

	gpc_document_member(doc, "may_size_itself", gpc_truth(is_suspect));
	if (!is_suspect)
		return;
	gpc_document_open_text(doc, "SIZED");
	gpc_document_say(doc,
		"it took %s of the %s that the simulated GPU has: if it sizes itself by what is "
		"free, "
		"as vLLM and JAX do, what follows says nothing; --fit --yes, with a list of GPUs "
		"for "
		"--on, runs it on other sizes, and says which it needs and what each GPU leaves",
		gpc_show_share(fit->asked_bytes, fit->device.total_bytes),
		gpc_show_bytes(fit->device.total_bytes));
	gpc_document_close(doc);
}

/* Without a limit XLA's pool grows, so the replay is one of arrays. */
static void show_pool(const struct gpc_report *report, const struct gpc_fit *fit)
{
	if (!fit->has_xla)
		return;
	gpc_document_open_text(report->doc, "POOL");
	gpc_document_say(report->doc,
		"what follows is for the arrays alone: they, and what programs need for a time, "
		"must fit into XLA's pool, which is 75 %% of what is free unless "
		"XLA_PYTHON_CLIENT_MEM_FRACTION says otherwise");
	gpc_document_close(report->doc);
}

/* Of a run that failed. */
static void show_more_than(const struct gpc_report *report, const struct gpc_fit *fit)
{
	const char *on = report->options->on;

	gpc_document_member(
		report->doc, "more_than_bytes", gpc_bytes(gpc_unless_zero(fit->more_than_bytes)));
	if (!fit->failure.number)
		return;
	gpc_document_open_text(report->doc, "NEEDS");
	gpc_document_say(report->doc,
		"more than %s: it failed there, and what it would have asked for next is not "
		"recorded; run gpucache-run --fit%s%s -- COMMAND",
		gpc_show_bytes(fit->more_than_bytes), on ? " --on " : "", on ? on : "");
	gpc_document_close(report->doc);
}

static void show_needs(const struct gpc_report *report, const struct gpc_fit *fit)
{
	static const struct gpc_column columns[] = {
		{ "smallest_device_bytes" },
		{ NULL, "GPU, MiB", 10 }, /* exact, and so an argument of --on and --sim */
		{ "reserved_bytes" },
		{ "smallest_gpu" },
		{ NULL, "smallest GPU", -12 },
		{ NULL, "with" },
		{ "cache" },
		{ "how" },
		{ "needs_bytes" },
		{ "fits" },
	};
	static const struct gpc_section section = { "caches", "NEEDS", GPC_COLUMNS(columns) };
	/* Its replays say what it had got, not what it needs. */
	static const struct gpc_section least = { "caches", NULL, GPC_COLUMNS(columns),
		.flags = GPC_JSON_ONLY };
	const bool has_target = fit->target.bytes != 0;
	struct gpc_document *doc = report->doc;

	show_more_than(report, fit);
	gpc_document_open(doc, fit->failure.number ? &least : &section);
	if (fit->is_outgrown)
		gpc_document_say(doc, "more than any GPU has");
	else
		gpc_document_say(doc, "the smallest GPU that serves every request");
	for (unsigned i = 0; i < fit->n_caches; i++) {
		const struct gpc_fit_cache *cache = &fit->caches[i];
		const struct gpc_sim_model *model = gpc_fit_smallest_model(fit, cache);

		gpc_document_row(doc, gpc_bytes(cache->smallest_bytes),
			gpc_number(cache->smallest_bytes / GPC_MIB),
			gpc_bytes(cache->reserved_bytes),
			gpc_name(model && !fit->failure.number ? model->key : NULL),
			gpc_name(model ? model->key : "none"), gpc_sentence(cache->words),
			gpc_name(cache->key), gpc_name(cache->how),
			has_target ? gpc_bytes(gpc_fit_need(fit, cache, fit->target.model))
				   : gpc_blank(),
			has_target && (!fit->failure.number || !cache->is_on_target)
				? gpc_truth(cache->is_on_target)
				: gpc_blank());
	}
	gpc_document_close(doc);
}

static void show_on(const struct gpc_report *report, const struct gpc_fit *fit)
{
	static const struct gpc_column columns[] = { { NULL, "", 12 }, { NULL, "" } };
	static const struct gpc_section section = { "on", "ON", GPC_COLUMNS(columns),
		.flags = GPC_OBJECT | GPC_BESIDE };
	const struct gpc_fit_target *target = &fit->target;
	struct gpc_document *doc = report->doc;
	GPC_TEXT(refused, MOST_PLACE);

	if (!target->bytes) {
		gpc_document_member(doc, "on", gpc_blank());
		return;
	}
	if (fit->refused_stack)
		gpc_frames_where(report->frames, fit->refused_stack, GPC_SITE_CALLERS, &refused);
	gpc_document_open(doc, &section);
	gpc_document_member(doc, "gpu", gpc_name(target->model ? target->model->key : NULL));
	gpc_document_member(doc, "total_bytes", gpc_bytes(target->bytes));
	gpc_document_member(
		doc, "fits", gpc_fit_is_known(fit) ? gpc_truth(gpc_fit_is_good(fit)) : gpc_blank());
	gpc_document_member(doc, "max_split_size_bytes",
		gpc_bytes(gpc_unless_zero(fit->max_split_mib * GPC_MIB)));
	gpc_document_member(doc, "refused_at", gpc_name(refused.buf));
	gpc_document_say(doc, "%s%s%s, %s: %s", target->model ? target->model->key : "",
		target->model ? ", " : "", target->model ? target->model->name : "a GPU",
		gpc_show_bytes(target->bytes),
		!gpc_fit_is_known(fit) ? "not known: the run ran out of memory"
		: gpc_fit_is_good(fit) ? "it fits"
				       : "it does NOT fit");
	for (unsigned i = 0; i < fit->n_caches; i++) {
		const struct gpc_fit_cache *cache = &fit->caches[i];
		uint64_t need = gpc_fit_need(fit, cache, target->model);

		if (!fit->failure.number)
			gpc_document_fact(doc, gpc_bytes(gpc_distance(target->bytes, need)),
				"are %s with %s", cache->is_on_target ? "left" : "missing",
				cache->words);
	}
	if (refused.len)
		gpc_document_say(doc, "the first request refused: by %s", refused.buf);
	gpc_document_close(doc);
}

/* What takes the missing bytes, and how it gets less: what is as long as the batch, or the model. */
static void try_less(const struct gpc_report *report, const struct gpc_fit *fit)
{
	const uint64_t missing = gpc_bytes_less(
		gpc_fit_need(fit, &fit->caches[0], fit->target.model), fit->target.bytes);
	struct gpc_purpose_row rows[GPC_N_PURPOSES];
	const bool is_known = find_purposes(report, fit, rows);
	const struct gpc_purpose_row *activations =
		is_known ? gpc_purpose_row_of(rows, GPC_PURPOSE_ACTIVATIONS) : NULL;
	GPC_TEXT(site, 300);

	if (is_known && sum_of(rows, GPC_PURPOSE_ACTIVATIONS, GPC_PURPOSE_INPUTS,
				GPC_PURPOSE_CACHES) < missing) {
		gpc_document_say(report->doc,
			"no batch is small enough: weights, gradients and optimizer state hold %s; "
			"half precision, an optimizer with less state (" GPC_OPTIMIZERS
			"), or sharded over GPUs (FSDP)",
			gpc_show_bytes(sum_of(rows, GPC_PURPOSE_WEIGHTS, GPC_PURPOSE_GRADIENTS,
				GPC_PURPOSE_OPTIMIZER)));
		return;
	}
	gpc_document_say(report->doc,
		"a smaller batch: gpucache-run --fit --on %s " GPC_SWEEP_BATCH " finds the largest",
		report->options->on);
	if (!activations || activations->bytes < missing ||
		activations->n_blocks < GPC_FOR_BACKWARD ||
		gpc_torch_is_decorated(gpc_frames_find(report->frames, activations->stack)))
		return;
	gpc_frames_site(report->frames, activations->stack, &site);
	gpc_document_say(report->doc,
		"torch.utils.checkpoint: activations hold %s, most of it %s; %s of them must go",
		gpc_show_bytes(activations->bytes), site.buf,
		gpc_show_share(missing, activations->bytes));
}

static void show_try(const struct gpc_report *report, const struct gpc_fit *fit)
{
	struct gpc_document *doc = report->doc;

	/* What a run that failed would have asked for next may be more. */
	if (gpc_fit_is_good(fit) || fit->failure.number)
		return;
	gpc_document_open_text(doc, "TRY");
	if (fit->is_outgrown) {
		gpc_document_say(doc,
			"drop what stays (in a list, dict, queue, hook, exception): the first line "
			"below holds most");
		gpc_document_close(doc);
		return;
	}
	for (unsigned i = 1; i < fit->n_caches; i++)
		if (fit->caches[i].is_on_target)
			gpc_document_say(doc, "%s: fits", fit->caches[i].how);
	if (fit->max_split_mib)
		gpc_document_say(doc, "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:%u: fits",
			(unsigned)fit->max_split_mib);
	try_less(report, fit);
	gpc_document_close(doc);
}

void gpc_fit_show(const struct gpc_report *report, const struct gpc_fit *fit)
{
	struct gpc_holdings holdings;
	GPC_TEXT(title, 100);

	show_asked(report, fit);
	show_sized(report, fit);
	show_pool(report, fit);
	show_needs(report, fit);
	show_on(report, fit);
	show_try(report, fit);
	if (!find_holdings(report, fit, &holdings))
		return;
	gpc_text_add(
		&title, "%s live by call site, at the peak", gpc_show_bytes(holdings.total_bytes));
	gpc_holdings_show(&holdings, report, N_HOLDERS, title.buf);
	gpc_holdings_fini(&holdings);
}
