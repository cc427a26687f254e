/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: what a program asked of its allocator, in order.
 *
 * From recordings of libgpucache.so here; from logs and workloads in gpumem-replay (trace_file.h,
 * workload.h).  Identities (ids, pointers) may be used again; each life becomes one slot, numbered
 * from 0, so that whoever replays needs an array and no lookup.
 *
 *   recording    | held before: seeds | events of the ring, oldest to newest | blocks live at the end
 *                         ^------ walked backwards: a malloc takes a block away, a free brings it -----'
 *
 * Invariants  1 A slot is allocated once and freed at most once, in this order; work is of a slot
 *               that lives.  2 Streams are numbered from 0.
 *             3 Times never decrease.
 * Threads     One.
 * Failure     GPC_NO_METADATA.
 * Limits      The threads of RMM's log are not kept: what happened is replayed in the file's order.
 *             A recording names no streams, and is replayed for one device of it (but see tensors.h).
 */
#ifndef GPC_REPLAY_TRACE_H
#define GPC_REPLAY_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "format/recording.h"

/* Operations on memory, and behind them what else a program does with the device. */
enum gpc_trace_op_kind {
	GPC_TRACE_ALLOC,
	GPC_TRACE_FREE,
	GPC_TRACE_FAILURE, /* an allocation that failed when the trace was taken */
	GPC_TRACE_WORK,    /* a kernel on `stream` uses `slot` for duration_ns; the host goes on */
	GPC_TRACE_ORDER,   /* later work of `stream` comes behind earlier work of `other` */
	GPC_TRACE_SYNC,    /* the host waits for the whole device */
	GPC_TRACE_EMPTY_CACHE, /* what is cached goes back to the driver */
};

/* Whom the program asked. */
enum gpc_trace_way {
	GPC_TRACE_CACHED, /* the allocator that is replayed */
	GPC_TRACE_DIRECT, /* the driver, past the cache of a framework, but not past ours */
	GPC_TRACE_BESIDE, /* nobody: contexts, modules and other memory, past any cache; no live bytes */
};

struct gpc_trace_op {
	uint64_t size; /* ALLOC and FAILURE */
	uint64_t time_ns;
	uint64_t duration_ns; /* WORK */
	uint32_t slot;        /* ALLOC, FREE and WORK */
	uint32_t stream;
	uint32_t other; /* ORDER */
	uint64_t line;  /* of the file, or number of the recording's event; 0: none */
	enum gpc_trace_op_kind kind;
	enum gpc_trace_way way; /* of ALLOC */
};

enum gpc_trace_source {
	GPC_TRACE_CSV,
	GPC_TRACE_RECORDING,
	GPC_TRACE_WORKLOAD,
};

/* What of a recording is in the trace, and what is not. */
struct gpc_trace_recorded {
	uint64_t first_event; /* in the ring, counted from 1 over the whole run; 0: none */
	uint64_t last_event;
	uint64_t n_events;  /* ever */
	uint64_t n_missing; /* holes: lost by a writer that died half way */
	uint64_t n_other_devices;
	uint64_t n_held_before; /* blocks that lived before the first event */
	uint64_t held_before_bytes;
	uint64_t n_torn; /* live blocks that nobody can read */
	int device;
};

struct gpc_trace {
	const char *path;
	enum gpc_trace_source source;
	struct gpc_trace_op *ops;
	uint64_t n_ops;
	uint32_t n_slots;
	uint32_t n_streams;
	uint64_t n_failures;
	uint64_t n_work;
	/* of what was not live: allocated before the trace began; left out */
	uint64_t n_unknown_frees;
	/* an identity that was given out again without a free in between */
	uint64_t n_implied_frees;
	uint64_t peak_live_bytes; /* as requested, failures not counted */
	/* memory of other kinds, at most; held all the time */
	uint64_t fixed_bytes;
	uint64_t peak_beside_bytes;         /* of what is BESIDE */
	uint64_t peak_all_bytes;            /* of both at once */
	struct gpc_trace_recorded recorded; /* GPC_TRACE_RECORDING */
	bool is_damaged;                    /* a recording that was only read in part */
};

/* `device`: -1: the one with most events.  GPC_NO_METADATA is the only failure. */
GPC_MUST_CHECK enum gpc_status gpc_trace_from_recording(
	const struct gpc_recording *recording, int device, struct gpc_trace *ret_trace);
/*
 * The same of what a PyTorch program asked PyTorch for: each tensor, and past its cache what others asked of the
 * driver.  Of a program without PyTorch it is what gpc_trace_from_recording makes.
 */
GPC_MUST_CHECK enum gpc_status gpc_trace_of_tensors(
	const struct gpc_recording *recording, int device, struct gpc_trace *ret_trace);
void gpc_trace_fini(struct gpc_trace *trace);

#endif
