/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of a chunk that small allocations share: a bit each, set where it is taken.
 *
 * Threads   Under the device's lock.
 * Failure   None.
 */
#ifndef GPC_SIM_SLOTS_H
#define GPC_SIM_SLOTS_H

#include "sim/device.h"

/* The first of n free slots in a row, or GPC_SIM_SLOTS; then small->longest is exact. */
static inline uint32_t gpc_sim_slots_find(struct gpc_sim_small *small, uint32_t n)
{
	uint32_t longest = 0;
	uint32_t run = 0;

	/* By runs of bits: replays of a million operations come here. */
	for (uint32_t i = 0; i < GPC_SIM_SLOTS;) {
		uint64_t used = small->used[i / 64] >> (i % 64);
		uint32_t left = 64 - i % 64;
		uint32_t n_free = used ? (uint32_t)__builtin_ctzll(used) : left;

		run += n_free;
		i += n_free;
		if (run >= n)
			return i - run;
		longest = run > longest ? run : longest;
		if (n_free == left)
			continue;
		used >>= n_free;
		run = 0;
		i += used == UINT64_MAX ? 64 : (uint32_t)__builtin_ctzll(~used);
	}
	small->longest = longest;
	return GPC_SIM_SLOTS;
}

static inline void gpc_sim_slots_flip(struct gpc_sim_small *small, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++)
		small->used[i / 64] ^= UINT64_C(1) << (i % 64);
}

static inline bool gpc_sim_slots_is_free(const struct gpc_sim_small *small, uint32_t i)
{
	return !(small->used[i / 64] >> (i % 64) & 1);
}

/* After n slots from `first` on have become free: the run around them may be the longest. */
static inline void gpc_sim_slots_note_run(struct gpc_sim_small *small, uint32_t first, uint32_t n)
{
	uint32_t end = first + n;

	/* What is longer than the longest need not be measured to its end. */
	while (first > 0 && end - first <= small->longest &&
		gpc_sim_slots_is_free(small, first - 1))
		first--;
	while (end < GPC_SIM_SLOTS && end - first <= small->longest &&
		gpc_sim_slots_is_free(small, end))
		end++;
	if (end - first > small->longest)
		small->longest = GPC_SIM_SLOTS;
}

static inline uint32_t gpc_sim_slots_of(uint64_t size)
{
	return (uint32_t)((size + GPC_SIM_SLOT - 1) / GPC_SIM_SLOT);
}

#endif
