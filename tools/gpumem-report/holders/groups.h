/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group is what holders of one name hold together.
 *
 * Threads     One.
 * Failure     None.
 */
#ifndef GPC_REPORT_TABLE_H
#define GPC_REPORT_TABLE_H

#include "tools/gpumem-report/report.h"
#include "tools/lib/map.h"

struct gpc_group {
	char *name;
	uint64_t bytes;
	uint64_t n_blocks;    /* 0: unknown */
	uint32_t stack;       /* of the stacks that were added, the one with most bytes */
	uint64_t stack_bytes; /* of that stack */
	uint64_t before;      /* for a caller that compares */
};

struct gpc_groups {
	struct gpc_group *rows;
	size_t n;
	size_t room;
	struct gpc_map numbers; /* of rows */
	uint64_t total_bytes;   /* of the rows and the rest */
	uint64_t rest_bytes;    /* of holders that the recording does not list */
};

/* Adds bytes and blocks to the row of that name, and returns it until the next one is added. */
struct gpc_group *gpc_groups_add(struct gpc_groups *groups, const char *name, uint64_t bytes,
	uint64_t n_blocks, uint32_t stack);

/* Sorts the rows, largest first.  Nothing may be added afterwards: `numbers` has the old order. */
void gpc_groups_sort(struct gpc_groups *groups);
void gpc_groups_fini(struct gpc_groups *groups);

/* Adds the rows to the section in progress, whose columns are GPC_HOLDER_COLUMNS and the name; then the rest. */
void gpc_groups_show(const struct gpc_groups *groups, struct gpc_document *doc);
/* Adds rest_bytes to the row of all others. */
void gpc_groups_show_rest(const struct gpc_groups *groups, struct gpc_document *doc);

#endif
