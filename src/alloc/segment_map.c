/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Insertion first creates the missing leaves and checks all pages, and only then stores: if it fails, no page has
 * changed.  A lookup is two dependent loads.
 */
#include "alloc/segment_map.h"

#include "base/metamem.h"

#define LEAF_SLOTS (1u << GPC_SEGMENT_MAP_LEAF_BITS)
#define ROOT_SLOTS (1u << GPC_SEGMENT_MAP_ROOT_BITS)
#define PAGE_MASK  ((UINT64_C(1) << GPC_SEGMENT_MAP_PAGE_BITS) - 1)
#define LEAF_SIZE  (LEAF_SLOTS * sizeof(gpc_segment_slot))
#define ROOT_SIZE  (ROOT_SLOTS * sizeof(gpc_segment_slot *))

enum gpc_status gpc_segment_map_init(struct gpc_segment_map *map)
{
	map->root = gpc_metamem_map(ROOT_SIZE);
	if (!map->root)
		return GPC_NO_METADATA;
	gpc_lock_init(&map->lock, GPC_RANK_SEGMENT_MAP);
	return GPC_OK;
}

void gpc_segment_map_fini(struct gpc_segment_map *map)
{
	if (!map->root)
		return;
	for (uint32_t i = 0; i < ROOT_SLOTS; i++)
		gpc_metamem_unmap((void *)atomic_load(&map->root[i]), LEAF_SIZE);
	gpc_metamem_unmap((void *)map->root, ROOT_SIZE);
	map->root = NULL;
}

static gpc_segment_slot *slot_of(struct gpc_segment_map *map, uint64_t page)
{
	gpc_segment_slot *leaf = atomic_load_explicit(
		&map->root[page >> GPC_SEGMENT_MAP_LEAF_BITS], memory_order_relaxed);

	return leaf ? &leaf[page & (LEAF_SLOTS - 1)] : NULL;
}

/* Creates the missing leaves and checks that no page is in a segment of this pool. */
static enum gpc_status prepare_locked(
	struct gpc_segment_map *map, uint64_t first, uint64_t end, const struct gpc_pool *pool)
{
	for (uint64_t page = first; page < end; page++) {
		gpc_segment_slot *slot = slot_of(map, page);
		const struct gpc_segment *other = slot ? atomic_load(slot) : NULL;
		gpc_segment_slot *leaf;

		if (!slot) {
			leaf = gpc_metamem_map(LEAF_SIZE);
			if (!leaf)
				return GPC_NO_METADATA;
			atomic_store_explicit(&map->root[page >> GPC_SEGMENT_MAP_LEAF_BITS], leaf,
				memory_order_release);
		} else if (other && __atomic_load_n(&other->pool, __ATOMIC_RELAXED) == pool) {
			return GPC_EXISTS;
		}
	}
	return GPC_OK;
}

/* Fills the slots that have the segment `old`; with `old` NULL, all of them. */
static void fill_locked(struct gpc_segment_map *map, gpc_devptr from, gpc_devptr end,
	const struct gpc_segment *old, struct gpc_segment *segment)
{
	for (uint64_t page = from >> GPC_SEGMENT_MAP_PAGE_BITS;
		page < end >> GPC_SEGMENT_MAP_PAGE_BITS; page++) {
		gpc_segment_slot *slot = slot_of(map, page);

		if (!old || atomic_load_explicit(slot, memory_order_relaxed) == old)
			atomic_store_explicit(slot, segment, memory_order_release);
	}
}

enum gpc_status gpc_segment_map_insert(struct gpc_segment_map *map, struct gpc_segment *segment)
{
	uint64_t first = segment->address >> GPC_SEGMENT_MAP_PAGE_BITS;
	uint64_t end = (segment->address + segment->size) >> GPC_SEGMENT_MAP_PAGE_BITS;
	enum gpc_status st;

	if (segment->address == 0 || ((segment->address | segment->size) & PAGE_MASK) != 0 ||
		end >> (GPC_SEGMENT_MAP_LEAF_BITS + GPC_SEGMENT_MAP_ROOT_BITS))
		return GPC_UNSUPPORTED;
	gpc_lock_take(&map->lock);
	st = prepare_locked(map, first, end, segment->pool);
	if (!st)
		fill_locked(map, segment->address, segment->address + segment->size, NULL, segment);
	gpc_lock_release(&map->lock);
	return st;
}

void gpc_segment_map_remove(struct gpc_segment_map *map, const struct gpc_segment *segment)
{
	gpc_segment_map_cut(map, segment, segment->address, segment->size, NULL);
}

void gpc_segment_map_cut(struct gpc_segment_map *map, const struct gpc_segment *segment,
	gpc_devptr from, uint64_t size, struct gpc_segment *right)
{
	gpc_lock_take(&map->lock);
	fill_locked(map, from, from + size, segment, NULL);
	if (right)
		fill_locked(map, from + size, segment->address + segment->size, segment, right);
	gpc_lock_release(&map->lock);
}

void gpc_segment_map_evict(struct gpc_segment_map *map, gpc_devptr from, uint64_t size)
{
	for (gpc_devptr at = from & ~PAGE_MASK; at < from + size; at += PAGE_MASK + 1) {
		const struct gpc_segment *segment = gpc_segment_map_find(map, at);

		if (segment)
			gpc_segment_map_cut(map, segment, at, PAGE_MASK + 1, NULL);
	}
}
