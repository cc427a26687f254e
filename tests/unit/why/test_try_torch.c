/* SPDX-License-Identifier: Apache-2.0 */
/* The advice about PyTorch's cache. */
#include "tests/unit/unit.h"

#include "tests/unit/why/advice.h"

/* PyTorch gives back its idle segments, and asks again: what is in them is in no pool of its own, and no other library asks. */
TEST(what_pytorch_asks_for_first_is_served_by_its_cache)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.torch =
		(struct gpucache_oom_torch){ .allocated = 40 * GPC_GIB, .reserved = 64 * GPC_GIB };
	s.oom.idle_bytes = 20 * GPC_GIB;
	s.oom.setup |= GPUCACHE_OOM_IDLE;
	advise(&s, GPUCACHE_VERDICT_PREALLOCATED);
	says("torch.cuda.empty_cache() before this request");
	s.facts.torch_asked = 8 * GPC_GIB;
	say_anew(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_WRONG_POOL);
	s.facts.is_first_ask = GPC_YES;
	say_anew(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_PREALLOCATED);
	assert_int_equal(s.answer.also, 0);
	says("nothing, but if PyTorch fails again");
}

TEST(nothing_in_a_graph_is_moved_to_the_host)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.torch = (struct gpucache_oom_torch){
		.requested = 8 * GPC_GIB, .allocated = 60 * GPC_GIB, .reserved = 80 * GPC_GIB
	};
	judge(&s);
	s.facts.kept_passes = 9;
	s.facts.kept_bytes = 40 * GPC_GIB;
	s.facts.growth_purpose = GPC_PURPOSE_ACTIVATIONS;
	s.facts.is_result_alone = GPC_YES;
	s.facts.loop_place = "Runner.capture run.py:3";
	say_anew(&s);
	says("not what backward() uses");
	s.facts.is_captured = GPC_YES;
	say_anew(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_GROWTH);
	assert_null(strstr(advice, "cpu()"));
	assert_null(strstr(advice, ".item()"));
	says("one pool for all");
}

TEST(holes_beside_growth_are_the_second_advice)
{
	struct scene s = scene_of_an_exhausted_gpu();

	grow(&s);
	s.oom.growth_bytes = s.oom.growth_total = s.oom.growth_held = 60 * GPC_GIB;
	s.oom.torch = (struct gpucache_oom_torch){
		.requested = 8 * GPC_GIB, .allocated = 50 * GPC_GIB, .reserved = 90 * GPC_GIB
	};
	/* What grows would fill them, if it needs all that it keeps. */
	assert_int_equal(advise(&s, GPUCACHE_VERDICT_GROWTH), 2);
	says("or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, which joins the holes of "
	     "PyTorch's cache: 40.00 GiB of it is in no tensor: enough for this request, perhaps");
	assert_true(s.answer.also >> GPUCACHE_VERDICT_FRAGMENTED & 1);
	/* What grows took less than they. */
	s.oom.growth_bytes = s.oom.growth_total = s.oom.growth_held = 30 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_FRAGMENTED);
}

TEST(holes_of_pytorchs_cache_are_joined_by_pytorchs_option)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.torch = (struct gpucache_oom_torch){
		.requested = 3 * GPC_GIB, .allocated = 56 * GPC_GIB, .reserved = 64 * GPC_GIB
	};
	advise(&s, GPUCACHE_VERDICT_FRAGMENTED);
	says("expandable_segments:True joins the holes, where whole pages of 20 MiB are free");
	/* It may be in a pool of a graph. */
	s.oom.setup |= GPUCACHE_OOM_GRAPHS;
	judge(&s);
	assert_int_not_equal(s.answer.cause, GPUCACHE_VERDICT_FRAGMENTED);
	s.oom.setup &= ~GPUCACHE_OOM_GRAPHS;
	/* No hole, however joined, has so much. */
	s.oom.torch.requested = 8 * GPC_GIB + 1;
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
	/* Most of the cache is holes: they and what is free would have served it. */
	s.oom.torch = (struct gpucache_oom_torch){
		.requested = 45 * GPC_GIB, .allocated = 20 * GPC_GIB, .reserved = 64 * GPC_GIB
	};
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_FRAGMENTED);
	/* A third of it is, and free memory has to help. */
	s.oom.torch = (struct gpucache_oom_torch){
		.requested = 23 * GPC_GIB, .allocated = 44 * GPC_GIB, .reserved = 64 * GPC_GIB
	};
	s.oom.balance.device_free = 10 * GPC_GIB;
	s.oom.requested = s.oom.rounded = 23 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	says("or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
	s.facts.freed_before = 100; /* it has run so for long */
	say_anew(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_FRAGMENTED);
	s.oom.torch.requested =
		25 * GPC_GIB; /* with an eighth of the tensors more it would not fit */
	advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	says("or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
	s.oom.torch.requested = 30 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_EXHAUSTED);
	assert_null(strstr(advice, "expandable_segments"));
	s.oom.balance.device_free = 4 * GPC_GIB;
	s.oom.requested = s.oom.rounded = 8 * GPC_GIB;
	s.oom.torch.allocated = 56 * GPC_GIB;
	/* Growth would soon have filled the holes. */
	s.oom.torch.requested = 3 * GPC_GIB;
	grow(&s);
	s.oom.growth_bytes = 8 * GPC_GIB + 1;
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_GROWTH);
	/* Expandable segments: PyTorch has more than it asked our cache for. */
	s = scene_of_an_exhausted_gpu();
	s.oom.torch = (struct gpucache_oom_torch){
		.requested = 3 * GPC_GIB, .allocated = 56 * GPC_GIB, .reserved = 64 * GPC_GIB
	};
	s.oom.balance.direct = 30 * GPC_GIB;
	s.oom.balance.requested = 60 * GPC_GIB;
	judge(&s);
	assert_int_not_equal(s.answer.cause, GPUCACHE_VERDICT_FRAGMENTED);
}

