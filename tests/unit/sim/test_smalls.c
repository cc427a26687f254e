/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "sim/smalls.h"

#define N_CHUNKS 5

static struct gpc_sim_small chunks[N_CHUNKS];

/* The first of n free slots in a row and the most in a row, slot by slot. */
static uint32_t find_plainly(const struct gpc_sim_small *small, uint32_t n, uint32_t *ret_longest)
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

static void the_first_fit_is_that_of_a_search_slot_by_slot(void **state)
{
	struct gpc_sim_small *small = &chunks[0];
	uint32_t length[GPC_SIM_SLOTS] = { 0 };
	unsigned seed = 1;

	(void)state;
	*small = (struct gpc_sim_small){ 0 };
	gpc_sim_slots_init(small);
	for (int step = 0; step < 20000; step++) {
		uint32_t n = 1 + (uint32_t)rand_r(&seed) % (step % 100 ? 24 : 400);
		uint32_t from = (uint32_t)rand_r(&seed) % GPC_SIM_SLOTS;
		uint32_t longest;
		uint32_t at = find_plainly(small, n, &longest);

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

static void a_chunk_is_taken_whole_and_is_whole_again(void **state)
{
	struct gpc_sim_small *small = &chunks[0];

	(void)state;
	*small = (struct gpc_sim_small){ 0 };
	gpc_sim_slots_init(small);
	for (uint32_t n = 1; n <= GPC_SIM_SLOTS; n += 63) {
		assert_int_equal(gpc_sim_slots_find(small, n), 0);
		gpc_sim_slots_flip(small, 0, n);
		assert_int_equal(gpc_sim_slots_longest(small), GPC_SIM_SLOTS - n);
		gpc_sim_slots_flip(small, 0, n);
		assert_int_equal(gpc_sim_slots_longest(small), GPC_SIM_SLOTS);
	}
}

/* Chunks come and go and fill, far more often than there are places. */
static void the_newest_chunk_of_its_owner_with_room_is_found(void **state)
{
	struct gpc_sim_smalls smalls;
	struct gpc_sim_small *by_age[N_CHUNKS]; /* of the table; the rest of chunks */
	uint32_t n_in = 0;
	unsigned seed = 1;

	(void)state;
	assert_true(gpc_sim_smalls_init(&smalls, N_CHUNKS));
	for (uint32_t i = 0; i < N_CHUNKS; i++)
		by_age[i] = &chunks[i];
	for (int step = 0; step < 20000; step++) {
		uint32_t k = (uint32_t)rand_r(&seed) % N_CHUNKS;
		struct gpc_sim_small *small = by_age[k];
		uint32_t n = 1 + (uint32_t)rand_r(&seed) % GPC_SIM_SLOTS;
		uint32_t owner = (uint32_t)rand_r(&seed) % 2;
		struct gpc_sim_small *expected = NULL;

		if (k >= n_in) {
			by_age[k] = by_age[n_in];
			by_age[n_in++] = small;
			*small = (struct gpc_sim_small){ .owner = owner };
			gpc_sim_slots_init(small);
			gpc_sim_slots_flip(small, 0, n);
			gpc_sim_smalls_add(&smalls, small);
		} else if (rand_r(&seed) % 4 == 0) {
			gpc_sim_smalls_remove(&smalls, small);
			memmove(&by_age[k], &by_age[k + 1], (--n_in - k) * sizeof(void *));
			by_age[n_in] = small;
		} else if (gpc_sim_slots_longest(small) < GPC_SIM_SLOTS) {
			gpc_sim_slots_flip(small, 0, GPC_SIM_SLOTS - gpc_sim_slots_longest(small));
			gpc_sim_smalls_update(&smalls, small);
		}
		for (uint32_t i = 0; i < n_in; i++)
			if (by_age[i]->owner == owner && gpc_sim_slots_longest(by_age[i]) >= n)
				expected = by_age[i];
		assert_ptr_equal(gpc_sim_smalls_find(&smalls, owner, n), expected);
	}
	while (n_in > 0)
		gpc_sim_smalls_remove(&smalls, by_age[--n_in]);
	gpc_sim_smalls_fini(&smalls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_fit_is_that_of_a_search_slot_by_slot),
		cmocka_unit_test(a_chunk_is_taken_whole_and_is_whole_again),
		cmocka_unit_test(the_newest_chunk_of_its_owner_with_room_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
