/* SPDX-License-Identifier: Apache-2.0 */
/* Growth beside other causes that may have taken as much. */
#include "tests/unit/unit.h"

#include "tests/unit/why/scene.h"

TEST(blocks_whose_frees_were_refused_are_no_need)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.growth_bytes = s.oom.growth_total = s.oom.growth_held = 80 * GPC_GIB;
	s.oom.growth_stack = 9;
	s.oom.growth_blocks = 20;
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
	s.oom.refused_frees = 9;
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
	s.oom.refused_frees = 10;
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_GROWTH);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_LIKELY);
}

/* The first backward pass makes them layer by layer, and they stay. */
TEST(gradients_of_one_pass_are_no_growth)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.growth_bytes = s.oom.growth_total = s.oom.growth_held = 20 * GPC_GIB;
	s.oom.growth_stack = 9;
	s.oom.growth_blocks = s.oom.n_free = 300;
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_GROWTH);
	s.facts.growth_purpose = GPC_PURPOSE_GRADIENTS;
	s.facts.weights = s.facts.gradients = 20 * GPC_GIB;
	s.answer = gpc_why(&s.facts);
	assert_int_not_equal(s.answer.cause, GPUCACHE_VERDICT_GROWTH);
	s.facts.gradients += GPC_MIB; /* of two passes */
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_GROWTH);
}

TEST(weights_that_pytorch_makes_with_a_temporary_each_do_not_grow)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_growth(&s);
	s.oom.torch = (struct gpucache_oom_torch){
		.reserved = 80 * GPC_GIB, .allocated = 80 * GPC_GIB, .requested = s.oom.requested
	};
	s.oom.n_free = 2 * s.oom.growth_blocks - 1;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	s.oom.n_free++;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
}

TEST(weights_of_one_model_that_is_being_built_are_at_most_possible_growth)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_growth(&s);
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
	s.facts.is_one_model = GPC_YES;
	assert_int_equal(gpc_why(&s.facts).cause, GPUCACHE_VERDICT_EXHAUSTED);
}

TEST(two_lines_that_keep_as_much_as_each_other_both_grow)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_growth(&s);
	s.oom.growth_others = s.oom.growth_bytes;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
	s.oom.growth_others *= 2;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
}

/* An early return that skips three frees leaks at three lines, of which each frees most of its blocks. */
TEST(lines_that_free_most_and_keep_some_grow_together)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_growth(&s);
	s.oom.growth_others = 2 * s.oom.growth_bytes;
	s.oom.growth_total = 2 * s.oom.growth_held;
	s.oom.n_free = 8 * s.oom.growth_blocks;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
	s.oom.n_free--;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	s.oom.n_free++;
	s.oom.growth_total--;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
}

/* Nothing tells zones that refer to each other from snapshots that will be read again. */
TEST(a_line_that_keeps_all_that_it_made_may_leak_or_need_it)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_growth(&s);
	s.oom.n_free = 0;
	s.oom.growth_blocks = 8;
	s.oom.growth_held = s.oom.growth_total = 45 * GPC_GIB;
	s.oom.growth_others = 0;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_LIKELY);
	assert_int_equal(s.answer.also, 0);
	s.oom.growth_blocks = 64;
	s.oom.requested = s.oom.rounded = GPC_GIB;
	s.oom.balance.device_free = 0;
	judge(&s);
	assert_int_equal(s.answer.also, 1u << GPUCACHE_VERDICT_GROWTH);
	s.oom.requested = s.oom.rounded = 2 * GPC_GIB; /* no block as those */
	judge(&s);
	assert_int_equal(s.answer.also, 0);
	s.oom.requested = s.oom.rounded = GPC_GIB;
	s.oom.growth_blocks--;
	judge(&s);
	assert_int_equal(s.answer.also, 0);
	s = scene_of_an_exhausted_gpu();
	make_growth(&s);
	s.oom.n_free = 0;
	s.oom.growth_blocks = 7;
	s.oom.growth_held = s.oom.growth_total = 45 * GPC_GIB;
	s.oom.growth_others = 0;
	judge(&s);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_CERTAIN);
	s.oom.growth_blocks++;
	s.oom.growth_total++; /* it has freed some */
	judge(&s);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_CERTAIN);
	/* Of PyTorch's memory, what it is for tells more. */
	s.oom.growth_total--;
	judge(&s);
	s.facts.growth_blocks = 64;
	s.facts.asked = s.facts.rounded = GPC_MIB;
	s.facts.available = s.facts.free_before = s.facts.free_after = 0;
	s.facts.torch_held = s.facts.live;
	s.facts.torch_live = s.facts.live;
	s.facts.by_purpose = s.facts.live;
	s.facts.growth_purpose = GPC_PURPOSE_WEIGHTS;
	assert_int_equal(gpc_why(&s.facts).also, 0);
	s.facts.growth_purpose = GPC_PURPOSE_INPUTS;
	assert_int_equal(gpc_why(&s.facts).also, 1u << GPUCACHE_VERDICT_GROWTH);
	s.oom.growth_total++;
	judge(&s);
	/* The line that holds half of it has failed before. */
	s.facts.retried_site = 1;
	s.facts.retried_bytes = s.facts.held / 2;
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_GROWTH);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_LIKELY);
	s.facts.retried_bytes--;
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
}

