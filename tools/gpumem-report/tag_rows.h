/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds memory, by the ranges that the program named: gpucache_tag_push, NVTX.
 *
 * Invariants  1 Rows are ordered by bytes, biggest first; memory of no range is one of them.
 *             2 A program that names no ranges has no rows.
 *             3 Names that differ in their numbers only are one row, "step *", where there are three of
 *               them, or the library folded one of them already.
 *             4 Contexts and modules are left out: they serve all ranges.
 * Threads     One.
 * Failure     GPC_NO_METADATA.
 * Limits      A range inside another counts for itself, not for the one around it.
 */
#ifndef GPC_REPORT_TAG_ROWS_H
#define GPC_REPORT_TAG_ROWS_H

#include "tools/gpumem-report/rows.h"

struct gpc_tag_row {
	char *label; /* "train/step *"; "": memory of no range */
	uint64_t bytes;
	uint64_t n_blocks;
};

struct gpc_tag_rows {
	struct gpc_tag_row *rows;
	size_t n;
	uint64_t total_bytes;
	uint64_t rest_bytes; /* of tags that the recording does not list */
};

/*
 * As the failure's record says; or, where `oom` is NULL, of the live blocks of that device, or of
 * all where ordinal is -1.  Names are folded as in invariant 3, or not.
 */
GPC_MUST_CHECK enum gpc_status gpc_tag_rows_init(struct gpc_tag_rows *rows,
	const struct gpc_report *report, int32_t ordinal, const struct gpucache_oom *oom,
	bool is_folded);
void gpc_tag_rows_fini(struct gpc_tag_rows *rows);

/* The section TAGS, with `moment` ("when it ended") in its first line; nothing without rows. */
void gpc_tag_rows_print(const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_oom *oom, const char *moment);

/* Adds the arrays `tags`, with the names as they were given, and `tag_patterns`. */
void gpc_tag_rows_json(struct json_object *object, const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_oom *oom);

#endif
