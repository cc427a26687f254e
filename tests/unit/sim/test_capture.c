/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/sim/capturing.h"

FIXTURE(set_up, tear_down);

/* ---- beginning and ending ---- */

TEST(captured_work_is_counted_and_does_not_run)
{
	uint64_t ptr = take(512);
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	submit(stream, fill_of(1 * MS, ptr, 1, 7));
	busy(stream, 1 * MS);
	pass(10 * MS);
	assert_int_equal(end(stream)->n_nodes, 2);
	assert_int_equal(gpc_sim_context_sync(context), CUDA_SUCCESS);
	assert_int_equal(bytes_at(ptr)[0], 0);
	assert_int_equal(now() - GPC_SIM_CLOCK_START, 10 * MS);
	gpc_sim_graph_destroy(graph);
}

TEST(each_capture_has_a_number_of_its_own)
{
	struct gpc_sim_stream *a = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *b = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	uint64_t of_a = 0;
	uint64_t of_b = 0;

	gpc_sim_capture_status(a, &of_a);
	gpc_sim_capture_status(b, &of_b);
	assert_true(of_a && of_b && of_a != of_b);
	end_and_drop(a);
	assert_active(b);
	end_and_drop(b);
}

TEST(the_graph_of_a_capture_is_the_one_that_its_end_gives)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_graph *growing = gpc_sim_capture_graph(stream);

	assert_non_null(growing);
	assert_ptr_equal(end(stream), growing);
	assert_null(gpc_sim_capture_graph(stream));
	gpc_sim_graph_destroy(graph);
}

