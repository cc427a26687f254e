/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces in files, and where they go.
 *
 *   op,id,size,stream,time_us                        ours: op is alloc, free or empty_cache, id is any number
 *   Thread,Time,Action,Pointer,Size,Stream           RMM's log: allocate, allocate failure, free
 *   a snapshot of PyTorch, pickle or JSON            its device_traces, as if it were a recording
 *   a recording of libgpucache.so                    what its ring of events still holds
 *
 * The first line of a file says which; CSV may be packed with gzip.
 *
 * Threads     One.
 * Failure     gpc_trace_read: GPC_IO with errno, GPC_DAMAGED and the other codes of
 *             format/recording.h, GPC_NO_METADATA; `why` then says what, with the line.
 */
#ifndef GPC_REPLAY_TRACE_FILE_H
#define GPC_REPLAY_TRACE_FILE_H

#include "base/text.h"
#include "tools/replay/trace.h"

/* What is wanted of a recording, or of a snapshot. */
struct gpc_which {
	int device;      /* -1: the one with most events */
	bool of_tensors; /* what PyTorch was asked for, not what it asked for */
};

GPC_MUST_CHECK enum gpc_status gpc_trace_read(const char *path, struct gpc_which which,
	struct gpc_text *why, struct gpc_trace *ret_trace);
GPC_MUST_CHECK enum gpc_status gpc_trace_read_csv(
	const char *path, struct gpc_text *why, struct gpc_trace *ret_trace);

GPC_MUST_CHECK enum gpc_status gpc_trace_read_snapshot(
	const char *path, int device, struct gpc_text *why, struct gpc_trace *ret_trace);

/*
 * Writes allocations and frees as a log of RMM, packed where `path` ends in .gz.  False: errno says
 * why.
 */
bool gpc_trace_save(const struct gpc_trace *trace, const char *path);

#endif
