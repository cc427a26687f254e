/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chunk of 2 MiB cut into slots of 512 bytes, which small allocations share.  A bit map says which slots are taken.
 * A tree over its words finds runs of adjacent free slots:
 *
 *      runs[1]             head, tail, longest of all 4096 slots
 *      runs[2] runs[3]     of each half
 *      ...
 *      runs[64..127]       of each word of the bit map
 *
 * Invariants  1 Each inner node of the tree describes the slots of its two children, each leaf those of its word.
 * Threads     Under the device's lock.
 * Failure     None.
 */
#ifndef GPC_SIM_SLOTS_H
#define GPC_SIM_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#define GPC_SIM_CHUNK (UINT64_C(2) << 20) /* a device's unit of used memory */
#define GPC_SIM_SLOT  UINT64_C(512)       /* the alignment of small allocations */
#define GPC_SIM_SLOTS (GPC_SIM_CHUNK / GPC_SIM_SLOT)
#define GPC_SIM_WORDS (GPC_SIM_SLOTS / 64)

/* In a range of slots: the lengths of the free run at its low end, of that at its high end, and of the longest one. */
struct gpc_sim_run {
	uint16_t head, tail, longest;
};

struct gpc_sim_small {
	uint32_t chunk;
	uint32_t owner;
	uint32_t place; /* its row in struct gpc_sim_smalls */
	uint64_t used[GPC_SIM_WORDS];
	struct gpc_sim_run runs[2 * GPC_SIM_WORDS];
	uint32_t size[GPC_SIM_SLOTS]; /* bytes of the allocation that starts at the slot; 0: none */
	uint64_t number[GPC_SIM_SLOTS]; /* the number of the allocation that starts at the slot */
};

/* Marks all slots free; the caller has zeroed *small. */
void gpc_sim_slots_init(struct gpc_sim_small *small);

/* The first of n free slots in a row, or GPC_SIM_SLOTS. */
uint32_t gpc_sim_slots_find(const struct gpc_sim_small *small, uint32_t n);

/* Takes n slots from `first` on if they are free, frees them if they are taken.  All n must be in the same state. */
void gpc_sim_slots_flip(struct gpc_sim_small *small, uint32_t first, uint32_t n);

static inline uint32_t gpc_sim_slots_longest(const struct gpc_sim_small *small)
{
	return small->runs[1].longest;
}

static inline uint32_t gpc_sim_slots_of(uint64_t size)
{
	return (uint32_t)((size + GPC_SIM_SLOT - 1) / GPC_SIM_SLOT);
}

#endif
