/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holders as table rows, biggest first; holders with the same text share a row.
 *
 *	216.12 MiB        34 blocks   12 s  +216.12 MiB  Block.__init__ gpt.py:20 < main:32
 *	                              age of its oldest block, growth in the later part of the run
 *
 * Threads   Pure functions, except for the caller's describer.
 * Failure   None; text is truncated to fit.
 * Limits    GPUCACHE_MAX_OOM_HOLDERS holders.
 */
#ifndef GPC_OOM_HOLDER_ROWS_H
#define GPC_OOM_HOLDER_ROWS_H

#include "oom/advice.h"

#define GPC_HOLDER_SITE_SIZE 72

struct gpc_holder_row {
	char site[GPC_HOLDER_SITE_SIZE];
	uint64_t bytes;
	uint64_t n_blocks;
	uint64_t oldest_ns; /* CLOCK_MONOTONIC; 0: unknown */
	uint64_t growth;    /* bytes */
};

/*
 * Fills rows[0 .. GPUCACHE_MAX_OOM_HOLDERS) from holders[0 .. n); the text of a site has at most site_size bytes.
 * Returns the number of rows.
 */
uint32_t gpc_holder_rows_fill(struct gpc_holder_row *rows, const struct gpucache_holder *holders,
	uint32_t n, const struct gpc_describer *describer, size_t site_size);

/* "850 ms", "12 s", "5 min", "3 h", "2 d" */
void gpc_holder_add_age(struct gpc_text *text, uint64_t ns);

/*
 * Appends a table of the biggest rows, at most `max`, and a row for the rest.  The printed bytes add up to
 * `total`.
 */
void gpc_holder_rows_write(struct gpc_text *text, const struct gpc_holder_row *rows, uint32_t n,
	uint32_t max, uint64_t total, uint64_t now_ns);

#endif
