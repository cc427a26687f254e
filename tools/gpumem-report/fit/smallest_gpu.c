/* SPDX-License-Identifier: Apache-2.0 */
/* Replays the recorded requests with each allocator of caches.def, and computes what each needs on a target GPU. */
#include "tools/gpumem-report/fit/smallest_gpu.h"

#include <string.h>

#include "format/sheet.h"
#include "tools/replay/run.h"

enum whose {
	OTHERS,
	TORCH,
};

static const struct cache {
	struct gpc_fit_cache row; /* without figures */
	enum whose whose;
	const struct gpc_policy_ops *policy;
} caches[] = {
#define CACHE(key, words, how, whose, policy) { { #key, words, how, 0, 0, 0 }, whose, &(policy) },
#include "tools/gpumem-report/holders/caches.def"
};

#define N_CACHES (sizeof caches / sizeof caches[0])

bool gpc_fit_read_target(const char *text, struct gpc_fit_target *ret_target)
{
	const struct gpc_sim_model *model = gpc_sim_model_find(text);
	uint64_t bytes = 0;

	if (!model && !gpc_bytes_parse(text, strlen(text), &bytes))
		return false;
	*ret_target =
		(struct gpc_fit_target){ .model = model, .bytes = model ? model->memory : bytes };
	return ret_target->bytes > 0;
}

bool gpc_fit_outgrows(const struct gpc_trace *trace, const struct gpc_steps *steps,
	const struct gpc_fit_target *target)
{
	const struct gpc_sim_model *model;
	uint64_t most = target->bytes;

	for (size_t i = 0; (model = gpc_sim_model_at(i)); i++)
		most = gpc_larger(most, model->memory);
	return steps->growth > 0 && trace->peak_live_bytes > most;
}

static void find_beside(
	const struct gpc_report *report, const struct gpc_trace *trace, struct gpc_fit *fit)
{
	const struct gpc_device_totals totals =
		gpc_recording_totals(report->recording, trace->recorded.device);
	struct gpucache_torch torch;

	fit->contexts_bytes = totals.sum.kind_bytes[GPUCACHE_KIND_CONTEXT];
	fit->modules_bytes = totals.sum.kind_bytes[GPUCACHE_KIND_MODULE];
	fit->others_bytes = gpc_bytes_less(
		trace->peak_beside_bytes, gpc_bytes_add(fit->contexts_bytes, fit->modules_bytes));
	if (!gpc_recording_find_torch(report->recording, trace->recorded.device, &torch))
		return;
	fit->has_torch = torch.framework == GPUCACHE_FRAMEWORK_PYTORCH;
	fit->has_xla = torch.framework == GPUCACHE_FRAMEWORK_XLA;
}

static enum gpc_status replay(
	const struct gpc_trace *trace, const struct cache *cache, struct gpc_fit *fit)
{
	struct gpc_fit_cache *row = &fit->caches[fit->n_caches++];
	const struct gpc_run_settings settings = { .is_unwatched = true };
	struct gpc_run plenty;
	enum gpc_status st;

	*row = cache->row;
	st = gpc_run_smallest(trace, cache->policy, &settings, &row->smallest_bytes, &plenty);
	if (!st)
		row->reserved_bytes = plenty.peak_reserved_bytes;
	return st;
}

struct place {
	const struct gpc_trace *trace;
	uint64_t device_bytes;
};

static bool fits_with(void *arg, uint64_t max_split_size)
{
	const struct place *place = arg;
	const struct gpc_run_settings settings = {
		.policy.max_split_size = max_split_size,
		.device_bytes = place->device_bytes,
		.is_unwatched = true,
	};
	struct gpc_run run;

	return !gpc_run_once(place->trace, &gpc_policy_pytorch, &settings, &run) &&
	       gpc_run_is_good(&run);
}

/* The size of a GPU of the run's model that leaves the program as much room as the target: contexts differ in size. */
static uint64_t target_of_run(const struct gpc_fit *fit)
{
	uint64_t beside = fit->target.model && fit->contexts_bytes
				  ? gpc_sim_model_context_bytes(fit->target.model)
				  : fit->contexts_bytes;

	return gpc_bytes_less(gpc_bytes_add(fit->target.bytes, fit->contexts_bytes), beside);
}

static const struct gpc_policy_ops *policy_of(const struct gpc_fit_cache *cache)
{
	for (size_t i = 0; i < N_CACHES; i++)
		if (caches[i].row.words == cache->words)
			return caches[i].policy;
	return &gpc_policy_none;
}

/* The stack of event `number`, counted from 1; 0: it has none. */
static uint32_t stack_of_event(const struct gpc_recording *recording, uint64_t number)
{
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_event event;

	while (gpc_recording_next_event(recording, &cursor, &event))
		if (event.seq == number)
			return event.stack;
	return 0;
}

static uint32_t find_refused(const struct gpc_report *report, const struct place *place,
	const struct gpc_policy_ops *policy)
{
	const struct gpc_run_settings settings = { .device_bytes = place->device_bytes,
		.is_unwatched = true };
	struct gpc_run run;

	if (gpc_run_once(place->trace, policy, &settings, &run) || !run.has_failed)
		return 0;
	return stack_of_event(report->recording, run.failed_line);
}

