/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/sim/machine.h"

FIXTURE(set_up, tear_down);

static struct gpc_sim_context *green_of(struct gpc_sim_context *primary)
{
	struct gpc_sim_context *made = NULL;

	assert_int_equal(gpc_sim_context_create_green(primary, &made), CUDA_SUCCESS);
	return made;
}

TEST(its_memory_is_the_primary_contexts_and_stays)
{
	struct gpc_sim_context *green = green_of(context);
	uint64_t before = gpc_sim_device_used_bytes(context->device);
	uint64_t ptr = 0;
	uint32_t owner = 0;

	assert_int_equal(gpc_sim_mem_alloc(green, 4 * GPC_MIB, &ptr), CUDA_SUCCESS);
	assert_true(gpc_sim_device_find(context->device, ptr, NULL, NULL, &owner));
	assert_int_equal(owner, context->number);
	gpc_sim_context_destroy(green);
	assert_true(gpc_sim_device_used_bytes(context->device) == before + 4 * GPC_MIB);
	assert_int_equal(gpc_sim_mem_free(sim, ptr), CUDA_SUCCESS);
}

TEST(the_primary_context_covers_its_work_and_it_does_not_cover_others)
{
	struct gpc_sim_context *a = green_of(context);
	struct gpc_sim_context *b = green_of(context);
	struct gpc_sim_event *of_all = event_create();
	struct gpc_sim_event *of_a = event_in(a);
	uint64_t start = now();

	busy(stream_in(a, CU_STREAM_NON_BLOCKING), 2 * MS);
	busy(stream_in(b, CU_STREAM_NON_BLOCKING), 5 * MS);
	busy(&context->legacy, 3 * MS);
	assert_int_equal(gpc_sim_context_record(context, of_all), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_context_record(a, of_a), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_context_sync(a), CUDA_SUCCESS);
	assert_int_equal(now() - start, 2 * MS);
	assert_int_equal(gpc_sim_event_query(of_a), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_event_query(of_all), CUDA_ERROR_NOT_READY);
	assert_int_equal(gpc_sim_context_sync(context), CUDA_SUCCESS);
	assert_int_equal(now() - start, 5 * MS);
	assert_int_equal(gpc_sim_event_query(of_all), CUDA_SUCCESS);
	gpc_sim_context_destroy(a);
	gpc_sim_context_destroy(b);
}

TEST(a_wait_of_the_primary_context_holds_back_its_work)
{
	struct gpc_sim_context *green = green_of(context);
	struct gpc_sim_context *other = context_on(1);
	struct gpc_sim_event *event = event_in(other);

	busy(&other->legacy, 5 * MS);
	assert_int_equal(gpc_sim_stream_record(&other->legacy, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_context_wait(context, event), CUDA_SUCCESS);
	busy(&green->legacy, 1 * MS);
	assert_int_equal(time_to_sync(), 6 * MS);
	gpc_sim_context_destroy(green);
	gpc_sim_context_destroy(other);
}

TEST(its_legacy_stream_is_its_own)
{
	struct gpc_sim_context *green = green_of(context);
	struct gpc_sim_graph *graph = NULL;
	struct gpc_sim_stream *blocking = stream_in(green, CU_STREAM_DEFAULT);

	busy(&context->legacy, 4 * MS);
	busy(&green->legacy, 1 * MS);
	assert_int_equal(time_to_sync(), 4 * MS);
	/* A capture in it leaves the primary context's legacy stream alone, and no event of all. */
	assert_int_equal(
		gpc_sim_capture_begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
	busy(&context->legacy, 1 * MS);
	assert_int_equal(gpc_sim_context_record(context, event_create()),
		CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(
		gpc_sim_capture_end(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	gpc_sim_context_destroy(green);
}

TEST(it_is_broken_where_the_primary_context_is)
{
	struct gpc_sim_context *green = green_of(context);

	assert_int_equal(gpc_sim_context_state(green), CUDA_SUCCESS);
	gpc_sim_context_break(context, CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(gpc_sim_context_state(green), CUDA_ERROR_ILLEGAL_ADDRESS);
	gpc_sim_context_destroy(green);
}
