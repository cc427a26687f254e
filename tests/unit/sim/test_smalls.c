/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "sim/gpu/memory/smalls.h"

#define N_CHUNKS 5

static struct gpc_sim_small chunks[N_CHUNKS];

/* Chunks come and go and fill, far more often than there are places. */
TEST(the_newest_chunk_of_its_owner_with_room_is_found)
{
	struct gpc_sim_smalls smalls;
	struct gpc_sim_small *by_age[N_CHUNKS]; /* of the table; the rest of chunks */
	uint32_t n_in = 0;
	unsigned seed = 1;

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
