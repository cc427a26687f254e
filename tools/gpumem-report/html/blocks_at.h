/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks and segments of one GPU at a moment: those of the tables, or those before the events that followed.
 *
 *      in the tables, and from before the moment ----+--> there at the moment
 *      first freed by an event after the moment -----'
 *
 * Threads     One.
 * Failure     False, if the ring does not reach back to the moment, or has a hole after it.
 * Limits      Before the last moment only live blocks are known: a gap of a segment was cached, or freed and pending.
 */
#ifndef GPC_REPORT_BLOCKS_AT_H
#define GPC_REPORT_BLOCKS_AT_H

#include "tools/gpumem-report/report.h"

/* The time of the end: nothing is undone. */
#define GPC_TIME_OF_END UINT64_MAX

struct gpc_blocks_at {
	struct gpucache_block *blocks; /* `segment` has no meaning */
	size_t n_blocks;
	struct gpucache_segment *segments;
	size_t n_segments;
};

/* Reads those of one device with an address in its memory; time_ns is of CLOCK_MONOTONIC. */
bool gpc_blocks_at_create(struct gpc_blocks_at *at, const struct gpc_recording *recording,
	int32_t ordinal, uint64_t time_ns);
void gpc_blocks_at_fini(struct gpc_blocks_at *at);

#endif
