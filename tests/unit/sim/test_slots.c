/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdlib.h>

#include "sim/slots.h"

static struct gpc_sim_small *small;
static uint64_t seed = 1;

static int set_up(void **state)
{
	(void)state;
	small = calloc(1, sizeof *small);
	if (!small)
		return -1;
	gpc_sim_slots_init(small);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(small);
	return 0;
}

static uint32_t below(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed % n);
}

/* Slot by slot: what the tree must find, and the longest run. */
static uint32_t find_slowly(uint32_t n, uint32_t *ret_longest)
{
	uint32_t first = GPC_SIM_SLOTS;
	uint32_t run = 0;

	*ret_longest = 0;
	for (uint32_t i = 0; i < GPC_SIM_SLOTS; i++) {
		run = gpc_sim_slots_is_free(small, i) ? run + 1 : 0;
		if (run > *ret_longest)
			*ret_longest = run;
		if (run == n && first == GPC_SIM_SLOTS)
			first = i + 1 - n;
	}
	return first;
}

static void an_empty_chunk_is_one_run(void **state)
{
	(void)state;
	assert_int_equal(gpc_sim_slots_longest(small), GPC_SIM_SLOTS);
	assert_int_equal(gpc_sim_slots_find(small, 1), 0);
	assert_int_equal(gpc_sim_slots_find(small, GPC_SIM_SLOTS), 0);
	gpc_sim_slots_flip(small, 0, GPC_SIM_SLOTS);
	assert_int_equal(gpc_sim_slots_longest(small), 0);
	assert_int_equal(gpc_sim_slots_find(small, 1), GPC_SIM_SLOTS);
}

static void runs_cross_words_and_halves(void **state)
{
	(void)state;
	gpc_sim_slots_flip(small, 0, GPC_SIM_SLOTS);
	gpc_sim_slots_flip(small, GPC_SIM_SLOTS / 2 - 70, 140);
	assert_int_equal(gpc_sim_slots_longest(small), 140);
	assert_int_equal(gpc_sim_slots_find(small, 140), GPC_SIM_SLOTS / 2 - 70);
	assert_int_equal(gpc_sim_slots_find(small, 141), GPC_SIM_SLOTS);
}

static void the_first_run_that_is_long_enough_is_found(void **state)
{
	uint32_t taken[GPC_SIM_SLOTS] = { 0 }; /* slots of what begins there */

	(void)state;
	for (unsigned turn = 0; turn < 3000; turn++) {
		uint32_t n = 1 + below(turn % 7 ? 9 : 200);
		uint32_t longest;
		uint32_t first = find_slowly(n, &longest);
		uint32_t victim = below(GPC_SIM_SLOTS);

		assert_int_equal(gpc_sim_slots_find(small, n), first);
		assert_int_equal(gpc_sim_slots_longest(small), longest);
		if (first < GPC_SIM_SLOTS) {
			gpc_sim_slots_flip(small, first, n);
			taken[first] = n;
		}
		if (turn % 3 == 0 && taken[victim]) {
			gpc_sim_slots_flip(small, victim, taken[victim]);
			taken[victim] = 0;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_empty_chunk_is_one_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(runs_cross_words_and_halves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			the_first_run_that_is_long_enough_is_found, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
