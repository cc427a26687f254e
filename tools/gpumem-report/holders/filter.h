/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters --where, --library, --tag, --thread and --stream: a view shows only the blocks and stacks that match.
 *
 * With several filters, a block must match all of them.  The balance sheet ignores filters: it covers the whole GPU.
 *
 * Threads     One.
 * Failure     None.
 * Limits      Filters of blocks (filters.def) work only on memory that is live at the end.
 */
#ifndef GPC_REPORT_FILTER_H
#define GPC_REPORT_FILTER_H

#include "tools/gpumem-report/report.h"

/* A row of filters.def; gpc_filter_rows is in the order of that file. */
struct gpc_filter_row {
	const char *name; /* of the option, without "--" */
	const char *value;
	const char *help;
	bool is_of_block;
};

#define GPC_N_FILTERS (sizeof(struct gpc_filters) / sizeof(const char *))

extern const struct gpc_filter_row gpc_filter_rows[GPC_N_FILTERS];

/* True if any filter is set. */
bool gpc_filter_is_set(const struct gpc_options *options);

/* True if any filter of blocks is set. */
bool gpc_filter_is_of_blocks(const struct gpc_options *options);

/* Appends the filters that are set, as ", where=loader.py, thread=4711". */
void gpc_filter_describe(const struct gpc_options *options, struct gpc_text *ret_text);

/* True if the stack matches every filter of stacks that is set, or the block every filter.  Uses report->frames. */
bool gpc_filter_takes_stack(const struct gpc_report *report, uint32_t stack);
bool gpc_filter_takes_block(const struct gpc_report *report, const struct gpucache_block *block);

#endif
