/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the runs of a trace: as a table with a column per policy, or as JSON.
 *
 * The JSON schema is gpumem.replay/1: fields are added, never removed or changed; names of sizes end
 * in `_bytes`.
 *
 * Threads     One.
 * Failure     Write errors stay in the stream; main checks at the end.
 */
#ifndef GPC_REPLAY_PRINT_H
#define GPC_REPLAY_PRINT_H

#include "tools/replay/run.h"

struct json_object;

/* The lines above a table: what the trace is, and what it leaves out. */
void gpc_print_notes(const struct gpc_trace *trace);

void gpc_print_table(const struct gpc_trace *trace, const struct gpc_run *runs, unsigned n_runs);

/* Begins the JSON, adds one trace, and prints it on standard output. */
struct json_object *gpc_print_json_begin(void);
void gpc_print_json_add(struct json_object *root, const struct gpc_trace *trace,
	const struct gpc_run *runs, unsigned n_runs);
struct json_object *gpc_print_json_run(const struct gpc_run *run);
void gpc_print_json_end(struct json_object *root);

/* ---- print_sizes.c: the same for --sizes, with `n` policies ---- */

#define GPC_N_SIZES 6

struct gpc_sizes {
	struct gpc_run runs[GPC_N_SIZES];
	uint64_t smallest_device_bytes;
};

/* Fails as gpc_run; a size on which a request fails is a result. */
GPC_MUST_CHECK enum gpc_status gpc_sizes_run(const struct gpc_trace *trace,
	const struct gpc_policy_ops *policy, const struct gpc_run_settings *settings,
	struct gpc_sizes *ret_sizes);

void gpc_print_sizes(const struct gpc_trace *trace, const struct gpc_sizes *sizes, unsigned n);
void gpc_print_json_add_sizes(struct json_object *root, const struct gpc_trace *trace,
	const struct gpc_sizes *sizes, unsigned n);

#endif
