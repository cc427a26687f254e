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
#include "tools/gpumem-report/output/page.h"

#define MOST_VALUE UINT64_C(1000000000)
#define FINENESS   16

struct sweep {
	struct gpc_report *report;
	char variable[64];
	uint64_t from;
	uint64_t to;
	uint64_t last_asked; /* gpc_fit.asked_bytes of the last run; 0: no run yet */
	bool is_idle;        /* two values took the same bytes: the variable may have no effect */
	bool is_over;        /* interrupted, failed, or is_idle */
	enum gpc_exit worst; /* GPC_EXIT_MADE, or why the sweep ended */
};

/* How the program ended that made the recording. */
static void show_ending(struct gpc_document *doc, const struct fit_program *program)
{
	const int status = program->status;

	gpc_document_member(doc, "stopped", gpc_truth(program->is_stopped));
	gpc_document_member(doc, "interrupted", gpc_truth(program->is_interrupted));
	gpc_document_member(doc, "status", gpc_number((unsigned)status));
	gpc_document_member(doc, "processes", gpc_count(program->n_processes));
	if (program->n_processes > 1)
		gpc_document_say(doc, "the largest of %u processes; each needs a part of a GPU",
			program->n_processes);
	if (program->is_stopped)
		gpc_document_say(doc, "ended after its steps; --steps=N runs more");
	else if (program->is_interrupted)
		gpc_document_say(doc, "interrupted: this is the answer so far");
	else if (status)
		gpc_document_say(doc, "it FAILED, with %s %d: this is the answer up to that point",
			WIFSIGNALED(status) ? "signal" : "status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
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

/* Shows the fit, and how the program that made the recording ended.  program NULL: the user named the recording. */
static enum gpc_exit answer(
	struct gpc_report *report, const struct gpc_fit *fit, const struct fit_program *program)
{
	gpc_page_begin(report, "fit");
	gpc_page_say_who(report, GPC_INK_PLAIN, "", NULL);
	if (program)
		show_ending(report->doc, program);
	gpc_fit_show(report, fit);
	if (!program)
		gpc_page_notes(report);
	gpc_document_end(report->doc);
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
	struct gpc_report run = { .options = report->options, .doc = report->doc };
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
	const struct gpc_fit_target *target = &fit->target;
	uint64_t need = gpc_fit_need(fit, &fit->caches[0], target->model);
	const bool is_good = gpc_fit_is_good(fit);
	GPC_TEXT(text, 200);

	sweep->is_idle = sweep->last_asked == fit->asked_bytes;
	sweep->last_asked = fit->asked_bytes;
	gpc_text_add(&text, "%s=%llu needs %s", sweep->variable, (unsigned long long)value,
		gpc_show_bytes(need));
	if (target->bytes)
		gpc_text_add(&text, ": %s on %s, %s %s", is_good ? "fits" : "does not fit",
			target->model ? target->model->key : gpc_show_bytes(target->bytes),
			gpc_show_bytes(gpc_distance(target->bytes, need)),
			is_good ? "left" : "missing");
	gpc_document_row(sweep->report->doc, gpc_sentence(text.buf), gpc_number(value),
		gpc_bytes(need), gpc_truth(is_good));
	fflush(sweep->report->out);
}

/* Runs the program with that value; true if it fits.  After a failed or interrupted run, returns false. */
static bool try_value(struct sweep *sweep, uint64_t value)
{
	struct gpc_report run = { .options = sweep->report->options, .doc = sweep->report->doc };
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

static void end_sweep(const struct sweep *sweep, uint64_t good)
{
	const struct gpc_options *options = sweep->report->options;
	struct gpc_document *doc = sweep->report->doc;

	if (sweep->is_idle)
		gpc_complain("%s changes nothing: does the program read it?", sweep->variable);
	gpc_document_member(doc, "largest", gpc_number(gpc_unless_zero(good)));
	if (options->on && good)
		gpc_document_say(doc, "%s=%llu is the largest that fits on %s", sweep->variable,
			(unsigned long long)good, options->on);
	else if (options->on)
		gpc_document_say(doc, "no value tried fits on %s", options->on);
	gpc_document_end(doc);
}

static enum gpc_exit run_sweep(struct gpc_report *report)
{
	static const struct gpc_column columns[] = { { NULL, "" }, { "value" }, { "needs_bytes" },
		{ "fits" } };
	static const struct gpc_section section = { "runs", NULL, GPC_COLUMNS(columns) };
	const struct gpc_options *options = report->options;
	struct sweep sweep = { .report = report };
	uint64_t good = 0;

	if (!read_sweep(options->sweep, &sweep)) {
		gpc_complain("--sweep needs a variable and a range, as BATCH=1..256, not `%s`",
			options->sweep);
		return GPC_EXIT_USAGE;
	}
	gpc_page_begin(report, "fit_sweep");
	gpc_document_member(report->doc, "variable", gpc_name(sweep.variable));
	gpc_document_open(report->doc, &section);
	if (options->on)
		good = halve(&sweep);
	else
		double_up(&sweep);
	gpc_document_close(report->doc);
	end_sweep(&sweep, good);
	if (sweep.worst != GPC_EXIT_MADE)
		return sweep.worst;
	return options->on && !good ? GPC_EXIT_CONDITION : GPC_EXIT_MADE;
}

enum gpc_exit gpc_fit_run(struct gpc_report *report)
{
	return report->options->sweep ? run_sweep(report) : run_once(report);
}
