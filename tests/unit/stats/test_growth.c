/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <stdbool.h>

#include "stats/growth.h"

#define MAX_BLOCKS 4096

/* The requests of a program's sites over time, and the blocks kept at the end. */
static struct gpc_growth growth;
static struct gpucache_block blocks[MAX_BLOCKS];
static uint32_t n_blocks;
static uint64_t n_mallocs;
static struct gpucache_holder holders[] = { { .stack = 11 }, { .stack = 12 } };
static struct gpucache_site sites[] = { { 0 }, { .stack = 11 }, { .stack = 12 } };
static struct gpucache_event events[2048]; /* of mallocs only */
static uint64_t live_bytes;
static uint64_t peak_bytes;

static int set_up(void **state)
{
	(void)state;
	gpc_growth_init(&growth);
	memset(blocks, 0, sizeof blocks);
	memset(events, 0, sizeof events);
	n_blocks = 0;
	n_mallocs = 0;
	live_bytes = 0;
	peak_bytes = 0;
	for (size_t i = 0; i < N_OF(holders); i++) {
		holders[i].bytes = 0;
		sites[1 + i] = (struct gpucache_site){ .stack = sites[1 + i].stack };
	}
	return 0;
}

/* One allocation at a new time; a kept block stays in the table. */
static void ask_for(uint32_t stack, uint64_t bytes, bool is_kept)
{
	size_t i = stack == 12;

	events[n_mallocs % N_OF(events)] = (struct gpucache_event){ .seq = n_mallocs + 1,
		.kind = GPUCACHE_EVENT_MALLOC,
		.stack = stack,
		.requested = bytes };
	n_mallocs++;
	if (is_kept)
		blocks[n_blocks++] = (struct gpucache_block){ .state = GPUCACHE_BLOCK_LIVE,
			.kind = GPUCACHE_KIND_DEVICE,
			.stack = stack,
			.requested = bytes,
			.time_ns = 1000 * n_mallocs };
	if (live_bytes + bytes > peak_bytes)
		peak_bytes = live_bytes + bytes;
	sites[1 + i].total_bytes += bytes;
	sites[1 + i].total_blocks++;
	if (is_kept) {
		live_bytes += bytes;
		holders[i].bytes += bytes;
		sites[1 + i].live_bytes += bytes;
		sites[1 + i].live_blocks++;
	}
	if (sites[1 + i].live_bytes > sites[1 + i].peak_bytes)
		sites[1 + i].peak_bytes = sites[1 + i].live_bytes;
	gpc_growth_note(&growth, n_mallocs, 1000 * n_mallocs, peak_bytes);
}

static void ask(uint32_t stack, bool is_kept)
{
	ask_for(stack, 100, is_kept);
}

/* Gives back a block of the table. */
static void give_back(uint32_t b)
{
	size_t i = blocks[b].stack == 12;

	blocks[b].state = GPUCACHE_BLOCK_FREE;
	live_bytes -= blocks[b].requested;
	holders[i].bytes -= blocks[b].requested;
	sites[1 + i].live_bytes -= blocks[b].requested;
	sites[1 + i].live_blocks--;
}

/* `end_event`: what was the next one when the look began. */
static struct gpc_growing find_as_of(uint64_t end_event)
{
	const struct gpc_growth_view view = { .holders = holders,
		.n_holders = N_OF(holders),
		.sites = sites,
		.n_sites = N_OF(sites),
		.blocks = blocks,
		.n_blocks = n_blocks,
		.events = events,
		.n_events = N_OF(events),
		.end_event = end_event };

	return gpc_growth_find(&growth, &view);
}

static struct gpc_growing find(void)
{
	return find_as_of(n_mallocs);
}

static void a_leak_is_found_whatever_comes_and_goes_beside_it(void **state)
{
	struct gpc_growing found;

	(void)state;
	for (int i = 0; i < 400; i++) {
		ask(12, false);
		ask(11, true);
	}
	found = find();
	assert_int_equal(found.stack, 11);
	assert_true(found.n_up >= 7);
	assert_int_equal(found.bytes, 100 * found.n_blocks);
	/* Eight windows are at least half of the run: every second moment is dropped when sixteen are noted. */
	assert_true(found.n_blocks >= 200 && found.n_blocks <= 400);
	assert_int_equal(found.others_bytes, 0);
}

