/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture has a list of its streams and the graph that it builds; an event stores the number of the capture in which
 * it was recorded.  A forbidden call sets `is_invalid`, after which every call on the capture fails until EndCapture.
 * Each gpc_sim_capture_check_* and gpc_sim_capture_refuse* function applies one rule of cuda.h.
 */
#include "sim/gpu/execution/capture.h"

#include <stdlib.h>

#include "base/thread.h"

static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUstreamCaptureMode gpc_sim_capture_exchange_mode(CUstreamCaptureMode mode)
{
	CUstreamCaptureMode before = thread_mode;

	thread_mode = mode;
	return before;
}

static bool is_none(struct gpc_sim *sim)
{
	return atomic_load_explicit(&sim->n_captures, memory_order_relaxed) == 0;
}

static void join_locked(struct gpc_sim_capture *capture, struct gpc_sim_stream *stream)
{
	gpc_list_append(&capture->members, &stream->in_capture);
	atomic_store(&stream->capture, capture);
}

static void leave_locked(struct gpc_sim_stream *stream)
{
	gpc_list_remove(&stream->in_capture);
	atomic_store(&stream->capture, NULL);
}

/* Removes the capture from the machine and every stream from the capture. */
static void close_locked(struct gpc_sim *sim, struct gpc_sim_capture *capture)
{
	gpc_list_remove(&capture->link);
	atomic_fetch_sub(&sim->n_captures, 1);
	while (!gpc_list_is_empty(&capture->members))
		leave_locked(
			gpc_list_entry(capture->members.next, struct gpc_sim_stream, in_capture));
}

static void capture_destroy(struct gpc_sim_capture *capture)
{
	if (!capture)
		return;
	if (capture->is_own)
		gpc_sim_graph_destroy(capture->graph);
	free(capture);
}

static struct gpc_sim_capture *capture_create(
	struct gpc_sim_stream *origin, CUstreamCaptureMode mode, struct gpc_sim_graph *graph)
{
	struct gpc_sim_capture *capture = calloc(1, sizeof *capture);

	if (!capture)
		return NULL;
	capture->is_own = !graph;
	capture->graph = graph ? graph : gpc_sim_graph_create();
	if (!capture->graph) {
		free(capture);
		return NULL;
	}
	gpc_list_init(&capture->members);
	capture->origin = origin;
	capture->mode = mode;
	capture->thread = gpc_thread_id();
	return capture;
}

CUresult gpc_sim_capture_begin(struct gpc_sim_stream *stream, CUstreamCaptureMode mode)
{
	return gpc_sim_capture_begin_in(stream, mode, NULL);
}

CUresult gpc_sim_capture_begin_in(
	struct gpc_sim_stream *stream, CUstreamCaptureMode mode, struct gpc_sim_graph *graph)
{
	struct gpc_sim *sim = stream->context->sim;
	struct gpc_sim_capture *capture;
	bool is_free;

