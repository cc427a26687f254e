/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: streams, events, captures, graphs. */
#include <string.h>

#include "sim/libcuda/face.h"

/* ---- streams ---- */

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	struct gpc_sim_context *context;
	struct gpc_sim_stream *made;
	CUresult res =
		face_enter(GPC_SIM_COST_EVENT_CREATE, "cuStreamCreateWithPriority", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!stream || flags > CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	res = gpc_sim_stream_create(context, flags, priority, &made);
	if (res == CUDA_SUCCESS)
		*stream = (CUstream)(void *)made;
	return res;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	struct gpc_sim_stream *sim_stream;
	CUresult res = face_enter_stream(
		GPC_SIM_COST_EVENT_CREATE, "cuStreamDestroy_v2", stream, FACE_LEGACY, &sim_stream);

	if (res != CUDA_SUCCESS)
		return res;
	if (gpc_sim_is_legacy(sim_stream) || sim_stream->thread)
		return CUDA_ERROR_INVALID_HANDLE;
	gpc_sim_stream_destroy(sim_stream);
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream)
{
	return cuStreamDestroy_v2(stream);
}

static CUresult stream_ask(const char *entry, enum face_null null, CUstream handle,
	unsigned *ret_flags, int *ret_priority, CUcontext *ret_context,
	unsigned long long *ret_number)
{
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(GPC_SIM_COST_QUERY, entry, handle, null, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	if (ret_flags)
		*ret_flags = stream->flags;
	if (ret_priority)
		*ret_priority = stream->priority;
	if (ret_context)
		*ret_context = face_context_handle(stream->context);
	if (ret_number)
		*ret_number = stream->number;
	return CUDA_SUCCESS;
}

/*
 * Returns the stream's context.  If that is green, returns it in *ret_green, and its primary context in *ret_context.
 */
static CUresult stream_context(const char *entry, enum face_null null, CUstream handle,
	CUcontext *ret_context, CUgreenCtx *ret_green)
{
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(GPC_SIM_COST_QUERY, entry, handle, null, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	if (!ret_context || !ret_green)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_green = face_green_handle(stream->context);
	*ret_context = face_context_handle(*ret_green ? stream->context->primary : stream->context);
	return CUDA_SUCCESS;
}

FACE_PAIR(cuStreamGetFlags, _ptsz, (CUstream s, unsigned int *flags),
	stream_ask(entry, null, s, flags, NULL, NULL, NULL))
FACE_PAIR(cuStreamGetPriority, _ptsz, (CUstream s, int *priority),
	stream_ask(entry, null, s, NULL, priority, NULL, NULL))
FACE_PAIR(cuStreamGetCtx, _ptsz, (CUstream s, CUcontext *ctx),
	stream_ask(entry, null, s, NULL, NULL, ctx, NULL))
FACE_PAIR(cuStreamGetCtx_v2, _ptsz, (CUstream s, CUcontext *ctx, CUgreenCtx *green),
	stream_context(entry, null, s, ctx, green))
FACE_PAIR(cuStreamGetId, _ptsz, (CUstream s, unsigned long long *id),
	stream_ask(entry, null, s, NULL, NULL, NULL, id))

static CUresult query(const char *entry, enum face_null null, CUstream handle)
{
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(GPC_SIM_COST_QUERY, entry, handle, null, &stream);

	return res == CUDA_SUCCESS ? gpc_sim_stream_query(stream) : res;
}

static CUresult synchronize(const char *entry, enum face_null null, CUstream handle)
{
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(GPC_SIM_COST_SYNC, entry, handle, null, &stream);

	return res == CUDA_SUCCESS ? gpc_sim_stream_sync(stream) : res;
}

static CUresult wait_event(const char *entry, enum face_null null, CUstream handle, CUevent event)
{
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(GPC_SIM_COST_WAIT, entry, handle, null, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	return face_event(event) ? gpc_sim_stream_wait(stream, face_event(event))
				 : CUDA_ERROR_INVALID_HANDLE;
}

FACE_PAIR(cuStreamQuery, _ptsz, (CUstream s), query(entry, null, s))
FACE_PAIR(cuStreamSynchronize, _ptsz, (CUstream s), synchronize(entry, null, s))
FACE_PAIR(cuStreamWaitEvent, _ptsz, (CUstream s, CUevent e, unsigned int flags),
	wait_event(entry, null, s, e))

/* ---- contexts ---- */

CUresult cuCtxSynchronize(void)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_SYNC, "cuCtxSynchronize", &context);

	return res == CUDA_SUCCESS ? gpc_sim_context_sync(context) : res;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	struct gpc_sim_context *context = face_context(ctx);
	CUresult res =
		face_enter(GPC_SIM_COST_SYNC, "cuCtxSynchronize_v2", context ? NULL : &context);

	return res == CUDA_SUCCESS ? gpc_sim_context_sync(context) : res;
}

/*
 * A driver before 12.5 lacks these functions.  This library cannot drop exports, so a caller that found them by dlsym
 * gets an error.
 */
static CUresult enter_context_event(enum gpc_sim_cost cost, const char *entry)
{
	CUresult res = face_enter(cost, entry, NULL);

	if (res == CUDA_SUCCESS && face_sim()->config.driver_version < GPC_SIM_CONTEXT_EVENTS)
		return CUDA_ERROR_NOT_SUPPORTED;
	return res;
}

CUresult cuCtxRecordEvent(CUcontext ctx, CUevent event)
{
	CUresult res = enter_context_event(GPC_SIM_COST_RECORD, "cuCtxRecordEvent");

	if (res != CUDA_SUCCESS)
		return res;
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	return face_event(event) ? gpc_sim_context_record(face_context(ctx), face_event(event))
				 : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuCtxWaitEvent(CUcontext ctx, CUevent event)
{
	CUresult res = enter_context_event(GPC_SIM_COST_WAIT, "cuCtxWaitEvent");

	if (res != CUDA_SUCCESS)
		return res;
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	return face_event(event) ? gpc_sim_context_wait(face_context(ctx), face_event(event))
				 : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- events ---- */

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	struct gpc_sim_context *context;
	struct gpc_sim_event *made;
	CUresult res = face_enter(GPC_SIM_COST_EVENT_CREATE, "cuEventCreate", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!event || flags > 7 ||
		((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	res = gpc_sim_event_create(context, flags, &made);
	if (res == CUDA_SUCCESS)
		*event = (CUevent)(void *)made;
	return res;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	CUresult res = face_enter(GPC_SIM_COST_EVENT_CREATE, "cuEventDestroy_v2", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!face_event(event))
		return CUDA_ERROR_INVALID_HANDLE;
	gpc_sim_event_destroy(face_event(event));
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
	return cuEventDestroy_v2(event);
}

static CUresult record(const char *entry, enum face_null null, CUstream handle, CUevent event)
{
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(GPC_SIM_COST_RECORD, entry, handle, null, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	return face_event(event) ? gpc_sim_stream_record(stream, face_event(event))
				 : CUDA_ERROR_INVALID_HANDLE;
}

FACE_PAIR(cuEventRecord, _ptsz, (CUevent e, CUstream s), record(entry, null, s, e))
FACE_PAIR(cuEventRecordWithFlags, _ptsz, (CUevent e, CUstream s, unsigned int flags),
	record(entry, null, s, e))

CUresult cuEventQuery(CUevent event)
{
	CUresult res = face_enter(GPC_SIM_COST_QUERY, "cuEventQuery", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	return face_event(event) ? gpc_sim_event_query(face_event(event))
				 : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventSynchronize(CUevent event)
{
	CUresult res = face_enter(GPC_SIM_COST_SYNC, "cuEventSynchronize", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	return face_event(event) ? gpc_sim_event_sync(face_event(event))
				 : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult elapsed(const char *entry, float *ms, CUevent start, CUevent end)
{
	struct gpc_sim_event *a = face_event(start);
	struct gpc_sim_event *b = face_event(end);
	CUresult res = face_enter(GPC_SIM_COST_QUERY, entry, NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!a || !b || ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING) ||
		!atomic_load(&a->done_ns) || !atomic_load(&b->done_ns))
		return CUDA_ERROR_INVALID_HANDLE;
	if (gpc_sim_event_query(a) != CUDA_SUCCESS || gpc_sim_event_query(b) != CUDA_SUCCESS)
		return CUDA_ERROR_NOT_READY;
	*ms = (float)((double)atomic_load(&b->done_ns) - (double)atomic_load(&a->done_ns)) / 1e6f;
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	return elapsed("cuEventElapsedTime", ms, start, end);
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	return elapsed("cuEventElapsedTime_v2", ms, start, end);
}

/* ---- captures ---- */

/* Into `graph`, or a new one. */
static CUresult begin_capture_in(const char *entry, enum face_null null, CUstream handle,
	CUstreamCaptureMode mode, struct gpc_sim_graph *graph)
{
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(GPC_SIM_COST_RECORD, entry, handle, null, &stream);

	return res == CUDA_SUCCESS ? gpc_sim_capture_begin_in(stream, mode, graph) : res;
}

static CUresult begin_capture(
	const char *entry, enum face_null null, CUstream handle, CUstreamCaptureMode mode)
{
	return begin_capture_in(entry, null, handle, mode, NULL);
}

FACE_PAIR(cuStreamBeginCapture, _ptsz, (CUstream s),
	begin_capture(entry, null, s, CU_STREAM_CAPTURE_MODE_GLOBAL))
FACE_PAIR(cuStreamBeginCapture_v2, _ptsz, (CUstream s, CUstreamCaptureMode mode),
	begin_capture(entry, null, s, mode))
/* Dependencies are of no use: a graph here is a list of nodes. */
FACE_PAIR(cuStreamBeginCaptureToGraph, _ptsz,
	(CUstream s, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *edges,
		size_t n, CUstreamCaptureMode mode),
	((void)nodes, (void)edges, (void)n,
		graph ? begin_capture_in(
				entry, null, s, mode, (struct gpc_sim_graph *)(void *)graph)
		      : CUDA_ERROR_INVALID_VALUE))

static CUresult end_capture(const char *entry, enum face_null null, CUstream handle, CUgraph *graph)
{
	struct gpc_sim_stream *stream;
	struct gpc_sim_graph *made = NULL;
	CUresult res = face_enter_stream(GPC_SIM_COST_RECORD, entry, handle, null, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	res = gpc_sim_capture_end(stream, &made);
	*graph = (CUgraph)(void *)made;
	return res;
}

FACE_PAIR(
	cuStreamEndCapture, _ptsz, (CUstream s, CUgraph *graph), end_capture(entry, null, s, graph))

static CUresult capture_info(const char *entry, enum face_null null, CUstream handle,
	CUstreamCaptureStatus *status, cuuint64_t *id)
{
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(GPC_SIM_COST_QUERY, entry, handle, null, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	*status = gpc_sim_capture_status(stream, id);
	return CUDA_SUCCESS;
}

/* Returns the capture's graph, but no dependencies: a graph here is a list of nodes. */
static CUresult capture_graph(const char *entry, enum face_null null, CUstream handle,
	CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
	size_t *n)
{
	struct gpc_sim_stream *stream;
	CUresult res = capture_info(entry, null, handle, status, id);

	if (graph)
		*graph = NULL;
	if (nodes)
		*nodes = NULL;
	if (n)
		*n = 0;
	if (res != CUDA_SUCCESS || !graph || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return res;
	res = face_enter_stream(GPC_SIM_COST_QUERY, entry, handle, null, &stream);
	if (res == CUDA_SUCCESS)
		*graph = (CUgraph)(void *)gpc_sim_capture_graph(stream);
	return res;
}

FACE_PAIR(cuStreamIsCapturing, _ptsz, (CUstream s, CUstreamCaptureStatus *status),
	capture_info(entry, null, s, status, NULL))
FACE_PAIR(cuStreamGetCaptureInfo, _ptsz,
	(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id),
	capture_info(entry, null, s, status, id))
FACE_PAIR(cuStreamGetCaptureInfo_v2, _ptsz,
	(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
		const CUgraphNode **nodes, size_t *n),
	capture_graph(entry, null, s, status, id, graph, nodes, n))
FACE_PAIR(cuStreamGetCaptureInfo_v3, _ptsz,
	(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
		const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *n),
	((void)(edges ? *edges = NULL : NULL),
		capture_graph(entry, null, s, status, id, graph, nodes, n)))

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = gpc_sim_capture_exchange_mode(*mode);
	return CUDA_SUCCESS;
}
