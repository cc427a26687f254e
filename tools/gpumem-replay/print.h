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

/* Prints the lines above a table: what the trace is, and what it leaves out. */
void gpc_print_notes(const struct gpc_trace *trace);

void gpc_print_table(const struct gpc_trace *trace, const struct gpc_run *runs, unsigned n_runs);

/*
 * The JSON: begin makes the root, add appends a trace to it, end prints the root on standard output and frees it.  add
 * returns the array of the runs, which the root owns.
 */
struct json_object *gpc_print_json_begin(void);
struct json_object *gpc_print_json_add(struct json_object *root, const struct gpc_trace *trace,
	const struct gpc_run *runs, unsigned n_runs);
struct json_object *gpc_print_json_run(const struct gpc_run *run);
void gpc_print_json_end(struct json_object *root);

/* ---- print_sizes.c: --sizes, a table with a row per device and a column for each of `n` policies ---- */

#define GPC_N_SIZES 6

/*
 * Runs the policy on each device, into column i of the table.  The last device has plenty of memory; its run also gets
 * smallest_device_bytes.  Fails as gpc_run and gpc_run_smallest do.
 */
GPC_MUST_CHECK enum gpc_status gpc_sizes_run(const struct gpc_trace *trace,
	const struct gpc_policy_ops *policy, const struct gpc_run_settings *settings,
	struct gpc_run table[GPC_N_SIZES][GPC_MAX_POLICIES], unsigned i);

void gpc_print_sizes(const struct gpc_trace *trace,
	struct gpc_run table[GPC_N_SIZES][GPC_MAX_POLICIES], unsigned n);
void gpc_print_json_add_sizes(struct json_object *root, const struct gpc_trace *trace,
	struct gpc_run table[GPC_N_SIZES][GPC_MAX_POLICIES], unsigned n);

#endif
