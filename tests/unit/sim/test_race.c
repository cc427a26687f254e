/* SPDX-License-Identifier: Apache-2.0 */
/* The race detector: each way in which one piece of work can be behind another, and each in which it is not. */
#include "tests/unit/sim/racing.h"

#define SIZE GPC_MIB

static const struct gpc_sim_race_stack old_stack = { .n = 2, .frames = { 0x11, 0x12 } };
static const struct gpc_sim_race_stack new_stack = { .n = 1, .frames = { 0x21 } };
static uint64_t memory;

/* A context with a detector, memory that has its first owner, and two streams. */
static int set_up_race(void **state)
{
	if (set_up_streams(64 * GPC_MIB))
		return -1;
	memory = take(SIZE);
	return gpc_sim_race_own(sim, context, memory, SIZE, &old_stack) ? 0 : -1;
}

FIXTURE(set_up_race, tear_down);

static void use(struct gpc_sim_stream *stream)
{
	submit(stream, kernel_of(5 * MS, memory, SIZE, -1));
}

static void change_owner(void)
{
	gpc_sim_race_disown(sim, memory);
	assert_true(gpc_sim_race_own(sim, context, memory, SIZE, &new_stack));
}

static uint64_t n_found(void)
{
	return gpc_sim_race_n_violations(sim);
}

/* ---- races ---- */

TEST(memory_given_out_while_a_used_stream_is_not_behind_is_found_with_both_stacks)
{
	const struct gpc_sim_race_violation *found = &sim->race->violations[0];

	use(one);
	busy(two, 1);
	change_owner();
	assert_int_equal(n_found(), 1);
	assert_int_equal(found->kind, GPC_SIM_RACE_HANDED_OUT);
	assert_int_equal(found->ptr, memory);
	assert_int_equal(found->size, SIZE);
	assert_int_equal(found->old_stream, one->number);
	assert_memory_equal(&found->old_owner, &old_stack, sizeof old_stack);
	assert_memory_equal(&found->new_owner, &new_stack, sizeof new_stack);
}

TEST(work_that_overtakes_that_of_the_old_owner_is_found)
{
	use(one);
	change_owner();
	assert_int_equal(n_found(), 0);
	use(two);
	assert_int_equal(n_found(), 1);
	assert_int_equal(sim->race->violations[0].kind, GPC_SIM_RACE_OVERTAKEN);
}

static void change_owner_on(struct gpc_sim_stream *stream)
{
	gpc_sim_race_disown(sim, memory);
	assert_true(gpc_sim_race_own_on(sim, stream, memory, SIZE, &new_stack));
}

TEST(more_owners_than_there_was_room_for_are_all_known)
{
	uint64_t small = SIZE / 256;
	uint64_t one_of_them = memory + 77 * small;

	gpc_sim_race_disown(sim, memory);
	for (uint64_t i = 256; i-- > 0;)
		assert_true(gpc_sim_race_own(sim, context, memory + i * small, small, &old_stack));
	use(one);
	assert_int_equal(sim->race->n_touches, 256);
	gpc_sim_race_disown(sim, one_of_them);
	assert_true(gpc_sim_race_own_on(sim, two, one_of_them, small, &new_stack));
	assert_int_equal(n_found(), 1);
	assert_int_equal(sim->race->violations[0].ptr, one_of_them);
}

TEST(memory_asked_for_on_its_old_stream_may_be_given_out_at_once)
{
	use(one);
	busy(two, 1);
	change_owner_on(one);
	use(one);
	assert_int_equal(n_found(), 0);
}

TEST(memory_asked_for_on_another_stream_is_found_when_it_is_given_out)
{
	use(one);
	change_owner_on(two);
	assert_int_equal(n_found(), 1);
	assert_int_equal(sim->race->violations[0].kind, GPC_SIM_RACE_HANDED_OUT);
}

TEST(work_that_leaves_the_stream_it_was_asked_for_on_is_found)
{
	use(one);
	change_owner_on(one);
	use(two);
	assert_int_equal(n_found(), 1);
	assert_int_equal(sim->race->violations[0].kind, GPC_SIM_RACE_OVERTAKEN);
}

