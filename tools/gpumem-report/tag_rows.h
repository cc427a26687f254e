/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders by the ranges that the program named: gpucache_tag_push, NVTX.
 *
 * Invariants  1 Rows are ordered by bytes, biggest first; memory outside all ranges is one of them.
 *             2 A program without ranges has no rows.
 *             3 Names that differ only in their numbers are one row, "step *", if there are at least
 *               three, or the library folded one of them already.
 *             4 Contexts and modules are left out: they serve all ranges.
 * Threads     One.
 * Failure     None.
 * Limits      A range inside another counts for itself, not for the one around it.
 */
#ifndef GPC_REPORT_TAG_ROWS_H
#define GPC_REPORT_TAG_ROWS_H

#include "tools/gpumem-report/rows.h"

/* The section TAGS, with `moment` ("when it ended") in its first line; nothing without rows. */
void gpc_tag_rows_print(const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_oom *oom, const char *moment);

/* Adds the arrays `tags`, with unfolded names, and `tag_patterns`. */
void gpc_tag_rows_json(struct json_object *object, const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_oom *oom);

#endif
