/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/sim/machine.h"

#include <pthread.h>

#include "base/thread.h"

FIXTURE(set_up, tear_down);

/* ---- the order of streams ---- */

TEST(work_of_one_stream_runs_one_after_another)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_NON_BLOCKING);
	uint64_t ptr = take(512);

	submit(stream, fill_of(2 * MS, ptr, 1, 1));
	submit(stream, fill_of(3 * MS, ptr, 1, 2));
	pass(2 * MS);
	assert_int_equal(bytes_at(ptr)[0], 1);
	pass(3 * MS - 1);
	assert_int_equal(bytes_at(ptr)[0], 1);
	pass(1);
	assert_int_equal(bytes_at(ptr)[0], 2);
}

TEST(streams_that_do_not_wait_run_at_the_same_time)
{
	busy(stream_create(CU_STREAM_NON_BLOCKING), 2 * MS);
	busy(stream_create(CU_STREAM_NON_BLOCKING), 3 * MS);
	busy(stream_create(CU_STREAM_DEFAULT), 4 * MS);
	busy(stream_create(CU_STREAM_DEFAULT), 5 * MS);
	assert_int_equal(time_to_sync(), 5 * MS);
}

TEST(an_idle_stream_starts_work_now_and_not_when_it_last_ended)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_NON_BLOCKING);

	busy(stream, 1 * MS);
	pass(10 * MS);
	busy(stream, 1 * MS);
	assert_int_equal(time_to_sync(), 1 * MS);
}

TEST(the_legacy_stream_waits_for_every_blocking_stream)
{
	busy(stream_create(CU_STREAM_DEFAULT), 2 * MS);
	busy(stream_create(CU_STREAM_DEFAULT), 5 * MS);
	busy(&context->legacy, 1 * MS);
	assert_int_equal(time_to_sync(), 6 * MS);
}

TEST(a_blocking_stream_waits_for_the_legacy_stream)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_DEFAULT);

	busy(&context->legacy, 5 * MS);
	busy(stream, 1 * MS);
	assert_int_equal(time_to_sync(), 6 * MS);
}

TEST(a_non_blocking_stream_and_the_legacy_stream_do_not_wait)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_NON_BLOCKING);

	busy(stream, 5 * MS);
	busy(&context->legacy, 4 * MS);
	busy(stream, 1 * MS);
	assert_int_equal(gpc_sim_stream_sync(&context->legacy), CUDA_SUCCESS);
	assert_int_equal(now() - GPC_SIM_CLOCK_START, 4 * MS);
	assert_int_equal(time_to_sync(), 2 * MS);
}

TEST(the_legacy_stream_waits_for_a_destroyed_blocking_stream)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_DEFAULT);

	busy(stream, 5 * MS);
	gpc_sim_stream_destroy(stream);
	busy(&context->legacy, 1 * MS);
	assert_int_equal(time_to_sync(), 6 * MS);
}

TEST(work_of_a_destroyed_stream_still_happens)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_NON_BLOCKING);
	uint64_t ptr = take(512);

	submit(stream, fill_of(2 * MS, ptr, 1, 1));
	gpc_sim_stream_destroy(stream);
	assert_int_equal(bytes_at(ptr)[0], 0);
	assert_int_equal(time_to_sync(), 2 * MS);
	assert_int_equal(bytes_at(ptr)[0], 1);
}

TEST(a_stream_keeps_what_it_was_created_with)
{
	struct gpc_sim_stream *a = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *b = NULL;

	assert_int_equal(gpc_sim_stream_create(context, CU_STREAM_DEFAULT, -3, &b), CUDA_SUCCESS);
	assert_int_equal(a->flags, CU_STREAM_NON_BLOCKING);
	assert_int_equal(a->magic, GPC_SIM_STREAM_MAGIC);
	assert_int_equal(b->flags, CU_STREAM_DEFAULT);
	assert_int_equal(b->priority, -3);
	assert_true(a->number != b->number);
}

