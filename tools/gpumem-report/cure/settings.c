/* SPDX-License-Identifier: Apache-2.0 */
/* Which settings apply to a failure, and what their trials showed. */
#include <stdlib.h>
#include <string.h>

#include "format/directory.h"
#include "format/memory.h"
#include "tools/gpumem-report/cure/cure.h"
#include "tools/gpumem-report/fit/smallest_gpu.h"
#include "tools/gpumem-report/sweep/trial.h"
#include "tools/gpumem-report/target.h"
#include "tools/replay/steps.h"

/* ---- conditions of settings.def ---- */

static bool is_torch(const struct gpc_cure *cure)
{
	struct gpucache_torch torch;

	return gpc_recording_find_torch(cure->report->recording, cure->failure.oom.device, &torch);
}

static bool is_other(const struct gpc_cure *cure)
{
	return !is_torch(cure);
}

static bool has_remedy(const struct gpc_cure *cure)
{
	return cure->failure.facts.remedy != NULL;
}

static bool is_limited(const struct gpc_cure *cure)
{
	return cure->failure.facts.limit != GPUCACHE_UNKNOWN;
}

static bool is_eager(const struct gpc_cure *cure)
{
	return cure->failure.facts.is_eager == GPC_YES;
}

static bool has_idle_gpu(const struct gpc_cure *cure)
{
	return cure->failure.answer.cause == GPUCACHE_VERDICT_NEIGHBOUR &&
	       cure->failure.facts.idle_gpu != GPUCACHE_UNKNOWN;
}

static bool can_spill(const struct gpc_cure *cure)
{
	return cure->failure.oom.kind == GPUCACHE_KIND_DEVICE;
}

enum what {
	PLACEMENT,
	ROOM,
};

