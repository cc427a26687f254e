/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders by the ranges that the program named: gpucache_tag_push, NVTX.
 *
 * Invariants  1 Rows are ordered by bytes, biggest first; memory outside all ranges is one of them.
 *             2 A program without ranges has no rows.
 *             3 Names that differ only in their numbers share a row, "step *", if there are at least three of them, or
 *               if the library has folded some of them before.
 *             4 Contexts and modules are left out: they serve all ranges.
 * Threads     One.
 * Failure     None.
 * Limits      Memory counts for the innermost range only, not for the ranges around it.
 */
#ifndef GPC_REPORT_TAG_ROWS_H
#define GPC_REPORT_TAG_ROWS_H

#include "tools/gpumem-report/holders/holder_rows.h"

/* Adds the section TAGS: with names folded, in JSON also without.  `moment`: "when it ended". */
void gpc_tag_rows_show(const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_oom *oom, const char *moment);

#endif
