/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver itself would take for the program's blocks, had there been no cache.
 *
 *      a block of     takes of the device
 *      1 MiB .        whole steps of 2 MiB
 *      .. 1 MiB       its part of a step that it shares with blocks of its size
 *
 * So a failure for which the cache's free pieces are to blame can be told from one that the driver
 * would have had, too.
 *
 * Threads   Any; blocks that change meanwhile are left out.
 * Failure   GPUCACHE_UNKNOWN where the recording has no room for every block.
 * Limits    An estimate: small blocks are taken as packed as tightly as their size allows.
 *           gpumem-report replays the recording instead.
 */
#ifndef GPC_OOM_PLAIN_H
#define GPC_OOM_PLAIN_H

#include <stdint.h>

#include "gpucache_format.h"

/* What the driver would take of the device for a block of this size, on average. */
uint64_t gpc_plain_bytes(uint64_t size);

/*
 * The sum over the device's live blocks that lie in segments of ours and were asked for as `requested`
 * bytes in all, by the books.
 */
uint64_t gpc_plain_live(const struct gpucache_block *blocks, uint32_t n_blocks, uint32_t device,
	uint64_t requested);

#endif
