/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of captures have in common. */
#ifndef GPC_TESTS_UNIT_SIM_CAPTURING_H
#define GPC_TESTS_UNIT_SIM_CAPTURING_H

#include <pthread.h>

#include "tests/unit/sim/machine.h"

#define GLOBAL       CU_STREAM_CAPTURE_MODE_GLOBAL
#define THREAD_LOCAL CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
#define RELAXED      CU_STREAM_CAPTURE_MODE_RELAXED

static struct gpc_sim_graph *graph; /* of the capture that ended last */

static inline struct gpc_sim_stream *capturing(CUstreamCaptureMode mode, unsigned flags)
{
	struct gpc_sim_stream *stream = stream_create(flags);

	assert_int_equal(gpc_sim_capture_begin(stream, mode), CUDA_SUCCESS);
	return stream;
}

static inline void assert_active(struct gpc_sim_stream *stream)
{
	assert_int_equal(gpc_sim_capture_status(stream, NULL), CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static inline void assert_none(struct gpc_sim_stream *stream)
{
	uint64_t number = 42;

	assert_int_equal(gpc_sim_capture_status(stream, &number), CU_STREAM_CAPTURE_STATUS_NONE);
	assert_int_equal(number, 42);
}

/* The capture of the stream is invalid, ends without a graph, and leaves the stream usable. */
static inline void assert_ends_invalid(struct gpc_sim_stream *stream)
{
	graph = NULL;
	assert_int_equal(
		gpc_sim_capture_status(stream, NULL), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	assert_int_equal(
		gpc_sim_capture_end(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_null(graph);
	assert_none(stream);
	busy(stream, 1 * MS);
	assert_int_equal(gpc_sim_stream_sync(stream), CUDA_SUCCESS);
}

static inline struct gpc_sim_graph *end(struct gpc_sim_stream *stream)
{
	graph = NULL;
	assert_int_equal(gpc_sim_capture_end(stream, &graph), CUDA_SUCCESS);
	assert_non_null(graph);
	assert_none(stream);
	return graph;
}

static inline void end_and_drop(struct gpc_sim_stream *stream)
{
	gpc_sim_graph_destroy(end(stream));
}

/* The stream joins the capture of the other one. */
static inline void join(struct gpc_sim_stream *origin, struct gpc_sim_stream *stream)
{
	struct gpc_sim_event *event = event_create();

	assert_int_equal(gpc_sim_stream_record(origin, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_wait(stream, event), CUDA_SUCCESS);
}

struct attempt {
	struct gpc_sim_stream *stream;
	CUresult res;
};

/* Does it in another thread. */
static inline CUresult elsewhere(void *(*what)(void *arg), struct gpc_sim_stream *stream)
{
	struct attempt attempt = { .stream = stream, .res = CUDA_ERROR_UNKNOWN };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, what, &attempt), 0);
	pthread_join(thread, NULL);
	return attempt.res;
}

#endif