TEST(who_is_outside_all_streams_comes_after_what_the_host_saw_end)
{
	use(one);
	assert_int_equal(gpc_sim_stream_sync(one), CUDA_SUCCESS);
	change_owner();
	gpc_sim_race_expose(sim, memory);
	assert_int_equal(n_found(), 0);
	/* One's own work that is still running is one's own business; that of the last owner is not. */
	use(one);
	gpc_sim_race_expose(sim, memory);
	assert_int_equal(n_found(), 0);
	change_owner_on(one);
	gpc_sim_race_expose(sim, memory);
	assert_int_equal(n_found(), 1);
	assert_int_equal(sim->race->violations[0].kind, GPC_SIM_RACE_EXPOSED);
}

static void use_early(struct gpc_sim_stream *stream)
{
	struct gpc_sim_effect *effect = kernel_of(1 * MS, memory, SIZE, -1);

	effect->is_early = true;
	submit(stream, effect);
}

TEST(an_early_kernel_overtakes_the_one_ahead_of_it)
{
	use(one);
	change_owner_on(one);
	assert_int_equal(n_found(), 0);
	use_early(one);
	assert_int_equal(n_found(), 1);
	assert_int_equal(sim->race->violations[0].kind, GPC_SIM_RACE_OVERTAKEN);
}

TEST(a_row_of_early_kernels_overtakes_the_first)
{
	use(one);
	change_owner_on(one);
	for (int i = 0; i < 2; i++) {
		struct gpc_sim_effect *effect = effect_of(GPC_SIM_EFFECT_KERNEL, 1 * MS);

		effect->is_early = true;
		submit(one, effect);
	}
	assert_int_equal(n_found(), 0);
	use_early(one);
	assert_int_equal(n_found(), 1);
}

