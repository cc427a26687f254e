/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes: how a request is rounded, what segment it needs, and which bin a free block lies in.
 *
 * Pure functions.  The constants are PyTorch's, so that its users find what they know; the replay
 * of real traces (gpumem-replay) decides whether they stay.  One rule is ours: where what earlier
 * segments had left lies idle, a medium segment is not 20 MiB, but as many blocks of the size that
 * made it necessary as 20 MiB hold.  A program that asks for nothing but 8 MiB would else leave
 * 4 MiB of every 20 unused, and run out of memory where the plain driver does not.  Whether a segment is
 * shared at all, the room decides (pool_room.c).
 *
 *   request              rounded to        served from
 *   .. 1 MiB             512 B             the small pool, segments of 2 MiB
 *   1 MiB .. 10 MiB      512 B             the large pool, segments of at most 20 MiB
 *   10 MiB ..            512 B             the large pool, a segment of its own, a multiple of 2 MiB
 *
 * Bins split every power of two in 8, so sizes in one bin differ by at most 12.5 %; up to 4 KiB a
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
#define GPC_MEDIUM_MAX     (10 * GPC_MIB) /* kMinLargeAlloc: from here on a segment of its own */
#define GPC_MEDIUM_SEGMENT (20 * GPC_MIB) /* kLargeBuffer */
#define GPC_SEGMENT_ALIGN  (2 * GPC_MIB)  /* kRoundLarge */

/* Larger requests are nonsense for any device (1 EiB, as PyTorch has it). */
#define GPC_SIZE_MAX (UINT64_C(1) << 60)

#define GPC_N_BINS 448

enum gpc_pool_kind {
	GPC_POOL_SMALL,
	GPC_POOL_LARGE,
	GPC_N_POOL_KINDS,
};

/*
 * The size of the block for a request of `size` bytes, 0 < size <= GPC_SIZE_MAX: a multiple of
 * GPC_GRAIN. `divisions` > 1, a power of two, rounds up to that many steps between two powers of
 * two instead (roundup_power2_divisions); 0 and 1 do not.
 */
uint64_t gpc_size_round(uint64_t size, uint32_t divisions);

/* Which pool serves blocks of this rounded size. */
static inline enum gpc_pool_kind gpc_size_pool(uint64_t rounded)
{
	return rounded <= GPC_SMALL_MAX ? GPC_POOL_SMALL : GPC_POOL_LARGE;
}

/*
 * The segment to ask the driver for when no block of this rounded size is free.  `has_idle_rests`:
 * the program does not use what such segments leave.
 */
uint64_t gpc_size_segment(uint64_t rounded, bool has_idle_rests);

/* The smallest segment that can hold one block of this size: what to ask for when that failed. */
static inline uint64_t gpc_size_tight_segment(uint64_t rounded)
{
	return gpc_round_up(rounded, GPC_SEGMENT_ALIGN);
}

/* The bin of free blocks of this size, a multiple of GPC_GRAIN.  Grows with the size. */
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
 * True where a free block of `size` bytes should be cut to serve `rounded`: in the small pool
 * whenever a grain is left; in the large pool when more than 1 MiB is left (less could not serve
 * any request of that pool) and the request is below max_split_size, 0 = no such limit.
 */
static inline int gpc_size_should_split(
	enum gpc_pool_kind kind, uint64_t size, uint64_t rounded, uint64_t max_split_size)
{
	uint64_t rest = size - rounded;

	if (kind == GPC_POOL_SMALL)
		return rest >= GPC_GRAIN;
	return rest > GPC_SMALL_MAX && (max_split_size == 0 || rounded < max_split_size);
}

#endif
