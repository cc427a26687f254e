/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the answer of `fit`, as text or as JSON.
 *
 *      FIT      the requested bytes; the bytes of contexts, library code and others
 *      NEEDS    the smallest GPU for each allocator: in MiB, and from the table
 *      ON       the given GPU: the bytes left or missing
 *      TRY      if bytes are missing: settings with which it fits, by a replay or by their bytes; or a smaller batch
 *      ...      the holders of the peak: sections of the other views
 */
#include <inttypes.h>
#include <string.h>

#include "tools/gpumem-report/fit/smallest_gpu.h"
#include "tools/gpumem-report/holders/purposes.h"
#include "tools/gpumem-report/output/json.h"

#define DEFAULT_HOLDERS 5

static bool find_holdings(
	const struct gpc_report *report, const struct gpc_fit *fit, struct gpc_holdings *holdings)
{
	struct gpucache_peak peak;

	if (!gpc_recording_find_peak(report->recording, fit->device.ordinal, &peak))
		return false;
	gpc_holdings_from_peak(holdings, report, &peak);
	/* Lets gpc_holdings_print() add the section CATEGORY: the list of a peak has every tensor. */
	holdings->has_torch = fit->has_torch;
	return true;
}

/* Returns the row of activations at the peak; false if no bytes of the peak are known to be activations. */
static bool find_activations(
	const struct gpc_report *report, const struct gpc_fit *fit, struct gpc_purpose_row *ret_row)
{
	struct gpc_purpose_row rows[GPC_N_PURPOSES];
	struct gpc_holdings holdings;
	unsigned i = 0;

	if (!fit->has_torch || !find_holdings(report, fit, &holdings))
		return false;
	(void)gpc_purposes_sum(&holdings, report, rows);
	gpc_holdings_fini(&holdings);
	while (rows[i].purpose != GPC_PURPOSE_ACTIVATIONS)
		i++;
	*ret_row = rows[i];
	return rows[i].bytes > 0;
}

static void print_asked(const struct gpc_report *report, const struct gpc_fit *fit)
{
	const struct gpc_paper *paper = &report->paper;

	gpc_paper_section(paper, "FIT", "%s asked for at the peak, %s after the start%s",
		gpc_show_bytes(fit->asked_bytes), gpc_show_duration(fit->peak_ns),
		report->recording->run_state == GPC_RUN_ALIVE ? ", so far" : "");
	if (fit->steps.n > 1)
		gpc_paper_line(paper, "in step %s of %s", gpc_show_count(fit->steps.n_peak),
			gpc_show_count(fit->steps.n));
	gpc_paper_line(paper, "plus: %s contexts, %s library code, %s others",
		gpc_show_bytes(fit->contexts_bytes), gpc_show_bytes(fit->modules_bytes),
		gpc_show_bytes(fit->others_bytes));
	gpc_paper_line(paper, "as on GPU %" PRId32 ", %s", fit->device.ordinal, fit->device.name);
	if (!fit->is_whole)
		gpc_paper_line(paper,
			"incomplete: the first events were overwritten; a larger "
			"recording_size keeps them");
}

static void print_needs(const struct gpc_paper *paper, const struct gpc_fit *fit)
{
	const bool is_narrow = paper->width < 80;

	gpc_paper_section(paper, "NEEDS", "%10s %10s  smallest GPU", "GPU memory", "reserved");
	for (unsigned i = 0; i < fit->n_caches; i++) {
		const struct gpc_fit_cache *cache = &fit->caches[i];
		const struct gpc_sim_model *model = gpc_fit_smallest_model(fit, cache);

		gpc_paper_line(paper, "%6" PRIu64 " MiB %10s  %-*s%s%s",
			cache->smallest_bytes / GPC_MIB, gpc_show_bytes(cache->reserved_bytes),
			is_narrow ? 0 : 8, model ? model->key : "none", is_narrow ? "" : "  ",
			is_narrow ? "" : cache->words);
		if (is_narrow)
			gpc_paper_line(paper, "    with %s", cache->words);
	}
}

static void print_on(const struct gpc_paper *paper, const struct gpc_fit *fit)
{
	const struct gpc_fit_target *target = &fit->target;

	if (!target->bytes)
		return;
	gpc_paper_section(paper, "ON", "%s%s%s, %s: %s", target->model ? target->model->key : "",
		target->model ? ", " : "", target->model ? target->model->name : "a GPU",
		gpc_show_bytes(target->bytes),
		fit->caches[0].is_on_target ? "it fits" : "it does NOT fit");
	for (unsigned i = 0; i < fit->n_caches; i++) {
		const struct gpc_fit_cache *cache = &fit->caches[i];
		uint64_t need = gpc_fit_need(fit, cache, target->model);

		if (cache->is_on_target)
			gpc_paper_line(paper, "%12s are left    %s",
				gpc_show_bytes(target->bytes - need), cache->words);
		else
			gpc_paper_line(paper, "%12s are missing %s",
				gpc_show_bytes(need - target->bytes), cache->words);
	}
}

