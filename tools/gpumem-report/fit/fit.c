/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fit`: which GPU a run needs, and whether the run fits on a given one.  The run is a recording; after `--` it is a
 * program, which this command runs.  With --sweep, the command finds the largest value of a variable that fits.
 *
 * A sweep runs the program once per value.  It halves the value until the program fits, then bisects between the
 * largest value that fits and the smallest that does not, until they differ by at most 1/16.  Without --on there is no
 * GPU to fit on: the sweep doubles the value up to the range's end, and prints the bytes of each.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tools/gpumem-report/fit/run_program.h"
#include "tools/gpumem-report/fit/smallest_gpu.h"
#include "tools/gpumem-report/output/json.h"

#define MOST_VALUE UINT64_C(1000000000)
#define FINENESS   16

struct sweep {
	struct gpc_report *report;
	char variable[64];
	uint64_t from;
	uint64_t to;
	struct json_object *runs; /* NULL: text */
	uint64_t last_asked;      /* gpc_fit.asked_bytes of the last run; 0: no run yet */
	bool is_idle;        /* two values took the same bytes: the variable may have no effect */
	bool is_over;        /* interrupted, failed, or is_idle */
	enum gpc_exit worst; /* GPC_EXIT_MADE, or why the sweep ended */
};

static void print_how_it_ended(const struct gpc_paper *paper, const struct fit_program *program)
{
	if (program->n_processes > 1)
		gpc_paper_line(paper, "the largest of %u processes; each needs a part of a GPU",
			program->n_processes);
	if (program->is_stopped)
		gpc_paper_line(paper, "ended after its steps; --steps=N runs more");
	else if (program->is_interrupted)
		gpc_paper_line(paper, "interrupted: this is the answer so far");
	else if (program->status)
		gpc_paper_line(paper, "it FAILED, with %s %d: this is the answer up to that point",
			WIFSIGNALED(program->status) ? "signal" : "status",
			WIFSIGNALED(program->status) ? WTERMSIG(program->status)
						     : WEXITSTATUS(program->status));
}

/* Computes the fit of report->recording, and complains if it cannot.  program NULL: the user named the recording. */
static enum gpc_exit find_fit(
	const struct gpc_report *report, const struct fit_program *program, struct gpc_fit *ret_fit)
{
	enum gpc_status st = gpc_fit_find(report, ret_fit);

	if (!st)
		return GPC_EXIT_MADE;
	if (st != GPC_NOT_FOUND)
		gpc_complain("no memory for the replay");
	else if (program)
		gpc_complain("the program took no memory of a GPU");
	else
		gpc_complain("%s: its process took no memory of a GPU", report->recording->path);
	return st == GPC_NOT_FOUND ? GPC_EXIT_NOT_FOUND : GPC_EXIT_IO;
}

/* Prints the fit, and how the program that made the recording ended.  program NULL: the user named the recording. */
static enum gpc_exit answer(
	struct gpc_report *report, const struct gpc_fit *fit, const struct fit_program *program)
{
	struct json_object *root = report->options->json ? gpc_json_begin(report, "fit") : NULL;

	if (root && program) {
		gpc_json_bool(root, "stopped", program->is_stopped);
		gpc_json_bool(root, "interrupted", program->is_interrupted);
		json_object_object_add(root, "status", json_object_new_int(program->status));
		gpc_json_bytes(root, "processes", program->n_processes);
	}
	if (root) {
		gpc_fit_json(report, fit, root);
		gpc_json_end(report, root);
	} else {
		gpc_report_print_who(report);
		if (program)
			print_how_it_ended(&report->paper, program);
		gpc_fit_print(report, fit);
		if (!program)
			gpc_report_print_notes(report);
	}
	return gpc_fit_is_good(fit) ? GPC_EXIT_MADE : GPC_EXIT_CONDITION;
}

enum gpc_exit gpc_cmd_fit(struct gpc_report *report)
{
	struct gpc_fit fit;
	enum gpc_exit code = find_fit(report, NULL, &fit);

	return code == GPC_EXIT_MADE ? answer(report, &fit, NULL) : code;
}

/* Runs the program, and opens its recording as run->recording.  The caller calls close_run(), even after a failure. */
static enum gpc_exit record(struct gpc_report *run, struct fit_program *program,
	const char *variable, const char *value, struct gpc_fit *ret_fit)
{
	enum gpc_exit code = fit_program_run(program, run->options, variable, value);

	if (code == GPC_EXIT_MADE)
		code = fit_program_open(program, run);
	return code == GPC_EXIT_MADE ? find_fit(run, program, ret_fit) : code;
}

static void close_run(struct gpc_report *run)
{
	gpc_frames_destroy(run->frames);
	gpc_recording_close(run->recording);
}

static enum gpc_exit run_once(const struct gpc_report *report)
{
	struct gpc_report run = { .options = report->options, .paper = report->paper };
	struct fit_program program;
	struct gpc_fit fit;
	enum gpc_exit code = record(&run, &program, NULL, NULL, &fit);

	if (code == GPC_EXIT_MADE)
		code = answer(&run, &fit, &program);
	close_run(&run);
	return code;
}

/* ---- the sweep ---- */

static bool read_sweep(const char *text, struct sweep *sweep)
{
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : 0;
	char *end = NULL;

	if (length == 0 || length >= sizeof sweep->variable)
		return false;
	gpc_format(sweep->variable, sizeof sweep->variable, "%.*s", (int)length, text);
	sweep->from = strtoull(equals + 1, &end, 10);
	if (strncmp(end, "..", 2) != 0)
		return false;
	sweep->to = strtoull(end + 2, &end, 10);
	return *end == '\0' && sweep->from >= 1 && sweep->from < sweep->to &&
	       sweep->to <= MOST_VALUE;
}

static void note_run(struct sweep *sweep, uint64_t value, const struct gpc_fit *fit)
{
	uint64_t need = gpc_fit_need(fit, &fit->caches[0], fit->target.model);
	struct json_object *row;
	char label[96];

	sweep->is_idle = sweep->last_asked == fit->asked_bytes;
	sweep->last_asked = fit->asked_bytes;
	if (!sweep->runs) {
		gpc_format(label, sizeof label, "%s=%" PRIu64, sweep->variable, value);
		gpc_fit_print_line(&sweep->report->paper, fit, label);
		fflush(sweep->report->paper.out);
		return;
	}
	row = json_object_new_object();
	json_object_object_add(row, "value", json_object_new_int64((int64_t)value));
	gpc_json_bytes(row, "needs_bytes", need);
	gpc_json_bool(row, "fits", gpc_fit_is_good(fit));
	json_object_array_add(sweep->runs, row);
}

/* Runs the program with that value; true if it fits.  After a failed or interrupted run, returns false. */
static bool try_value(struct sweep *sweep, uint64_t value)
{
	struct gpc_report run = { .options = sweep->report->options,
		.paper = sweep->report->paper };
	struct fit_program program;
	struct gpc_fit fit;
	char text[32];
	bool fits = false;

	gpc_format(text, sizeof text, "%" PRIu64, value);
	sweep->worst = record(&run, &program, sweep->variable, text, &fit);
	if (sweep->worst == GPC_EXIT_MADE && !program.is_interrupted) {
		fits = gpc_fit_is_good(&fit);
		note_run(sweep, value, &fit);
	}
	sweep->is_over = sweep->worst != GPC_EXIT_MADE || program.is_interrupted || sweep->is_idle;
	close_run(&run);
	return fits;
}

/* Without a target: prints the bytes of each value. */
static void double_up(struct sweep *sweep)
{
	for (uint64_t value = sweep->from; value <= sweep->to && !sweep->is_over; value *= 2)
		(void)try_value(sweep, value);
}

/* Halves, then bisects.  Returns the largest value tried that fits; 0 if none does. */
static uint64_t halve(struct sweep *sweep)
{
	uint64_t good = sweep->to;
	uint64_t bad = 0; /* the smallest that does not fit */

	while (!try_value(sweep, good)) {
		bad = good;
		if (sweep->is_over || good == sweep->from)
			return 0;
		good = good / 2 > sweep->from ? good / 2 : sweep->from;
	}
	while (bad && !sweep->is_over && bad - good > 1 && bad - good > good / FINENESS) {
		uint64_t middle = good + (bad - good) / 2;

		if (try_value(sweep, middle))
			good = middle;
		else if (!sweep->is_over)
			bad = middle;
	}
	return good;
}

static void end_sweep(struct sweep *sweep, uint64_t good)
{
	const struct gpc_options *options = sweep->report->options;
	struct json_object *root;

	if (sweep->is_idle)
		gpc_complain("%s changes nothing: does the program read it?", sweep->variable);
	if (sweep->runs) {
		root = gpc_json_begin(sweep->report, "fit_sweep");
		gpc_json_text(root, "variable", sweep->variable);
		json_object_object_add(root, "runs", sweep->runs);
		json_object_object_add(
			root, "largest", good ? json_object_new_int64((int64_t)good) : NULL);
		gpc_json_end(sweep->report, root);
	} else if (options->on && good) {
		gpc_paper_head(&sweep->report->paper,
			"%s=%" PRIu64 " is the largest that fits on %s", sweep->variable, good,
			options->on);
	} else if (options->on) {
		gpc_paper_head(&sweep->report->paper, "no value tried fits on %s", options->on);
	}
}

static enum gpc_exit run_sweep(struct gpc_report *report)
{
	const struct gpc_options *options = report->options;
	struct sweep sweep = { .report = report };
	uint64_t good = 0;

	if (!read_sweep(options->sweep, &sweep)) {
		gpc_complain("--sweep needs a variable and a range, as BATCH=1..256, not `%s`",
			options->sweep);
		return GPC_EXIT_USAGE;
	}
	sweep.runs = options->json ? json_object_new_array() : NULL;
	if (options->on)
		good = halve(&sweep);
	else
		double_up(&sweep);
	end_sweep(&sweep, good);
	if (sweep.worst != GPC_EXIT_MADE)
		return sweep.worst;
	return options->on && !good ? GPC_EXIT_CONDITION : GPC_EXIT_MADE;
}

enum gpc_exit gpc_fit_run(struct gpc_report *report)
{
	return report->options->sweep ? run_sweep(report) : run_once(report);
}
