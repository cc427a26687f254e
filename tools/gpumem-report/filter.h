/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which live blocks and which stacks a view is narrowed to: --where, --library, --tag, --thread,
 * --stream.
 *
 * Several at once: what all of them take.  The balance sheet is of the whole GPU all the same.
 *
 * Threads     One.
 * Failure     NULL without memory.
 * Limits      Filters of blocks (filters.def) know what is live at the end only.
 */
#ifndef GPC_REPORT_FILTER_H
#define GPC_REPORT_FILTER_H

#include "tools/gpumem-report/report.h"

/* The texts of filters.def, in its order. */
struct gpc_filter_row {
	const char *name; /* of the option, without "--" */
	const char *value;
	const char *help;
	bool is_of_block;
};

#define GPC_N_FILTERS (sizeof(struct gpc_filters) / sizeof(const char *))

extern const struct gpc_filter_row gpc_filter_rows[GPC_N_FILTERS];

/* Whether there is any; the second: any that is of blocks. */
bool gpc_filter_is_set(const struct gpc_options *options);
bool gpc_filter_is_of_blocks(const struct gpc_options *options);

/* ", where=loader.py, thread=4711", or nothing. */
void gpc_filter_describe(const struct gpc_options *options, struct gpc_text *ret_text);

/* For report->recording, whose frames are there. */
struct gpc_filter *gpc_filter_create(const struct gpc_report *report);
void gpc_filter_destroy(struct gpc_filter *filter);

bool gpc_filter_takes_stack(const struct gpc_report *report, uint32_t stack);
bool gpc_filter_takes_block(const struct gpc_report *report, const struct gpucache_block *block);

#endif
