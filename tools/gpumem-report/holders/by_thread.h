/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live memory by the thread that requested it, and by the stream of the request.
 *
 * Invariants  1 Rows are ordered by bytes, biggest first.  2 THREADS is omitted if one thread requested everything,
 *             STREAMS if no request named a stream but the legacy one.  3 Contexts and modules are left out, as in
 *             by_tag.h.
 * Threads     One.
 * Failure     None.
 * Limits      Only live blocks record threads and streams; a peak and a failure do not.  A thread is a number, as for
 *             `--thread`; its name is not recorded.
 */
#ifndef GPC_REPORT_ASKER_ROWS_H
#define GPC_REPORT_ASKER_ROWS_H

#include "tools/gpumem-report/output/holder_rows.h"

/* Prints the sections THREADS and STREAMS of a device, with `moment` ("when it ended") in their first lines. */
void gpc_asker_rows_print(const struct gpc_report *report, int32_t ordinal, const char *moment);

/* Adds the arrays `threads` and `streams`, which are never omitted. */
void gpc_asker_rows_json(
	struct json_object *object, const struct gpc_report *report, int32_t ordinal);

#endif