/* Blocks of one byte, each of which takes 512. */
TEST(rounding_that_takes_more_than_what_grows_comes_first)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_growth_of_many_blocks(&s);
	s.oom.balance.requested = 20 * GPC_GIB;
	s.oom.balance.rounding = 70 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_ROUNDING);
	s.oom.n_free = s.oom.growth_blocks;
	s.oom.balance.rounding = s.oom.growth_bytes - 1;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
}

/* The facts of the moment must not be certain of what names may overturn. */
TEST(pytorch_is_exhausted_for_certain_only_once_names_show_no_kept_results)
{
	struct scene s = scene_of_an_exhausted_gpu();

	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_CERTAIN);
	s.oom.torch = (struct gpucache_oom_torch){
		.reserved = 40 * GPC_GIB, .allocated = 40 * GPC_GIB, .requested = 8 * GPC_GIB
	};
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_LIKELY);
	/* No names will tell more of XLA's arrays. */
	s.oom.framework = GPUCACHE_FRAMEWORK_XLA;
	judge(&s);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_CERTAIN);
	s.oom.framework = GPUCACHE_FRAMEWORK_PYTORCH;
	judge(&s);
	s.facts.by_purpose = 40 * GPC_GIB;
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_CERTAIN);
	s.facts.kept_passes = 24;
	s.facts.kept_bytes = 30 * GPC_GIB;
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_GROWTH);
	assert_int_equal(s.answer.then_cause, GPUCACHE_VERDICT_EXHAUSTED);
}

/* PyTorch's cache would have served this request, but not those after it. */
TEST(what_grows_beside_a_smaller_idle_cache_of_pytorch_comes_first)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_growth_of_many_blocks(&s);
	s.oom.torch = (struct gpucache_oom_torch){ .reserved = 40 * GPC_GIB,
		.allocated = 40 * GPC_GIB - 5 * GPC_GIB };
	s.oom.growth_bytes = s.oom.growth_total = s.oom.growth_held = 6 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
	s.oom.growth_bytes = s.oom.growth_total = s.oom.growth_held = 5 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_PREALLOCATED);
}

/* Each step frees all that it took: that is no leak, but the program's own need. */
TEST(steps_that_need_more_and_more_are_exhausted)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_growth_of_many_blocks(&s);
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
	s.oom.grows_how = GPUCACHE_GROWS_STEPS;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
}

/* Many blocks of many sizes, beside which little was freed: weights perhaps, perhaps a leak. */
TEST(many_blocks_that_a_c_program_keeps_are_never_certainly_exhausted)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_growth_of_many_blocks(&s);
	s.oom.n_free = 0;
	s.oom.is_varied = 1;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_LIKELY);
	s.oom.growth_blocks = 159;
	judge(&s);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_CERTAIN);
}

/* What stays from step to step, such as weights, does not hide that this step needs more. */
TEST(a_spike_is_measured_above_what_stays)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.usual_live = 66 * GPC_GIB;
	judge(&s);
	assert_int_not_equal(s.oom.verdict, GPUCACHE_VERDICT_SPIKE);
	s.oom.usual_base = 60 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_SPIKE);
	s.oom.requested = s.oom.rounded = (s.facts.held - s.oom.usual_live) / 256 - 2 * GPC_MIB;
	s.oom.balance.device_free = 0;
	judge(&s);
	/* Many small ones: perhaps a leak that began late. */
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_LIKELY);
	s.oom.requested = s.oom.rounded += 2 * GPC_MIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_SPIKE);
	s.facts.freed_before = 3;
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_SPIKE);
	s.facts.freed_before = 2; /* there was no such step yet */
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
}

