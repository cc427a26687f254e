/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads traces from files.
 *
 *   op,id,size,stream,time_us                        our own CSV
 *   Thread,Time,Action,Pointer,Size,Stream           RMM's log: allocate, allocate failure, free
 *   a snapshot of PyTorch, pickle or JSON            its device_traces, read like a recording
 *   a recording of libgpucache.so                    the ring of events
 *
 * The start of a file decides the format; CSV may be gzipped.  In our own CSV, op is one of
 *
 *   alloc, free, empty_cache                         id: any number
 *   work      of the block id on the stream          size: ns; 0 adds the block to the stream's last kernel
 *   order     later work of the stream               id: the stream whose work so far it follows
 *   sync      the host waits for the device
 *
 * Threads     One.
 * Failure     gpc_trace_read: GPC_IO with errno, GPC_DAMAGED and the other codes of
 *             format/recording.h; `why` has the message, with the line.
 */
#ifndef GPC_REPLAY_TRACE_FILE_H
#define GPC_REPLAY_TRACE_FILE_H

#include "base/text.h"
#include "tools/replay/trace.h"

/* Which events of a recording or snapshot to read. */
struct gpc_which {
	int device;      /* -1: the one with the most events */
	bool of_tensors; /* requests to PyTorch's allocator, not its own to the driver */
};

GPC_MUST_CHECK enum gpc_status gpc_trace_read(const char *path, struct gpc_which which,
	struct gpc_text *why, struct gpc_trace *ret_trace);
GPC_MUST_CHECK enum gpc_status gpc_trace_read_csv(
	const char *path, struct gpc_text *why, struct gpc_trace *ret_trace);

GPC_MUST_CHECK enum gpc_status gpc_trace_read_snapshot(
	const char *path, int device, struct gpc_text *why, struct gpc_trace *ret_trace);

#endif