	if ((int)mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (gpc_sim_is_legacy(stream))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	capture = capture_create(stream, mode, graph);
	if (!capture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim->capture_lock);
	is_free = !atomic_load(&stream->capture);
	if (is_free) {
		capture->number = ++sim->n_captures_ever;
		gpc_list_append(&sim->captures, &capture->link);
		atomic_fetch_add(&sim->n_captures, 1);
		join_locked(capture, stream);
	}
	pthread_mutex_unlock(&sim->capture_lock);
	if (!is_free)
		capture_destroy(capture);
	return is_free ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult gpc_sim_capture_end(struct gpc_sim_stream *stream, struct gpc_sim_graph **ret_graph)
{
	struct gpc_sim *sim = stream->context->sim;
	struct gpc_sim_capture *capture;
	CUresult res = CUDA_SUCCESS;

	pthread_mutex_lock(&sim->capture_lock);
	capture = atomic_load(&stream->capture);
	if (!capture)
		res = CUDA_ERROR_ILLEGAL_STATE;
	else if (capture->origin != stream)
		res = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	else if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		 capture->thread != gpc_thread_id())
		res = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	else
		close_locked(sim, capture);
	pthread_mutex_unlock(&sim->capture_lock);
	if (res != CUDA_SUCCESS)
		return res;
	if (capture->is_invalid) {
		res = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else {
		*ret_graph = capture->graph;
		capture->is_own = false;
	}
	capture_destroy(capture);
	return res;
}

void gpc_sim_capture_drop(struct gpc_sim_stream *stream)
{
	struct gpc_sim *sim = stream->context->sim;
	struct gpc_sim_capture *ended = NULL;

	pthread_mutex_lock(&sim->capture_lock);
	struct gpc_sim_capture *capture = atomic_load(&stream->capture);
	if (capture && capture->origin == stream) {
		close_locked(sim, capture);
		ended = capture;
	} else if (capture) {
		capture->is_invalid = true;
		leave_locked(stream);
	}
	pthread_mutex_unlock(&sim->capture_lock);
	capture_destroy(ended);
}

CUstreamCaptureStatus gpc_sim_capture_status(struct gpc_sim_stream *stream, uint64_t *ret_number)
{
	struct gpc_sim *sim = stream->context->sim;
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	if (is_none(sim))
		return status;
	pthread_mutex_lock(&sim->capture_lock);
	const struct gpc_sim_capture *capture = atomic_load(&stream->capture);
	if (capture) {
		status = capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					     : CU_STREAM_CAPTURE_STATUS_ACTIVE;
		if (ret_number)
			*ret_number = capture->number;
	}
	pthread_mutex_unlock(&sim->capture_lock);
	return status;
}

struct gpc_sim_graph *gpc_sim_capture_graph(struct gpc_sim_stream *stream)
{
	struct gpc_sim *sim = stream->context->sim;
	struct gpc_sim_graph *graph = NULL;

	pthread_mutex_lock(&sim->capture_lock);
	const struct gpc_sim_capture *capture = atomic_load(&stream->capture);
	if (capture && !capture->is_invalid)
		graph = capture->graph;
	pthread_mutex_unlock(&sim->capture_lock);
	return graph;
}

CUresult gpc_sim_capture_check_unsafe(struct gpc_sim *sim)
{
	CUresult res = CUDA_SUCCESS;

	if (is_none(sim) || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sim->capture_lock);
	gpc_list_each (link, &sim->captures) {
		struct gpc_sim_capture *capture =
			gpc_list_entry(link, struct gpc_sim_capture, link);
		bool is_mine = capture->thread == gpc_thread_id() &&
			       capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
		bool is_global = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
				 thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
		if (is_mine || is_global) {
			capture->is_invalid = true;
			res = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	pthread_mutex_unlock(&sim->capture_lock);
	return res;
}

static bool has_member(const struct gpc_sim_capture *capture, const struct gpc_sim_context *context,
	bool only_blocking)
{
	gpc_list_each (link, &capture->members) {
		const struct gpc_sim_stream *stream =
			gpc_list_entry(link, struct gpc_sim_stream, in_capture);
		/* A green context has a legacy stream of its own: its blocking streams do not count. */
		if (only_blocking
				? stream->context == context && gpc_sim_is_blocking(stream)
				: stream->context == context || stream->context->primary == context)
			return true;
	}
	return false;
}

/* Invalidates every capture that has_member() accepts; returns `code` if there was one. */
static CUresult refuse_members(struct gpc_sim_context *context, bool only_blocking, CUresult code)
{
	struct gpc_sim *sim = context->sim;
	CUresult res = CUDA_SUCCESS;

	if (is_none(sim))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sim->capture_lock);
	gpc_list_each (link, &sim->captures) {
		struct gpc_sim_capture *capture =
			gpc_list_entry(link, struct gpc_sim_capture, link);
		if (has_member(capture, context, only_blocking)) {
			capture->is_invalid = true;
			res = code;
		}
	}
	pthread_mutex_unlock(&sim->capture_lock);
	return res;
}

CUresult gpc_sim_capture_check_context(struct gpc_sim_context *context)
{
	return refuse_members(context, false, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult gpc_sim_capture_check_legacy(struct gpc_sim_context *context)
{
	return refuse_members(context, true, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUresult gpc_sim_capture_refuse(struct gpc_sim_stream *stream, CUresult code)
{
	struct gpc_sim *sim = stream->context->sim;
	CUresult res = CUDA_SUCCESS;

	if (is_none(sim))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sim->capture_lock);
	struct gpc_sim_capture *capture = atomic_load(&stream->capture);
	if (capture) {
		res = capture->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : code;
		capture->is_invalid = true;
	}
	pthread_mutex_unlock(&sim->capture_lock);
	return res;
}

/* The open capture in which the event was last recorded, or NULL. */
static struct gpc_sim_capture *find_of_event_locked(
	struct gpc_sim *sim, struct gpc_sim_event *event)
{
	uint64_t number = atomic_load(&event->capture_number);

	gpc_list_each (link, &sim->captures) {
		struct gpc_sim_capture *capture =
			gpc_list_entry(link, struct gpc_sim_capture, link);
		if (capture->number == number)
			return capture;
	}
	return NULL;
}

CUresult gpc_sim_capture_refuse_event(struct gpc_sim *sim, struct gpc_sim_event *event)
{
	if (!atomic_load(&event->capture_number))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sim->capture_lock);
	struct gpc_sim_capture *capture = find_of_event_locked(sim, event);
	if (capture)
		capture->is_invalid = true;
	pthread_mutex_unlock(&sim->capture_lock);
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult gpc_sim_capture_add(struct gpc_sim_stream *stream, struct gpc_sim_effect *effect)
{
	struct gpc_sim *sim = stream->context->sim;
	CUresult res = CUDA_SUCCESS;

	pthread_mutex_lock(&sim->capture_lock);
	struct gpc_sim_capture *capture = atomic_load(&stream->capture);
	if (!capture || capture->is_invalid) {
		res = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		gpc_sim_effect_destroy(effect);
	} else {
		gpc_sim_graph_add(capture->graph, effect);
	}
	pthread_mutex_unlock(&sim->capture_lock);
	return res;
}

CUresult gpc_sim_capture_record(struct gpc_sim_stream *stream, struct gpc_sim_event *event)
{
	struct gpc_sim *sim = stream->context->sim;
	CUresult res = CUDA_SUCCESS;

	pthread_mutex_lock(&sim->capture_lock);
	const struct gpc_sim_capture *capture = atomic_load(&stream->capture);
	if (!capture || capture->is_invalid)
		res = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else
		atomic_store(&event->capture_number, capture->number);
	pthread_mutex_unlock(&sim->capture_lock);
	return res;
}

CUresult gpc_sim_capture_wait(struct gpc_sim_stream *stream, struct gpc_sim_event *event)
{
	struct gpc_sim *sim = stream->context->sim;
	CUresult res = CUDA_SUCCESS;

	pthread_mutex_lock(&sim->capture_lock);
	struct gpc_sim_capture *of_event = find_of_event_locked(sim, event);
	struct gpc_sim_capture *of_stream = atomic_load(&stream->capture);
	if (of_stream && of_stream->is_invalid) {
		res = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else if (of_stream && !of_event) {
		of_stream->is_invalid = true;
		res = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	} else if (!of_event) {
		res = CUDA_ERROR_INVALID_VALUE;
	} else if (of_stream && of_stream != of_event) {
		of_stream->is_invalid = true;
		of_event->is_invalid = true;
		res = CUDA_ERROR_STREAM_CAPTURE_MERGE;
	} else if (gpc_sim_is_legacy(stream)) {
		of_event->is_invalid = true;
		res = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	} else if (!of_stream) {
		join_locked(of_event, stream);
	}
	pthread_mutex_unlock(&sim->capture_lock);
	return res;
}
