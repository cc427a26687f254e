/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds memory, by the thread that asked for it and by the stream it was asked for on: sections of the views of live memory.
 *
 * Invariants  1 Rows are ordered by bytes, biggest first.  2 Where there is nothing to tell apart there is no section: one
 *             thread; no stream but the legacy one.  3 Contexts and modules are left out, as in tag_rows.h.
 * Threads     One.
 * Failure     Without memory: no rows, which is complained of.
 * Limits      Only blocks name their threads and streams, so of a peak or a failure these are not known.  A thread is its
 *             number, as `--thread` takes it; the name that it had is not recorded.
 */
#ifndef GPC_REPORT_ASKER_ROWS_H
#define GPC_REPORT_ASKER_ROWS_H

#include "tools/gpumem-report/rows.h"

/* The sections THREADS and STREAMS of a device, with `moment` ("when it ended") in their first lines. */
void gpc_asker_rows_print(const struct gpc_report *report, int32_t ordinal, const char *moment);

/* Adds the arrays `threads` and `streams`, of one of each, too. */
void gpc_asker_rows_json(
	struct json_object *object, const struct gpc_report *report, int32_t ordinal);

#endif