/* It asks for the state of one weight after the other: holes and free memory have to hold all that it has yet to ask for. */
TEST(an_optimizers_first_step_is_no_spike_and_needs_room_for_all_of_its_state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.torch = (struct gpucache_oom_torch){
		.requested = 3 * GPC_GIB, .allocated = 52 * GPC_GIB, .reserved = 64 * GPC_GIB
	};
	s.oom.usual_live = 40 * GPC_GIB;
	judge(&s);
	s.facts.asked_purpose = GPC_PURPOSE_OPTIMIZER;
	s.facts.freed_before = 3;
	s.facts.by_purpose = 52 * GPC_GIB;
	s.facts.weights = s.facts.gradients = 14 * GPC_GIB;
	s.facts.optimizer = 3 * 14 * GPC_GIB - 7 * GPC_GIB;
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_FRAGMENTED);
	s.facts.weights = 30 * GPC_GIB; /* most of them frozen */
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_FRAGMENTED);
	s.facts.optimizer -= 5 * GPC_GIB;
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
	s.oom.torch.allocated = 64 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_SPIKE);
	s.facts.asked_purpose = GPC_PURPOSE_OPTIMIZER;
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
	s.facts.asked_purpose = GPC_PURPOSE_WEIGHTS;
	s.answer = gpc_why(&s.facts);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
}

/* The request is for the next block, so that what the last one grew by need not be all that is missing. */
TEST(a_line_that_asks_for_its_next_block_grows)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_growth(&s);
	s.oom.growth_blocks = 3;
	s.oom.grows_how = GPUCACHE_GROWS_RENEWED;
	s.oom.growth_bytes = s.oom.growth_held = 4 * GPC_GIB - 1;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
	s.oom.growth_stack++;
	judge(&s);
	assert_int_not_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
	s.oom.growth_stack--;
	/* One step that is far larger than all before it. */
	s.oom.growth_total = 2 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
	s.oom.growth_total--;
	judge(&s);
	assert_int_not_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
}

TEST(a_buffer_that_is_replaced_by_a_larger_one_needs_both)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_growth(&s);
	s.oom.growth_blocks = 2;
	s.oom.grows_how = GPUCACHE_GROWS_RENEWED;
	s.oom.growth_bytes = s.oom.growth_held = s.oom.requested - 1;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_LIKELY);
	s.oom.growth_held++;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
	s.oom.growth_held--;
	s.oom.growth_blocks++;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
}

/* Without the cache all memory is the driver's own. */
TEST(what_the_driver_adds_counts_as_part_of_what_is_held)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.setup = 0;
	s.oom.balance.direct = 74 * GPC_GIB;
	s.oom.balance.requested = 0;
	s.oom.balance.rounding = 16 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_ROUNDING);
	s.oom.balance.direct = 85 * GPC_GIB;
	s.oom.balance.rounding = 5 * GPC_GIB;
	judge(&s);
	assert_int_not_equal(s.oom.verdict, GPUCACHE_VERDICT_ROUNDING);
	/* And with it: the driver rounds what is straight from it. */
	s = scene_of_an_exhausted_gpu();
	s.oom.balance.requested = 10 * GPC_GIB;
	s.oom.balance.rounding = 8 * GPC_GIB;
	s.oom.balance.direct = 72 * GPC_GIB;
	judge(&s);
	assert_int_not_equal(s.oom.verdict, GPUCACHE_VERDICT_ROUNDING);
}

/* Expandable segments have given back each page without a tensor. */
TEST(pages_that_tensors_pin_are_fragmented_once_a_program_has_run)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.kind = GPUCACHE_KIND_PHYSICAL;
	s.oom.balance.direct = s.oom.balance.requested;
	s.oom.balance.requested = 0;
	s.oom.torch = (struct gpucache_oom_torch){
		.requested = s.oom.requested, .allocated = 60 * GPC_GIB, .reserved = 88 * GPC_GIB
	};
	judge(&s);
	assert_int_not_equal(s.oom.verdict, GPUCACHE_VERDICT_FRAGMENTED);
	s.facts.freed_before = 12;
	assert_int_equal(gpc_why(&s.facts).cause, GPUCACHE_VERDICT_FRAGMENTED);
	s.facts.freed_before--;
	assert_int_not_equal(gpc_why(&s.facts).cause, GPUCACHE_VERDICT_FRAGMENTED);
	s.facts.freed_before++;
	s.facts.torch_live = 66 * GPC_GIB + 1; /* a quarter of the cache is in holes */
	assert_int_not_equal(gpc_why(&s.facts).cause, GPUCACHE_VERDICT_FRAGMENTED);
}

/* Else "so much less" would be too little by a part of a step. */
TEST(what_a_segment_is_short_by_counts_in_steps_of_the_driver)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.requested = s.oom.rounded = 8 * GPC_GIB - 2 * GPC_MIB + 1;
	judge(&s);
	assert_int_equal(s.facts.short_by, 4 * GPC_GIB);
	s.oom.kind = GPUCACHE_KIND_ARRAY;
	judge(&s);
	assert_int_equal(s.facts.short_by, 4 * GPC_GIB - 2 * GPC_MIB + 1);
}
