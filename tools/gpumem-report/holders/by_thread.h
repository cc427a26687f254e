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

#include "tools/gpumem-report/holders/holder_rows.h"

/* Adds the sections THREADS and STREAMS; JSON always has both.  `moment`: "when it ended". */
void gpc_asker_rows_show(const struct gpc_report *report, int32_t ordinal, const char *moment);

#endif
