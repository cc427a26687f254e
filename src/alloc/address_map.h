/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address map: from the address where a block starts to the block, exactly and in O(1).
 *
 * A hash table with linear probing, at most half full.  Its keys are the starts of blocks, so the lookup
 * for a free fails for an interior pointer.  Removal shifts later entries back, so there are no tombstones
 * and a lookup ends at the first empty slot.
 *
 * Invariants  1 n_entries <= n_slots / 2.  2 No slot between an entry's home and its place is
 *             empty.
 * Threads     The lock of the owner.
 * Failure     gpc_address_map_reserve: GPC_NO_METADATA, and the map is unchanged.  Nothing else can
 *             fail.
 */
#ifndef GPC_ALLOC_ADDRESS_MAP_H
#define GPC_ALLOC_ADDRESS_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct gpc_address_slot {
	uint64_t address; /* 0: empty */
	void *value;
};

struct gpc_address_map {
	struct gpc_address_slot *slots;
	uint64_t n_slots; /* 0 or a power of two */
	uint64_t n_entries;
};

/* An all-zero map is an empty one. */
void gpc_address_map_fini(struct gpc_address_map *map);

/* Makes room for `n` more entries. */
GPC_MUST_CHECK enum gpc_status gpc_address_map_reserve(struct gpc_address_map *map, uint64_t n);

/* Inserts address > 0, which must not be in the map; room must have been reserved. */
void gpc_address_map_insert(struct gpc_address_map *map, uint64_t address, void *value);

/*
 * The home slot of an address, by Fibonacci hashing.  Addresses are multiples of 512, so the low bits
 * of the product are dropped.
 */
static inline uint64_t gpc_address_map_home(const struct gpc_address_map *map, uint64_t address)
{
	return (address * UINT64_C(0x9e3779b97f4a7c15)) >> 20 & (map->n_slots - 1);
}

/* The slot of exactly this address, or NULL. */
static inline struct gpc_address_slot *gpc_address_map_slot(
	const struct gpc_address_map *map, uint64_t address)
{
	uint64_t i;

	if (map->n_slots == 0 || address == 0)
		return NULL;
	for (i = gpc_address_map_home(map, address); map->slots[i].address;
		i = (i + 1) & (map->n_slots - 1)) {
		if (map->slots[i].address == address)
			return &map->slots[i];
	}
	return NULL;
}

/* The value at exactly this address, or NULL. */
static inline void *gpc_address_map_find(const struct gpc_address_map *map, uint64_t address)
{
	const struct gpc_address_slot *slot = gpc_address_map_slot(map, address);

	return slot ? slot->value : NULL;
}

/* Removes and returns the value at exactly this address, or NULL. */
void *gpc_address_map_take(struct gpc_address_map *map, uint64_t address);

#endif
