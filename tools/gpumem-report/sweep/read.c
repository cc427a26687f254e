/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the folder of a sweep (sweep.h). */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "format/memory.h"
#include "tools/gpumem-report/sweep/sweep.h"
#include "tools/gpumem-report/sweep/trial.h"

#define MOST_VALUES 256

static void add_value(struct gpc_sweep_variable *variable, char *value)
{
	variable->values =
		gpc_resize(variable->values, variable->n_values + 1, sizeof *variable->values);
	variable->values[variable->n_values++] = value;
}

/* "8,16,32", or "1..256" */
static bool read_values(struct gpc_sweep_variable *variable, char *text)
{
	char *dots = strstr(text, "..");
	char *next = NULL;

	if (dots) {
		*dots = '\0';
		if (!gpc_is_number(text) || !gpc_is_number(dots + 2))
			return false;
		variable->is_range = true;
		variable->from = strtoull(text, NULL, 10);
		variable->to = strtoull(dots + 2, NULL, 10);
		return variable->from >= 1 && variable->from < variable->to;
	}
	if (text[strspn(
		    text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-,")])
		return false;
	for (char *word = strtok_r(text, ",", &next); word && variable->n_values < MOST_VALUES;
		word = strtok_r(NULL, ",", &next))
		add_value(variable, gpc_copy(word));
	return variable->n_values > 0 && variable->n_values < MOST_VALUES;
}

static bool read_sweep(struct gpc_sweep *sweep, char *text)
{
	struct gpc_sweep_variable *variable = &sweep->variables[sweep->n_variables];
	char *whole = gpc_copy(text);
	char *values = strchr(text, '=');
	bool is_good = values && sweep->n_variables < GPC_SWEEP_MAX_VARIABLES;

	if (is_good) {
		*values++ = '\0';
		sweep->n_variables++;
		variable->name = gpc_copy(text);
		is_good = *text && !strchr("0123456789", *text) &&
			  !text[strspn(text,
				  "abcdefghijklmnopqrstuvwxyz_"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")] &&
			  read_values(variable, values);
	}
	if (!is_good)
		gpc_complain(
			"--sweep needs a variable and its values, as BATCH=8,16,32 or "
			"BATCH=1..256, not `%s`",
			whole);
	for (size_t i = 0; is_good && i + 1 < sweep->n_variables; i++)
		if (variable->is_range && sweep->variables[i].is_range)
			is_good = gpc_refuse(
				"one range at most: give `%s` as a list", variable->name);
	free(whole);
	return is_good;
}

static bool read_gpus(struct gpc_sweep *sweep, char *text)
{
	char *next = NULL;

	for (char *word = strtok_r(text, ",", &next); word; word = strtok_r(NULL, ",", &next)) {
		struct gpc_sweep_gpu *gpu = &sweep->gpus[sweep->n_gpus];

		if (sweep->n_gpus == GPC_SWEEP_MAX_GPUS)
			return gpc_refuse("--on takes at most %d GPUs", GPC_SWEEP_MAX_GPUS);
		/* Blanks end a word of what --next prints. */
		if (strpbrk(word, " \t") || !gpc_fit_read_target(word, &gpu->target))
			return gpc_refuse(
				"--on needs GPUs or sizes, not `%s`; "
				"`gpucache-run --sim list` names the GPUs",
				word);
		gpu->word = gpc_copy(word);
		sweep->n_gpus++;
	}
	return true;
}

static bool take_plan(void *arg, const char *key, char *text)
{
	struct gpc_sweep *sweep = arg;

	if (strcmp(key, "on") == 0)
		return read_gpus(sweep, text);
	if (strcmp(key, "sized") == 0) {
		sweep->is_sized = true;
		sweep->variables[sweep->n_variables++].name = gpc_copy(text);
	}
	if (strcmp(key, "command") == 0 && !sweep->command)
		sweep->command = gpc_copy(text);
	return strcmp(key, "sweep") != 0 || read_sweep(arg, text);
}

/* Without a GPU, a range is tried in doublings: there is no largest. */
static void complete_plan(struct gpc_sweep *sweep)
{
	if (sweep->n_gpus)
		return;
	sweep->gpus[sweep->n_gpus++].word = gpc_copy("-");
	for (size_t i = 0; i < sweep->n_variables; i++) {
		struct gpc_sweep_variable *variable = &sweep->variables[i];

		if (!variable->is_range)
			continue;
		variable->is_range = false;
		for (uint64_t value = variable->from; value <= variable->to; value *= 2)
			add_value(variable, gpc_print("%llu", (unsigned long long)value));
	}
}

/* ---- runs ---- */

struct taker {
	struct gpc_sweep *sweep;
	struct gpc_sweep_run *run;
};

static bool take_trial(void *arg, const char *key, char *text)
{
	const struct taker *taker = arg;
	const struct gpc_sweep *sweep = taker->sweep;
	struct gpc_sweep_run *run = taker->run;
	char *value = strchr(text, '=');

	if (strcmp(key, "ended") == 0 && !run->ended)
		run->ended = gpc_copy(text);
	for (size_t i = 0; strcmp(key, "gpu") == 0 && i < sweep->n_gpus; i++)
		if (strcmp(sweep->gpus[i].word, text) == 0)
			run->gpu = i;
	if (strcmp(key, "set") != 0 || !value)
		return true;
	*value++ = '\0';
	for (size_t i = 0; i < sweep->n_variables; i++)
		if (strcmp(sweep->variables[i].name, text) == 0 && !run->values[i])
			run->values[i] = gpc_copy(value);
	return true;
}

static struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *found = NULL;

	return json_object_object_get_ex(object, key, &found) ? found : NULL;
}

static uint64_t number(struct json_object *object, const char *key)
{
	int64_t value = json_object_get_int64(member(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static char *text_of(struct json_object *object, const char *key)
{
	struct json_object *text = member(object, key);
	char *copy;

	if (!json_object_is_type(text, json_type_string))
		return NULL;
	copy = gpc_copy(json_object_get_string(text));
	gpc_text_clean(copy);
	return copy;
}

static void read_sites(struct gpc_sweep_run *run, struct json_object *holders)
{
	size_t n = json_object_is_type(holders, json_type_array) ? json_object_array_length(holders)
								 : 0;

	run->sites = gpc_new(n, sizeof *run->sites);
	for (size_t i = 0; i < n; i++) {
		struct json_object *row = json_object_array_get_idx(holders, i);
		char *where = text_of(row, "where");

		if (where)
			run->sites[run->n_sites++] =
				(struct gpc_sweep_site){ where, number(row, "live_bytes") };
	}
}

static void read_answer(
	struct gpc_sweep *sweep, struct gpc_sweep_run *run, size_t gpu, const char *folder)
{
	struct gpc_sweep_answer *answer = &run->answers[gpu];
	char *path = gpc_print("%s/%u/%s.json", folder, run->number, sweep->gpus[gpu].word);
	struct json_object *root = json_object_from_file(path);
	struct json_object *caches = member(root, "caches");
	struct json_object *cache = json_object_is_type(caches, json_type_array)
					    ? json_object_array_get_idx(caches, 0)
					    : NULL;
	const bool has_target = sweep->gpus[gpu].target.bytes != 0;
	struct json_object *fits = member(member(root, "on"), "fits");
	const bool is_outgrown = json_object_get_boolean(member(root, "outgrown"));
	const bool is_cut = is_outgrown || member(root, "cut_short");

	free(path);
	/* What was cut short may yet be known not to fit. */
	answer->is_known = is_cut ? fits != NULL : cache != NULL;
	if (answer->is_known) {
		run->is_cut |= is_cut;
		answer->need_bytes = is_outgrown
					     ? number(root, "asked_bytes")
					     : number(cache, has_target ? "needs_bytes"
									: "smallest_device_bytes");
		answer->fits = json_object_get_boolean(fits);
		answer->refused_at = text_of(member(root, "on"), "refused_at");
		run->asked_bytes = number(root, "asked_bytes");
		if (!run->smallest_gpu)
			run->smallest_gpu = text_of(cache, "smallest_gpu");
		if (!run->sites)
			read_sites(run, member(root, "holders"));
	}
	json_object_put(root);
}

static char *read_said(const char *folder, unsigned number_)
{
	char *path = gpc_print("%s/%u/said", folder, number_);
	FILE *file = fopen(path, "re");
	char line[512] = "";

	free(path);
	if (file && !fgets(line, sizeof line, file))
		line[0] = '\0';
	if (file)
		(void)fclose(file);
	line[strcspn(line, "\n")] = '\0';
	gpc_text_clean(line);
	return *line ? gpc_copy(line) : NULL;
}

static bool is_complete(const struct gpc_sweep *sweep, const struct gpc_sweep_run *run)
{
	for (size_t i = 0; i < sweep->n_variables; i++)
		if (!run->values[i])
			return false;
	return run->ended != NULL;
}

static void run_fini(struct gpc_sweep_run *run)
{
	for (size_t i = 0; i < GPC_SWEEP_MAX_VARIABLES; i++)
		free(run->values[i]);
	for (size_t i = 0; i < GPC_SWEEP_MAX_GPUS; i++)
		free(run->answers[i].refused_at);
	for (size_t i = 0; i < run->n_sites; i++)
		free(run->sites[i].where);
	free(run->sites);
	free(run->smallest_gpu);
	free(run->ended);
	free(run->said);
}

/* Run `number` of the folder; false if it is not there. */
static bool read_run(struct gpc_sweep *sweep, const char *folder, unsigned number_)
{
	struct gpc_sweep_run run = { .number = number_ };
	struct taker taker = { sweep, &run };
	char *path = gpc_print("%s/%u/trial", folder, number_);
	bool is_there = gpc_trial_read(path, &taker, take_trial);

	free(path);
	if (!is_there || !is_complete(sweep, &run)) {
		run_fini(&run);
		return is_there;
	}
	run.said = read_said(folder, number_);
	for (size_t i = 0; i < sweep->n_gpus; i++)
		read_answer(sweep, &run, i, folder);
	/* On a GPU of limited size one that ran out of memory did not run. */
	run.is_measured = run.answers[run.gpu].is_known &&
			  ((run.is_cut && (!sweep->is_sized || strcmp(run.ended, "grown") == 0)) ||
				  strcmp(run.ended, "0") == 0 || strcmp(run.ended, "stopped") == 0);
	if (!run.is_measured)
		for (size_t i = 0; i < sweep->n_gpus; i++)
			run.answers[i].is_known = false;
	sweep->runs = gpc_resize(sweep->runs, sweep->n_runs + 1, sizeof *sweep->runs);
	sweep->runs[sweep->n_runs++] = run;
	return true;
}

bool gpc_sweep_read(struct gpc_sweep *ret_sweep, const char *folder)
{
	struct gpc_sweep *sweep = ret_sweep;
	char *path = gpc_print("%s/plan", folder);
	FILE *plan = fopen(path, "re");
	bool is_good;

	*sweep = (struct gpc_sweep){ 0 };
	if (plan)
		(void)fclose(plan);
	else
		gpc_complain("%s: no plan of gpucache-run --sweep", folder);
	is_good = plan && gpc_trial_read(path, sweep, take_plan);
	free(path);
	if (!is_good)
		return false;
	complete_plan(sweep);
	for (unsigned i = 1; read_run(sweep, folder, i);)
		i++;
	return true;
}

void gpc_sweep_fini(struct gpc_sweep *sweep)
{
	for (size_t i = 0; i < sweep->n_variables; i++) {
		for (size_t k = 0; k < sweep->variables[i].n_values; k++)
			free(sweep->variables[i].values[k]);
		free(sweep->variables[i].values);
		free(sweep->variables[i].name);
	}
	for (size_t i = 0; i < sweep->n_gpus; i++)
		free(sweep->gpus[i].word);
	for (size_t i = 0; i < sweep->n_runs; i++)
		run_fini(&sweep->runs[i]);
	free(sweep->runs);
	free(sweep->command);
}
