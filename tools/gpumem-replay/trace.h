/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: what a program asked of its allocator, in order.
 *
 *   op,id,size,stream,time_us                        ours: op is alloc, free or empty_cache, id is any number
 *   Thread,Time,Action,Pointer,Size,Stream           RMM's log: allocate, allocate failure, free
 *   a snapshot of PyTorch, pickle or JSON            its device_traces, as if it were a recording
 *   a recording of libgpucache.so                    what its ring of events still holds
 *   a workload                                       made by workload.h, with the work of the device
 *
 * The first line of a file says which; CSV may be packed with gzip.  Identities (ids, pointers) may
 * be used again; each life becomes one slot, numbered from 0, so that whoever replays needs an
 * array and no lookup.
 *
 *   recording    | held before: seeds | events of the ring, oldest to newest | blocks live at the end
 *                         ^------ walked backwards: a malloc takes a block away, a free brings it -----'
 *
 * Invariants  1 A slot is allocated once and freed at most once, in this order; work is of a slot
 *               that lives.  2 Streams are numbered from 0.
 *             3 Times never decrease.
 * Threads     One.
 * Failure     gpc_trace_read: GPC_IO with errno, GPC_DAMAGED and the other codes of
 *             format/recording.h, GPC_NO_METADATA; `why` then says what, with the line.
 * Limits      The threads of RMM's log are not kept: what happened is replayed in the file's order.
 *             A recording names no streams, and is replayed for one device of it.
 */
#ifndef GPC_REPLAY_TRACE_H
#define GPC_REPLAY_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

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

struct gpc_trace_op {
	uint64_t size; /* ALLOC and FAILURE */
	uint64_t time_ns;
	uint64_t duration_ns; /* WORK */
	uint32_t slot;        /* ALLOC, FREE and WORK */
	uint32_t stream;
	uint32_t other; /* ORDER */
	uint64_t line;  /* of the file, or number of the recording's event; 0: none */
	enum gpc_trace_op_kind kind;
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
	struct gpc_trace_recorded recorded; /* GPC_TRACE_RECORDING */
	bool is_damaged;                    /* a recording that was only read in part */
};

/* `device`: of a recording; -1: the one with most events. */
GPC_MUST_CHECK enum gpc_status gpc_trace_read(
	const char *path, int device, struct gpc_text *why, struct gpc_trace *ret_trace);
void gpc_trace_fini(struct gpc_trace *trace);

/*
 * Writes allocations and frees as a log of RMM, packed where `path` ends in .gz.  False: errno says
 * why.
 */
bool gpc_trace_save(const struct gpc_trace *trace, const char *path);

#endif
