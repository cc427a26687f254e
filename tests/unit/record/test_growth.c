/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/record/growth_scene.h"

FIXTURE(set_up, NULL);

TEST(a_leak_is_found_whatever_comes_and_goes_meanwhile)
{
	struct gpc_growth found;

	for (int n = 20; n < 500000; n *= 3) {
		assert_int_equal(set_up(NULL), 0);
		for (int i = 0; i < n; i++) {
			ask(12, false);
			ask(11, true);
		}
		found = find();
		assert_int_equal(found.most.stack, 11);
		/* The last windows are at least half of the run. */
		assert_true(found.most.bytes >= 100 * (uint64_t)n / 2);
		assert_true(found.most.bytes <= 100 * (uint64_t)n);
		assert_int_equal(found.most.held, 100 * n);
		assert_int_equal(found.most.n_blocks, n);
		assert_int_equal(found.others_bytes, 0);
		assert_int_equal(found.most.how, GPUCACHE_GROWS_STEADILY);
	}
}

/* The same line allocates what is kept and what is not. */
TEST(a_leak_below_what_comes_and_goes_is_found_by_its_own_size)
{
	struct gpc_growth found;

	for (int step = 0; step < 200; step++) {
		for (int i = 0; i < 20; i++)
			ask_for(11, 1000);
		ask_for(11, 100);
		for (int i = 0; i < 20; i++)
			give_back(11, 1000);
	}
	for (int i = 0; i < 10; i++)
		ask_for(11, 1000);
	found = find();
	assert_int_equal(found.most.stack, 11);
	assert_true(found.most.bytes >= 10000 && found.most.bytes <= 20000);
}

TEST(large_blocks_are_found_within_some_dozen)
{
	for (int i = 0; i < 12; i++)
		ask(11, true);
	assert_int_equal(find().most.stack, 11);
}

TEST(sawteeth_are_no_growth)
{
	/* Whatever the tooth's length, and however much of the last one is there. */
	for (int length = 1; length < 300; length += 7) {
		assert_int_equal(set_up(NULL), 0);
		for (int i = 0; i < 2000 + 5 * length; i++) {
			if (i % length == 0)
				while (sites[0].site.live_blocks)
					give_back(11, 100);
			ask(11, true);
		}
		assert_int_equal(find().most.stack, 0);
	}
}

TEST(what_was_filled_in_the_first_third_is_no_growth)
{
	for (int n = 24; n < 3000; n += 7) {
		assert_int_equal(set_up(NULL), 0);
		for (int i = 0; i < n; i++)
			ask(11, i < n / 3);
		assert_int_equal(find().most.stack, 0);
	}
}

/* Large blocks, then many small ones of another site: most bytes, but not the last allocations. */
TEST(what_was_filled_before_much_small_work_is_no_growth)
{
	for (int i = 0; i < 100; i++)
		ask_for(11, 100000);
	assert_int_equal(find().most.stack, 11);
	for (int i = 0; i < 100; i++)
		ask(12, false);
	assert_int_equal(find().most.stack, 0);
}

TEST(what_other_sites_keep_as_steadily_is_told)
{
	struct gpc_growth found;

	for (int i = 0; i < 300; i++) {
		ask(12, true);
		ask(11, true);
		ask(12, true);
	}
	found = find();
	assert_int_equal(found.most.stack, 12);
	assert_true(found.others_bytes >= found.most.bytes * 9 / 20);
	assert_true(found.others_bytes <= found.most.bytes * 11 / 20);
}

/* `n` blocks, each freed once a larger one is allocated. */
static void renew(uint32_t n, uint64_t n_turns, uint64_t by)
{
	for (uint64_t turn = 0; turn < n_turns; turn++)
		for (uint32_t i = 0; i < n; i++) {
			ask_for(11, 1000 + by * turn);
			ask(12, false);
			if (turn)
				give_back(11, 1000 + by * (turn - 1));
		}
}

TEST(what_is_replaced_and_larger_each_time_is_found)
{
	for (uint32_t n = 1; n <= 16; n *= 2) {
		struct gpc_growth found;

		assert_int_equal(set_up(NULL), 0);
		renew(n, 200, 100);
		found = find();
		assert_int_equal(found.most.stack, 11);
		assert_int_equal(found.most.how, GPUCACHE_GROWS_RENEWED);
		assert_true(
			found.most.bytes <= live_bytes() && found.most.bytes >= live_bytes() / 4);
		assert_int_equal(found.most.n_blocks, n);
	}
}

