/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The holders at each moment that the ring of events still covers.
 *
 *      live at the end - all events of the ring = live when the ring begins
 *      then forwards: in each of up to GPC_MOMENTS_MAX time slices, the moment with the most live bytes;
 *      moment i is the sum of the deltas of moments 0 .. i
 *
 * Invariants  1 No peak is lost: the highest moment of the ring is one of the rows.  2 The last row is
 *               the end.  3 There are at most GPC_MOMENTS_MAX_DELTAS deltas; longer slices keep the bound.
 * Threads     One.
 * Failure     None.
 * Limits      If a context was reset, misses its memory from before the ring.  A freed arena of PyTorch is recognized
 *             only if the ring has a tensor of it.
 */
#ifndef GPC_REPORT_MOMENTS_H
#define GPC_REPORT_MOMENTS_H

#include "tools/gpumem-report/report.h"

#define GPC_MOMENTS_MAX        1000
#define GPC_MOMENTS_MAX_DELTAS 200000

/* A stack, or driver memory for a context or a module that it created. */
struct gpc_moment_holder {
	uint32_t stack;
	uint32_t kind; /* of a context or a module, else 0 */
	uint32_t context;
};

struct gpc_moment_delta {
	uint32_t holder;
	int64_t bytes; /* as requested */
	int64_t blocks;
};

struct gpc_moments_row {
	uint64_t time_ns;
	uint64_t live_bytes; /* rounded */
	uint32_t tag;        /* of the allocation that reached this maximum */
	size_t end_delta;    /* one past its last */
};

struct gpc_moments {
	struct gpc_moment_holder *holders;
	size_t n_holders;
	struct gpc_moments_row *rows; /* in the order of time; none without events */
	size_t n;
	struct gpc_moment_delta *deltas;
	uint64_t n_events; /* read */
	uint64_t n_holes;  /* unreadable events */
};

/* Of one device. */
void gpc_moments_create(
	struct gpc_moments *moments, const struct gpc_report *report, int32_t ordinal);
void gpc_moments_fini(struct gpc_moments *moments);

#endif
