/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: the requests of a program to its allocator, in order.
 *
 * From recordings of libgpucache.so here; from logs and snapshots in gpumem-replay (trace_file.h).
 * Identities (ids, pointers) may be reused; each lifetime becomes one slot, numbered from 0, so a
 * replay needs an array and no lookup.
 *
 *   recording    | held before: seeds | events of the ring, oldest to newest | blocks live at the end
 *                         ^------ walked backwards: a malloc removes a block, a free adds it -----'
 *
 * Invariants  1 A slot is allocated once, then freed at most once; work uses live slots only.
 *             2 Streams are numbered from 0.
 *             3 Times never decrease.
 * Threads     One.
 * Failure     None.
 * Limits      The threads of RMM's log are dropped: the replay follows the order of the file.  A replay of a recording
 *             covers one device, on one stream (but see tensors.h).
 */
#ifndef GPC_REPLAY_TRACE_H
#define GPC_REPLAY_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "format/recording.h"

/* Operations on memory, then the other uses of the device. */
enum gpc_trace_op_kind {
	GPC_TRACE_ALLOC,
	GPC_TRACE_FREE,
	GPC_TRACE_FAILURE, /* an allocation that failed when the trace was taken */
	GPC_TRACE_WORK,    /* a kernel on `stream` uses `slot` for duration_ns; the host goes on */
	GPC_TRACE_ORDER,   /* orders later work of `stream` behind earlier work of `other` */
	GPC_TRACE_SYNC,    /* the host waits for the whole device */
	GPC_TRACE_EMPTY_CACHE, /* cached memory goes back to the driver */
};

/* Where the request goes. */
enum gpc_trace_way {
	GPC_TRACE_CACHED, /* to the allocator that is replayed */
	GPC_TRACE_DIRECT, /* to the driver, past a framework's cache, but through ours */
	GPC_TRACE_BESIDE, /* contexts, modules and other memory: past any cache, and not in live_bytes */
};

struct gpc_trace_op {
	uint64_t size; /* ALLOC and FAILURE */
	uint64_t time_ns;
	uint64_t duration_ns; /* WORK */
	uint32_t slot;        /* ALLOC, FREE and WORK */
	uint32_t stream;
	uint32_t other;   /* ORDER */
	uint32_t context; /* of the recording */
	uint64_t line;    /* in the file, or the number of the recording's event; 0: none */
	enum gpc_trace_op_kind kind;
	enum gpc_trace_way way; /* of ALLOC */
};

/* Which part of a recording the trace covers. */
struct gpc_trace_recorded {
	uint64_t first_event; /* in the ring, counted from 1 over the whole run; 0: none */
	uint64_t last_event;
	uint64_t n_events;  /* ever */
	uint64_t n_missing; /* holes: events lost when a writer died */
	uint64_t n_other_devices;
	uint64_t n_held_before; /* blocks that lived before the first event */
	uint64_t held_before_bytes;
	uint64_t n_torn; /* live blocks in torn slots */
	int device;
};

struct gpc_trace {
	const char *path;
	bool is_recording; /* or a snapshot, which is read like one; else a log */
	struct gpc_trace_op *ops;
	uint64_t n_ops;
	uint32_t n_slots;
	uint32_t n_streams;
	uint64_t n_failures;
	uint64_t n_work;
	/* Frees of memory allocated before the trace began, which are omitted. */
	uint64_t n_unknown_frees;
	/* Identities reused without a free in between. */
	uint64_t n_implied_frees;
	uint64_t peak_live_bytes; /* as requested, failures not counted */
	/* The maximum of memory of other kinds, assumed to be held throughout. */
	uint64_t fixed_bytes;
	uint64_t peak_beside_bytes;         /* of memory that is BESIDE */
	uint64_t peak_all_bytes;            /* of the sum of live and BESIDE bytes */
	struct gpc_trace_recorded recorded; /* if is_recording */
	bool is_damaged;                    /* the recording was read only in part */
};

/* True if the trace has every event since the process started. */
static inline bool gpc_trace_is_whole(const struct gpc_trace *trace)
{
	return trace->recorded.n_held_before == 0 && trace->recorded.n_missing == 0 &&
	       trace->recorded.n_torn == 0 && !trace->is_damaged;
}

/*
 * `device`: -1 for the one with the most events.  is_of_tensors: the requests are PyTorch's tensors, and the requests
 * to the driver past PyTorch's cache; no difference for a program without PyTorch.
 */
void gpc_trace_from_recording(const struct gpc_recording *recording, int device, bool is_of_tensors,
	struct gpc_trace *ret_trace);
void gpc_trace_fini(struct gpc_trace *trace);

#endif
