/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line.
 *
 *      gpumem-replay [OPTIONS] [TRACE]...      options and traces in any order
 *
 * Threads     One.
 * Failure     A message on standard error, and GPC_ARGUMENTS_BAD.
 */
#ifndef GPC_REPLAY_ARGUMENTS_H
#define GPC_REPLAY_ARGUMENTS_H

#include "tools/gpumem-replay/trace_file.h"
#include "tools/lib/command_line.h"
#include "tools/replay/run.h"

#define GPC_MAX_SOURCES 64

/* Where a trace comes from: a file, or a workload to generate (kit.h). */
struct gpc_source {
	const char *text; /* into argv */
	bool is_workload;
};

struct gpc_arguments {
	struct gpc_source sources[GPC_MAX_SOURCES];
	unsigned n_sources;
	const struct gpc_policy_ops *policies[GPC_MAX_POLICIES];
	unsigned n_policies;
	struct gpc_run_settings settings;
	const char *save; /* NULL: do not save */
	struct gpc_which which;
	bool with_smallest;
	bool with_sizes;
	bool json;
};

/* Parses argv; may reorder it, and cuts values of --set in place. */
enum gpc_arguments_answer gpc_arguments_read(
	int argc, char **argv, struct gpc_arguments *ret_arguments);

#endif
