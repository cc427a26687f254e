/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders by the thread and by the stream of their allocation: sections of the views of live memory.
 *
 * Invariants  1 Rows are ordered by bytes, biggest first.  2 The section is omitted for a single thread, or for the
 *             legacy stream alone.  3 Contexts and modules are left out, as in tag_rows.h.
 * Threads     One.
 * Failure     None.
 * Limits      Only live blocks record threads and streams; a peak and a failure do not.  A thread is a number, as for
 *             `--thread`; its name is not recorded.
 */
#ifndef GPC_REPORT_ASKER_ROWS_H
#define GPC_REPORT_ASKER_ROWS_H

#include "tools/gpumem-report/rows.h"

/* The sections THREADS and STREAMS of a device, with `moment` ("when it ended") in their first lines. */
void gpc_asker_rows_print(const struct gpc_report *report, int32_t ordinal, const char *moment);

/* Adds the arrays `threads` and `streams`, even of one element. */
void gpc_asker_rows_json(
	struct json_object *object, const struct gpc_report *report, int32_t ordinal);

#endif
