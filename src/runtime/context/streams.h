/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fences have to know of streams and captures (alloc/fence.h).
 *
 * Threads   Any.
 * Failure   More than GPC_MAX_CAPTURES open captures are counted, not listed: then every stream is taken to be captured.
 */
#ifndef GPC_RUNTIME_CONTEXT_STREAMS_H
#define GPC_RUNTIME_CONTEXT_STREAMS_H

#include <stdbool.h>

#include "driver/cuda_fns.h"

struct gpc_context;

/* True: an allocation on it adds a node, and whoever launches the graph gets the memory. */
bool gpc_runtime_is_captured(CUstream stream);

/* The recording hears that what the calling thread asks for, or frees, in the call that it is in is of that stream. */
void gpc_streams_name(CUstream stream);

/* Streams and captures.  A new stream is not yet in anybody's hands. */
void gpc_runtime_stream_created(CUstream stream);
void gpc_runtime_stream_destroyed(CUstream stream);
void gpc_runtime_per_thread_stream_used(void);

/*
 * A kernel is about to be launched that may overlap the one before it in its stream: that is no order, and
 * the one-stream rule (alloc/fence.h) ends in every context.  What it let through is put behind a barrier,
 * or, without barriers, waited for.
 */
void gpc_runtime_overlap_used(void);
void gpc_runtime_capture_begins(CUstream stream);
void gpc_runtime_capture_ended(CUstream stream);

/*
 * True from the first use of a per-thread default stream on; read by the stream hooks without
 * entering.
 */
extern bool gpc_runtime_per_thread_seen;

/* The same from the first launch on whose kernel may overlap the one before it in its stream. */
extern bool gpc_runtime_overlap_seen;

/* The context died, and with it the captures that began in it. */
void gpc_streams_forget_context(const struct gpc_context *context);

#endif
