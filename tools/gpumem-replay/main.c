/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpumem-replay: reads traces, runs them against policies and prints the results.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "format/directory.h"
#include "tools/gpumem-replay/arguments.h"
#include "tools/gpumem-replay/kit.h"
#include "tools/gpumem-replay/print.h"
#include "tools/gpumem-replay/trace_file.h"
#include "tools/lib/clean_stream.h"

/* The same codes as of gpumem-report, except for 1, which there means that a condition is true. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_FOUND = 3,
	EXIT_DAMAGED = 4,
	EXIT_IO = 5,
};

static enum exit_code read_trace(
	const struct gpc_source *source, struct gpc_which which, struct gpc_trace *ret_trace)
{
	GPC_TEXT(text, 200);
	enum gpc_status st;

	errno = 0;
	if (source->is_workload)
		st = gpc_kit.generate(source->text, &text, ret_trace);
	else
		st = gpc_trace_read(source->text, which, &text, ret_trace);
	if (!st)
		return EXIT_DONE;
	gpc_complain("%s: %s", source->text, text.buf);
	if (source->is_workload && st == GPC_INVALID)
		return EXIT_USAGE;
	if (st == GPC_IO && errno == ENOENT)
		return EXIT_NOT_FOUND;
	return st == GPC_IO || st == GPC_NO_METADATA ? EXIT_IO : EXIT_DAMAGED;
}

/* Adds "event 12 (line 13)": the number of the operation in the trace, and its line in the file. */
static void add_event(struct gpc_text *text, const struct gpc_trace *trace, uint64_t event)
{
	uint64_t line = trace->ops[event - 1].line;

	gpc_text_add(text, "event %" PRIu64, event);
	if (line)
		gpc_text_add(text, " (%s %" PRIu64 ")",
			trace->is_recording ? "event of the recording" : "line", line);
}

static void explain_failure(const struct gpc_trace *trace, const struct gpc_run *run)
{
	GPC_TEXT(text, 120);

	if (!run->has_failed && !run->broken)
		return;
	if (!run->failed_event) {
		gpc_text_add(&text, "the end");
	} else {
		add_event(&text, trace, run->failed_event);
		if (run->failed_size) {
			gpc_text_add(&text, ", a request of ");
			gpc_text_add_bytes(&text, run->failed_size);
		} else if (run->failed_kind == GPC_TRACE_FREE) {
			gpc_text_add(&text, ", a free");
		}
	}
	if (run->has_failed)
		gpc_complain("%s: %s, with policy %s: %s", trace->path, text.buf, run->policy->name,
			gpc_status_text(run->failure));
	if (run->broken)
		gpc_complain("%s: the heap of policy %s is broken after %s: %s", trace->path,
			run->policy->name, text.buf, run->broken);
}

static void explain_races(const struct gpc_trace *trace, const struct gpc_run *run)
{
	GPC_TEXT(old_event, 80);
	GPC_TEXT(new_event, 80);

	if (run->n_races == 0 || run->has_failed || run->broken)
		return;
	add_event(&old_event, trace, run->race_old_event);
	add_event(&new_event, trace, run->failed_event);
	gpc_complain("%s: policy %s reused memory too early, %" PRIu64
		     " times; first, that of %s went to %s while work could still use it",
		trace->path, run->policy->name, run->n_races, old_event.buf, new_event.buf);
}

static enum exit_code explain_policy(
	const struct gpc_trace *trace, const struct gpc_policy_ops *policy, enum gpc_status st)
{
	gpc_complain("%s: policy %s could not be run: %s", trace->path, policy->name,
		gpc_status_text(st));
	return EXIT_IO;
}

static enum exit_code run_policies(const struct gpc_trace *trace,
	const struct gpc_arguments *arguments, struct gpc_run *ret_runs)
{
	enum exit_code code = EXIT_DONE;
	enum gpc_status st;

	for (unsigned i = 0; i < arguments->n_policies; i++) {
		const struct gpc_policy_ops *policy = arguments->policies[i];

		st = gpc_run(trace, policy, &arguments->settings, &ret_runs[i]);
		if (!st && arguments->with_smallest)
			st = gpc_run_smallest(trace, policy, &arguments->settings,
				&ret_runs[i].smallest_device_bytes, NULL);
		if (st)
			return explain_policy(trace, policy, st);
		explain_failure(trace, &ret_runs[i]);
		explain_races(trace, &ret_runs[i]);
		if (!gpc_run_is_good(&ret_runs[i]))
			code = EXIT_FAILED;
	}
	return code;
}