/* A step allocates what it needs, and frees it all. */
TEST(what_each_step_needs_more_of_is_found_at_the_top_of_a_step)
{
	for (uint64_t step = 0; step < 100; step++) {
		for (int i = 0; i < 10; i++)
			ask_for(11, 1000 + 50 * step);
		for (int i = 0; i < 10 && step < 99; i++)
			give_back(11, 1000 + 50 * step);
	}
	assert_int_equal(find().most.stack, 11);
	assert_int_equal(find().most.how, GPUCACHE_GROWS_STEPS);
}

TEST(what_is_replaced_beside_busy_threads_is_found)
{
	for (uint64_t turn = 0; turn < 200; turn++) {
		ask_for(11, 1000 + 100 * turn);
		if (turn)
			give_back(11, 900 + 100 * turn);
		/* Bursts of a window and more. */
		for (int i = 0; turn % 50 == 25 && i < 100; i++)
			ask(12, false);
	}
	assert_int_equal(find().most.stack, 11);
	assert_int_equal(find().most.how, GPUCACHE_GROWS_RENEWED);
}

/* Other threads make 99 of 100 requests, so most windows are without one of the growing site. */
static void renew_between_bursts(uint64_t by)
{
	for (uint64_t turn = 0; turn < 60; turn++) {
		ask_for(11, 1000 + by * turn);
		if (turn)
			give_back(11, 1000 + by * (turn - 1));
		for (int i = 0; turn % 12 == 11 && i < 1200; i++)
			ask(12, false);
	}
}

TEST(what_is_replaced_is_found_though_threads_ask_for_nearly_all)
{
	struct gpc_growth found;

	renew_between_bursts(100);
	found = find();
	assert_int_equal(found.most.stack, 11);
	assert_true(found.most.how == GPUCACHE_GROWS_RENEWED && found.most.n_blocks == 1);
	assert_true(found.most.bytes >= live_bytes() / 4 && found.most.bytes < live_bytes());
}

/* Many blocks, one after the other, then a large one: a batch that is too large. */
TEST(one_that_is_larger_than_all_before_is_no_growth)
{
	for (uint64_t larger = 2; larger <= 4096; larger *= 2) {
		assert_int_equal(set_up(NULL), 0);
		renew(1, 300, 0);
		ask_for(11, 1000 * larger);
		give_back(11, 1000);
		assert_int_equal(find().most.stack, 0);
	}
}

/* Normal work, and then a list of equal blocks until memory runs out. */
TEST(blocks_that_are_all_kept_are_not_called_renewed)
{
	for (uint64_t n = 10; n <= 60; n += 10) {
		assert_int_equal(set_up(NULL), 0);
		for (uint64_t i = 0; i < 300; i++) {
			ask_for(12, 10 + i);
			give_back(12, 10 + i);
		}
		for (uint64_t i = 0; i < n; i++)
			ask_for(11, 1000);
		assert_int_not_equal(find().most.how, GPUCACHE_GROWS_RENEWED);
	}
}

TEST(a_leak_is_to_blame_and_not_what_is_replaced_beside_it)
{
	for (int turn = 0; turn < 200; turn++) {
		ask(11, true);
		ask_for(12, 200);
		if (turn)
			give_back(12, 200);
	}
	assert_int_equal(find().most.stack, 11);
	assert_int_not_equal(find().most.how, GPUCACHE_GROWS_RENEWED);
}

TEST(blocks_of_many_sizes_are_told_from_equal_ones)
{
	for (uint64_t i = 0; i < 100; i++)
		ask_for(11, 100 + i);
	assert_int_equal(find().most.stack, 11);
	assert_false(find().most.is_varied);
	ask_for(11, 1000);
	assert_true(find().most.is_varied);
}

TEST(fewer_than_eight_windows_say_nothing)
{
	for (int i = 0; i < 7; i++)
		ask(11, true);
	assert_int_equal(find().most.stack, 0);
}

TEST(what_one_site_grew_by_is_told_whether_steadily_or_not)
{
	assert_int_equal(gpc_growth_lately(&sites[0].site, &sites[0].windows), 0);
	for (int i = 0; i < 100; i++)
		ask(12, false);
	for (int i = 0; i < 10; i++)
		ask(11, true);
	(void)find(); /* brings the windows up to date */
	assert_int_equal(gpc_growth_lately(&sites[0].site, &sites[0].windows), 1000);
	for (int i = 0; i < 1850; i++)
		ask(12, false);
	(void)find();
	assert_int_equal(gpc_growth_lately(&sites[0].site, &sites[0].windows), 0);
}

