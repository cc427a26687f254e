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
 * Failure     GPC_NO_METADATA.
 * Limits      A range inside another counts for itself, not for the one around it.
 */
#ifndef GPC_REPORT_TAG_ROWS_H
#define GPC_REPORT_TAG_ROWS_H

#include "tools/gpumem-report/rows.h"

struct gpc_tag_row {
	char *label; /* "train/step *"; "": memory outside all ranges */
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
 * From the record of the failure; or, if `oom` is NULL, from the live blocks of that device, or of all
 * if ordinal is -1.  `is_folded`: folds names as in invariant 3.
 */
GPC_MUST_CHECK enum gpc_status gpc_tag_rows_init(struct gpc_tag_rows *rows,
	const struct gpc_report *report, int32_t ordinal, const struct gpucache_oom *oom,
	bool is_folded);
void gpc_tag_rows_fini(struct gpc_tag_rows *rows);

/* The section TAGS, with `moment` ("when it ended") in its first line; nothing without rows. */
void gpc_tag_rows_print(const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_oom *oom, const char *moment);

/* Adds the arrays `tags`, with unfolded names, and `tag_patterns`. */
void gpc_tag_rows_json(struct json_object *object, const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_oom *oom);

#endif
