/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size classes: the rounding of requests, the size of segments, and the bin of a free block.
 *
 * Pure functions.  The constants are PyTorch's; gpumem-replay tests them on real traces.  One rule is
 * ours: if remainders of earlier segments stay idle, a medium segment is not 20 MiB but holds a whole
 * number of blocks of the requested size.  Otherwise a program that requests only 8 MiB blocks would
 * waste 4 MiB of each 20 MiB segment, and run out of memory where the plain driver does not.
 * pool_room.c decides whether a segment is shared at all.
 *
 *   request              rounded to        served from
 *   .. 1 MiB             512 B             the small pool, segments of 2 MiB
 *   1 MiB .. 10 MiB      512 B             the large pool, segments of at most 20 MiB
 *   10 MiB ..            512 B             the large pool, a segment of its own, a multiple of 2 MiB
 *
 * Bins split every power of two in 8, so sizes in one bin differ by at most 12.5 %; below 8 KiB a
 * bin holds one size.
 */
#ifndef GPC_ALLOC_SIZE_CLASS_H
#define GPC_ALLOC_SIZE_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/* cudaMalloc documents an alignment of 256 bytes and gives 512; texture objects need the 512. */
#define GPC_GRAIN UINT64_C(512)

#define GPC_SMALL_MAX      (1 * GPC_MIB)  /* PyTorch's kSmallSize */
#define GPC_SMALL_SEGMENT  (2 * GPC_MIB)  /* kSmallBuffer; also the driver's own granularity */
#define GPC_MEDIUM_MAX     (10 * GPC_MIB) /* kMinLargeAlloc: own segments from this size on */
#define GPC_MEDIUM_SEGMENT (20 * GPC_MIB) /* kLargeBuffer */
#define GPC_SEGMENT_ALIGN  (2 * GPC_MIB)  /* kRoundLarge */

/* 1 EiB, PyTorch's limit: no device has more. */
#define GPC_SIZE_MAX (UINT64_C(1) << 60)

#define GPC_N_BINS 448

enum gpc_pool_kind {
	GPC_POOL_SMALL,
	GPC_POOL_LARGE,
	GPC_N_POOL_KINDS,
};

/*
 * The size of the block for a request of `size` bytes, 0 < size <= GPC_SIZE_MAX: a multiple of
 * GPC_GRAIN.  If `divisions` (roundup_power2_divisions) is above 1, it is first rounded down to a power of two; the
 * size is then rounded up to one of that many equal steps between two powers of two.
 */
uint64_t gpc_size_round(uint64_t size, uint32_t divisions);

/* The pool that serves blocks of this rounded size. */
static inline enum gpc_pool_kind gpc_size_pool(uint64_t rounded)
{
	return rounded <= GPC_SMALL_MAX ? GPC_POOL_SMALL : GPC_POOL_LARGE;
}

/* True if blocks of this rounded size share segments. */
static inline bool gpc_size_is_medium(uint64_t rounded)
{
	return rounded > GPC_SMALL_MAX && rounded < GPC_MEDIUM_MAX;
}

/*
 * The size of a new segment for a block of this rounded size.  `has_idle_rests`: the program leaves
 * remainders of earlier segments unused.
 */
uint64_t gpc_size_segment(uint64_t rounded, bool has_idle_rests);

/* The smallest segment that can hold one block of this size; requested after the driver has refused a larger one. */
static inline uint64_t gpc_size_tight_segment(uint64_t rounded)
{
	return gpc_round_up(rounded, GPC_SEGMENT_ALIGN);
}

/* The bin of free blocks of this size, a multiple of GPC_GRAIN.  Monotonic. */
static inline uint32_t gpc_size_bin(uint64_t size)
{
	uint64_t grains = size / GPC_GRAIN;
	uint32_t log2;

	if (grains < 8)
		return (uint32_t)grains;
	log2 = 63 - (uint32_t)__builtin_clzll(grains);
	return ((log2 - 2) << 3) + (uint32_t)((grains >> (log2 - 3)) & 7);
}

/*
 * True if a free block of `size` bytes is split to serve `rounded`: in the small pool if the remainder
 * is at least a grain; in the large pool if it exceeds 1 MiB (less serves no request there) and the
 * request is below max_split_size (0: no limit).
 */
static inline bool gpc_size_should_split(
	enum gpc_pool_kind kind, uint64_t size, uint64_t rounded, uint64_t max_split_size)
{
	uint64_t rest = size - rounded;

	if (kind == GPC_POOL_SMALL)
		return rest >= GPC_GRAIN;
	return rest > GPC_SMALL_MAX && (max_split_size == 0 || rounded < max_split_size);
}

#endif