TEST(models_loaded_again_and_again_are_found_though_few_and_rarely)
{
	for (int n = 3; n < 9; n++) {
		assert_int_equal(set_up(NULL), 0);
		for (int model = 0; model < n; model++) {
			for (int i = 0; i < 12; i++)
				ask_for(11, 1000);
			for (int i = 0; i < 12; i++)
				ask(12, false), ask_for(12, 1000), give_back(12, 1000);
		}
		for (int i = 0; i < 7; i++)
			ask_for(11, 1000);
		assert_int_equal(find().most.stack, 11);
		assert_int_equal(find().most.how, GPUCACHE_GROWS_AGAIN);
	}
}

/* Each layer has a large weight and a small one; little is freed meanwhile. */
TEST(the_layers_of_one_model_are_not_loaded_again)
{
	for (int n = 12; n < 100; n += 7) {
		assert_int_equal(set_up(NULL), 0);
		ask(13, false);
		for (int i = 0; i < n; i++) {
			ask_for(11, 1000);
			ask_for(12, 1);
			if (i % 8 == 0)
				ask(13, false);
		}
		assert_int_not_equal(find().most.how, GPUCACHE_GROWS_AGAIN);
	}
}

TEST(a_buffer_that_doubles_is_found_by_the_request_that_fails)
{
	uint64_t size = 1;

	ask_for(13, 1);
	ask_for(11, size);
	for (int i = 0; i < 12; i++) {
		for (int k = 0; k < 100; k++)
			ask(12, false);
		ask_for(11, size * 2);
		give_back(11, size);
		size *= 2;
	}
	request = (struct gpc_growth_request){ 11, 2 * size };
	assert_int_equal(find().most.stack, 11);
	assert_int_equal(find().most.how, GPUCACHE_GROWS_RENEWED);
}

/* Each step frees all, but needs more than the one before. */
TEST(what_each_step_needs_counts_with_the_request_that_fails)
{
	ask_for(13, 11000);
	for (uint64_t i = 10; i < 200; i++) {
		ask_for(11, i);
		give_back(11, i);
	}
	assert_int_equal(find().most.stack, 0);
	request = (struct gpc_growth_request){ 11, 200 };
	assert_int_equal(find().most.stack, 11);
	assert_int_equal(find().most.how, GPUCACHE_GROWS_RENEWED);
}

/* Two lines of a step, each with one block; a single one may be a buffer, which stays. */
TEST(what_each_step_needs_and_frees_is_told_from_what_is_replaced)
{
	for (uint64_t i = 100; i < 2000; i++) {
		ask_for(12, 2 * i);
		ask_for(11, i);
		if (i == 1999)
			break;
		give_back(11, i);
		give_back(12, 2 * i);
	}
	assert_int_equal(find().most.stack, 12);
	assert_int_equal(find().most.how, GPUCACHE_GROWS_STEPS);
	memset(&sites[0], 0, sizeof sites[0]);
	assert_int_equal(find().most.how, GPUCACHE_GROWS_RENEWED);
}

TEST(blocks_that_are_replaced_but_no_larger_or_no_longer_held_are_no_growth)
{
	renew_between_bursts(0);
	assert_int_equal(find().most.stack, 0);
	assert_int_equal(set_up(NULL), 0);
	renew(8, 200, 0);
	assert_int_equal(find().most.stack, 0);
	/* It held more before. */
	assert_int_equal(set_up(NULL), 0);
	renew_between_bursts(100);
	ask_for(11, 20000);
	give_back(11, 20000);
	for (int i = 0; i < 3000; i++)
		ask(12, false);
	assert_int_equal(find().most.stack, 0);
	/* Larger ones at last, as a long sentence makes them, and smaller ones between. */
	assert_int_equal(set_up(NULL), 0);
	for (uint64_t turn = 0, last = 0; turn < 60; turn++) {
		uint64_t size = 1000 + 100 * (turn % 2 ? turn : 60 - turn);

		ask_for(11, size);
		if (turn)
			give_back(11, last);
		last = size;
		for (int i = 0; turn % 12 == 11 && i < 300; i++)
			ask(12, false);
	}
	ask_for(11, 20000);
	assert_int_equal(find().most.stack, 0);
}
