/* SPDX-License-Identifier: Apache-2.0 */
/* The size rules of PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp), with its names. */
#ifndef GPC_MODEL_TORCH_H
#define GPC_MODEL_TORCH_H

#include "base/bytes.h"
#include "gpucache_format.h"

#define GPC_TORCH_SMALL_SIZE   (1 * GPC_MIB)  /* kSmallSize */
#define GPC_TORCH_SMALL_BUFFER (2 * GPC_MIB)  /* kSmallBuffer */
#define GPC_TORCH_LARGE_BUFFER (20 * GPC_MIB) /* kLargeBuffer */
#define GPC_TORCH_MIN_LARGE    (10 * GPC_MIB) /* kMinLargeAlloc */
#define GPC_TORCH_ROUND_LARGE  (2 * GPC_MIB)  /* kRoundLarge */

/* The segment that PyTorch allocates for a tensor of this size. */
static inline uint64_t gpc_torch_segment_size(uint64_t size)
{
	if (size <= GPC_TORCH_SMALL_SIZE)
		return GPC_TORCH_SMALL_BUFFER;
	return size < GPC_TORCH_MIN_LARGE ? GPC_TORCH_LARGE_BUFFER
					  : gpc_round_up(size, GPC_TORCH_ROUND_LARGE);
}

/* PyTorch's cached memory: reserved, but in no tensor. */
static inline uint64_t gpc_torch_unused(const struct gpucache_oom_torch *torch)
{
	return gpc_bytes_less(torch->reserved, torch->allocated);
}

/*
 * True if PyTorch uses expandable segments: it maps physical memory instead of calling cudaMalloc, and so reserves more
 * than it requested from our cache.
 */
static inline bool gpc_torch_is_mapped(const struct gpucache_oom *oom)
{
	return oom->torch.reserved > oom->balance.requested;
}

#endif
