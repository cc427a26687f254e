/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver alone would do with the live blocks.  It hands out memory in steps of 2 MiB: a block of a step or more
 * takes whole steps; smaller ones share steps, and a step is free again when all its blocks are.
 *
 * Threads   Any; a block that changes meanwhile is skipped.
 * Failure   GPUCACHE_UNKNOWN.
 * Limits    Blocks with a record.  An estimate, since it assumes that small blocks are packed perfectly.
 */
#ifndef GPC_OOM_PLAIN_H
#define GPC_OOM_PLAIN_H

#include <stdint.h>

#include "gpucache_format.h"
#include "model/sizes.h"

/* The bytes of the device that the driver uses for a block of this size; a smaller one than a step has its part of one. */
uint64_t gpc_plain_bytes(uint64_t size);

/*
 * The sum of gpc_plain_bytes over the device's live blocks in our segments.  It tells failures by fragmentation of the
 * cache from those that the plain driver would have had, too.  `requested`: the bytes of the same blocks by the
 * counters; unknown if the records cover less than 63/64 of them.
 */
uint64_t gpc_plain_live(const struct gpucache_block *blocks, uint32_t n_blocks, uint32_t device,
	uint64_t requested);

/*
 * The free bytes of the steps that live blocks smaller than a step pin, of blocks that are the driver's own.
 * *ret_n_blocks: their number.  Maps memory for the time of the call.
 */
uint64_t gpc_plain_waste(const struct gpucache_block *blocks, uint32_t n_blocks, uint32_t device,
	uint64_t *ret_n_blocks);

/*
 * The bytes of the device's arenas, larger than PyTorch's small ones, in which no tensor is: its whole idle segments.
 * *ret_segment: the largest.  GPUCACHE_UNKNOWN without memory for the time of the call, and with expandable segments.
 */
uint64_t gpc_plain_idle(const struct gpucache_block *blocks, uint32_t n_blocks, uint32_t device,
	uint32_t *ret_segment);

/* What the driver adds to the larger ones of these blocks, to make them whole steps. */
uint64_t gpc_plain_tails(const struct gpucache_block *blocks, uint32_t n_blocks, uint32_t device);

#endif
