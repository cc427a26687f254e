/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: the requests of a program to its allocator, in order.
 *
 * This header makes traces of recordings of libgpucache.so; gpumem-replay also makes them of logs, snapshots
 * (trace_file.h) and workloads (workload.h).  A program may reuse an identity (id, pointer).  Each lifetime gets a slot of its own, numbered from
 * 0, so that a replay keeps its memory in an array.
 *
 * A recording lists the last events and the blocks live at the end.  A walk back from there finds the blocks that were
 * live before the first event, the seeds, which the trace allocates first:
 *
 *   recording    | seeds | events of the ring, oldest to newest | blocks live at the end
 *                    ^------ backwards, a malloc removes a block, a free adds it -----'
 *
 * Invariants  1 A slot is allocated once, then freed at most once; work uses live slots only.
 *             2 Streams are numbered from 0.
 *             3 Times never decrease.
 * Threads     One.
 * Failure     None.
 * Limits      Drops the threads of RMM's log: a replay follows the order of the file.  A trace of a recording covers
 *             one device, on one stream (except for tensors: tensors.h).
 */
#ifndef GPC_REPLAY_TRACE_H
#define GPC_REPLAY_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "format/recording.h"

/* The operations on memory come first (run.c). */
enum gpc_trace_op_kind {
	GPC_TRACE_ALLOC,
	GPC_TRACE_FREE,
	GPC_TRACE_FAILURE, /* an allocation that failed when the trace was taken */
	GPC_TRACE_WORK,    /* submits a kernel to `stream`, which uses `slot` for duration_ns */
	GPC_TRACE_ORDER, /* orders later work of `stream` after the work submitted so far to `other` */
	GPC_TRACE_SYNC,        /* the host waits for the whole device */
	GPC_TRACE_EMPTY_CACHE, /* the allocator returns its cached memory to the driver */
};

/* Which allocator serves the request. */
enum gpc_trace_way {
	GPC_TRACE_CACHED, /* the replayed policy */
	/* the driver, past PyTorch's cache: gpucache serves such requests, a model of that cache does not */
	GPC_TRACE_DIRECT,
	GPC_TRACE_BESIDE, /* the driver: contexts, modules and others, which do not count as live bytes */
};

struct gpc_trace_op {
	uint64_t size; /* ALLOC and FAILURE */
	uint64_t time_ns;
	uint64_t duration_ns; /* WORK */
	uint32_t slot;        /* ALLOC, FREE and WORK */
	uint32_t stream;
	uint32_t other;   /* ORDER */
	uint32_t context; /* ALLOC in a recording: the event's index into COUNTERS */
	uint64_t line;    /* in the file, or the number of the event in the recording; 0: none */
	enum gpc_trace_op_kind kind;
	enum gpc_trace_way way; /* of ALLOC */
};

/* Which part of a recording or snapshot the trace covers. */
struct gpc_trace_recorded {
	uint64_t first_event; /* oldest in the ring, from 1 at the run's start; 0: it is empty */
	uint64_t last_event;
	uint64_t n_events;  /* of the whole run */
	uint64_t n_missing; /* events in between that are lost, because their writer died */
	uint64_t n_other_devices;
	uint64_t n_held_before; /* blocks that lived before the first event */
	uint64_t held_before_bytes;
	uint64_t n_torn; /* blocks whose slots were torn (format/recording.h), and are left out */
	int device;
	/* Of a recording: the GPU, and whether the run ended by a request that failed there. */
	char gpu[64];
	uint64_t total_bytes; /* 0: unknown */
	bool has_failed;
};

struct gpc_trace {
	const char *path;
	bool is_recording; /* of a recording or snapshot; false: of a log or workload */
	struct gpc_trace_op *ops;
	uint64_t n_ops;
	uint32_t n_slots;
	uint32_t n_streams;
	uint64_t n_failures;
	uint64_t n_work;
	/* Frees of memory that the trace does not allocate; they are left out. */
	uint64_t n_unknown_frees;
	/* Frees that the trace lacks: they were added, because their identity is allocated again. */
	uint64_t n_implied_frees;
	uint64_t peak_live_bytes; /* of the requested bytes, without failures */
	/* The peak of memory that is no request.  A replay holds this much from the start until the end. */
	uint64_t fixed_bytes;
	uint64_t peak_beside_bytes;         /* of the bytes that are BESIDE */
	uint64_t peak_all_bytes;            /* of the sum of live and BESIDE bytes */
	struct gpc_trace_recorded recorded; /* if is_recording */
	bool is_damaged;                    /* a part of the recording could not be read */
};

/* True if the trace has every event since the process started. */
static inline bool gpc_trace_is_whole(const struct gpc_trace *trace)
{
	return trace->recorded.n_held_before == 0 && trace->recorded.n_missing == 0 &&
	       trace->recorded.n_torn == 0 && !trace->is_damaged;
}

/*
 * `device`: -1 chooses the device with the most events.  is_of_tensors: the requests are PyTorch's tensors, and the
 * requests to the driver that PyTorch's cache does not see.  For a program without PyTorch it makes no difference.  The
 * caller owns the trace, whose `path` is the recording's.
 */
void gpc_trace_from_recording(const struct gpc_recording *recording, int device, bool is_of_tensors,
	struct gpc_trace *ret_trace);
void gpc_trace_fini(struct gpc_trace *trace);

#endif
