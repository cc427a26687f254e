/* SPDX-License-Identifier: Apache-2.0 */
/* What the last windows of a run hide: leaks that began late, and steps that are larger than usual. */
#include "tests/unit/record/growth_scene.h"

FIXTURE(set_up, NULL);

TEST(a_loop_that_began_late_is_found_unless_it_gave_back)
{
	for (int n = 200; n < 1200; n += 50) {
		assert_int_equal(set_up(NULL), 0);
		for (int i = 0; i < 3 * n; i++)
			ask(12, false);
		for (int i = 0; i < n; i++)
			ask(11, true);
		assert_int_equal(find().most.stack, 11);
		assert_true(find().most.bytes <= live_bytes());
		sites[0].site.total_bytes = sites[0].site.live_bytes * 5 / 4;
		assert_int_equal(find().most.stack, 0);
	}
}

/* Weights that are loaded first take most of the bytes, and so of the windows; the loop has the rest. */
TEST_WITH(a_loop_that_began_after_a_load_is_found, NULL, NULL)
{
	for (int part = 1; part < 7; part++) {
		assert_int_equal(set_up(NULL), 0);
		for (int i = 0; i < 100 * part; i++)
			ask(13, true);
		for (int i = 0; i < 100 * (8 - part); i++) {
			ask(12, false);
			ask(11, true);
		}
		if (find().most.stack != 11)
			fail_msg("%d of 8 loaded: %u", part, find().most.stack);
	}
}

/* After up to 10,000 steps in which nothing stayed, each step keeps a block: sooner or later the GPU is full of them. */
TEST_WITH(a_leak_is_found_however_late_it_began, NULL, NULL)
{
	for (int steady = 100; steady <= 10000; steady *= 10)
		for (uint64_t n = 14; n < 100; n += 17) {
			assert_int_equal(set_up(NULL), 0);
			ask_for(13, 1000);
			for (uint64_t i = 0; i < (uint64_t)steady + n; i++) {
				ask(12, false);
				if (i >= (uint64_t)steady)
					ask(11, true);
			}
			assert_int_equal(find().most.stack, 11);
			assert_true(find().most.bytes >= n * 100 / 2);
			assert_true(find().most.n_frees >= n / 2);
		}
}

/* Its layers keep a block each, and free another: by lines of which no earlier step came. */
TEST_WITH(a_first_step_of_another_kind_is_no_growth, NULL, NULL)
{
	for (int steady = 100; steady <= 10000; steady *= 10) {
		assert_int_equal(set_up(NULL), 0);
		for (int i = 0; i < steady; i++)
			ask(13, false);
		for (uint32_t i = 0; i < 100; i++) {
			ask(12, false);
			ask(11, true);
		}
		assert_int_equal(find().most.stack, 0);
	}
}

TEST(the_layers_of_a_model_that_came_late_are_no_growth)
{
	for (int i = 0; i < 500; i++)
		ask(12, false);
	for (uint32_t i = 0; i < GPC_MANY_BLOCKS - 1; i++)
		ask(11, true);
	assert_int_equal(find().most.stack, 0);
}

/* The same line frees its block at first, and keeps it later; another one comes and goes. */
TEST(a_line_that_begins_to_keep_its_blocks_late_is_found)
{
	static const int cases[][4] = {
		/* steps, then kept, its block, the other's */
		{ 64, 94, 103, 289 },
		{ 1400, 40, 250, 7 },
		{ 79, 17, 776, 1 },
		{ 50, 26, 3980, 1 },
	};

	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		assert_int_equal(set_up(NULL), 0);
		ask_for(13, 11000);
		for (int i = 0; i < cases[c][0] + cases[c][1]; i++) {
			ask_for(12, (uint64_t)cases[c][3]);
			ask_for(11, (uint64_t)cases[c][2]);
			if (i < cases[c][0])
				give_back(11, (uint64_t)cases[c][2]);
			give_back(12, (uint64_t)cases[c][3]);
		}
		ask_for(12, (uint64_t)cases[c][3]);
		assert_int_equal(find().most.stack, 11);
		assert_true(find().most.n_frees >= (uint64_t)cases[c][1] / 2);
	}
}

TEST(a_step_that_is_larger_than_those_before_it_is_no_growth)
{
	for (int at = 10; at < 300; at += 13) {
		assert_int_equal(set_up(NULL), 0);
		ask_for(13, 11000);
		for (int i = 0; i < at; i++) {
			ask_for(11, 100);
			ask_for(11, 100);
			give_back(11, 100);
			give_back(11, 100);
		}
		for (int i = 0; i < 60; i++)
			ask_for(11, 100);
		if (find().most.stack) /* in many blocks it may be a leak: what was freed meanwhile tells */
			assert_true(find().most.n_frees < 12);
	}
}

/* Results of varied sizes, of which the last is huge: what came before rose by chance, if at all. */
TEST(one_huge_block_after_varied_ones_is_no_growth)
{
	for (uint64_t i = 0; i < 1000; i++) {
		ask_for(11, 9000 + 2 * i + i * 7919 % 100);
		if (i < 999)
			give_back(11, 9000 + 2 * i + i * 7919 % 100);
	}
	ask_for(11, 1000000);
	request = (struct gpc_growth_request){ 12, 1000000 };
	assert_int_equal(find().most.stack, 0);
}

/* Caches of 24 layers, twice as long each time, while another line frees a block for each. */
TEST(as_many_blocks_as_before_but_larger_are_not_kept)
{
	for (uint64_t size = 100; size <= 800; size *= 2) {
		for (int i = 0; i < 24; i++)
			ask_for(11, size);
		for (int i = 0; i < 24; i++)
			ask(12, false);
		for (int i = 0; i < 24 && size < 800; i++)
			give_back(11, size);
	}
	assert_int_equal(find().most.stack, 0);
}
