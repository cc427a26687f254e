/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders by call site: stacks that blame the same line are one row.
 *
 * The line is the program's own (frames.h), followed by the library function that it called: "train_step train.py:41,
 * via Linear.forward".
 *
 * Many programs allocate through a wrapper.  A line that holds more than half of all bytes for several callers counts
 * as a wrapper, and its callers become the rows: "remember  train.c:140, via device_alloc".  Driver memory for a
 * context or a module has a row of its own: "contexts: main  train.c:434".
 *
 * Invariants  1 Rows are ordered by bytes, biggest first.  2 The total counts all holdings,
 *               rows left out included.
 * Threads     One.
 * Failure     None.
 * Limits      Two functions of one name, file and line are one site.
 */
#ifndef GPC_REPORT_SITES_H
#define GPC_REPORT_SITES_H

#include "tools/gpumem-report/holdings.h"
#include "tools/gpumem-report/table.h"

/* The most nested wrappers that are looked through. */
#define GPC_SITES_MAX_DEPTH 4

void gpc_sites_create(struct gpc_groups *sites, const struct gpc_report *report,
	const struct gpc_holdings *holdings);

/* Prints the table in the section that the caller began. */
void gpc_sites_print(
	const struct gpc_groups *sites, const struct gpc_report *report, unsigned limit);

/* An array for JSON; the caller owns it. */
struct json_object *gpc_sites_json(
	const struct gpc_groups *sites, const struct gpc_report *report, unsigned limit);

#endif
