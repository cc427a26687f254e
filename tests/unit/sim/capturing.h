/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of captures. */
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
	struct gpc_sim_stream *stream = (stream_create)(flags);

	at_int_equal(gpc_sim_capture_begin(stream, mode), CUDA_SUCCESS);
	return stream;
}

static inline void assert_active(struct gpc_sim_stream *stream)
{
	at_int_equal(gpc_sim_capture_status(stream, NULL), CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static inline void assert_none(struct gpc_sim_stream *stream)
{
	uint64_t number = 42;

	at_int_equal(gpc_sim_capture_status(stream, &number), CU_STREAM_CAPTURE_STATUS_NONE);
	at_int_equal(number, 42);
}

/* The capture of the stream is invalid, ends without a graph, and leaves the stream usable. */
static inline void assert_ends_invalid(struct gpc_sim_stream *stream)
{
	graph = NULL;
	at_int_equal(gpc_sim_capture_status(stream, NULL), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	at_int_equal(gpc_sim_capture_end(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	at_null(graph);
	assert_none(stream);
	(busy)(stream, 1 * MS);
	at_int_equal(gpc_sim_stream_sync(stream), CUDA_SUCCESS);
}

static inline struct gpc_sim_graph *end(struct gpc_sim_stream *stream)
{
	graph = NULL;
	at_int_equal(gpc_sim_capture_end(stream, &graph), CUDA_SUCCESS);
	at_non_null(graph);
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
	struct gpc_sim_event *event = (event_create)();

	at_int_equal(gpc_sim_stream_record(origin, event), CUDA_SUCCESS);
	at_int_equal(gpc_sim_stream_wait(stream, event), CUDA_SUCCESS);
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

	at_int_equal(pthread_create(&thread, NULL, what, &attempt), 0);
	pthread_join(thread, NULL);
	return attempt.res;
}

/* Checks in these helpers report the line of the test: unit.h. */
#define capturing(...)           AT(capturing(__VA_ARGS__))
#define assert_active(...)       AT(assert_active(__VA_ARGS__))
#define assert_none(...)         AT(assert_none(__VA_ARGS__))
#define assert_ends_invalid(...) AT(assert_ends_invalid(__VA_ARGS__))
#define end(...)                 AT(end(__VA_ARGS__))
#define end_and_drop(...)        AT(end_and_drop(__VA_ARGS__))
#define join(...)                AT(join(__VA_ARGS__))
#define elsewhere(...)           AT(elsewhere(__VA_ARGS__))

#endif
