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
	uint32_t kind; /* of a context or a module; 0: memory that the program requested */
	uint64_t bytes;
	uint64_t n_blocks;
	uint64_t first_ns; /* of its allocations; 0: unknown */
	uint64_t last_ns;
	uint64_t text; /* set by the functions below: the id, or the hash of the stack's frames */
};

/* Merges rows of the same GPU, id and kind.  Returns the number left, which are sorted by these three. */
size_t gpc_rows_unite(struct gpc_row *rows, size_t n);

/* The same for rows of the same GPU and kind whose stacks print the same; a row has the id with most bytes. */
size_t gpc_rows_unite_alike(const struct gpc_report *report, struct gpc_row *rows, size_t n);

/* Sorts by GPU, then biggest first, then by id and kind. */
void gpc_rows_by_bytes(struct gpc_row *rows, size_t n);

#endif