TEST(another_library_beside_pytorchs_unused_cache_is_told_to_empty_it)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.torch = (struct gpucache_oom_torch){ .allocated = GPC_GIB, .reserved = 64 * GPC_GIB };
	advise(&s, GPUCACHE_VERDICT_PREALLOCATED);
	says("torch.cuda.empty_cache() before this request: 63.00 GiB");
	/* Of a segment with a tensor in it nothing goes back. */
	s.oom.setup |= GPUCACHE_OOM_IDLE;
	s.oom.idle_bytes = 4 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_PREALLOCATED);
	says("torch.cuda.empty_cache() before this request: 4.00 GiB");
	s.oom.idle_bytes--;
	judge(&s);
	assert_int_not_equal(s.answer.cause, GPUCACHE_VERDICT_PREALLOCATED);
	/* Within a backward pass the program cannot call it. */
	s.oom.idle_bytes = 4 * GPC_GIB;
	judge(&s);
	s.facts.is_in_backward = GPC_YES;
	say_anew(&s);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_POSSIBLE);
}

/* PyTorch returns every whole idle segment that it may before it gives up. */
TEST(whole_segments_that_pytorch_did_not_use_are_of_other_pools)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.torch = (struct gpucache_oom_torch){
		.requested = 8 * GPC_GIB, .allocated = 52 * GPC_GIB, .reserved = 64 * GPC_GIB
	};
	s.oom.setup |= GPUCACHE_OOM_IDLE;
	s.oom.idle_bytes = 8 * GPC_GIB;
	s.oom.idle_stack = 12;
	advise(&s, GPUCACHE_VERDICT_WRONG_POOL);
	says("drop the pool or the graphs after their work");
	says("the largest segment was taken by model.py:12");
	s.oom.setup |= GPUCACHE_OOM_GRAPHS;
	advise(&s, GPUCACHE_VERDICT_WRONG_POOL);
	says("one pool for all CUDA graphs");
	s.oom.setup &= ~GPUCACHE_OOM_GRAPHS;
	/* What grows took less than what lies idle. */
	grow(&s);
	s.oom.growth_bytes = s.oom.growth_total = s.oom.growth_held = 12 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_WRONG_POOL);
	s.oom.growth_bytes++;
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_GROWTH);
	s.oom.growth_bytes = s.oom.growth_stack = 0;
	/* Less than counts. */
	s.oom.idle_bytes--;
	judge(&s);
	assert_int_not_equal(s.answer.cause, GPUCACHE_VERDICT_WRONG_POOL);
	/* Too little for the request. */
	s.oom.torch.reserved = 56 * GPC_GIB;
	s.oom.requested = s.oom.rounded = 12 * GPC_GIB;
	judge(&s);
	assert_int_not_equal(s.answer.cause, GPUCACHE_VERDICT_WRONG_POOL);
	/* The recording does not tell. */
	s = scene_of_an_exhausted_gpu();
	s.oom.torch = (struct gpucache_oom_torch){
		.requested = 3 * GPC_GIB, .allocated = 56 * GPC_GIB, .reserved = 64 * GPC_GIB
	};
	s.oom.idle_bytes = 8 * GPC_GIB;
	advise(&s, GPUCACHE_VERDICT_FRAGMENTED);
	says("expandable_segments:True joins the holes");
}

/* Less than a third of the tensors. */
TEST(pytorchs_rounding_is_a_cause_if_it_may_be_as_much_as_is_missing)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.torch = (struct gpucache_oom_torch){
		.requested = 8 * GPC_GIB, .allocated = 12 * GPC_GIB, .reserved = 12 * GPC_GIB
	};
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
	s.oom.setup |= GPUCACHE_OOM_TORCH_ROUNDUP;
	advise(&s, GPUCACHE_VERDICT_ROUNDING);
	assert_int_equal(s.answer.strength, GPUCACHE_STRENGTH_LIKELY);
	says("take roundup_power2_divisions out of PYTORCH_CUDA_ALLOC_CONF");
	s.oom.torch.allocated--;
	judge(&s);
	assert_int_equal(s.answer.cause, GPUCACHE_VERDICT_EXHAUSTED);
}
