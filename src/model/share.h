/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weight of an allocation in the sums of its stack if stacks are sampled.
 *
 * A request below sample_bytes is sampled with probability requested / sample_bytes.  A sampled request counts as
 * sample_bytes in sample_bytes / requested blocks, rounded up or down by a hash of its address; any other counts as 0.
 * So sums by stack are unbiased, and a free subtracts what its allocation added.
 *
 * Threads   A pure function.
 */
#ifndef GPC_MODEL_SHARE_H
#define GPC_MODEL_SHARE_H

#include <stdint.h>

#include "base/saturating.h"

struct gpc_share {
	uint64_t bytes;
	uint64_t blocks;
};

/* sample_bytes 0: no sampling. */
static inline struct gpc_share gpc_share_of(
	uint64_t sample_bytes, uint32_t stack, uint64_t address, uint64_t requested)
{
	struct gpc_share share = { requested, 1 };

	if (requested == 0 || requested >= sample_bytes)
		return share;
	share.bytes = stack ? sample_bytes : 0;
	/* Fibonacci hashing: the upper bits of the product depend on all bits of the address. */
	address = address * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	share.blocks = stack ? gpc_bytes_add(sample_bytes, address % requested) / requested : 0;
	return share;
}

#endif
