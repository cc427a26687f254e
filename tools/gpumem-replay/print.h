/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is printed of the runs of a trace: a table with a column a policy, or JSON.
 *
 * JSON has the schema gpumem.replay/1.  Fields are added, never removed or changed; sizes end in
 * `_bytes`.
 *
 * Threads     One.
 * Failure     Write errors stay in the stream; main looks at the end.
 */
#ifndef GPC_REPLAY_PRINT_H
#define GPC_REPLAY_PRINT_H

#include "tools/gpumem-replay/sizes.h"

struct json_object;

/* What the trace is, and what of it was left out: lines above a table. */
void gpc_print_notes(const struct gpc_trace *trace);

void gpc_print_table(const struct gpc_trace *trace, const struct gpc_run *runs, unsigned n_runs);

/* The object that all traces go into, one trace into it, and its end on standard output. */
struct json_object *gpc_print_json_begin(void);
void gpc_print_json_add(struct json_object *root, const struct gpc_trace *trace,
	const struct gpc_run *runs, unsigned n_runs);
struct json_object *gpc_print_json_run(const struct gpc_run *run);
void gpc_print_json_end(struct json_object *root);

/* ---- print_sizes.c: the same of the runs of --sizes, `n` policies ---- */

void gpc_print_sizes(const struct gpc_trace *trace, const struct gpc_sizes *sizes, unsigned n);
void gpc_print_json_add_sizes(struct json_object *root, const struct gpc_trace *trace,
	const struct gpc_sizes *sizes, unsigned n);

#endif