static const struct row {
	const char *key;
	bool (*applies)(const struct gpc_cure *cure);
	enum what what;
	const char *assignments;
	const char *words;
} rows[] = {
#define SETTING(key, condition, what, assignments, words) \
	{ #key, condition, what, assignments, words },
#include "tools/gpumem-report/cure/settings.def"
};

#define N_ROWS (sizeof rows / sizeof rows[0])
_Static_assert(N_ROWS <= GPC_CURE_MAX_SETTINGS, "every row has a place");

static bool fill(const struct gpc_cure *cure, const char *template, struct gpc_text *text)
{
	if (!gpc_say_filled(text, template, &cure->failure.facts, NULL))
		return false;
	/* A setting that a replay did without. */
	if (strncmp(text->buf, "GPUCACHE_CONF=", 14) == 0 && !strchr(text->buf, ':'))
		gpc_text_add(text, ":0");
	return true;
}

static bool is_there(const struct gpc_cure *cure, const char *assignments)
{
	for (size_t i = 0; i < cure->n; i++)
		if (strcmp(cure->settings[i].assignments, assignments) == 0)
			return true;
	return false;
}

static void add_setting(struct gpc_cure *cure, const struct row *row)
{
	struct gpc_cure_setting *setting = &cure->settings[cure->n];
	GPC_TEXT(text, sizeof setting->assignments);

	if (!row->applies(cure) || !fill(cure, row->assignments, &text) || is_there(cure, text.buf))
		return;
	*setting = (struct gpc_cure_setting){ .key = row->key,
		.words = row->words,
		.is_replayed = row->applies == has_remedy,
		.n_driver_calls = GPUCACHE_UNKNOWN,
		.headroom_bytes = GPUCACHE_UNKNOWN };
	if (row->what == PLACEMENT && cure->is_hopeless)
		setting->state = GPC_CURE_HOPELESS;
	memcpy(setting->assignments, text.buf, text.len + 1);
	cure->n++;
}

/* ---- trials ---- */

struct trial {
	char *key;
	char *command;
	char *refused;
	char *ended;
};

static bool take_line(void *arg, const char *key, char *text)
{
	struct trial *trial = arg;
	char **at = strcmp(key, "setting") == 0   ? &trial->key
		    : strcmp(key, "command") == 0 ? &trial->command
		    : strcmp(key, "refused") == 0 ? &trial->refused
		    : strcmp(key, "ended") == 0   ? &trial->ended
						  : NULL;

	if (at && !*at)
		*at = gpc_copy(text);
	return true;
}

static uint64_t driver_calls(const struct gpc_recording *recording)
{
	struct gpucache_device device;
	uint64_t n = 0;

	for (int32_t i = 0; gpc_recording_find_device(recording, i, &device); i++) {
		const struct gpucache_counters sum = gpc_recording_totals(recording, i).sum;

		n += sum.n_driver_malloc + sum.n_driver_free + sum.n_driver_failed;
	}
	return n;
}

/* What the GPU has beyond the smallest that serves the run with its allocator, by replay; unknown: it used no GPU. */
static uint64_t headroom(const struct gpc_report *report, const struct gpc_cure_setting *setting)
{
	const bool is_expandable = strstr(setting->assignments, "expandable_segments") != NULL;
	const bool is_off = strstr(setting->assignments, "cache:off") != NULL;
	struct gpc_fit fit;

	if (gpc_fit_find(report, &fit) || fit.n_caches < 2)
		return GPUCACHE_UNKNOWN;
	return gpc_bytes_less(fit.device.total_bytes,
		fit.caches[fit.has_torch ? is_expandable : !is_off].smallest_bytes);
}

/*
 * True if a request failed for good.  A run that was stopped may have been about to end by it, but not if it had gone on after
 * one: with expandable segments PyTorch maps memory until the driver refuses, gives back what is idle, and maps again.
 */
static bool has_failed(const struct gpc_report *report, bool is_stopped)
{
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_event event;
	bool is_behind = false; /* the first failure */

	if (!gpc_report_count_ooms(report, false))
		return false;
	while (is_stopped && gpc_recording_next_event(report->recording, &cursor, &event)) {
		is_behind |= event.kind == GPUCACHE_EVENT_OOM;
		if (is_behind && event.kind == GPUCACHE_EVENT_MALLOC)
			return false;
	}
	return true;
}

/* True if a process of the trial ran out of memory.  Reads its price, too, unless that is NULL. */
static bool read_recordings(const struct gpc_report *report, const char *folder, bool is_stopped,
	struct gpc_cure_setting *price)
{
	struct gpc_directory directory;
	bool any_failed = false;

	gpc_directory_open(&directory, folder);
	for (size_t i = 0; i < directory.n_entries; i++) {
		struct gpc_report one = { .options = report->options };
		uint64_t room;

		if (gpc_target_open_file(&one, directory.entries[i].path) != GPC_EXIT_MADE)
			continue;
		any_failed |= has_failed(&one, is_stopped);
		room = price ? headroom(&one, price) : GPUCACHE_UNKNOWN;
		if (room != GPUCACHE_UNKNOWN && room < price->headroom_bytes) {
			price->headroom_bytes = room;
			price->n_driver_calls = driver_calls(one.recording);
		}
		gpc_recording_close(one.recording);
	}
	gpc_directory_close(&directory);
	return any_failed;
}

static void take(char **to, char **from)
{
	free(*to);
	*to = *from;
	*from = NULL;
}

static void judge(const struct gpc_report *report, const char *folder, struct trial *trial,
	struct gpc_cure_setting *setting)
{
	const bool is_stopped = strcmp(trial->ended, "stopped") == 0;
	const bool ran_out = read_recordings(report, folder, is_stopped, NULL);
	const bool has_run = strcmp(trial->ended, "0") == 0 || (is_stopped && !ran_out);

	/* The price is a replay: of the one that ran, and not where only --next is asked for. */
	if (has_run && !report->options->next)
		(void)read_recordings(report, folder, is_stopped, setting);
	setting->n_ran += has_run;
	if (has_run)
		setting->state = GPC_CURE_RAN;
	else if (strcmp(trial->ended, "interrupted") != 0)
		setting->state = setting->n_ran                      ? GPC_CURE_EDGE
				 : strcmp(trial->ended, "late") == 0 ? GPC_CURE_LATE
				 : ran_out                           ? GPC_CURE_FAILED
								     : GPC_CURE_OTHER;
	take(&setting->command, &trial->command);
	take(&setting->refused, &trial->refused);
}

static void read_trials(struct gpc_cure *cure, const char *trials)
{
	bool is_there = true;

	for (unsigned number = 2; is_there; number++) {
		char *folder = gpc_print("%s/%u", trials, number);
		char *path = gpc_print("%s/trial", folder);
		struct trial trial = { 0 };

		is_there = gpc_trial_read(path, &trial, take_line);
		for (size_t i = 0; i < cure->n && trial.key && trial.ended; i++)
			if (strcmp(cure->settings[i].key, trial.key) == 0)
				judge(cure->report, folder, &trial, &cure->settings[i]);
		free(trial.key);
		free(trial.command);
		free(trial.refused);
		free(trial.ended);
		free(path);
		free(folder);
	}
}

/* What a trial has refuted is not advised. */
static void forget_refuted(struct gpc_cure *cure)
{
	for (size_t i = 0; i < cure->n; i++) {
		if (cure->settings[i].state != GPC_CURE_FAILED)
			continue;
		if (strstr(cure->settings[i].assignments, "spill:"))
			cure->failure.facts.spillable = GPUCACHE_UNKNOWN;
		if (cure->settings[i].is_replayed)
			cure->failure.facts.remedy = NULL;
	}
}

/* ---- all ---- */

/* More is live than the GPU has, wherever it is placed. */
static bool is_hopeless(const struct gpc_facts *facts)
{
	return facts->is_torch_limit != GPC_YES && facts->is_limited != GPC_YES &&
	       facts->slack != GPUCACHE_UNKNOWN && facts->short_by != GPUCACHE_UNKNOWN &&
	       facts->slack < facts->short_by;
}

void gpc_cure_find(
	struct gpc_cure *cure, const struct gpc_report *report, const struct gpucache_oom *oom)
{
	struct gpc_trace trace;

	*cure = (struct gpc_cure){ .report = report };
	gpc_failure_explain(report, oom, &cure->failure);
	cure->is_hopeless = is_hopeless(&cure->failure.facts);
	cure->n_driver_calls = driver_calls(report->recording);
	gpc_trace_from_recording(report->recording, oom->device, true, &trace);
	cure->n_steps = gpc_steps_before_spike(&trace);
	gpc_trace_fini(&trace);
	for (size_t i = 0; i < N_ROWS; i++)
		add_setting(cure, &rows[i]);
	if (report->options->trials)
		read_trials(cure, report->options->trials);
	forget_refuted(cure);
}

const struct gpc_cure_setting *gpc_cure_first(const struct gpc_cure *cure)
{
	for (size_t i = 0; i < cure->n; i++)
		if (cure->settings[i].state == GPC_CURE_RAN)
			return &cure->settings[i];
	return NULL;
}
