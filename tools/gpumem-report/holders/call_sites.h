/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders by call site: the stacks of one line of the program (gpc_stack_frames.site) share a row.
 *
 * If all of them called the same function of a library, the row names it: "train_step train.py:41, via Linear.forward".
 *
 * Many programs allocate through a wrapper.  A line that holds more than half of all bytes for several callers counts
 * as a wrapper, and its callers become the rows: "remember  train.c:140, via device_alloc".  The memory of a context or
 * module has a row of its own: "contexts: main  train.c:434".
 *
 * Invariants  1 Rows are ordered by bytes, biggest first.  2 The rows and rest_bytes add up to total_bytes.
 * Threads     One.
 * Failure     None.
 * Limits      Two functions of one name, file and line are one site.
 */
#ifndef GPC_REPORT_SITES_H
#define GPC_REPORT_SITES_H

#include "tools/gpumem-report/holders/groups.h"
#include "tools/gpumem-report/holders/holdings.h"

/* The most labels of a stack: the call site and its callers. */
#define GPC_SITES_MAX_DEPTH 5

void gpc_sites_create(struct gpc_groups *sites, const struct gpc_report *report,
	const struct gpc_holdings *holdings);

/* Adds the rows to the section in progress, of the columns GPC_SITE_COLUMNS. */
#define GPC_SITE_COLUMNS                          \
	GPC_HOLDER_COLUMNS, { "where", "where" }, \
	{                                         \
		"library"                         \
	}
void gpc_sites_show(const struct gpc_groups *sites, const struct gpc_report *report);

#endif
