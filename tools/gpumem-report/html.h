/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of the page that `html` writes: one object a recording.
 *
 *      summary, ooms            what `--json` prints, word for word
 *      frames, stacks, tags     each name once; everything else says its number
 *      devices[]                history, peak, failures, end and moments: who held what; heap: segments and cells
 *
 * Times are nanoseconds after the start of the recorded process.  Holders are flat arrays: stack, bytes, blocks, ...
 *
 * Threads     One.
 * Failure     GPC_NO_METADATA; write errors stay in the stream.
 * Limits      The last GPC_HTML_MAX_OOMS failures.
 */
#ifndef GPC_REPORT_HTML_H
#define GPC_REPORT_HTML_H

#include "tools/gpumem-report/report.h"

#define GPC_HTML_MAX_OOMS 16

/* Writes the object of report->recording to report->paper.out, fit to stand within <script>. */
GPC_MUST_CHECK enum gpc_status gpc_html_put_run(const struct gpc_report *report);

/* The page in front of the data and behind it (html/rules.mk); no bytes where there was no D3. */
extern const char gpc_html_head[];
extern const char gpc_html_head_end[];
extern const char gpc_html_tail[];
extern const char gpc_html_tail_end[];

#endif