TEST(a_stream_is_asked_and_waited_for_by_its_own_work_alone)
{
	struct gpc_sim_stream *a = stream_create(CU_STREAM_DEFAULT);
	struct gpc_sim_stream *b = stream_create(CU_STREAM_DEFAULT);

	assert_int_equal(gpc_sim_stream_query(a), CUDA_SUCCESS);
	busy(a, 2 * MS);
	busy(b, 9 * MS);
	assert_int_equal(gpc_sim_stream_query(a), CUDA_ERROR_NOT_READY);
	assert_int_equal(gpc_sim_stream_sync(a), CUDA_SUCCESS);
	assert_int_equal(now() - GPC_SIM_CLOCK_START, 2 * MS);
	assert_int_equal(gpc_sim_stream_query(a), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_query(b), CUDA_ERROR_NOT_READY);
	/* The legacy stream stands for the blocking ones. */
	assert_int_equal(gpc_sim_stream_query(&context->legacy), CUDA_ERROR_NOT_READY);
	assert_int_equal(gpc_sim_stream_sync(&context->legacy), CUDA_SUCCESS);
	assert_int_equal(now() - GPC_SIM_CLOCK_START, 9 * MS);
	assert_int_equal(gpc_sim_stream_query(&context->legacy), CUDA_SUCCESS);
}

/* ---- the threads' default streams ---- */

static void *stream_of_another_thread(void *arg)
{
	return gpc_sim_stream_of_thread(context);
}

TEST(every_thread_has_one_blocking_default_stream_in_each_context)
{
	struct gpc_sim_context *other = context_on(0);
	struct gpc_sim_stream *mine = gpc_sim_stream_of_thread(context);
	void *theirs = NULL;
	pthread_t thread;

	assert_non_null(mine);
	stream_create(CU_STREAM_NON_BLOCKING);
	assert_ptr_equal(gpc_sim_stream_of_thread(context), mine);
	assert_int_equal(mine->thread, gpc_thread_id());
	assert_false(mine->flags & CU_STREAM_NON_BLOCKING);
	assert_ptr_not_equal(gpc_sim_stream_of_thread(other), mine);
	assert_int_equal(pthread_create(&thread, NULL, stream_of_another_thread, NULL), 0);
	pthread_join(thread, &theirs);
	assert_non_null(theirs);
	assert_ptr_not_equal(theirs, mine);
	gpc_sim_context_destroy(other);
}

/* ---- events ---- */

TEST(an_event_that_was_never_recorded_has_passed)
{
	struct gpc_sim_event *event = event_create();

	busy(&context->legacy, 5 * MS);
	assert_int_equal(gpc_sim_event_query(event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_event_sync(event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_wait(&context->legacy, event), CUDA_SUCCESS);
	assert_int_equal(time_to_sync(), 5 * MS);
}

TEST(an_event_passes_with_the_work_before_it_and_not_after)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();

	busy(stream, 2 * MS);
	assert_int_equal(gpc_sim_stream_record(stream, event), CUDA_SUCCESS);
	busy(stream, 50 * MS);
	busy(stream_create(CU_STREAM_NON_BLOCKING), 50 * MS);
	assert_done_after(event, 2 * MS);
}

TEST(waiting_for_an_event_shows_what_the_work_before_it_did)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();
	uint64_t ptr = take(512);

	submit(stream, fill_of(2 * MS, ptr, 1, 1));
	assert_int_equal(gpc_sim_stream_record(stream, event), CUDA_SUCCESS);
	submit(stream, fill_of(2 * MS, ptr, 1, 2));
	assert_int_equal(gpc_sim_event_sync(event), CUDA_SUCCESS);
	assert_int_equal(now() - GPC_SIM_CLOCK_START, 2 * MS);
	assert_int_equal(bytes_at(ptr)[0], 1);
}

