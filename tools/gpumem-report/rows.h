/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a table of holders: so many bytes in so many blocks, by stack or by tag.
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
	uint64_t text; /* of gpc_rows_unite_alike: what its stack reads as */
};

/* Orders the rows by GPU, id and kind, and makes one of those that agree in all; returns how many are left. */
size_t gpc_rows_unite(struct gpc_row *rows, size_t n);

/* Makes one of those whose stacks read the same, frame by frame; the biggest gives its id. */
size_t gpc_rows_unite_alike(const struct gpc_report *report, struct gpc_row *rows, size_t n);

/* By GPU, biggest first; rows of the same size by id and kind. */
void gpc_rows_by_bytes(struct gpc_row *rows, size_t n);

/*
 * A table whose numbers add up as printed, to the sum that its section names.  First every row is added,
 * the last for all that has none of its own; then they are printed in that order.
 */
struct gpc_table {
	const struct gpc_paper *paper;
	struct gpc_table_row *rows;
	size_t n;
	size_t next; /* to be printed */
};

struct gpc_table_row {
	uint64_t bytes;
	uint64_t n_blocks;
	struct gpc_rounded rounded;
	uint32_t share;
};

/* For up to n rows; false without memory, which is complained of.  Both take an empty table. */
bool gpc_table_init(struct gpc_table *table, const struct gpc_paper *paper, size_t n);
void gpc_table_fini(struct gpc_table *table);

/* n_blocks 0: not known. */
void gpc_table_add(struct gpc_table *table, uint64_t bytes, uint64_t n_blocks);

/* The head, whose last column is `what`; the rows are beneath `total`. */
void gpc_table_print_head(struct gpc_table *table, uint64_t total, const char *what);

/* The numbers of the next row; what follows them starts at the column that is returned. */
int gpc_table_print_numbers(struct gpc_table *table);

/* The row of all others, where there are rows left. */
void gpc_table_print_rest(struct gpc_table *table);

#endif
