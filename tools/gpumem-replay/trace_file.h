/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads traces from files.
 *
 *   op,id,size,stream,time_us                        our own CSV: op is alloc, free or empty_cache, id any number
 *   Thread,Time,Action,Pointer,Size,Stream           RMM's log: allocate, allocate failure, free
 *   a snapshot of PyTorch, pickle or JSON            its device_traces and segments
 *   a recording of libgpucache.so                    its ring of events and its blocks
 *
 * The first bytes of a file decide the format.  CSV may be gzipped.
 *
 * Threads     One.
 * Failure     GPC_IO with errno, GPC_DAMAGED, GPC_LIMIT, or a code of format/recording.h; `why` gets the message.
 */
#ifndef GPC_REPLAY_TRACE_FILE_H
#define GPC_REPLAY_TRACE_FILE_H

#include "base/text.h"
#include "tools/replay/trace.h"

/* Which events of a recording or snapshot to read. */
struct gpc_which {
	int device; /* -1: the one with the most events */
	bool of_tensors; /* of a recording: the requests to PyTorch's allocator instead of those to the driver */
};

/* Reads a trace in any of the formats; the other two functions read one format.  The caller owns the trace. */
GPC_MUST_CHECK enum gpc_status gpc_trace_read(const char *path, struct gpc_which which,
	struct gpc_text *why, struct gpc_trace *ret_trace);
GPC_MUST_CHECK enum gpc_status gpc_trace_read_csv(
	const char *path, struct gpc_text *why, struct gpc_trace *ret_trace);

GPC_MUST_CHECK enum gpc_status gpc_trace_read_snapshot(
	const char *path, int device, struct gpc_text *why, struct gpc_trace *ret_trace);

#endif
