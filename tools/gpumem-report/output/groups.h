/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group is what holders of one name hold together.  The table of groups has numbers that add up, as printed, to the
 * total of its section.
 *
 * Threads     One.
 * Failure     None.
 */
#ifndef GPC_REPORT_TABLE_H
#define GPC_REPORT_TABLE_H

#include "tools/gpumem-report/output/map.h"
#include "tools/gpumem-report/report.h"

struct gpc_group {
	char *name;
	uint64_t bytes;
	uint64_t n_blocks;    /* 0: unknown */
	uint32_t stack;       /* of the stacks that were added, the one with most bytes */
	uint64_t stack_bytes; /* of that stack */
};

struct gpc_groups {
	struct gpc_group *rows;
	size_t n;
	size_t room;
	struct gpc_memo numbers; /* of rows */
	uint64_t total_bytes;    /* of the rows and the rest */
	uint64_t rest_bytes;     /* of holders that the recording does not list */
};

/* Adds bytes and blocks to the row of that name. */
void gpc_groups_add(struct gpc_groups *groups, const char *name, uint64_t bytes, uint64_t n_blocks,
	uint32_t stack);

/* Sorts the rows, largest first.  Nothing may be added afterwards: `numbers` has the old order. */
void gpc_groups_sort(struct gpc_groups *groups);
void gpc_groups_fini(struct gpc_groups *groups);

/* Prints what a row is called on the rest of the line, whose first `used` columns are printed, and ends the line. */
typedef void (*gpc_group_print)(
	const struct gpc_report *report, const struct gpc_group *row, int used);

/*
 * Prints the head of the table, with `what` over its last column, and the first `limit` rows; the others and rest_bytes
 * share a last row.  `print` NULL: prints the row's name, cut to the line.
 */
void gpc_groups_print(const struct gpc_groups *groups, const struct gpc_report *report,
	size_t limit, const char *what, gpc_group_print print);

/* Returns the first `limit` rows, or with limit 0 all, as a JSON array; `key` is the member that has the name. */
struct json_object *gpc_groups_json(const struct gpc_groups *groups, size_t limit, const char *key);

#endif
