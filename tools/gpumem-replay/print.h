/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gpumem-replay says: of each trace a table with a column per policy, or as JSON, schema gpumem.replay/2, a run
 * per policy.
 *
 * Threads     One.
 * Failure     Write errors stay in the stream; main checks at the end.
 */
#ifndef GPC_REPLAY_PRINT_H
#define GPC_REPLAY_PRINT_H

#include "document/document.h"
#include "tools/replay/run.h"

/* Begins the document on standard output, and the array of traces; ends both. */
void gpc_print_begin(struct gpc_document *doc, bool is_json);
void gpc_print_end(struct gpc_document *doc);

void gpc_print_trace(struct gpc_document *doc, const struct gpc_trace *trace,
	const struct gpc_run *runs, unsigned n_runs);

/* ---- for print_sizes.c ---- */

/* Opens the trace's element, and says what the trace is and what it leaves out. */
void gpc_print_open_trace(struct gpc_document *doc, const struct gpc_trace *trace);

/* Opens the run's element. */
void gpc_print_open_run(struct gpc_document *doc, const struct gpc_run *run);

/* A table of text: a column of labels, then one of `width` letters for each run. */
void gpc_print_columns(
	struct gpc_column columns[], const struct gpc_run *runs, unsigned n, int width);

/* ---- print_sizes.c: --sizes, a table with a row per device and a column for each of `n` policies ---- */

#define GPC_N_SIZES 6

/*
 * Runs the policy on each device, into column i of the table.  The last device has plenty of memory; its run also gets
 * smallest_device_bytes.  Fails as gpc_run and gpc_run_smallest do.
 */
GPC_MUST_CHECK enum gpc_status gpc_sizes_run(const struct gpc_trace *trace,
	const struct gpc_policy_ops *policy, const struct gpc_run_settings *settings,
	struct gpc_run table[GPC_N_SIZES][GPC_MAX_POLICIES], unsigned i);

void gpc_print_sizes(struct gpc_document *doc, const struct gpc_trace *trace,
	struct gpc_run table[GPC_N_SIZES][GPC_MAX_POLICIES], unsigned n);

#endif
