/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates the memory that the plain driver would use for the program's blocks, without the cache.
 *
 *      a block of     uses
 *      above 1 MiB    a multiple of 2 MiB
 *      up to 1 MiB    its part of 2 MiB that it shares with blocks of its size
 *
 * This distinguishes failures due to fragmentation of the cache from those that the plain driver would
 * have had, too.
 *
 * Threads   Any; blocks that change meanwhile are skipped.
 * Failure   GPUCACHE_UNKNOWN if the slots cover less than 63/64 of `requested`.
 * Limits    An estimate: assumes perfect packing of small blocks.  gpumem-report replays the recording
 *           instead.
 */
#ifndef GPC_OOM_PLAIN_H
#define GPC_OOM_PLAIN_H

#include <stdint.h>

#include "gpucache_format.h"

/* The average memory that the driver uses for a block of this size. */
uint64_t gpc_plain_bytes(uint64_t size);

/*
 * The sum over the device's live blocks in our segments, whose requests add up to `requested` by the counters.
 */
uint64_t gpc_plain_live(const struct gpucache_block *blocks, uint32_t n_blocks, uint32_t device,
	uint64_t requested);

#endif
