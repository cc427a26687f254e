/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpumem-replay: reads traces, runs them against policies, prints, and answers with an exit
 * code.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "tools/gpumem-replay/arguments.h"
#include "tools/gpumem-replay/print.h"

/* Those of gpumem-report; 1 is "the condition is true". */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_FOUND = 3,
	EXIT_DAMAGED = 4,
	EXIT_IO = 5,
};

static enum exit_code read_trace(const char *path, struct gpc_trace *ret_trace)
{
	char why[200] = "";
	struct gpc_text text = gpc_text_init(why, sizeof why);
	enum gpc_status st;

	errno = 0;
	st = gpc_trace_read(path, &text, ret_trace);
	if (!st)
		return EXIT_DONE;
	gpc_complain("%s: %s", path, why);
	if (st == GPC_IO && errno == ENOENT)
		return EXIT_NOT_FOUND;
	return st == GPC_DAMAGED ? EXIT_DAMAGED : EXIT_IO;
}

static void explain_failure(const struct gpc_trace *trace, const struct gpc_run *run)
{
	char size[32];
	struct gpc_text text = gpc_text_init(size, sizeof size);

	gpc_text_add_bytes(&text, run->failed_size);
	if (run->has_failed)
		gpc_complain("%s: event %" PRIu64 " (line %u), %s of %s with policy %s: %s",
			trace->path, run->failed_event, run->failed_line,
			run->failed_size ? "a request" : "a free", size, run->policy->name,
			gpc_status_text(run->failure));
	if (run->broken)
		gpc_complain("%s: the heap of policy %s is broken after event %" PRIu64
			     " (line %u): %s",
			trace->path, run->policy->name, run->failed_event, run->failed_line,
			run->broken);
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
				&ret_runs[i].smallest_device_bytes);
		if (st) {
			gpc_complain("%s: policy %s could not be run: %s", trace->path,
				policy->name, gpc_status_text(st));
			return EXIT_IO;
		}
		explain_failure(trace, &ret_runs[i]);
		if (ret_runs[i].has_failed || ret_runs[i].broken)
			code = EXIT_FAILED;
	}
	return code;
}

/* The root of the JSON, NULL: a table. */
static enum exit_code replay_trace(
	const char *path, const struct gpc_arguments *arguments, struct json_object *root)
{
	struct gpc_run runs[GPC_MAX_POLICIES];
	struct gpc_trace trace;
	enum exit_code code = read_trace(path, &trace);

	if (code)
		return code;
	code = run_policies(&trace, arguments, runs);
	if (code != EXIT_IO && root)
		gpc_print_json_add(root, &trace, runs, arguments->n_policies);
	else if (code != EXIT_IO)
		gpc_print_table(&trace, runs, arguments->n_policies);
	gpc_trace_fini(&trace);
	return code;
}

int main(int argc, char **argv)
{
	struct json_object *root = NULL;
	enum exit_code worst = EXIT_DONE;
	struct gpc_arguments arguments;

	/* `| head` ends us quietly, also where our parent ignores the signal as Python does. */
	signal(SIGPIPE, SIG_DFL);
	switch (gpc_arguments_read(argc, argv, &arguments)) {
	case GPC_ARGUMENTS_DONE:
		return EXIT_DONE;
	case GPC_ARGUMENTS_BAD:
		return EXIT_USAGE;
	case GPC_ARGUMENTS_RUN:
		break;
	}
	if (arguments.json)
		root = gpc_print_json_begin();
	for (int i = 0; i < arguments.n_traces; i++) {
		enum exit_code code;

		if (i > 0 && !root)
			putchar('\n');
		code = replay_trace(arguments.traces[i], &arguments, root);
		if (code > worst)
			worst = code;
	}
	if (root)
		gpc_print_json_end(root);
	if ((fflush(stdout) != 0 || ferror(stdout)) && errno != EPIPE) {
		gpc_complain("cannot write to standard output");
		worst = EXIT_IO;
	}
	return worst;
}
