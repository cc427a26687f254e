/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a table of holders: bytes and blocks, by stack or by tag.
 *
 * Threads     One.
 * Failure     None.
 */
#ifndef GPC_REPORT_ROWS_H
#define GPC_REPORT_ROWS_H

#include "tools/gpumem-report/report.h"

struct gpc_row {
	uint32_t id; /* of a stack or a tag; 0: none */
	int32_t device;
	uint32_t kind; /* of a context or a module; 0: what the program asked for */
	uint64_t bytes;
	uint64_t n_blocks;
	uint64_t first_ns; /* of its allocations; 0: unknown */
	uint64_t last_ns;
	uint64_t text; /* the key for merging: the id, or a hash of the stack's frames */
};

/* Sorts by GPU, id and kind, and merges rows equal in all three.  Returns the number left. */
size_t gpc_rows_unite(struct gpc_row *rows, size_t n);

/* Merges rows whose stacks read the same, frame by frame, under the id of the biggest.  Returns the number left. */
size_t gpc_rows_unite_alike(const struct gpc_report *report, struct gpc_row *rows, size_t n);

/* Sorts by GPU, then biggest first, then by id and kind. */
void gpc_rows_by_bytes(struct gpc_row *rows, size_t n);

#endif