TEST(an_early_kernel_is_behind_a_wait_of_its_context)
{
	struct gpc_sim_event *event = event_create();

	use(one);
	assert_int_equal(gpc_sim_context_record(context, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_context_wait(context, event), CUDA_SUCCESS);
	change_owner_on(one);
	use_early(one);
	assert_int_equal(n_found(), 0);
}

TEST(what_comes_behind_an_early_kernel_is_behind_the_one_ahead_of_it_too)
{
	use(one);
	change_owner_on(one);
	busy(one, 1);
	use_early(one); /* behind what is no kernel it is not early */
	use(one);
	assert_int_equal(n_found(), 0);
}

TEST(one_life_of_memory_counts_once)
{
	use(one);
	use(one);
	busy(two, 1);
	change_owner();
	use(two);
	use(two);
	assert_int_equal(n_found(), 1);
}

TEST(that_the_time_was_enough_by_luck_is_no_order)
{
	use(one);
	pass(50 * MS);
	change_owner();
	use(two);
	assert_int_equal(n_found(), 1);
}

TEST(only_the_bytes_that_both_have_count)
{
	use(one);
	gpc_sim_race_disown(sim, memory);
	assert_true(gpc_sim_race_own(sim, context, memory + SIZE / 2, SIZE / 4, &new_stack));
	submit(two, kernel_of(MS, memory + SIZE / 2, SIZE / 4, -1));
	assert_int_equal(n_found(), 1);
	assert_int_equal(sim->race->violations[0].ptr, memory + SIZE / 2);
	assert_int_equal(sim->race->violations[0].size, SIZE / 4);
}

TEST(copies_and_fills_touch_their_rows)
{
	uint64_t other = take(SIZE);

	submit(one, copy_of(MS, other, memory, 100));
	change_owner();
	submit(two, fill_of(MS, memory + 100, 100, 1));
	assert_int_equal(n_found(), 0);
	submit(two, fill_of(MS, memory, 100, 1));
	assert_int_equal(n_found(), 1);
}

TEST(an_event_that_was_never_recorded_orders_nothing)
{
	struct gpc_sim_event *event = event_create();

	use(one);
	assert_int_equal(gpc_sim_event_query(event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_wait(two, event), CUDA_SUCCESS);
	change_owner();
	use(two);
	assert_int_equal(n_found(), 1);
}

TEST(an_event_of_the_legacy_stream_says_nothing_of_a_non_blocking_one)
{
	struct gpc_sim_event *event = event_create();

	use(one);
	assert_int_equal(gpc_sim_stream_record(&context->legacy, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_event_query(event), CUDA_SUCCESS);
	change_owner();
	use(two);
	assert_int_equal(n_found(), 1);
}

/* ---- orders ---- */

TEST(work_of_one_stream_is_in_order)
{
	use(one);
	change_owner();
	use(one);
	assert_int_equal(n_found(), 0);
}

TEST(the_legacy_stream_is_in_order_with_blocking_ones_both_ways)
{
	struct gpc_sim_stream *blocking = stream_create(CU_STREAM_DEFAULT);

	use(blocking);
	change_owner();
	use(&context->legacy);
	change_owner();
	use(blocking);
	assert_int_equal(n_found(), 0);
}

TEST(a_stream_that_waits_for_an_event_is_behind_what_it_recorded)
{
	struct gpc_sim_event *event = event_create();

	use(one);
	assert_int_equal(gpc_sim_stream_record(one, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_wait(two, event), CUDA_SUCCESS);
	change_owner();
	use(two);
	assert_int_equal(n_found(), 0);
}

TEST(a_context_that_waits_is_behind_in_all_its_streams)
{
	struct gpc_sim_event *event = event_create();

	use(one);
	assert_int_equal(gpc_sim_context_record(context, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_context_wait(context, event), CUDA_SUCCESS);
	change_owner();
	use(two);
	assert_int_equal(n_found(), 0);
}

TEST(an_event_of_the_context_that_has_passed_covers_every_stream)
{
	struct gpc_sim_event *event = event_create();

	use(one);
	assert_int_equal(gpc_sim_context_record(context, event), CUDA_SUCCESS);
	assert_int_equal(gpc_sim_event_query(event), CUDA_ERROR_NOT_READY);
	pass(5 * MS);
	assert_int_equal(gpc_sim_event_query(event), CUDA_SUCCESS);
	busy(two, 1);
	change_owner();
	use(two);
	assert_int_equal(n_found(), 0);
}

TEST(what_the_host_waited_for_has_ended)
{
	struct gpc_sim_event *event = event_create();

	for (int way = 0; way < 4; way++) {
		use(one);
		assert_int_equal(gpc_sim_stream_record(one, event), CUDA_SUCCESS);
		if (way == 0)
			assert_int_equal(gpc_sim_stream_sync(one), CUDA_SUCCESS);
		else if (way == 1)
			assert_int_equal(gpc_sim_event_sync(event), CUDA_SUCCESS);
		else if (way == 2)
			assert_int_equal(gpc_sim_context_sync(context), CUDA_SUCCESS);
		else
			assert_int_equal(gpc_sim_mem_free(sim, take(SIZE)), CUDA_SUCCESS);
		change_owner();
		use(two);
		assert_int_equal(gpc_sim_context_sync(context), CUDA_SUCCESS);
		change_owner();
	}
	assert_int_equal(n_found(), 0);
}

TEST(a_stream_that_is_not_done_teaches_nothing)
{
	use(one);
	assert_int_equal(gpc_sim_stream_query(one), CUDA_ERROR_NOT_READY);
	change_owner();
	use(two);
	assert_int_equal(n_found(), 1);
}

/* ---- lives ---- */

TEST(a_reset_ends_all_owners_and_all_work)
{
	use(one);
	gpc_sim_context_reset(context);
	assert_int_equal(sim->race->n_owners, 0);
	memory = take(SIZE);
	assert_true(gpc_sim_race_own(sim, context, memory, SIZE, &new_stack));
	use(stream_create(CU_STREAM_NON_BLOCKING));
	assert_int_equal(n_found(), 0);
}

TEST(a_place_of_a_stream_is_taken_again_only_when_its_work_is_known_to_have_ended)
{
	uint32_t track = one->race_track;
	struct gpc_sim_stream *next;

	use(one);
	gpc_sim_stream_destroy(one);
	next = stream_create(CU_STREAM_NON_BLOCKING);
	assert_int_not_equal(next->race_track, track);
	assert_int_equal(gpc_sim_context_sync(context), CUDA_SUCCESS);
	assert_int_equal(stream_create(CU_STREAM_NON_BLOCKING)->race_track, track);
}

TEST(streams_beyond_the_detectors_places_are_refused)
{
	struct gpc_sim_stream *stream = NULL;
	CUresult res = CUDA_SUCCESS;

	for (int i = 0; i < GPC_SIM_RACE_TRACKS && res == CUDA_SUCCESS; i++)
		res = gpc_sim_stream_create(context, 0, 0, &stream);
	assert_int_equal(res, CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_WITH(without_a_detector_nothing_is_watched, set_up, tear_down)
{
	uint64_t ptr = take(SIZE);

	assert_false(gpc_sim_race_own(sim, context, ptr, SIZE, &old_stack));
	gpc_sim_race_disown(sim, ptr);
	gpc_sim_race_freed(context, gpc_sim_race_of_context(context), true);
	gpc_sim_race_host_reads(context, &new_stack);
	assert_int_equal(gpc_sim_race_n_violations(sim), 0);
}