static void large_blocks_are_found_within_some_dozen(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		ask(11, true);
	assert_int_equal(find().stack, 11);
}

static void sawteeth_are_no_growth(void **state)
{
	(void)state;
	/* Whatever the tooth's length, of which only the last is there. */
	for (int teeth = 3; teeth < 60; teeth++) {
		assert_int_equal(set_up(NULL), 0);
		for (int i = 0; i < 1000; i++)
			ask(11, i / (1000 / teeth + 1) == 999 / (1000 / teeth + 1));
		assert_int_equal(find().stack, 0);
	}
}

static void what_was_filled_in_the_first_third_is_no_growth(void **state)
{
	(void)state;
	for (int n = 24; n < 3000; n += 7) {
		assert_int_equal(set_up(NULL), 0);
		for (int i = 0; i < n; i++)
			ask(11, i < n / 3);
		assert_int_equal(find().stack, 0);
	}
}

static void what_other_sites_keep_as_steadily_is_told(void **state)
{
	struct gpc_growing found;

	(void)state;
	for (int i = 0; i < 300; i++) {
		ask(12, true);
		ask(11, true);
		ask(12, true);
	}
	found = find();
	assert_int_equal(found.stack, 12);
	assert_true(found.others_bytes >= found.bytes * 9 / 20);
	assert_true(found.others_bytes <= found.bytes * 11 / 20);
}

static void what_one_stack_keeps_is_told_also_of_a_short_run(void **state)
{
	(void)state;
	assert_int_equal(gpc_growth_of(&growth, 0, 11, blocks, n_blocks), 0);
	for (int i = 0; i < 6; i++) {
		ask(11, true);
		ask(12, i % 2);
	}
	/* The first moment is the second allocation: five and three of what came later are kept. */
	assert_int_equal(gpc_growth_of(&growth, 0, 11, blocks, n_blocks), 500);
	assert_int_equal(gpc_growth_of(&growth, 0, 12, blocks, n_blocks), 300);
	assert_int_equal(gpc_growth_of(&growth, 0, 0, blocks, n_blocks), 0);
	assert_int_equal(gpc_growth_of(&growth, 1, 11, blocks, n_blocks), 0);
	for (int i = 0; i < 1000; i++)
		ask(13, false);
	assert_int_equal(gpc_growth_of(&growth, 0, 11, blocks, n_blocks), 0);
}

static void a_loop_that_began_late_is_found_unless_it_gave_back(void **state)
{
	struct gpc_growing found;

	(void)state;
	/* At most an eighth of the run before it is left to see it in. */
	for (int n = 200; n < 1200; n += 50) {
		assert_int_equal(set_up(NULL), 0);
		for (int i = 0; i < 3 * n; i++)
			ask(12, false);
		for (int i = 0; i < n; i++)
			ask(11, true);
		found = find();
		assert_int_equal(found.stack, 11);
		assert_true(found.n_blocks >= GPC_GROWTH_MANY_BLOCKS);
		assert_true(found.bytes <= live_bytes);
		sites[1].total_bytes = sites[1].live_bytes * 5 / 4;
		assert_int_equal(find().stack, 0);
	}
}

static void the_layers_of_a_model_that_came_late_are_no_growth(void **state)
{
	(void)state;
	for (int i = 0; i < 500; i++)
		ask(12, false);
	for (uint32_t i = 0; i < GPC_GROWTH_MANY_BLOCKS - 1; i++)
		ask(11, true);
	assert_int_equal(find().stack, 0);
}

/* `n` blocks, each freed once a larger one is allocated. */
static void renew(uint32_t n, int n_turns, uint64_t by)
{
	for (int turn = 0; turn < n_turns; turn++)
		for (uint32_t i = 0; i < n; i++) {
			ask_for(11, 1000 + by * (uint64_t)turn, true);
			ask(12, false);
			if (turn)
				give_back(n_blocks - n - 1);
		}
}

static void what_is_renewed_and_larger_each_time_is_found(void **state)
{
	struct gpc_growing found;

	(void)state;
	for (uint32_t n = 1; n <= 16; n *= 2) {
		assert_int_equal(set_up(NULL), 0);
		renew(n, 200, 100);
		found = find();
		assert_int_equal(found.stack, 11);
		assert_true(found.is_renewed);
		assert_true(found.bytes <= live_bytes && found.bytes >= live_bytes / 4);
		assert_true(found.n_blocks >= n);
	}
}

