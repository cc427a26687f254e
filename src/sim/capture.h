/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture.
 *
 * While a stream is captured, work submitted to it becomes a node of a graph.  Other streams join
 * by waiting for an event that was recorded in the capture.  A call that does not fit makes the
 * capture invalid; the stream stays in it until EndCapture says so.
 *
 *      BeginCapture --> ACTIVE --(a call that does not fit: 900, 905, 906)--> INVALIDATED
 *                          '------ EndCapture: a graph -----. .---- EndCapture: 901, no graph ---'
 *                                                            v
 *                                                          (none)
 *
 * Potentially unsafe calls (cuMemAlloc, cuMemFree ...) are refused by the rules of
 * cuThreadExchangeStreamCaptureMode. cuCtxRecordEvent, cuCtxWaitEvent and cuCtxSynchronize are
 * refused while any stream of the context is captured, in whatever mode: cuda.h says so for the
 * first two.
 *
 * Threads     Any; the capture lock is taken before a context's.
 * Failure     The driver's codes.
 * Limits      A forked stream that was not joined back is not noticed.
 */
#ifndef GPC_SIM_CAPTURE_H
#define GPC_SIM_CAPTURE_H

#include "sim/graph.h"
#include "sim/stream.h"

struct gpc_sim_capture {
	struct gpc_list link;    /* in the machine */
	struct gpc_list members; /* the streams in it, of any context; the origin is one */
	struct gpc_sim_stream *origin;
	CUstreamCaptureMode mode;
	uint32_t thread;
	uint64_t number;
	bool is_invalid;
	struct gpc_sim_graph *graph;
};

CUresult gpc_sim_capture_begin(struct gpc_sim_stream *stream, CUstreamCaptureMode mode);

/*
 * Ends the capture that began in this stream.  INVALIDATED: it ends, without a graph.  WRONG_THREAD, UNMATCHED (another
 * stream is the origin): it goes on.
 */
CUresult gpc_sim_capture_end(struct gpc_sim_stream *stream, struct gpc_sim_graph **ret_graph);

CUstreamCaptureStatus gpc_sim_capture_status(struct gpc_sim_stream *stream, uint64_t *ret_number);

/* The growing graph of the capture, which its end returns; NULL outside a valid capture. */
struct gpc_sim_graph *gpc_sim_capture_graph(struct gpc_sim_stream *stream);

/* Sets the calling thread's mode; returns the previous one. */
CUstreamCaptureMode gpc_sim_capture_exchange_mode(CUstreamCaptureMode mode);

/*
 * Call before the stream is destroyed, by any thread: a capture that began in it ends without a graph, one that it only
 * joined becomes invalid.
 */
void gpc_sim_capture_drop(struct gpc_sim_stream *stream);

/* Call before a potentially unsafe call. */
CUresult gpc_sim_capture_check_unsafe(struct gpc_sim *sim);

/* Call before a call that concerns all streams of a context. */
CUresult gpc_sim_capture_check_context(struct gpc_sim_context *context);

/* Call before the legacy stream is used or queried: it stands for every blocking stream, even captured ones. */
CUresult gpc_sim_capture_check_legacy(struct gpc_sim_context *context);

/* For a call that is illegal on a captured stream: invalidates. */
CUresult gpc_sim_capture_refuse(struct gpc_sim_stream *stream, CUresult code);

/* For a call that accepts no event of a capture: invalidates that capture. */
CUresult gpc_sim_capture_refuse_event(struct gpc_sim *sim, struct gpc_sim_event *event);

/* Turns work submitted to a captured stream into a node.  Takes the effect. */
CUresult gpc_sim_capture_add(struct gpc_sim_stream *stream, struct gpc_sim_effect *effect);
CUresult gpc_sim_capture_record(struct gpc_sim_stream *stream, struct gpc_sim_event *event);
CUresult gpc_sim_capture_wait(struct gpc_sim_stream *stream, struct gpc_sim_event *event);

#endif