static void compare(
	const struct gpc_report *report, const struct gpc_trace *trace, struct gpc_fit *fit)
{
	struct place place = { trace, target_of_run(fit) };

	for (unsigned i = 0; i < fit->n_caches; i++)
		fit->caches[i].is_on_target =
			gpc_fit_need(fit, &fit->caches[i], fit->target.model) <= fit->target.bytes;
	if (!fit->target.bytes || fit->is_outgrown || fit->caches[0].is_on_target)
		return;
	fit->refused_stack = find_refused(report, &place, policy_of(&fit->caches[0]));
	if (fit->has_torch)
		fit->max_split_mib =
			gpc_run_find_max_split(UINT64_MAX, fits_with, &place) / GPC_MIB;
}

/* Nothing more was to come. */
static bool has_ended_well(const struct gpc_report *report)
{
	const char *ended = report->options->ended;

	return ended ? strcmp(ended, "0") == 0
		     : report->recording->header.state & GPUCACHE_STATE_SUCCESS;
}

/* What others and limits left of the GPU to a process that ran out of memory. */
static uint64_t had(const struct gpucache_oom *oom)
{
	const struct gpucache_balance *sheet = &oom->balance;
	uint64_t bytes;

	if (sheet->device_total == GPUCACHE_UNKNOWN)
		return 1;
	bytes = gpc_bytes_less(sheet->device_total,
		sheet->other_processes == GPUCACHE_UNKNOWN ? 0 : sheet->other_processes);
	/* A limit of ours, or of the framework, kept it from what is free. */
	if (oom->limit || oom->kind == GPUCACHE_KIND_TENSOR)
		bytes = gpc_bytes_less(
			bytes, sheet->device_free == GPUCACHE_UNKNOWN ? 0 : sheet->device_free);
	return bytes;
}

static enum gpc_status find(
	const struct gpc_report *report, const struct gpc_trace *trace, struct gpc_fit *fit)
{
	enum gpc_status st = GPC_OK;

	if (trace->n_ops == 0 ||
		!gpc_recording_find_device(report->recording, trace->recorded.device, &fit->device))
		return GPC_NOT_FOUND;
	fit->steps = gpc_steps_count(trace);
	fit->is_whole = gpc_trace_is_whole(trace);
	fit->is_growing = fit->steps.growth && !has_ended_well(report);
	fit->is_outgrown = fit->is_growing && gpc_fit_outgrows(trace, &fit->steps, &fit->target);
	if (gpc_report_find_oom(report, (int32_t)fit->device.ordinal, true, &fit->failure))
		fit->more_than_bytes = had(&fit->failure);
	fit->asked_bytes = trace->peak_live_bytes;
	fit->peak_ns = gpc_bytes_less(trace->ops[fit->steps.peak_op].time_ns,
		report->recording->header.start_monotonic_ns);
	find_beside(report, trace, fit);
	for (size_t i = 0; i < N_CACHES && !st && !fit->is_outgrown; i++)
		if ((caches[i].whose == TORCH) == fit->has_torch)
			st = replay(trace, &caches[i], fit);
	if (!st)
		compare(report, trace, fit);
	return st;
}

enum gpc_status gpc_fit_find(const struct gpc_report *report, struct gpc_fit *ret_fit)
{
	struct gpc_trace trace;
	enum gpc_status st;

	*ret_fit = (struct gpc_fit){ 0 };
	if (report->options->on)
		(void)gpc_fit_read_target(report->options->on, &ret_fit->target);
	gpc_trace_from_recording(report->recording, report->options->device, true, &trace);
	st = find(report, &trace, ret_fit);
	gpc_trace_fini(&trace);
	return st;
}

uint64_t gpc_fit_need(const struct gpc_fit *fit, const struct gpc_fit_cache *cache,
	const struct gpc_sim_model *model)
{
	if (!model || !fit->contexts_bytes)
		return cache->smallest_bytes;
	return gpc_bytes_add(gpc_bytes_less(cache->smallest_bytes, fit->contexts_bytes),
		gpc_sim_model_context_bytes(model));
}

const struct gpc_sim_model *gpc_fit_smallest_model(
	const struct gpc_fit *fit, const struct gpc_fit_cache *cache)
{
	const struct gpc_sim_model *best = NULL;
	const struct gpc_sim_model *model;

	for (size_t i = 1; (model = gpc_sim_model_at(i)); i++)
		if (gpc_fit_need(fit, cache, model) <= model->memory &&
			(!best || model->memory < best->memory))
			best = model;
	return best;
}

bool gpc_fit_is_good(const struct gpc_fit *fit)
{
	if (fit->is_outgrown)
		return false;
	return !fit->target.bytes || (fit->caches[0].is_on_target && !fit->failure.number);
}

bool gpc_fit_is_known(const struct gpc_fit *fit)
{
	return fit->is_outgrown || !fit->failure.number || !fit->caches[0].is_on_target ||
	       target_of_run(fit) <= fit->more_than_bytes;
}
