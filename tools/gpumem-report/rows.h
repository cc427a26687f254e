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
	uint32_t id;   /* of a stack or a tag; 0: none */
	uint32_t kind; /* of a context or a module; 0: what the program asked for */
	uint64_t bytes;
	uint64_t n_blocks;
	uint64_t first_ns; /* of its allocations; 0: not known */
	uint64_t last_ns;
};

/* Orders the rows by id and kind, and makes one of those that agree in both; returns how many are left. */
size_t gpc_rows_unite(struct gpc_row *rows, size_t n);

/* Biggest first; rows of the same size by id and kind. */
void gpc_rows_by_bytes(struct gpc_row *rows, size_t n);

/* The head of a table whose last column is `what`. */
void gpc_rows_print_head(const struct gpc_paper *paper, const char *what);

/* The numbers of a row; what follows them starts at the column that is returned. */
int gpc_rows_print(
	const struct gpc_paper *paper, uint64_t bytes, uint64_t n_blocks, uint64_t total);

/* The bytes of all that has no row; nothing for 0. */
void gpc_rows_print_rest(const struct gpc_paper *paper, uint64_t bytes, uint64_t total);

#endif
