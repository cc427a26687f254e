/* SPDX-License-Identifier: Apache-2.0 */
/* What PyTorch's allocator does with sizes: c10/cuda/CUDACachingAllocator.cpp, whose names stand beside. */
#ifndef GPC_BASE_TORCH_H
#define GPC_BASE_TORCH_H

#include "base/bytes.h"
#include "gpucache_format.h"

#define GPC_TORCH_SMALL_SIZE   (1 * GPC_MIB)  /* kSmallSize */
#define GPC_TORCH_SMALL_BUFFER (2 * GPC_MIB)  /* kSmallBuffer */
#define GPC_TORCH_LARGE_BUFFER (20 * GPC_MIB) /* kLargeBuffer */
#define GPC_TORCH_MIN_LARGE    (10 * GPC_MIB) /* kMinLargeAlloc */
#define GPC_TORCH_ROUND_LARGE  (2 * GPC_MIB)  /* kRoundLarge */

/* What it asks the driver for, where it needs new memory for a tensor of this size. */
static inline uint64_t gpc_torch_segment_size(uint64_t size)
{
	if (size <= GPC_TORCH_SMALL_SIZE)
		return GPC_TORCH_SMALL_BUFFER;
	return size < GPC_TORCH_MIN_LARGE ? GPC_TORCH_LARGE_BUFFER
					  : gpc_round_up(size, GPC_TORCH_ROUND_LARGE);
}

/* What it keeps in no tensor. */
static inline uint64_t gpc_torch_unused(const struct gpucache_oom_torch *torch)
{
	return gpc_bytes_less(torch->reserved, torch->allocated);
}

/* Its memory is physical memory that it maps itself (expandable segments): not what cudaMalloc gave. */
static inline bool gpc_torch_is_mapped(const struct gpucache_oom *oom)
{
	return oom->torch.reserved > oom->balance.requested;
}

#endif
