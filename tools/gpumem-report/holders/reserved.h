/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes that the process has from the driver, before and after each event of the ring.
 *
 *      reserved    segments, and device memory that lies in no segment
 *      idle        of it, the cache of PyTorch or the pool of XLA in no tensor: arenas less tensors
 *
 *      a segment taken or given back, memory of the driver allocated or freed: an event
 *      a block within a segment: no change
 *
 * Invariants  1 If the ring has all events, it begins at 0; else the changes lead to the counters of the end.
 * Threads     One.
 * Failure     None.
 * Limits      `reserved` is not exact if something changed it without an event: idle memory of the driver's pools,
 *             memory of graphs, or a hole in the ring.
 */
#ifndef GPC_REPORT_RESERVED_H
#define GPC_REPORT_RESERVED_H

#include "tools/gpumem-report/report.h"

struct gpc_taken {
	int64_t reserved;
	int64_t idle;
};

struct gpc_reserved {
	struct gpc_taken *changes; /* by each event */
	struct gpc_taken start;
	bool is_exact; /* `reserved` of them */
};

/* The events are all of device `ordinal`, oldest first; is_arena is that of gpc_arenas_mark(). */
void gpc_reserved_find(struct gpc_reserved *reserved, const struct gpc_recording *recording,
	int32_t ordinal, const struct gpucache_event *events, size_t n_events,
	const bool *is_arena);
void gpc_reserved_fini(struct gpc_reserved *reserved);

/* Finds the failure that this event tells of, with the balance of that moment; false: it tells of none that has a record. */
bool gpc_event_failure(const struct gpc_recording *recording, const struct gpucache_event *event,
	struct gpucache_oom *ret_oom);

#endif
