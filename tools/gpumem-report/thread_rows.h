/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds memory, by the thread that asked for it: a section of the views of live memory.
 *
 * Invariants  1 Rows are ordered by bytes, biggest first.  2 Of one thread there is nothing to tell apart: no section.
 *             3 Contexts and modules are left out, as in tag_rows.h.
 * Threads     One.
 * Failure     Without memory: no rows, which is complained of.
 * Limits      Only blocks name their threads, so of a peak or a failure this is not known.  A thread is its number,
 *             as `--thread` takes it; the name that it had is not recorded.
 */
#ifndef GPC_REPORT_THREAD_ROWS_H
#define GPC_REPORT_THREAD_ROWS_H

#include "tools/gpumem-report/rows.h"

/* The section THREADS of a device, with `moment` ("when it ended") in its first line. */
void gpc_thread_rows_print(const struct gpc_report *report, int32_t ordinal, const char *moment);

/* Adds the array `threads`, of one thread too. */
void gpc_thread_rows_json(
	struct json_object *object, const struct gpc_report *report, int32_t ordinal);

#endif
