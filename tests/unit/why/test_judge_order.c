/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several verdicts comes first, and how certain it is; test_judge.c tests each cause alone. */
#include "tests/unit/unit.h"

#include "tests/unit/why/scene.h"

/* Threads that make a context each: none is measured, and all are in what is not tracked. */
TEST(contexts_that_were_not_measured_are_in_what_is_not_tracked)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.process_outside = 16 * GPC_GIB;
	s.oom.balance.requested = 76 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_UNTRACKED);
	s.oom.n_contexts = 14;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_CONTEXTS);
	assert_int_equal(s.facts.spare_contexts, 13 * GPC_GIB);
	s.oom.n_contexts = 5; /* which cannot take as much */
	judge(&s);
	assert_int_equal(s.facts.spare_contexts, 4 * GPC_GIB);
	s.oom.kind_bytes[GPUCACHE_KIND_CONTEXT] = 5 * 64 * GPC_MIB; /* they were measured */
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_UNTRACKED);
}

TEST(one_context_with_a_large_heap_is_not_too_many)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.requested = 75 * GPC_GIB;
	s.oom.balance.direct = s.oom.kind_bytes[GPUCACHE_KIND_CONTEXT] = 15 * GPC_GIB;
	s.oom.n_contexts = 1;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_UNTRACKED);
	s.oom.balance.requested = 85 * GPC_GIB;
	s.oom.balance.direct = s.oom.kind_bytes[GPUCACHE_KIND_CONTEXT] = 5 * GPC_GIB - 1;
	judge(&s);
	assert_int_not_equal(s.oom.verdict, GPUCACHE_VERDICT_UNTRACKED);
}

TEST(shortage_is_the_request_minus_the_best_room)
{
	struct scene s = scene_of_an_exhausted_gpu();

	judge(&s);
	assert_int_equal(s.oom.short_by, 4 * GPC_GIB);

	s.oom.balance.cached_largest = 5 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.short_by, 3 * GPC_GIB);

	/* Three segments of 1 GiB would have gone back. */
	s.oom.balance.cached = 3 * GPC_GIB;
	s.oom.returnable_bytes = 3 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.short_by, 1 * GPC_GIB);
	s.oom.returnable_bytes =
		4 * GPC_GIB; /* that would have been enough: they could not go back */
	s.oom.balance.cached = 4 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.short_by, 3 * GPC_GIB);
	s.oom.balance.cached = s.oom.returnable_bytes = 0;

	/* 90 GiB are taken, so a limit of 91 GiB leaves less room than the device does. */
	s.oom.balance.cached_largest = 0;
	s.oom.limit = 91 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.short_by, 7 * GPC_GIB);

	make_driver(&s);
	s.oom.limit = 0;
	judge(&s);
	assert_int_equal(s.oom.short_by, 0);

	/* The host's memory is another. */
	s = scene_of_an_exhausted_gpu();
	s.oom.kind = GPUCACHE_KIND_HOST;
	judge(&s);
	assert_int_equal(s.oom.short_by, 0);
}

TEST(a_limit_is_only_possible_where_the_device_had_no_room_either)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.limit = 90 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_true(holds(&s, GPUCACHE_VERDICT_LIMIT));

	s.oom.balance.device_free = GPUCACHE_UNKNOWN;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_LIMIT);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);
}

TEST(free_and_cached_memory_together_are_likely_fragmented)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.cached = 4 * GPC_GIB;
	s.oom.balance.cached_largest = 1 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_FRAGMENTED);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);
	s.oom.balance.cached--;
	judge(&s);
	assert_false(holds(&s, GPUCACHE_VERDICT_FRAGMENTED));
}

/* The case of pytorch #71616: much is reserved and not allocated, but it is not fragmentation. */
TEST(memory_that_waits_for_the_device_is_not_called_fragmented)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.requested = 70 * GPC_GIB;
	s.oom.balance.pending = 20 * GPC_GIB;
	s.oom.largest_pending = 8 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_PENDING);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_CERTAIN);
	assert_int_equal(s.oom.also, 0);
}

TEST(one_pending_block_that_fits_is_told_beside_fragmentation)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_fragmented(&s);
	s.oom.balance.pending = 8 * GPC_GIB;
	s.oom.largest_pending = 8 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_FRAGMENTED);
	assert_int_equal(s.oom.also, 1u << GPUCACHE_VERDICT_PENDING);
	s.oom.largest_pending--;
	judge(&s);
	assert_int_equal(s.oom.also, 0);
}