static void try_checkpoint(const struct gpc_report *report, const struct gpc_fit *fit)
{
	uint64_t missing = gpc_bytes_less(
		gpc_fit_need(fit, &fit->caches[0], fit->target.model), fit->target.bytes);
	struct gpc_purpose_row row;
	GPC_TEXT(text, 600);
	GPC_TEXT(site, 300);

	if (!find_activations(report, fit, &row) || row.bytes < missing)
		return;
	gpc_frames_site(report->frames, row.stack, &site);
	gpc_text_add(&text, "torch.utils.checkpoint: activations hold %s, most of it %s; ",
		gpc_show_bytes(row.bytes), site.buf);
	gpc_text_add(&text, "%s of them must go", gpc_show_share(missing, row.bytes));
	gpc_paper_wrap(&report->paper, NULL, text.buf);
}

static void print_try(const struct gpc_report *report, const struct gpc_fit *fit)
{
	const struct gpc_paper *paper = &report->paper;

	if (gpc_fit_is_good(fit))
		return;
	gpc_paper_section(paper, "TRY", "a smaller batch: --sweep=BATCH=1..64 finds the largest");
	for (unsigned i = 1; i < fit->n_caches; i++)
		if (fit->caches[i].is_on_target)
			gpc_paper_line(paper, "%s: fits", fit->caches[i].how);
	if (fit->max_split_mib)
		gpc_paper_line(paper, "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:%" PRIu64 ": fits",
			fit->max_split_mib);
	try_checkpoint(report, fit);
}

void gpc_fit_print(const struct gpc_report *report, const struct gpc_fit *fit)
{
	const unsigned limit = report->options->limit;
	struct gpc_holdings holdings;

	print_asked(report, fit);
	print_needs(&report->paper, fit);
	print_on(&report->paper, fit);
	print_try(report, fit);
	if (!find_holdings(report, fit, &holdings))
		return;
	gpc_paper_section(&report->paper, "HOLDERS", "%s live by call site, at the peak",
		gpc_show_bytes(holdings.total_bytes));
	gpc_holdings_print(&holdings, report, limit ? limit : DEFAULT_HOLDERS);
	gpc_holdings_fini(&holdings);
}

void gpc_fit_print_line(const struct gpc_paper *paper, const struct gpc_fit *fit, const char *label)
{
	const struct gpc_fit_cache *cache = &fit->caches[0];
	uint64_t need = gpc_fit_need(fit, cache, fit->target.model);
	const bool is_good = gpc_fit_is_good(fit);

	fprintf(paper->out, "%-16s needs %8" PRIu64 " MiB", label, need / GPC_MIB);
	if (fit->target.bytes)
		fprintf(paper->out, ": %s on %s, %s %s", is_good ? "fits" : "does not fit",
			fit->target.model ? fit->target.model->key
					  : gpc_show_bytes(fit->target.bytes),
			gpc_show_bytes(
				is_good ? fit->target.bytes - need : need - fit->target.bytes),
			is_good ? "left" : "missing");
	fputc('\n', paper->out);
}

/* ---- JSON ---- */

static struct json_object *caches_json(const struct gpc_fit *fit)
{
	struct json_object *array = json_object_new_array();

	for (unsigned i = 0; i < fit->n_caches; i++) {
		const struct gpc_fit_cache *cache = &fit->caches[i];
		const struct gpc_sim_model *model = gpc_fit_smallest_model(fit, cache);
		struct json_object *row = gpc_json_row(array);

		gpc_json_text(row, "cache", cache->key);
		gpc_json_text(row, "how", cache->how);
		gpc_json_bytes(row, "reserved_bytes", cache->reserved_bytes);
		gpc_json_bytes(row, "smallest_device_bytes", cache->smallest_bytes);
		gpc_json_text(row, "smallest_gpu", model ? model->key : NULL);
		if (fit->target.bytes) {
			gpc_json_bytes(
				row, "needs_bytes", gpc_fit_need(fit, cache, fit->target.model));
			gpc_json_bool(row, "fits", cache->is_on_target);
		}
	}
	return array;
}

static struct json_object *target_json(const struct gpc_fit *fit)
{
	struct json_object *on;

	if (!fit->target.bytes)
		return NULL;
	on = json_object_new_object();
	gpc_json_text(on, "gpu", fit->target.model ? fit->target.model->key : NULL);
	gpc_json_bytes(on, "total_bytes", fit->target.bytes);
	gpc_json_bool(on, "fits", gpc_fit_is_good(fit));
	gpc_json_bytes(on, "max_split_size_bytes",
		fit->max_split_mib ? fit->max_split_mib * GPC_MIB : GPUCACHE_UNKNOWN);
	return on;
}

void gpc_fit_json(
	const struct gpc_report *report, const struct gpc_fit *fit, struct json_object *root)
{
	struct gpc_holdings holdings;

	json_object_object_add(root, "device", gpc_json_device(&fit->device));
	gpc_json_bytes(root, "asked_bytes", fit->asked_bytes);
	gpc_json_bytes(root, "contexts_bytes", fit->contexts_bytes);
	gpc_json_bytes(root, "modules_bytes", fit->modules_bytes);
	gpc_json_bytes(root, "others_bytes", fit->others_bytes);
	json_object_object_add(root, "steps", json_object_new_int64((int64_t)fit->steps.n));
	json_object_object_add(
		root, "peak_step", json_object_new_int64((int64_t)fit->steps.n_peak));
	gpc_json_bool(root, "whole", fit->is_whole);
	json_object_object_add(root, "caches", caches_json(fit));
	json_object_object_add(root, "on", target_json(fit));
	if (!find_holdings(report, fit, &holdings))
		return;
	gpc_holdings_json(&holdings, report, root);
	gpc_holdings_fini(&holdings);
}