static void what_is_renewed_beside_busy_threads_is_found(void **state)
{
	(void)state;
	for (int turn = 0; turn < 200; turn++) {
		ask_for(11, 1000 + 100 * (uint64_t)turn, true);
		if (turn)
			give_back(n_blocks - 2);
		/* Bursts of a window and more. */
		for (int i = 0; turn % 50 == 25 && i < 100; i++)
			ask(12, false);
	}
	assert_int_equal(find().stack, 11);
	assert_true(find().is_renewed);
}

/*
 * Other threads make 99 of 100 requests, so few samples are of the growing site, and none in the last part of the run.
 */
static void renew_between_bursts(uint64_t by)
{
	for (int turn = 0; turn < 60; turn++) {
		ask_for(11, 1000 + by * (uint64_t)turn, true);
		if (turn)
			give_back(n_blocks - 2);
		for (int i = 0; turn % 12 == 11 && i < 1200; i++)
			ask(12, false);
	}
}

static void what_is_renewed_is_found_though_threads_ask_for_nearly_all(void **state)
{
	struct gpc_growing found;

	(void)state;
	renew_between_bursts(100);
	found = find();
	assert_int_equal(found.stack, 11);
	assert_true(found.is_renewed && found.n_blocks == 1);
	assert_true(found.bytes >= live_bytes / 4 && found.bytes < live_bytes);
}

static void what_is_renewed_is_found_though_the_ring_has_forgotten_it(void **state)
{
	(void)state;
	renew_between_bursts(100);
	for (int i = 0; i < 2 * (int)N_OF(events); i++)
		ask(12, false);
	assert_int_equal(find().stack, 11);
	assert_true(find().is_renewed);
}

static void what_is_renewed_is_found_though_the_ring_forgets_it_during_the_look(void **state)
{
	uint64_t end_event;

	(void)state;
	for (int turn = 0; turn < 60; turn++) {
		ask_for(11, 1000 + 100 * (uint64_t)turn, true);
		if (turn)
			give_back(n_blocks - 2);
	}
	end_event = n_mallocs;
	assert_true(end_event < N_OF(events));
	for (int i = 0; i < 2 * (int)N_OF(events); i++)
		ask(12, false);
	assert_int_equal(find_as_of(end_event).stack, 11);
	assert_true(find_as_of(end_event).is_renewed);
	/* Few are there because there were few. */
	memset(events, 0, sizeof events);
	assert_int_equal(find_as_of(end_event).stack, 0);
}

static void blocks_that_are_replaced_but_no_larger_or_no_longer_held_are_no_growth(void **state)
{
	(void)state;
	renew_between_bursts(0);
	assert_int_equal(find().stack, 0);
	/* It held more before. */
	assert_int_equal(set_up(NULL), 0);
	renew_between_bursts(100);
	ask_for(11, 20000, true);
	give_back(n_blocks - 1);
	assert_int_equal(find().stack, 0);
	/* Larger ones at last, as a long sentence makes them, and smaller ones between. */
	assert_int_equal(set_up(NULL), 0);
	for (uint64_t turn = 0; turn < 60; turn++) {
		ask_for(11, 1000 + 100 * (turn % 2 ? turn : 60 - turn), true);
		if (turn)
			give_back(n_blocks - 2);
		for (int i = 0; turn % 12 == 11 && i < 300; i++)
			ask(12, false);
	}
	ask_for(11, 20000, true);
	assert_int_equal(find().stack, 0);
	/* A few, once. */
	assert_int_equal(set_up(NULL), 0);
	for (uint64_t i = 1; i < 400; i++) {
		ask_for(11, i < 4 ? 1000 * i : 10, i < 4);
		if (i == 2 || i == 3)
			give_back(n_blocks - 2);
	}
	assert_int_equal(find().stack, 0);
}

/* Many small blocks, one after the other, then a large one: a batch that is too large. */
static void one_that_is_larger_than_all_before_is_no_growth(void **state)
{
	(void)state;
	for (uint64_t larger = 2; larger <= 4096; larger *= 2) {
		assert_int_equal(set_up(NULL), 0);
		renew(1, 300, 0);
		ask_for(11, 1000 * larger, true);
		give_back(n_blocks - 2);
		assert_false(find().is_renewed);
	}
}

