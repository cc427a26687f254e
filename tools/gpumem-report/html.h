/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of the page that `html` writes: one object per recording.
 *
 *      summary, ooms            the --json output, verbatim
 *      frames, stacks, tags     each name once; everything else refers to its number
 *      devices[]                history, peak, failures, end and moments with their holders; heap: segments and cells
 *
 * Times are nanoseconds after the start of the recorded process.  Holders are flat arrays: stack, bytes, blocks, ...
 *
 * Threads     One.
 * Failure     Write errors stay in the stream.
 * Limits      The last GPC_HTML_MAX_OOMS failures.
 */
#ifndef GPC_REPORT_HTML_H
#define GPC_REPORT_HTML_H

#include "tools/gpumem-report/report.h"

#define GPC_HTML_MAX_OOMS 16

/* Writes the object of report->recording to report->paper.out, fit to stand within <script>. */
void gpc_html_put_run(const struct gpc_report *report);

/* The page before and after the data (html/rules.mk); empty if it was built without D3. */
extern const char gpc_html_head[];
extern const char gpc_html_head_end[];
extern const char gpc_html_tail[];
extern const char gpc_html_tail_end[];

#endif