TEST(a_capture_that_cannot_begin_is_refused)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_NON_BLOCKING);

	assert_int_equal(
		gpc_sim_capture_begin(stream, (CUstreamCaptureMode)3), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		gpc_sim_capture_begin(stream, (CUstreamCaptureMode)-1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_capture_begin(&context->legacy, RELAXED),
		CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_none(stream);
	assert_int_equal(gpc_sim_capture_begin(stream, GLOBAL), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_capture_begin(stream, GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
	assert_active(stream);
	end_and_drop(stream);
}

TEST(a_stream_that_is_not_captured_has_no_capture_to_end)
{
	graph = NULL;
	assert_int_equal(gpc_sim_capture_end(stream_create(0), &graph), CUDA_ERROR_ILLEGAL_STATE);
	assert_null(graph);
}

static void *end_elsewhere(void *arg)
{
	struct attempt *attempt = arg;

	attempt->res = gpc_sim_capture_end(attempt->stream, &graph);
	return NULL;
}

static void *destroy_elsewhere(void *arg)
{
	struct attempt *attempt = arg;

	gpc_sim_stream_destroy(attempt->stream);
	attempt->res = CUDA_SUCCESS;
	return NULL;
}

TEST(only_a_relaxed_capture_may_end_in_another_thread)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	assert_int_equal(elsewhere(end_elsewhere, stream), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	assert_active(stream);
	end_and_drop(stream);
	assert_int_equal(gpc_sim_capture_begin(stream, THREAD_LOCAL), CUDA_SUCCESS);
	assert_int_equal(elsewhere(end_elsewhere, stream), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	end_and_drop(stream);
	assert_int_equal(gpc_sim_capture_begin(stream, RELAXED), CUDA_SUCCESS);
	assert_int_equal(elsewhere(end_elsewhere, stream), CUDA_SUCCESS);
	assert_none(stream);
	gpc_sim_graph_destroy(graph);
}

TEST(a_captured_stream_that_any_thread_destroys_takes_its_capture_along)
{
	struct gpc_sim_stream *origin = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *joined = stream_create(CU_STREAM_NON_BLOCKING);

	busy(origin, 1 * MS);
	join(origin, joined);
	assert_active(joined);
	assert_int_equal(elsewhere(destroy_elsewhere, origin), CUDA_SUCCESS);
	assert_none(joined);
	assert_int_equal(sim->n_captures, 0);
	take(512);
	assert_int_equal(gpc_sim_context_sync(context), CUDA_SUCCESS);
}

TEST(a_context_can_end_with_a_capture_under_way)
{
	struct gpc_sim_context *other = context_on(0);
	struct gpc_sim_stream *stream = stream_in(other, CU_STREAM_NON_BLOCKING);

	assert_int_equal(gpc_sim_capture_begin(stream, GLOBAL), CUDA_SUCCESS);
	busy(stream, 1 * MS);
	gpc_sim_context_destroy(other);
	assert_int_equal(sim->n_captures, 0);
	take(512);
}

/* ---- joining ---- */

TEST(a_stream_joins_by_waiting_and_its_work_becomes_part_of_the_graph)
{
	struct gpc_sim_stream *origin = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *joined = stream_create(CU_STREAM_NON_BLOCKING);
	uint64_t of_origin = 0;
	uint64_t of_joined = 1;

	join(origin, joined);
	gpc_sim_capture_status(origin, &of_origin);
	gpc_sim_capture_status(joined, &of_joined);
	assert_int_equal(of_origin, of_joined);
	busy(joined, 1 * MS);
	join(joined, origin);
	assert_int_equal(gpc_sim_capture_end(joined, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	assert_int_equal(end(origin)->n_nodes, 1);
	assert_none(joined);
	gpc_sim_graph_destroy(graph);
}

TEST(a_stream_of_another_context_that_joined_is_released_at_the_end)
{
	struct gpc_sim_context *other = context_on(1);
	struct gpc_sim_stream *joined = stream_in(other, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *origin = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	join(origin, joined);
	assert_active(joined);
	end_and_drop(origin);
	assert_none(joined);
	busy(joined, 1 * MS);
	assert_int_equal(gpc_sim_context_sync(other), CUDA_SUCCESS);
	gpc_sim_context_destroy(other);
}

TEST(a_joined_stream_that_is_destroyed_makes_the_capture_invalid)
{
	struct gpc_sim_stream *origin = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *joined = stream_create(CU_STREAM_NON_BLOCKING);

	join(origin, joined);
	gpc_sim_stream_destroy(joined);
	assert_ends_invalid(origin);
}

TEST(the_legacy_stream_cannot_join)
{
	struct gpc_sim_stream *origin = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();

	assert_int_equal(gpc_sim_stream_record(origin, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_wait(&context->legacy, event),
		CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_ends_invalid(origin);
	busy(&context->legacy, 1 * MS);
	assert_int_equal(gpc_sim_context_sync(context), CUDA_SUCCESS);
}

TEST(two_captures_cannot_merge)
{
	struct gpc_sim_stream *a = capturing(RELAXED, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *b = capturing(RELAXED, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();

	assert_int_equal(gpc_sim_stream_record(a, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_wait(b, event), CUDA_ERROR_STREAM_CAPTURE_MERGE);
	assert_ends_invalid(a);
	assert_ends_invalid(b);
}

TEST(a_capture_cannot_wait_for_what_lies_outside)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *outside = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();

	assert_int_equal(gpc_sim_stream_record(outside, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_wait(stream, event), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	assert_ends_invalid(stream);
}

/* ---- captured events ---- */

TEST(a_captured_event_cannot_be_asked_or_waited_for_by_the_host)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();

	assert_int_equal(gpc_sim_stream_record(stream, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_event_query(event), CUDA_ERROR_CAPTURED_EVENT);
	assert_int_equal(gpc_sim_event_sync(event), CUDA_ERROR_CAPTURED_EVENT);
	end_and_drop(stream);
	assert_int_equal(gpc_sim_event_query(event), CUDA_ERROR_CAPTURED_EVENT);
}

TEST(an_event_whose_capture_is_over_cannot_be_waited_for)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();

	assert_int_equal(gpc_sim_stream_record(stream, event), CUDA_SUCCESS);
	end_and_drop(stream);
	assert_int_equal(gpc_sim_stream_wait(stream, event), CUDA_ERROR_INVALID_VALUE);
	assert_none(stream);
}

TEST(a_captured_event_that_is_recorded_again_outside_is_an_ordinary_one)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();

	assert_int_equal(gpc_sim_stream_record(stream, event), CUDA_SUCCESS);
	end_and_drop(stream);
	busy(stream, 1 * MS);
	assert_int_equal(gpc_sim_stream_record(stream, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_event_query(event), CUDA_ERROR_NOT_READY);
	assert_int_equal(gpc_sim_event_sync(event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_wait(stream, event), CUDA_SUCCESS);
}

/* ---- what makes a capture invalid ---- */

TEST(asking_or_waiting_for_a_captured_stream_makes_its_capture_invalid)
{
	struct gpc_sim_stream *a = capturing(RELAXED, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *b = capturing(RELAXED, CU_STREAM_NON_BLOCKING);

	assert_int_equal(gpc_sim_stream_query(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(gpc_sim_stream_query(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_ends_invalid(a);
	assert_int_equal(gpc_sim_stream_sync(b), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_ends_invalid(b);
}

/* As the driver on an H100 answers: tests/gpu/results. */
TEST(asking_or_waiting_for_anything_ends_a_capture_that_is_not_relaxed)
{
	struct gpc_sim_stream *outside = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();

	assert_int_equal(gpc_sim_stream_record(outside, event), CUDA_SUCCESS);
	for (unsigned way = 0; way < 4; way++) {
		struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
		CUresult res = way == 0   ? gpc_sim_stream_query(outside)
			       : way == 1 ? gpc_sim_stream_sync(outside)
			       : way == 2 ? gpc_sim_event_query(event)
					  : gpc_sim_event_sync(event);

		assert_int_equal(res, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		assert_ends_invalid(stream);
	}
}

TEST(an_invalid_capture_takes_nothing_more)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();

	assert_int_equal(
		gpc_sim_capture_refuse(stream, CUDA_ERROR_NOT_SUPPORTED), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(gpc_sim_stream_submit(stream, effect_of(GPC_SIM_EFFECT_NONE, 1)),
		CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_int_equal(
		gpc_sim_stream_record(stream, event), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_int_equal(gpc_sim_stream_wait(stream, event), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_ends_invalid(stream);
	assert_int_equal(gpc_sim_capture_refuse(stream, CUDA_ERROR_NOT_SUPPORTED), CUDA_SUCCESS);
}

/* Every use of the legacy stream, one after another. */
static CUresult use_legacy(unsigned way)
{
	struct gpc_sim_event *event = event_create();

	switch (way) {
	case 0:
		return gpc_sim_stream_submit(&context->legacy, effect_of(GPC_SIM_EFFECT_NONE, 1));
	case 1:
		return gpc_sim_stream_record(&context->legacy, event);
	case 2:
		return gpc_sim_stream_wait(&context->legacy, event);
	case 3:
		return gpc_sim_stream_query(&context->legacy);
	default:
		return gpc_sim_stream_sync(&context->legacy);
	}
}

#define N_LEGACY_WAYS 5

TEST(any_use_of_the_legacy_stream_breaks_the_capture_of_a_blocking_one)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_DEFAULT);

	for (unsigned i = 0; i < N_LEGACY_WAYS; i++) {
		assert_int_equal(gpc_sim_capture_begin(stream, RELAXED), CUDA_SUCCESS);
		assert_int_equal(use_legacy(i), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
		assert_ends_invalid(stream);
	}
}

TEST(the_legacy_stream_may_be_used_while_only_non_blocking_ones_are_captured)
{
	struct gpc_sim_stream *stream = capturing(RELAXED, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_context *other = context_on(0);
	struct gpc_sim_stream *blocking = stream_in(other, CU_STREAM_DEFAULT);

	assert_int_equal(gpc_sim_capture_begin(blocking, RELAXED), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_query(&context->legacy), CUDA_SUCCESS);
	busy(&context->legacy, 1);
	assert_int_equal(use_legacy(1), CUDA_SUCCESS);
	assert_int_equal(use_legacy(2), CUDA_SUCCESS);
	assert_int_equal(use_legacy(4), CUDA_SUCCESS);
	end_and_drop(stream);
	end_and_drop(blocking);
	gpc_sim_context_destroy(other);
}

TEST(the_legacy_stream_breaks_a_capture_that_a_blocking_stream_joined)
{
	struct gpc_sim_stream *origin = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	join(origin, stream_create(CU_STREAM_DEFAULT));
	assert_int_equal(use_legacy(0), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	assert_ends_invalid(origin);
}

TEST(calls_that_concern_all_streams_break_every_capture_of_the_context)
{
	struct gpc_sim_context *other = context_on(1);
	struct gpc_sim_stream *joined = stream_in(other, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_NON_BLOCKING);

	assert_int_equal(gpc_sim_capture_begin(stream, RELAXED), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_context_sync(other), CUDA_SUCCESS);
	assert_active(stream);
	assert_int_equal(gpc_sim_context_sync(context), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_ends_invalid(stream);
	assert_int_equal(gpc_sim_capture_begin(stream, RELAXED), CUDA_SUCCESS);
	assert_int_equal(
		gpc_sim_context_record(context, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_ends_invalid(stream);
	assert_int_equal(gpc_sim_capture_begin(stream, RELAXED), CUDA_SUCCESS);
	assert_int_equal(
		gpc_sim_context_wait(context, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_ends_invalid(stream);
	/* A context of which a stream joined. */
	assert_int_equal(gpc_sim_capture_begin(stream, RELAXED), CUDA_SUCCESS);
	join(stream, joined);
	assert_int_equal(gpc_sim_context_sync(other), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_ends_invalid(stream);
	gpc_sim_context_destroy(other);
}

TEST(a_context_that_waits_for_a_captured_event_breaks_that_capture)
{
	struct gpc_sim_context *other = context_on(1);
	struct gpc_sim_stream *stream = capturing(RELAXED, CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();

	assert_int_equal(gpc_sim_stream_record(stream, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_context_wait(other, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_ends_invalid(stream);
	gpc_sim_context_destroy(other);
}

/* ---- potentially unsafe calls ---- */

/* A capture of `capture` mode, and an allocation by a thread of `thread` mode: is it refused? */
static void assert_unsafe(CUstreamCaptureMode capture, CUstreamCaptureMode thread, bool is_refused)
{
	struct gpc_sim_stream *stream = capturing(capture, CU_STREAM_NON_BLOCKING);
	CUstreamCaptureMode before = gpc_sim_capture_exchange_mode(thread);
	uint64_t ptr = 42;
	CUresult res = gpc_sim_mem_alloc(context, 512, &ptr);

	assert_int_equal(gpc_sim_capture_exchange_mode(before), thread);
	if (is_refused) {
		assert_int_equal(res, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		assert_int_equal(ptr, 42);
		assert_ends_invalid(stream);
	} else {
		assert_int_equal(res, CUDA_SUCCESS);
		assert_active(stream);
		end_and_drop(stream);
	}
}

TEST(the_capturing_threads_allocation_is_refused_unless_one_side_is_relaxed)
{
	assert_unsafe(GLOBAL, GLOBAL, true);
	assert_unsafe(GLOBAL, THREAD_LOCAL, true);
	assert_unsafe(GLOBAL, RELAXED, false);
	assert_unsafe(THREAD_LOCAL, GLOBAL, true);
	assert_unsafe(THREAD_LOCAL, THREAD_LOCAL, true);
	assert_unsafe(THREAD_LOCAL, RELAXED, false);
	assert_unsafe(RELAXED, GLOBAL, false);
	assert_unsafe(RELAXED, THREAD_LOCAL, false);
	assert_unsafe(RELAXED, RELAXED, false);
}

static void *alloc_elsewhere(void *arg)
{
	struct attempt *attempt = arg;
	uint64_t ptr;

	attempt->res = gpc_sim_mem_alloc(context, 512, &ptr);
	return NULL;
}

TEST(another_threads_allocation_is_refused_by_a_global_capture_alone)
{
	struct gpc_sim_stream *stream = capturing(THREAD_LOCAL, CU_STREAM_NON_BLOCKING);

	assert_int_equal(elsewhere(alloc_elsewhere, NULL), CUDA_SUCCESS);
	assert_active(stream);
	end_and_drop(stream);
	stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);
	assert_int_equal(elsewhere(alloc_elsewhere, NULL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_ends_invalid(stream);
}

static void *alloc_elsewhere_in_local_mode(void *arg)
{
	(void)gpc_sim_capture_exchange_mode(THREAD_LOCAL);
	return alloc_elsewhere(arg);
}

TEST(another_thread_that_cares_for_its_own_captures_only_may_allocate)
{
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	assert_int_equal(elsewhere(alloc_elsewhere_in_local_mode, NULL), CUDA_SUCCESS);
	assert_active(stream);
	end_and_drop(stream);
}

TEST(a_free_is_refused_as_an_allocation_is_and_frees_nothing)
{
	uint64_t ptr = take(512);
	struct gpc_sim_stream *stream = capturing(GLOBAL, CU_STREAM_NON_BLOCKING);

	assert_int_equal(gpc_sim_mem_free(sim, ptr), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_ends_invalid(stream);
	assert_int_equal(gpc_sim_mem_free(sim, ptr), CUDA_SUCCESS);
}

/* ---- threads ---- */

#define N_THREADS 4
#define N_ROUNDS  300

static struct gpc_sim_stream *contended;
static _Atomic unsigned n_graphs;

static void *capture_in_turns(void *arg)
{
	struct gpc_sim_graph *made = NULL;

	for (unsigned i = 0; i < N_ROUNDS; i++) {
		if (gpc_sim_capture_begin(contended, THREAD_LOCAL) != CUDA_SUCCESS)
			continue;
		if (gpc_sim_capture_end(contended, &made) == CUDA_SUCCESS) {
			atomic_fetch_add(&n_graphs, 1);
			gpc_sim_graph_destroy(made);
		}
	}
	return NULL;
}

TEST(of_threads_that_capture_one_stream_one_at_a_time_succeeds)
{
	pthread_t threads[N_THREADS];

	contended = stream_create(CU_STREAM_NON_BLOCKING);
	atomic_store(&n_graphs, 0);
	for (unsigned i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, capture_in_turns, NULL), 0);
	for (unsigned i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_true(n_graphs > 0);
	assert_int_equal(n_graphs, sim->n_captures_ever);
	assert_int_equal(sim->n_captures, 0);
	assert_none(contended);
}
