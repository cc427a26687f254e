/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grain map of a segment of small blocks: which block starts at each of the 4,096 grains of 512 B that the segment
 * consists of.
 *
 *      grain       0   1   2   3   4   5   6 ...
 *      numbers    17   .   .  23   9   .  31        1 + the number of the block that starts here
 *      vacant[0]   0   0   0   0   0   0   0        where a FREE block of one grain starts
 *      vacant[1]   0   0   0   0   1   0   0        ... of two grains
 *      vacant[2]   1   0   0   0   0   0   0
 *
 * A program may hold millions of small blocks.  If they are freed in random order, a tree of all their descriptors
 * costs a cache miss on each of its 25 levels, and a hash table of their addresses one more.  So the FREE blocks of each
 * size, up to GPC_GRAIN_SIZES grains, are bits, few enough to stay in the processor's cache even for a million blocks
 * of 512 B.  Of the blocks of one size in one segment, only the lowest is also in the tree of its bin.
 *
 * Invariant  A bit is set if and only if a FREE block of that size, in no exported segment, starts there.
 * Threads    The lock of the segment's pool.
 * Failure    None.
 */
#ifndef GPC_ALLOC_GRAIN_MAP_H
#define GPC_ALLOC_GRAIN_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/size_class.h"

#define GPC_GRAINS      ((uint32_t)(GPC_SMALL_SEGMENT / GPC_GRAIN))
#define GPC_GRAIN_SIZES 32 /* up to 16 KiB; with 8 sizes, frees in random order cost 15 % more */

/* A set of grains.  A bit of `words` is set if and only if that word of `bits` is not 0. */
struct gpc_grain_set {
	uint64_t words;
	uint64_t bits[GPC_GRAINS / 64];
};

struct gpc_grain_map {
	uint32_t numbers[GPC_GRAINS];
	struct gpc_grain_set vacant[GPC_GRAIN_SIZES];
};

/* The set for blocks of `size` bytes, a multiple of GPC_GRAIN; NULL: too large for the map. */
static inline struct gpc_grain_set *gpc_grain_map_set(struct gpc_grain_map *map, uint64_t size)
{
	return size <= GPC_GRAIN_SIZES * GPC_GRAIN ? &map->vacant[size / GPC_GRAIN - 1] : NULL;
}

static inline void gpc_grain_set_add(struct gpc_grain_set *set, uint32_t grain)
{
	set->bits[grain / 64] |= UINT64_C(1) << (grain % 64);
	set->words |= UINT64_C(1) << (grain / 64);
}

static inline void gpc_grain_set_remove(struct gpc_grain_set *set, uint32_t grain)
{
	set->bits[grain / 64] &= ~(UINT64_C(1) << (grain % 64));
	if (set->bits[grain / 64] == 0)
		set->words &= ~(UINT64_C(1) << (grain / 64));
}

static inline bool gpc_grain_set_has(const struct gpc_grain_set *set, uint32_t grain)
{
	return set->bits[grain / 64] >> (grain % 64) & 1;
}

static inline uint32_t gpc_grain_set_count(const struct gpc_grain_set *set)
{
	uint32_t n = 0;

	for (uint32_t word = 0; word < GPC_GRAINS / 64; word++)
		n += (uint32_t)__builtin_popcountll(set->bits[word]);
	return n;
}

/* The lowest grain of the set, or GPC_GRAINS if it is empty. */
static inline uint32_t gpc_grain_set_lowest(const struct gpc_grain_set *set)
{
	uint32_t word;

	if (set->words == 0)
		return GPC_GRAINS;
	word = (uint32_t)__builtin_ctzll(set->words);
	return word * 64 + (uint32_t)__builtin_ctzll(set->bits[word]);
}

#endif
