/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders by name, and the table that prints them: its numbers add up, as printed, to the total of its section.
 *
 *      gpc_table_init, add ..., add_rest, begin, print_numbers ..., end
 *
 * Threads     One.
 * Failure     None.
 */
#ifndef GPC_REPORT_TABLE_H
#define GPC_REPORT_TABLE_H

#include "tools/gpumem-report/memo.h"
#include "tools/gpumem-report/report.h"

struct gpc_group {
	char *name;
	uint64_t bytes;
	uint64_t n_blocks;    /* 0: unknown */
	uint32_t stack;       /* the stack that holds most */
	uint64_t stack_bytes; /* held by that stack */
};

struct gpc_groups {
	struct gpc_group *rows;
	size_t n;
	size_t room;
	struct gpc_memo numbers; /* of rows */
	uint64_t total_bytes;    /* of the rows and the rest */
	uint64_t rest_bytes;     /* of unlisted holders */
};

/* Adds bytes and blocks to the row of that name. */
void gpc_groups_add(struct gpc_groups *groups, const char *name, uint64_t bytes, uint64_t n_blocks,
	uint32_t stack);

/* Sorts largest first; nothing can be added afterwards. */
void gpc_groups_sort(struct gpc_groups *groups);
void gpc_groups_fini(struct gpc_groups *groups);

/* Prints the name after the `used` columns of its numbers, and ends the line. */
typedef void (*gpc_group_print)(const struct gpc_paper *paper, const char *name, int used);

/* Prints the table in the section that the caller began, with `what` as last column. */
void gpc_groups_print(const struct gpc_groups *groups, const struct gpc_paper *paper, size_t limit,
	const char *what, gpc_group_print print);

struct gpc_table {
	const struct gpc_paper *paper;
	struct gpc_table_row *rows;
	size_t n;     /* rows with their own line */
	size_t limit; /* of rows; the others are part of the rest */
	uint64_t rest_bytes;
	size_t next; /* row to print */
};

struct gpc_table_row {
	uint64_t bytes;
	uint64_t n_blocks;
	struct gpc_rounded rounded;
	uint32_t share;
};

/* For `n` rows, or the first `limit` of them. */
void gpc_table_init(struct gpc_table *table, const struct gpc_paper *paper, size_t n, size_t limit);

/* n_blocks 0: unknown. */
void gpc_table_add(struct gpc_table *table, uint64_t bytes, uint64_t n_blocks);
void gpc_table_add_rest(struct gpc_table *table, uint64_t bytes);

/* Prints the head, with `what` as last column; the rows are parts of `total`. */
void gpc_table_begin(struct gpc_table *table, uint64_t total, const char *what);

/* Prints the numbers of the next row.  Returns the column after them. */
int gpc_table_print_numbers(struct gpc_table *table);

/* Prints the row of the rest, if any, and frees the table. */
void gpc_table_end(struct gpc_table *table);

#endif
