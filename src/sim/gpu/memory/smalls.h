/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunks of a device that small allocations share, oldest first; a search takes the newest with room.
 *
 *      rows     | chunk | chunk |  hole | chunk | ...          a hole: the chunk was given back
 *      longest   a tree over the rows: each node has the longest run of free slots in any chunk below it
 *
 * Threads     Under the device's lock.
 * Failure     init: false if the kernel provides no memory.
 * Limits      A search skips the chunks of other owners one by one.
 */
#ifndef GPC_SIM_SMALLS_H
#define GPC_SIM_SMALLS_H

#include "sim/gpu/memory/slots.h"

struct gpc_sim_smalls {
	struct gpc_sim_small **rows; /* NULL: a hole */
	uint16_t *longest; /* node k has children 2k, 2k + 1; row i has leaf n_leaves + i */
	uint32_t n;        /* rows in use, including holes */
	uint32_t n_leaves; /* a power of two */
};

/* Makes room for n_chunks chunks and as many holes. */
bool gpc_sim_smalls_init(struct gpc_sim_smalls *smalls, uint32_t n_chunks);
void gpc_sim_smalls_fini(struct gpc_sim_smalls *smalls);

void gpc_sim_smalls_add(struct gpc_sim_smalls *smalls, struct gpc_sim_small *small);
void gpc_sim_smalls_remove(struct gpc_sim_smalls *smalls, const struct gpc_sim_small *small);

/* Call after slots were taken or freed. */
void gpc_sim_smalls_update(struct gpc_sim_smalls *smalls, const struct gpc_sim_small *small);

/* The newest chunk of this owner with n adjacent free slots; NULL if there is none. */
struct gpc_sim_small *gpc_sim_smalls_find(
	const struct gpc_sim_smalls *smalls, uint32_t owner, uint32_t n);

#endif
