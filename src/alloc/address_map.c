/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear probing with backward-shift deletion: a later entry moves into the hole unless its home slot lies between the
 * hole and the entry.  So a lookup ends at the first empty slot, and there are no tombstones.  A table that is half
 * full doubles; lookup, insertion and removal are expected O(1).
 */
#include "alloc/address_map.h"

#include "base/check.h"
#include "base/metamem.h"

#define MIN_SLOTS 256 /* one page */

void gpc_address_map_fini(struct gpc_address_map *map)
{
	gpc_metamem_unmap(map->slots, map->n_slots * sizeof *map->slots);
	*map = (struct gpc_address_map){ 0 };
}

enum gpc_status gpc_address_map_reserve(struct gpc_address_map *map, uint64_t n)
{
	struct gpc_address_map larger = { .n_slots = map->n_slots ? map->n_slots : MIN_SLOTS };

	if ((map->n_entries + n) * 2 <= map->n_slots)
		return GPC_OK;
	while ((map->n_entries + n) * 2 > larger.n_slots)
		larger.n_slots *= 2;
	larger.slots = gpc_metamem_map(larger.n_slots * sizeof *larger.slots);
	if (!larger.slots)
		return GPC_NO_METADATA;
	for (uint64_t i = 0; i < map->n_slots; i++) {
		if (map->slots[i].address)
			gpc_address_map_insert(&larger, map->slots[i].address, map->slots[i].value);
	}
	gpc_address_map_fini(map);
	*map = larger;
	return GPC_OK;
}

void gpc_address_map_insert(struct gpc_address_map *map, uint64_t address, void *value)
{
	uint64_t i = gpc_address_map_home(map, address);

	GPC_CHECK(address != 0 && (map->n_entries + 1) * 2 <= map->n_slots);
	while (map->slots[i].address)
		i = (i + 1) & (map->n_slots - 1);
	map->slots[i] = (struct gpc_address_slot){ .address = address, .value = value };
	map->n_entries++;
}

void *gpc_address_map_take(struct gpc_address_map *map, uint64_t address)
{
	struct gpc_address_slot *slot = gpc_address_map_slot(map, address);
	uint64_t mask = map->n_slots - 1;
	uint64_t hole;
	void *value;

	if (!slot)
		return NULL;
	value = slot->value;
	hole = (uint64_t)(slot - map->slots);
	for (uint64_t i = (hole + 1) & mask; map->slots[i].address; i = (i + 1) & mask) {
		/* An entry may move into the hole unless its home lies cyclically in (hole, i]. */
		uint64_t distance = (i - gpc_address_map_home(map, map->slots[i].address)) & mask;

		if (distance >= ((i - hole) & mask)) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole] = (struct gpc_address_slot){ 0 };
	map->n_entries--;
	return value;
}
