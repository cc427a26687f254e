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

/* The stream is out of its capture afterwards, except for the wrong thread or stream. */
CUresult gpc_sim_capture_end(struct gpc_sim_stream *stream, struct gpc_sim_graph **ret_graph);

CUstreamCaptureStatus gpc_sim_capture_status(struct gpc_sim_stream *stream, uint64_t *ret_number);

/* The graph that grows while the capture lasts, which is the one that its end gives; NULL outside a good capture. */
struct gpc_sim_graph *gpc_sim_capture_graph(struct gpc_sim_stream *stream);

/* The calling thread's mode; returns the one before. */
CUstreamCaptureMode gpc_sim_capture_exchange_mode(CUstreamCaptureMode mode);

/*
 * The stream is about to be destroyed, by any thread: its capture ends without a graph where it
 * began in it, and is invalid where the stream only joined it.
 */
void gpc_sim_capture_drop(struct gpc_sim_stream *stream);

/* A potentially unsafe call is about to be made. */
CUresult gpc_sim_capture_check_unsafe(struct gpc_sim *sim);

/* A call that concerns all streams of a context is about to be made. */
CUresult gpc_sim_capture_check_context(struct gpc_sim_context *context);

/*
 * The legacy stream is about to be used or asked, and it stands for every blocking stream,
 * captured ones too.
 */
CUresult gpc_sim_capture_check_legacy(struct gpc_sim_context *context);

/* A call that no captured stream can take: invalidates. */
CUresult gpc_sim_capture_refuse(struct gpc_sim_stream *stream, CUresult code);

/* A call that takes no event of a capture: invalidates that capture. */
CUresult gpc_sim_capture_refuse_event(struct gpc_sim *sim, struct gpc_sim_event *event);

/* Work submitted to a captured stream: a node.  Takes the effect. */
CUresult gpc_sim_capture_add(struct gpc_sim_stream *stream, struct gpc_sim_effect *effect);
CUresult gpc_sim_capture_record(struct gpc_sim_stream *stream, struct gpc_sim_event *event);
CUresult gpc_sim_capture_wait(struct gpc_sim_stream *stream, struct gpc_sim_event *event);

#endif
