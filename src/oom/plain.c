/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver would use for the same blocks: sizes above 1 MiB in steps of 2 MiB, smaller ones packed by size
 * class.  One pass over the live blocks.
 */
#include "oom/plain.h"

#include "base/bytes.h"
#include "model/held.h"

#define STEP (2 * GPC_MIB)

uint64_t gpc_plain_bytes(uint64_t size)
{
	if (size == 0)
		return 0;
	return size < STEP ? STEP / (STEP / size) : gpc_round_up(size, STEP);
}

uint64_t gpc_plain_live(
	const struct gpucache_block *blocks, uint32_t n_blocks, uint32_t device, uint64_t requested)
{
	struct gpucache_block block;
	uint64_t plain = 0;
	uint64_t seen = 0;

	for (uint32_t i = 0; i < n_blocks; i++) {
		if (!gpc_held_read_live(&blocks[i], device, &block) ||
			block.segment == GPUCACHE_NO_SEGMENT)
			continue;
		if (block.kind != GPUCACHE_KIND_DEVICE)
			continue;
		seen = gpc_bytes_add(seen, block.requested);
		plain = gpc_bytes_add(plain, gpc_plain_bytes(block.requested));
	}
	/*
	 * The counters were read at another moment than the slots, so tolerate 1/64 that other threads just allocated.
	 */
	return seen < requested - requested / 64 ? GPUCACHE_UNKNOWN : plain;
}