TEST(an_event_means_what_it_was_last_recorded_for)
{
	struct gpc_sim_stream *a = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *b = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();

	busy(a, 9 * MS);
	busy(b, 2 * MS);
	assert_int_equal(gpc_sim_stream_record(a, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_record(b, event), CUDA_SUCCESS);
	assert_done_after(event, 2 * MS);
}

TEST(an_event_in_the_legacy_stream_covers_blocking_streams_only)
{
	struct gpc_sim_event *event = event_create();

	busy(stream_create(CU_STREAM_NON_BLOCKING), 9 * MS);
	busy(stream_create(CU_STREAM_DEFAULT), 3 * MS);
	assert_int_equal(gpc_sim_stream_record(&context->legacy, event), CUDA_SUCCESS);
	assert_done_after(event, 3 * MS);
}

TEST(an_event_of_another_context_cannot_be_recorded)
{
	struct gpc_sim_context *other = context_on(0);
	struct gpc_sim_event *event = event_in(other);

	assert_int_equal(gpc_sim_stream_record(&context->legacy, event), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(gpc_sim_context_record(context, event), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(gpc_sim_event_query(event), CUDA_SUCCESS);
	gpc_sim_context_destroy(other);
}

TEST(work_that_waits_for_a_destroyed_event_still_waits)
{
	struct gpc_sim_stream *a = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *b = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = NULL;

	assert_int_equal(gpc_sim_event_create(context, 0, &event), CUDA_SUCCESS);
	busy(a, 5 * MS);
	assert_int_equal(gpc_sim_stream_record(a, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_wait(b, event), CUDA_SUCCESS);
	gpc_sim_event_destroy(event);
	busy(b, 1 * MS);
	assert_int_equal(time_to_sync(), 6 * MS);
}

/* ---- waiting on the device ---- */

TEST(a_stream_that_waits_starts_its_later_work_after_the_event)
{
	struct gpc_sim_stream *a = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *b = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();
	uint64_t ptr = take(512);

	submit(a, fill_of(5 * MS, ptr, 1, 1));
	assert_int_equal(gpc_sim_stream_record(a, event), CUDA_SUCCESS);
	submit(b, fill_of(1 * MS, ptr + 1, 1, 1));
	assert_int_equal(gpc_sim_stream_wait(b, event), CUDA_SUCCESS);
	submit(b, fill_of(1 * MS, ptr, 1, 2));
	assert_int_equal(now(), GPC_SIM_CLOCK_START); /* the host waited for nothing */
	pass(1 * MS);
	assert_int_equal(bytes_at(ptr + 1)[0], 1);
	assert_int_equal(time_to_sync(), 5 * MS);
	assert_int_equal(bytes_at(ptr)[0], 2);
}

TEST(a_wait_is_for_what_the_event_meant_when_it_was_called)
{
	struct gpc_sim_stream *a = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_stream *b = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();

	busy(a, 2 * MS);
	assert_int_equal(gpc_sim_stream_record(a, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_wait(b, event), CUDA_SUCCESS);
	busy(a, 50 * MS);
	assert_int_equal(gpc_sim_stream_record(a, event), CUDA_SUCCESS);
	busy(b, 1 * MS);
	assert_int_equal(gpc_sim_stream_sync(b), CUDA_SUCCESS);
	assert_int_equal(now() - GPC_SIM_CLOCK_START, 3 * MS);
}

TEST(a_stream_can_wait_for_an_event_of_another_device)
{
	struct gpc_sim_context *other = context_on(1);
	struct gpc_sim_event *event = event_in(other);

	busy(&other->legacy, 5 * MS);
	assert_int_equal(gpc_sim_stream_record(&other->legacy, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_wait(&context->legacy, event), CUDA_SUCCESS);
	busy(&context->legacy, 1 * MS);
	assert_int_equal(time_to_sync(), 6 * MS);
	gpc_sim_context_destroy(other);
}

TEST(an_event_of_the_context_covers_all_its_streams_and_no_other_context)
{
	struct gpc_sim_context *other = context_on(0);
	struct gpc_sim_stream *gone = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();

	busy(&other->legacy, 50 * MS);
	busy(&context->legacy, 2 * MS);
	busy(stream_create(CU_STREAM_NON_BLOCKING), 3 * MS);
	busy(gone, 4 * MS);
	gpc_sim_stream_destroy(gone);
	assert_int_equal(gpc_sim_context_record(context, event), CUDA_SUCCESS);
	busy(&context->legacy, 50 * MS);
	assert_done_after(event, 4 * MS);
	gpc_sim_context_destroy(other);
}

TEST(a_context_that_waits_holds_back_later_work_of_all_its_streams)
{
	struct gpc_sim_context *other = context_on(1);
	struct gpc_sim_stream *a = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_in(other);
	struct gpc_sim_event *of_before = event_create();

	busy(&other->legacy, 5 * MS);
	assert_int_equal(gpc_sim_stream_record(&other->legacy, event), CUDA_SUCCESS);
	busy(a, 1 * MS);
	assert_int_equal(gpc_sim_stream_record(a, of_before), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_context_wait(context, event), CUDA_SUCCESS);
	busy(a, 1 * MS);
	busy(&context->legacy, 2 * MS);
	busy(&other->legacy, 1 * MS);
	assert_done_after(of_before, 1 * MS);
	assert_int_equal(time_to_sync(), 6 * MS);
	gpc_sim_context_destroy(other);
}

/* ---- contexts ---- */

TEST(a_context_takes_its_memory_and_gives_everything_back)
{
	struct gpc_sim_device *device = context->device;
	uint64_t before = gpc_sim_device_free_bytes(device);
	struct gpc_sim_context *other = context_on(0);
	uint64_t ptr;

	assert_int_equal(gpc_sim_device_free_bytes(device), before - CONTEXT_COST);
	assert_int_equal(gpc_sim_mem_alloc(other, 8 * GPC_MIB, &ptr), CUDA_SUCCESS);
	stream_in(other, CU_STREAM_DEFAULT);
	busy(&other->legacy, 5 * MS);
	gpc_sim_context_destroy(other);
	assert_int_equal(gpc_sim_device_free_bytes(device), before);
	assert_int_equal(gpc_sim_device_n_allocations(device), 0);
	assert_int_equal(now() - GPC_SIM_CLOCK_START, 5 * MS);
}

TEST(a_context_without_room_for_itself_is_refused)
{
	struct gpc_sim_context *none = NULL;
	uint64_t before;

	take(gpc_sim_device_free_bytes(context->device));
	before = gpc_sim_device_used_bytes(context->device);
	assert_int_equal(gpc_sim_context_create(sim, 0, 0, &none), CUDA_ERROR_OUT_OF_MEMORY);
	assert_null(none);
	assert_int_equal(gpc_sim_device_used_bytes(context->device), before);
}

TEST(a_broken_context_answers_every_call_with_its_first_code)
{
	struct gpc_sim_stream *stream = stream_create(CU_STREAM_NON_BLOCKING);
	struct gpc_sim_event *event = event_create();
	uint64_t ptr = take(512);

	gpc_sim_context_break(context, CUDA_ERROR_ASSERT);
	gpc_sim_context_break(context, CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(gpc_sim_context_state(context), CUDA_ERROR_ASSERT);
	assert_int_equal(gpc_sim_context_sync(context), CUDA_ERROR_ASSERT);
	assert_int_equal(gpc_sim_context_record(context, event), CUDA_ERROR_ASSERT);
	assert_int_equal(gpc_sim_context_wait(context, event), CUDA_ERROR_ASSERT);
	assert_int_equal(gpc_sim_stream_submit(stream, fill_of(0, ptr, 1, 1)), CUDA_ERROR_ASSERT);
	assert_int_equal(gpc_sim_stream_record(stream, event), CUDA_ERROR_ASSERT);
	assert_int_equal(gpc_sim_stream_wait(stream, event), CUDA_ERROR_ASSERT);
	assert_int_equal(gpc_sim_stream_query(stream), CUDA_ERROR_ASSERT);
	assert_int_equal(gpc_sim_stream_sync(stream), CUDA_ERROR_ASSERT);
	assert_int_equal(gpc_sim_event_query(event), CUDA_ERROR_ASSERT);
	assert_int_equal(gpc_sim_event_sync(event), CUDA_ERROR_ASSERT);
	assert_int_equal(gpc_sim_mem_alloc(context, 512, &ptr), CUDA_ERROR_ASSERT);
	pass(1 * MS);
	assert_int_equal(bytes_at(ptr)[0], 0);
}

TEST(a_broken_context_leaves_the_others_alone)
{
	struct gpc_sim_context *other = context_on(0);

	gpc_sim_context_break(context, CUDA_ERROR_ASSERT);
	busy(&other->legacy, 1 * MS);
	assert_int_equal(gpc_sim_context_sync(other), CUDA_SUCCESS);
	gpc_sim_context_destroy(other);
}

TEST(a_reset_heals_a_context_and_frees_what_it_had)
{
	uint64_t before = gpc_sim_device_free_bytes(context->device);

	take(8 * GPC_MIB);
	stream_create(CU_STREAM_DEFAULT);
	busy(stream_create(CU_STREAM_NON_BLOCKING), 5 * MS);
	gpc_sim_context_break(context, CUDA_ERROR_ASSERT);
	gpc_sim_context_reset(context);
	assert_int_equal(gpc_sim_context_state(context), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_device_free_bytes(context->device), before);
	assert_int_equal(now() - GPC_SIM_CLOCK_START, 5 * MS);
	assert_true(gpc_list_is_empty(&context->streams));
	take(8 * GPC_MIB);
	busy(&context->legacy, 1 * MS);
	assert_int_equal(gpc_sim_context_sync(context), CUDA_SUCCESS);
	assert_int_equal(now() - GPC_SIM_CLOCK_START, 6 * MS);
}

/* ---- memory ---- */

TEST(a_request_that_does_not_fit_leaves_the_output_alone)
{
	uint64_t ptr = 42;

	assert_int_equal(gpc_sim_mem_alloc(context, 64 * GPC_MIB, &ptr), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_sim_mem_alloc(context, UINT64_MAX, &ptr), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(ptr, 42);
	assert_int_equal(gpc_sim_mem_alloc(context, 60 * GPC_MIB, &ptr), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_mem_free(sim, ptr), CUDA_SUCCESS);
}

TEST(an_allocation_finds_what_an_asynchronous_free_gave_back)
{
	struct gpc_sim_effect *effect = effect_of(GPC_SIM_EFFECT_FREE, 1 * MS);
	uint64_t ptr = take(60 * GPC_MIB);

	effect->dst = ptr;
	submit(&context->legacy, effect);
	assert_int_equal(gpc_sim_mem_alloc(context, 60 * GPC_MIB, &ptr), CUDA_ERROR_OUT_OF_MEMORY);
	gpc_sim_clock_spend(&sim->clock, 1 * MS);
	assert_int_equal(gpc_sim_mem_alloc(context, 60 * GPC_MIB, &ptr), CUDA_SUCCESS);
}

TEST(a_free_waits_for_every_context_of_the_device_and_for_no_other_device)
{
	struct gpc_sim_context *beside = context_on(0);
	struct gpc_sim_context *elsewhere = context_on(1);
	uint64_t ptr = take(512);

	busy(&context->legacy, 2 * MS);
	busy(&beside->legacy, 4 * MS);
	busy(&elsewhere->legacy, 50 * MS);
	assert_int_equal(gpc_sim_mem_free(sim, ptr), CUDA_SUCCESS);
	assert_int_equal(now() - GPC_SIM_CLOCK_START, 4 * MS);
	gpc_sim_context_destroy(beside);
	gpc_sim_context_destroy(elsewhere);
}

TEST(only_the_start_of_a_living_allocation_of_any_context_can_be_freed)
{
	struct gpc_sim_context *other = context_on(0);
	uint64_t mine = take(2048);
	uint64_t theirs = 0;
	int here;

	assert_int_equal(gpc_sim_mem_alloc(other, 512, &theirs), CUDA_SUCCESS);
	busy(&context->legacy, 2 * MS);
	assert_int_equal(gpc_sim_mem_free(sim, mine + 512), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_mem_free(sim, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_mem_free(sim, (uintptr_t)&here), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(now(), GPC_SIM_CLOCK_START); /* a mistake waits for nothing */
	assert_int_equal(gpc_sim_mem_free(sim, mine), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_mem_free(sim, mine), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_sim_mem_free(sim, theirs), CUDA_SUCCESS);
	gpc_sim_context_destroy(other);
}

/* ---- threads ---- */

#define N_THREADS 4
#define N_ROUNDS  300

static struct gpc_sim_stream *shared_stream;

static void *work_and_ask(void *arg)
{
	_Atomic unsigned *n_wrong = arg;
	struct gpc_sim_stream *mine = NULL;
	struct gpc_sim_event *event = NULL;
	bool good = gpc_sim_stream_create(context, 0, 0, &mine) == CUDA_SUCCESS &&
		    gpc_sim_event_create(context, 0, &event) == CUDA_SUCCESS;

	for (unsigned i = 0; good && i < N_ROUNDS; i++) {
		struct gpc_sim_effect *effect = gpc_sim_effect_create(GPC_SIM_EFFECT_NONE, 10);

		good = effect && gpc_sim_stream_submit(shared_stream, effect) == CUDA_SUCCESS &&
		       gpc_sim_stream_record(shared_stream, event) == CUDA_SUCCESS &&
		       gpc_sim_stream_wait(mine, event) == CUDA_SUCCESS &&
		       gpc_sim_context_record(context, event) == CUDA_SUCCESS &&
		       (i % 16 || gpc_sim_stream_sync(mine) == CUDA_SUCCESS);
	}
	if (!good || gpc_sim_event_sync(event) != CUDA_SUCCESS ||
		gpc_sim_event_query(event) != CUDA_SUCCESS)
		atomic_fetch_add(n_wrong, 1);
	gpc_sim_event_destroy(event);
	gpc_sim_stream_destroy(mine);
	return NULL;
}

TEST(no_work_of_threads_that_share_a_stream_overlaps_in_it)
{
	pthread_t threads[N_THREADS];
	_Atomic unsigned n_wrong = 0;

	shared_stream = stream_create(CU_STREAM_NON_BLOCKING);
	for (unsigned i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work_and_ask, &n_wrong), 0);
	for (unsigned i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(n_wrong, 0);
	assert_int_equal(gpc_sim_context_sync(context), CUDA_SUCCESS);
	assert_true(now() - GPC_SIM_CLOCK_START >= 10 * N_THREADS * N_ROUNDS);
	/* The threads' own streams are gone. */
	assert_ptr_equal(context->streams.next, &shared_stream->link);
	assert_ptr_equal(context->streams.prev, &shared_stream->link);
}
