/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture.
 *
 * While a stream is captured, work submitted to it is appended to a graph instead of being run.  Another stream joins
 * the capture by waiting for an event that was recorded in it.  A forbidden call invalidates the capture; its streams
 * remain in it until EndCapture, which reports the error.  The numbers are CUresult codes:
 *
 *      BeginCapture --> ACTIVE -----(a forbidden call: 900, 902, 905, 906)-----> INVALIDATED
 *                          '------ EndCapture: a graph -----. .---- EndCapture: 901, no graph ---'
 *                                                            v
 *                                                          (none)
 *
 * The rules of cuThreadExchangeStreamCaptureMode decide which potentially unsafe calls (cuMemAlloc, cuMemFree ...) are
 * forbidden.  cuCtxRecordEvent, cuCtxWaitEvent and cuCtxSynchronize are forbidden while any stream of the context is
 * captured, in every mode; cuda.h documents that for the first two.
 *
 * Threads     Any; the capture lock is taken before a context's.
 * Failure     The driver's codes.
 * Limits      EndCapture does not detect a stream that joined the capture and was not joined back (904 on a real
 *             driver).
 */
#ifndef GPC_SIM_CAPTURE_H
#define GPC_SIM_CAPTURE_H

#include "sim/gpu/execution/graph.h"
#include "sim/gpu/execution/stream.h"

struct gpc_sim_capture {
	struct gpc_list link;    /* in the machine's `captures` */
	struct gpc_list members; /* the captured streams, of any context; `origin` is one of them */
	struct gpc_sim_stream *origin;
	CUstreamCaptureMode mode;
	uint32_t thread; /* that began the capture */
	uint64_t number; /* never reused; starts at 1 */
	bool is_invalid;
	struct gpc_sim_graph *graph;
	bool is_own; /* the graph, until the capture ends */
};

CUresult gpc_sim_capture_begin(struct gpc_sim_stream *stream, CUstreamCaptureMode mode);

/* The same, which adds to a graph of the program's. */
CUresult gpc_sim_capture_begin_in(
	struct gpc_sim_stream *stream, CUstreamCaptureMode mode, struct gpc_sim_graph *graph);

/*
 * Ends the capture that began in this stream.  INVALIDATED: the capture has ended, but without a graph.  WRONG_THREAD,
 * or UNMATCHED (the capture began in another stream): the capture continues.
 */
CUresult gpc_sim_capture_end(struct gpc_sim_stream *stream, struct gpc_sim_graph **ret_graph);

/* Unless the status is NONE, sets *ret_number to the capture's number; ret_number may be NULL. */
CUstreamCaptureStatus gpc_sim_capture_status(struct gpc_sim_stream *stream, uint64_t *ret_number);

/* The graph that the stream's capture has built so far, and owns; NULL if the stream is in no valid capture. */
struct gpc_sim_graph *gpc_sim_capture_graph(struct gpc_sim_stream *stream);

/* Sets the calling thread's mode; returns the previous one. */
CUstreamCaptureMode gpc_sim_capture_exchange_mode(CUstreamCaptureMode mode);

/*
 * Call before the stream is destroyed; any thread may.  A capture that began in the stream ends without a graph; a
 * capture that the stream joined is invalidated.
 */
void gpc_sim_capture_drop(struct gpc_sim_stream *stream);

/* Call before a potentially unsafe CUDA call.  UNSUPPORTED if a capture forbids the call; invalidates such captures. */
CUresult gpc_sim_capture_check_unsafe(struct gpc_sim *sim);

/*
 * Call before a CUDA call that concerns all streams of a context, and of its green contexts.  UNSUPPORTED if one is
 * captured; invalidates its capture.
 */
CUresult gpc_sim_capture_check_context(struct gpc_sim_context *context);

/*
 * Call before the legacy stream is used or queried, which synchronizes with every blocking stream of its context.
 * IMPLICIT if one of these is captured; invalidates its capture.
 */
CUresult gpc_sim_capture_check_legacy(struct gpc_sim_context *context);

/*
 * Call before a CUDA call that is illegal on a captured stream.  If the stream is captured, invalidates the capture and
 * returns `code`, or INVALIDATED if the capture was invalid before.
 */
CUresult gpc_sim_capture_refuse(struct gpc_sim_stream *stream, CUresult code);

/*
 * Call before a CUDA call that accepts no captured event.  If the event was last recorded in a capture, invalidates
 * that capture and returns UNSUPPORTED.
 */
CUresult gpc_sim_capture_refuse_event(struct gpc_sim *sim, struct gpc_sim_event *event);

/* Appends work submitted to a captured stream to the capture's graph.  Takes ownership of `effect`, even on failure. */
CUresult gpc_sim_capture_add(struct gpc_sim_stream *stream, struct gpc_sim_effect *effect);

/* Records the event in the capture of the stream. */
CUresult gpc_sim_capture_record(struct gpc_sim_stream *stream, struct gpc_sim_event *event);

/*
 * Waits for a captured event: a stream that is not captured joins the event's capture.  ISOLATION: the stream is
 * captured and the event is not.  MERGE: they are in two captures, and both become invalid.
 */
CUresult gpc_sim_capture_wait(struct gpc_sim_stream *stream, struct gpc_sim_event *event);

#endif