static void what_is_renewed_at_its_size_is_no_growth(void **state)
{
	(void)state;
	renew(8, 200, 0);
	assert_int_equal(find().stack, 0);
}

/* Normal work, and then a list of equal blocks until memory runs out. */
static void blocks_that_are_all_kept_are_not_called_renewed(void **state)
{
	(void)state;
	for (uint64_t n = 10; n <= 60; n += 10) {
		assert_int_equal(set_up(NULL), 0);
		for (uint64_t i = 0; i < 300; i++)
			ask_for(12, 10 + i, false);
		for (uint64_t i = 0; i < n; i++)
			ask_for(11, 1000, true);
		assert_false(find().is_renewed);
	}
}

static void beside_a_leak_what_is_renewed_is_not_to_blame(void **state)
{
	(void)state;
	for (int turn = 0; turn < 200; turn++) {
		ask(11, true);
		ask_for(12, 200, true);
		if (turn)
			give_back(n_blocks - 3);
	}
	assert_int_equal(find().stack, 11);
	assert_false(find().is_renewed);
}

static void blocks_of_many_sizes_are_told_from_equal_ones(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		ask_for(11, 100 + i, true);
	assert_int_equal(find().stack, 11);
	assert_false(find().is_varied);
	ask_for(11, 1000, true);
	assert_true(find().is_varied);
}

static void fewer_than_eight_windows_say_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 15; i++)
		ask(11, true);
	assert_int_equal(find().stack, 0);
}

static void what_is_on_another_device_or_the_drivers_own_is_not_seen(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		ask(11, true);
		ask(12, true);
	}
	for (uint32_t i = 0; i < n_blocks; i += 2) {
		blocks[i].device = 1;
		blocks[i + 1].kind = GPUCACHE_KIND_CONTEXT;
	}
	assert_int_equal(find().stack, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_leak_is_found_whatever_comes_and_goes_beside_it, set_up),
		cmocka_unit_test_setup(large_blocks_are_found_within_some_dozen, set_up),
		cmocka_unit_test_setup(sawteeth_are_no_growth, set_up),
		cmocka_unit_test_setup(what_was_filled_in_the_first_third_is_no_growth, set_up),
		cmocka_unit_test_setup(what_other_sites_keep_as_steadily_is_told, set_up),
		cmocka_unit_test_setup(what_one_stack_keeps_is_told_also_of_a_short_run, set_up),
		cmocka_unit_test_setup(a_loop_that_began_late_is_found_unless_it_gave_back, set_up),
		cmocka_unit_test_setup(the_layers_of_a_model_that_came_late_are_no_growth, set_up),
		cmocka_unit_test_setup(what_is_renewed_and_larger_each_time_is_found, set_up),
		cmocka_unit_test_setup(what_is_renewed_beside_busy_threads_is_found, set_up),
		cmocka_unit_test_setup(
			what_is_renewed_is_found_though_threads_ask_for_nearly_all, set_up),
		cmocka_unit_test_setup(
			what_is_renewed_is_found_though_the_ring_has_forgotten_it, set_up),
		cmocka_unit_test_setup(
			what_is_renewed_is_found_though_the_ring_forgets_it_during_the_look,
			set_up),
		cmocka_unit_test_setup(
			blocks_that_are_replaced_but_no_larger_or_no_longer_held_are_no_growth,
			set_up),
		cmocka_unit_test_setup(one_that_is_larger_than_all_before_is_no_growth, set_up),
		cmocka_unit_test_setup(what_is_renewed_at_its_size_is_no_growth, set_up),
		cmocka_unit_test_setup(blocks_that_are_all_kept_are_not_called_renewed, set_up),
		cmocka_unit_test_setup(beside_a_leak_what_is_renewed_is_not_to_blame, set_up),
		cmocka_unit_test_setup(blocks_of_many_sizes_are_told_from_equal_ones, set_up),
		cmocka_unit_test_setup(fewer_than_eight_windows_say_nothing, set_up),
		cmocka_unit_test_setup(
			what_is_on_another_device_or_the_drivers_own_is_not_seen, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
