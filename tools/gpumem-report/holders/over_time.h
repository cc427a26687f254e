/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of each holder over time, as far back as the ring of events goes.
 *
 *      live at the end - all events of the ring = live when the ring begins
 *      then forwards: of each slice, the moment with the most live bytes;
 *      moment i is the sum of the deltas of moments 0 .. i
 *
 * A slice ends after a part of the time or of the events, and with each failure, so that neither a pause nor a burst
 * hides what comes after it.
 *
 * Invariants  1 The moment with the most live bytes is one of the rows.  2 The last row is the end.
 *             3 There are at most GPC_OVER_TIME_MAX_DELTAS deltas: with more, the slices are made longer.
 *             4 The last level of a slice that ends with a failure is that of the failure's balance.
 * Threads     One.
 * Failure     None.
 * Limits      No rows, if the events of a single slice need more deltas than that.
 *             A block that PyTorch allocated for its cache, and freed, counts as live bytes of the program unless the
 *             ring has a tensor in it.  Of freed blocks it is not known for how long they were pending.
 */
#ifndef GPC_REPORT_OVER_TIME_H
#define GPC_REPORT_OVER_TIME_H

#include "tools/gpumem-report/report.h"
#include "why/why.h"

#define GPC_OVER_TIME_MAX        1000 /* slices but for those around failures */
#define GPC_OVER_TIME_MAX_DELTAS 200000

/* A stack in a context; memory of a context or module that the stack created is a holder of its own. */
struct gpc_over_time_holder {
	uint32_t stack;
	uint32_t kind; /* of a context or a module, else 0 */
	uint32_t context;
};

struct gpc_over_time_delta {
	uint32_t holder;
	int64_t bytes; /* as requested; may be negative */
	int64_t blocks;
};

/* The bytes live from an event on. */
struct gpc_over_time_level {
	uint64_t time_ns;
	uint64_t requested_bytes; /* of them, as requested */
	uint64_t live_bytes;      /* as rounded to size classes */
	uint64_t idle_bytes;      /* beside them: the cache of PyTorch or XLA, in no tensor */
	uint64_t reserved_bytes;  /* all that the driver gave; GPUCACHE_UNKNOWN if not exact */
	uint64_t purposes
		[GPC_N_PURPOSES]; /* as requested, less contexts and modules; all 0 without PyTorch */
};

struct gpc_over_time_row {
	struct gpc_over_time_level most;
	struct gpc_over_time_level last; /* of the slice: until the next row's slice begins */
	uint32_t tag;                    /* of the last event before `most` */
	size_t end_delta;                /* one past its last; the deltas are those of `most` */
	uint64_t n_events;               /* up to `most` */
};

/* A failure that has an event. */
struct gpc_over_time_failure {
	uint64_t asked_ns; /* the time in its record */
	uint64_t time_ns;  /* when all was tried */
};

struct gpc_over_time {
	struct gpc_over_time_holder *holders;
	size_t n_holders;
	struct gpc_over_time_row *rows; /* in the order of time */
	size_t n;
	struct gpc_over_time_delta *deltas;
	struct gpc_over_time_failure failures[GPUCACHE_MAX_OOMS];
	size_t n_failures;
	uint64_t n_events; /* of the device, that changed its bytes, and failures */
	uint64_t n_holes;  /* unreadable events */
	bool is_exact;     /* reserved_bytes are known */
};

/* Reads the events of one device. */
void gpc_over_time_create(
	struct gpc_over_time *moments, const struct gpc_report *report, int32_t ordinal);
/* When a request had failed for good, as the rows date it: after what was given back for it. */
uint64_t gpc_over_time_time_of(const struct gpc_over_time *moments, const struct gpucache_oom *oom);
void gpc_over_time_fini(struct gpc_over_time *moments);

#endif
