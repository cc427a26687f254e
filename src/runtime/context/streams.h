/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program does with streams: creates and captures them (for the fences, alloc/fence.h), submits work to them
 * and waits for them (for the barriers, alloc/barrier.h).
 *
 * Threads   Any.
 * Failure   Of more than GPC_MAX_CAPTURES open captures the later ones are only counted: the end of a capture on a
 *           stream without an entry ends one of them.  If a barrier fails, the program's next call returns the driver's
 *           error.
 */
#ifndef GPC_RUNTIME_CONTEXT_STREAMS_H
#define GPC_RUNTIME_CONTEXT_STREAMS_H

#include <stdbool.h>

#include "alloc/barrier.h"
#include "driver/cuda_fns.h"

struct gpc_context;

/*
 * Call before work is submitted to this stream if gpc_runtime_duties says that a barrier is due.  Call before the
 * program queries the stream or waits for it if gpc_runtime_duties says that a barrier is unsettled.
 */
void gpc_runtime_submits(CUstream stream);
void gpc_runtime_queries(CUstream stream);

/* How many barriers are due and unsettled in all contexts.  The hooks read it without entering. */
extern struct gpc_duties gpc_runtime_duties;

/* True if the stream is capturing: an allocation on it becomes a node of the graph, and allocates at the launch. */
bool gpc_runtime_is_captured(CUstream stream);

/* The requests and frees of the calling thread's current call are recorded with this stream. */
void gpc_streams_name(CUstream stream);

/*
 * Call before the program gets the handle of a new stream, before a stream is destroyed, and before the first use of
 * a per-thread default stream.
 */
void gpc_runtime_stream_created(CUstream stream);
void gpc_runtime_stream_destroyed(CUstream stream);
void gpc_runtime_per_thread_stream_used(void);

/*
 * Call before the first launch of a kernel that may overlap its predecessor in the stream.  Ends the one-stream rule
 * (alloc/fence.h) in every context.  For blocks that were reused under the rule, later work waits on the device, or the
 * host waits if the device cannot.
 */
void gpc_runtime_overlap_used(void);

/* Call _begins before the driver begins a capture, and _ended after the begin failed or the capture ended. */
void gpc_runtime_capture_begins(CUstream stream);
void gpc_runtime_capture_ended(CUstream stream);

/* True from the first use of a per-thread default stream on.  The hooks read it without entering. */
extern bool gpc_runtime_per_thread_seen;

/* True from the first launch of a kernel that may overlap its predecessor on.  The hooks read it without entering. */
extern bool gpc_runtime_overlap_seen;

/* Forgets the captures that began in a dead context. */
void gpc_streams_forget_context(const struct gpc_context *context);

#endif