static enum exit_code save(const struct gpc_trace *trace, const char *path)
{
	if (gpc_kit.save(trace, path))
		return EXIT_DONE;
	gpc_complain("%s: cannot be written: %s", path, strerror(errno));
	return EXIT_IO;
}

static enum exit_code run_sizes(const struct gpc_trace *trace,
	const struct gpc_arguments *arguments, struct gpc_document *doc)
{
	struct gpc_run runs[GPC_N_SIZES][GPC_MAX_POLICIES];

	for (unsigned i = 0; i < arguments->n_policies; i++) {
		const struct gpc_policy_ops *policy = arguments->policies[i];
		enum gpc_status st = gpc_sizes_run(trace, policy, &arguments->settings, runs, i);

		if (st)
			return explain_policy(trace, policy, st);
	}
	gpc_print_sizes(doc, trace, runs, arguments->n_policies);
	return EXIT_DONE;
}

static enum exit_code run_and_print(const struct gpc_trace *trace,
	const struct gpc_arguments *arguments, struct gpc_document *doc)
{
	struct gpc_run runs[GPC_MAX_POLICIES];
	enum exit_code code;

	if (arguments->with_sizes)
		return run_sizes(trace, arguments, doc);
	code = run_policies(trace, arguments, runs);
	if (code <= EXIT_FAILED)
		gpc_print_trace(doc, trace, runs, arguments->n_policies);
	return code;
}

static enum exit_code replay(const struct gpc_source *source, const struct gpc_arguments *arguments,
	struct gpc_document *doc)
{
	struct gpc_trace trace;
	enum exit_code code = read_trace(source, arguments->which, &trace);

	if (code)
		return code;
	if (arguments->save)
		code = save(&trace, arguments->save);
	if (!code)
		code = run_and_print(&trace, arguments, doc);
	if (trace.is_damaged) {
		gpc_complain("%s is damaged; what could be read was replayed", trace.path);
		code = code > EXIT_DAMAGED ? code : EXIT_DAMAGED;
	}
	gpc_trace_fini(&trace);
	return code;
}

/* Without a trace on the command line: the newest recording of this user. */
static enum exit_code replay_newest(const struct gpc_arguments *arguments, struct gpc_document *doc)
{
	const struct gpc_directory_entry *entry = NULL;
	enum exit_code code = EXIT_NOT_FOUND;
	struct gpc_directory directory;

	gpc_directory_open(&directory, NULL);
	entry = gpc_directory_find(&directory, 0);
	if (entry)
		code = replay(&(const struct gpc_source){ .text = entry->path }, arguments, doc);
	else
		gpc_complain(
			"no trace named, and no recording found; `gpumem-replay -h` shows how");
	gpc_directory_close(&directory);
	return code;
}

int main(int argc, char **argv)
{
	struct gpc_document doc;
	enum exit_code worst = EXIT_DONE;
	enum gpc_arguments_answer answer;
	struct gpc_arguments arguments;

	/* `gpumem-replay | head` shall end quietly, by SIGPIPE, which children of Python inherit as ignored. */
	signal(SIGPIPE, SIG_DFL);
	gpc_clean_standard();
	answer = gpc_arguments_read(argc, argv, &arguments);
	if (answer != GPC_ARGUMENTS_RUN)
		return answer == GPC_ARGUMENTS_DONE ? EXIT_DONE : EXIT_USAGE;
	gpc_print_begin(&doc, arguments.json);
	if (arguments.n_sources == 0)
		worst = replay_newest(&arguments, &doc);
	for (unsigned i = 0; i < arguments.n_sources; i++) {
		enum exit_code code = replay(&arguments.sources[i], &arguments, &doc);

		if (code > worst)
			worst = code;
	}
	gpc_print_end(&doc);
	if ((fflush(stdout) != 0 || ferror(stdout)) && errno != EPIPE) {
		gpc_complain("cannot write to standard output");
		worst = EXIT_IO;
	}
	return (int)worst;
}