TEST(small_neighbours_are_possible_and_do_not_hide_the_cause)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.rounded = s.oom.requested = 5 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_true(holds(&s, GPUCACHE_VERDICT_NEIGHBOUR));
}

TEST(exhaustion_is_weaker_the_less_is_known_of_others)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.other_processes = GPUCACHE_UNKNOWN;
	s.oom.balance.unattributed = 5 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_CERTAIN);

	s.oom.balance.unattributed = 5 * GPC_GIB + 1;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);

	s.oom.balance.requested = 50 * GPC_GIB - 1;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_POSSIBLE);
}

TEST(neighbours_that_could_not_have_helped_leave_it_likely_exhausted)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.other_processes = 6 * GPC_GIB;
	s.oom.rounded = 10 * GPC_GIB + 1;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);
	s.oom.rounded--;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_NEIGHBOUR);
	assert_false(holds(&s, GPUCACHE_VERDICT_EXHAUSTED));
}

TEST(weaker_evidence_stays_possible)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.process_outside = 4 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_true(holds(&s, GPUCACHE_VERDICT_UNTRACKED));
	s.oom.balance.process_outside--;
	judge(&s);
	assert_false(holds(&s, GPUCACHE_VERDICT_UNTRACKED));
}

TEST(free_pieces_that_no_other_allocator_would_have_joined_are_no_reason)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.requested = 80 * GPC_GIB;
	s.oom.balance.cached = 10 * GPC_GIB;
	s.oom.balance.cached_largest = 1 * GPC_GIB;
	/* 94 GiB less this is what the driver would have had: just enough. */
	s.oom.plain_live = 86 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_FRAGMENTED);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);
	s.oom.plain_live++;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);
	assert_true(holds(&s, GPUCACHE_VERDICT_FRAGMENTED));
	/* An eighth of the GPU lies in pieces: that is why, whoever placed them. */
	s.oom.balance.requested -= 5 * GPC_GIB / 2;
	s.oom.balance.cached += 5 * GPC_GIB / 2;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_FRAGMENTED);
}

TEST(a_leak_is_growth_though_pieces_are_free)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_fragmented(&s);
	make_growth_of_many_blocks(&s);
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
	assert_true(holds(&s, GPUCACHE_VERDICT_FRAGMENTED));
}

/* The layers of a model of PyTorch, or the results of many steps: the figures of one moment cannot tell them apart. */
TEST(where_several_sites_keep_as_much_nothing_is_certain)
{
	struct scene s = scene_of_an_exhausted_gpu();

	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_CERTAIN);
	make_growth(&s);
	s.oom.growth_others++;
	s.oom.n_free = 3 * s.oom.growth_blocks;
	s.oom.torch = (struct gpucache_oom_torch){
		.reserved = 80 * GPC_GIB, .allocated = 80 * GPC_GIB, .requested = s.oom.requested
	};
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);
	assert_true(holds(&s, GPUCACHE_VERDICT_GROWTH));
}

/* PyTorch asks the driver on another way than for the tensor that it wants, which is as large as the next one must be. */
TEST(the_next_larger_block_does_not_outweigh_those_before_it)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_growth(&s);
	s.oom.growth_stack = s.oom.stack + 1;
	s.oom.grows_how = GPUCACHE_GROWS_RENEWED;
	s.oom.growth_held = 7 * GPC_GIB;
	s.oom.growth_blocks = 1;
	s.oom.growth_bytes = 5 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);
	/* Twice what it holds, or less than that, is something else. */
	s.oom.growth_held = 4 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	s.oom.growth_held = 9 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
}

/* 30 GiB of the program's 90 are idle in a pool of the driver, which does not give them back. */
TEST(what_idles_in_the_drivers_pools_is_not_held)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.requested -= 60 * GPC_GIB;
	s.oom.balance.direct = 60 * GPC_GIB;
	s.oom.kind_bytes[GPUCACHE_KIND_POOL] = 30 * GPC_GIB;
	s.oom.kind_bytes[GPUCACHE_KIND_ASYNC] = 1;
	judge(&s);
	assert_int_equal(s.facts.held, 60 * GPC_GIB);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_FRAGMENTED);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);
	/* Nothing holds it back but work that has not ended. */
	s.oom.kind_bytes[GPUCACHE_KIND_ASYNC] = 0;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_PENDING);
	assert_int_equal(s.answer.also, 0);
	/* Too little to matter. */
	s.oom.kind_bytes[GPUCACHE_KIND_POOL] = 4 * GPC_GIB - 1;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
}

