/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segment map: from any device address to the segment that contains it, over all pools.
 *
 * cudaFree names only an address.  Addresses and sizes of segments are multiples of 2 MiB, so a
 * two-level table of 2 MiB pages finds the segment with two loads and no lock:
 *
 *      bit 47        34            21             0
 *       | root index | leaf index  | within page  |
 *            |            |
 *            v            v
 *        root[16384] -> leaf[8192] -> segment         one leaf covers 16 GiB and costs 64 KiB
 *
 * The driver gives an address only to one owner at a time.  So what it gives to another pool, or to the program, has
 * left the segment that we knew there: a context that is about to be forgotten (runtime/context/endings.c).
 *
 * Invariants  1 The slot of a page has a segment if and only if the page lies within that segment, and no other owner
 *             has got the page since.  2 Leaves are never freed before fini.
 * Threads     find: any, without a lock.  insert, remove, cut and evict: a lock inside (rank SEGMENT_MAP).
 * Ordering    insert stores with release what find loads with acquire: a found segment is complete.
 *             It may be removed at any moment: take its pool's lock and find it again before use.
 *             Its metadata stays mapped for ever (metamem slabs), but another segment may get it: without that lock
 *             only its pool is read, atomically (heap.h).
 * Progress    find: wait-free.
 * Failure     insert: GPC_UNSUPPORTED for an address or size off the 2 MiB grid or above 2^48,
 *             GPC_EXISTS if a page is in another segment of the same pool, GPC_NO_METADATA.  The map is then
 *             unchanged.
 */
#ifndef GPC_ALLOC_SEGMENT_MAP_H
#define GPC_ALLOC_SEGMENT_MAP_H

#include <stdatomic.h>

#include "alloc/block.h"
#include "base/lock.h"

#define GPC_SEGMENT_MAP_PAGE_BITS 21
#define GPC_SEGMENT_MAP_LEAF_BITS 13
#define GPC_SEGMENT_MAP_ROOT_BITS 14

typedef _Atomic(struct gpc_segment *) gpc_segment_slot;

struct gpc_segment_map {
	_Atomic(gpc_segment_slot *) *root;
	struct gpc_lock lock;
};

GPC_MUST_CHECK enum gpc_status gpc_segment_map_init(struct gpc_segment_map *map);
void gpc_segment_map_fini(struct gpc_segment_map *map);

GPC_MUST_CHECK enum gpc_status gpc_segment_map_insert(
	struct gpc_segment_map *map, struct gpc_segment *segment);
void gpc_segment_map_remove(struct gpc_segment_map *map, const struct gpc_segment *segment);

/*
 * Cuts the pages of [from, from + size) out of `segment`: empties their slots, and gives the pages behind them to
 * `right` unless it is NULL.  Call when `right` is complete, and before the segment's address and size change.  The
 * slots of the remaining pages have a segment at every moment.
 */
void gpc_segment_map_cut(struct gpc_segment_map *map, const struct gpc_segment *segment,
	gpc_devptr from, uint64_t size, struct gpc_segment *right);

/* Empties the slots of these pages: the driver has given them to the program. */
void gpc_segment_map_evict(struct gpc_segment_map *map, gpc_devptr from, uint64_t size);

/* The segment that contains this address, or NULL. */
static inline struct gpc_segment *gpc_segment_map_find(
	const struct gpc_segment_map *map, gpc_devptr address)
{
	uint64_t page = address >> GPC_SEGMENT_MAP_PAGE_BITS;
	uint64_t index = page >> GPC_SEGMENT_MAP_LEAF_BITS;
	gpc_segment_slot *leaf;

	if (index >> GPC_SEGMENT_MAP_ROOT_BITS)
		return NULL;
	leaf = atomic_load_explicit(&map->root[index], memory_order_acquire);
	if (!leaf)
		return NULL;
	return atomic_load_explicit(
		&leaf[page & ((1u << GPC_SEGMENT_MAP_LEAF_BITS) - 1)], memory_order_acquire);
}

#endif
