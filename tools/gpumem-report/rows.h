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
	uint64_t text; /* hash of its stack's frames, for gpc_rows_unite_alike */
};

/* Sorts by GPU, id and kind, and unites the rows equal in all three.  Returns the number left. */
size_t gpc_rows_unite(struct gpc_row *rows, size_t n);

/* Unites rows whose stacks read the same, frame by frame; the biggest gives its id.  Returns the number left. */
size_t gpc_rows_unite_alike(const struct gpc_report *report, struct gpc_row *rows, size_t n);

/* Sorts by GPU, then biggest first, then by id and kind. */
void gpc_rows_by_bytes(struct gpc_row *rows, size_t n);

/*
 * A table whose numbers add up, as printed, to the total of its section.  Add every row, the rest last, then print
 * them in that order.
 */
struct gpc_table {
	const struct gpc_paper *paper;
	struct gpc_table_row *rows;
	size_t n;
	size_t next; /* row to print */
};

struct gpc_table_row {
	uint64_t bytes;
	uint64_t n_blocks;
	struct gpc_rounded rounded;
	uint32_t share;
};

/* For up to n rows. */
void gpc_table_init(struct gpc_table *table, const struct gpc_paper *paper, size_t n);
void gpc_table_fini(struct gpc_table *table);

/* n_blocks 0: unknown. */
void gpc_table_add(struct gpc_table *table, uint64_t bytes, uint64_t n_blocks);

/* Prints the head, with `what` as last column; the rows are parts of `total`. */
void gpc_table_print_head(struct gpc_table *table, uint64_t total, const char *what);

/* Prints the numbers of the next row.  Returns the column behind them. */
int gpc_table_print_numbers(struct gpc_table *table);

/* Prints the row of the rest, if any. */
void gpc_table_print_rest(struct gpc_table *table);

#endif
