/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdlib.h>

#include "sim/gpu/memory/slots.h"

static struct gpc_sim_small *small;

static int set_up(void **state)
{
	small = calloc(1, sizeof *small);
	if (!small)
		return -1;
	gpc_sim_slots_init(small);
	return 0;
}

static int tear_down(void **state)
{
	free(small);
	return 0;
}

FIXTURE(set_up, tear_down);

static bool is_free(uint32_t i)
{
	return !(small->used[i / 64] >> (i % 64) & 1);
}

/* The first of n free slots in a row and the most in a row, slot by slot. */
static uint32_t find_plainly(uint32_t n, uint32_t *ret_longest)
{
	uint32_t first = GPC_SIM_SLOTS;
	uint32_t run = 0;

	*ret_longest = 0;
	for (uint32_t i = 0; i < GPC_SIM_SLOTS; i++) {
		run = is_free(i) ? run + 1 : 0;
		if (run > *ret_longest)
			*ret_longest = run;
		if (run == n && first == GPC_SIM_SLOTS)
			first = i + 1 - n;
	}
	return first;
}

TEST(an_empty_chunk_is_one_run)
{
	assert_int_equal(gpc_sim_slots_longest(small), GPC_SIM_SLOTS);
	assert_int_equal(gpc_sim_slots_find(small, 1), 0);
	assert_int_equal(gpc_sim_slots_find(small, GPC_SIM_SLOTS), 0);
	gpc_sim_slots_flip(small, 0, GPC_SIM_SLOTS);
	assert_int_equal(gpc_sim_slots_longest(small), 0);
	assert_int_equal(gpc_sim_slots_find(small, 1), GPC_SIM_SLOTS);
}

TEST(runs_cross_words_and_halves)
{
	gpc_sim_slots_flip(small, 0, GPC_SIM_SLOTS);
	gpc_sim_slots_flip(small, GPC_SIM_SLOTS / 2 - 70, 140);
	assert_int_equal(gpc_sim_slots_longest(small), 140);
	assert_int_equal(gpc_sim_slots_find(small, 140), GPC_SIM_SLOTS / 2 - 70);
	assert_int_equal(gpc_sim_slots_find(small, 141), GPC_SIM_SLOTS);
}

TEST(the_first_fit_is_that_of_a_search_slot_by_slot)
{
	uint32_t length[GPC_SIM_SLOTS] = { 0 };
	unsigned seed = 1;

	for (int step = 0; step < 20000; step++) {
		uint32_t n = 1 + (uint32_t)rand_r(&seed) % (step % 100 ? 24 : 400);
		uint32_t from = (uint32_t)rand_r(&seed) % GPC_SIM_SLOTS;
		uint32_t longest;
		uint32_t at = find_plainly(n, &longest);

		assert_int_equal(gpc_sim_slots_find(small, n), at);
		assert_int_equal(gpc_sim_slots_longest(small), longest);
		if (at < GPC_SIM_SLOTS) {
			gpc_sim_slots_flip(small, at, n);
			length[at] = n;
		}
		for (uint32_t i = from; i < GPC_SIM_SLOTS && i < from + 8; i++) {
			if (length[i])
				gpc_sim_slots_flip(small, i, length[i]);
			length[i] = 0;
		}
	}
}

TEST(a_chunk_is_taken_whole_and_is_whole_again)
{
	for (uint32_t n = 1; n <= GPC_SIM_SLOTS; n += 63) {
		assert_int_equal(gpc_sim_slots_find(small, n), 0);
		gpc_sim_slots_flip(small, 0, n);
		assert_int_equal(gpc_sim_slots_longest(small), GPC_SIM_SLOTS - n);
		gpc_sim_slots_flip(small, 0, n);
		assert_int_equal(gpc_sim_slots_longest(small), GPC_SIM_SLOTS);
	}
}