TEST(a_cause_that_outweighs_growth_comes_first)
{
	struct scene s = scene_of_an_exhausted_gpu();

	/* It gave half of it back, and left holes: 94 GiB less 86 would be free. */
	make_fragmented(&s);
	make_growth_of_many_blocks(&s);
	s.oom.plain_live = 74 * GPC_GIB;
	s.oom.growth_total = 8 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_FRAGMENTED);
	assert_true(holds(&s, GPUCACHE_VERDICT_GROWTH));
	s.oom.growth_total = s.oom.growth_held;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);

	/* Another place asks for more than all that grew. */
	s = scene_of_an_exhausted_gpu();
	make_growth_of_many_blocks(&s);
	s.oom.n_free = s.oom.growth_blocks;
	s.oom.growth_stack = s.oom.stack + 1;
	s.oom.growth_bytes = s.oom.rounded;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	s.oom.growth_bytes++;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
	/* If nothing was freed, it loaded something before it asked for something else. */
	s.oom.n_free = 0;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);

	s = scene_of_an_exhausted_gpu();
	make_neighbour(&s);
	make_growth_of_many_blocks(&s);
	s.oom.growth_bytes = 10 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_NEIGHBOUR);
	s.oom.growth_bytes++;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_GROWTH);
}

TEST(a_limit_counts_no_contexts_and_whole_steps_of_the_driver)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.requested = 60 * GPC_GIB;
	s.oom.balance.device_free = 30 * GPC_GIB;
	s.oom.balance.direct = s.oom.kind_bytes[GPUCACHE_KIND_CONTEXT] = 4 * GPC_GIB;
	s.oom.limit = 68 * GPC_GIB;
	judge(&s);
	assert_false(holds(&s, GPUCACHE_VERDICT_LIMIT));
	s.oom.rounded++;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_LIMIT);
	s.oom.limit += 2 * GPC_MIB;
	judge(&s);
	assert_false(holds(&s, GPUCACHE_VERDICT_LIMIT));
	/* What the program asked the driver for counts. */
	s.oom.kind_bytes[GPUCACHE_KIND_CONTEXT] = 0;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_LIMIT);
}

TEST(without_holders_none_is_named)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.other_processes = 0;
	s.oom.balance.cached = 8 * GPC_GIB;
	s.oom.balance.requested = 85 * GPC_GIB;
	s.oom.plain_live = 95 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_false(holds(&s, GPUCACHE_VERDICT_NEIGHBOUR));
}

TEST(neighbours_whose_memory_would_come_in_pieces_are_likely)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_neighbour(&s);
	s.oom.balance.cached = 1 * GPC_GIB;
	s.oom.rounded += GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_NEIGHBOUR);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);
}

TEST(managed_memory_that_cannot_be_there_is_no_reason)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.direct = s.oom.kind_bytes[GPUCACHE_KIND_MANAGED] = 50 * GPC_GIB;
	s.oom.balance.requested = 96 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_CERTAIN);
	assert_false(holds(&s, GPUCACHE_VERDICT_MANAGED));
}

TEST(a_refusal_with_one_look_at_the_driver_is_likely)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.balance.device_free = 8 * GPC_GIB + 2 * GPC_MIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_DRIVER);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);
}

TEST(an_impossible_request_is_not_also_everything_else)
{
	struct scene s = scene_of_an_exhausted_gpu();

	make_growth(&s);
	make_spike(&s);
	make_untracked(&s);
	s.oom.balance.rounding = 20 * GPC_GIB;
	s.oom.rounded = s.oom.requested = 200 * GPC_GIB;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_IMPOSSIBLE);
	assert_int_equal(s.oom.also, 0);
}

TEST(the_largest_size_of_all_is_a_size_and_not_unknown)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.requested = UINT64_MAX;
	s.oom.rounded = 0; /* rounding up overflowed */
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_IMPOSSIBLE);
	assert_true(s.oom.short_by == UINT64_MAX - 1 - 4 * GPC_GIB);
}

TEST(pinned_host_memory_is_not_judged_by_the_device)
{
	struct scene s = scene_of_an_exhausted_gpu();

	s.oom.kind = GPUCACHE_KIND_HOST;
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_PINNED);
	assert_int_equal(s.oom.also, 0);
}

TEST(numbers_of_which_none_is_known_give_no_verdict)
{
	struct scene s = scene_of_an_exhausted_gpu();

	memset(&s.oom.balance, 0xff, sizeof s.oom.balance);
	judge(&s);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_NONE);
	assert_int_equal(s.oom.also, 0);
	assert_int_equal(s.oom.short_by, 0);
}
