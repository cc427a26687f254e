/* SPDX-License-Identifier: Apache-2.0 */
/* What PyTorch's allocator does with sizes: c10/cuda/CUDACachingAllocator.cpp, whose names stand beside. */
#ifndef GPC_MODEL_TORCH_H
#define GPC_MODEL_TORCH_H

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

/*
 * Whether PyTorch gave up for the holes in its cache: each is smaller than the tensor, so that they are many;
 * in sum they are an eighth of the cache or more; with expandable_segments the tensor would have had room,
 * holes of an eighth of what is in tensors and two steps of its segments included; and nothing grew by more
 * than the holes, which would only have filled them.
 */
static inline bool gpc_torch_is_fragmented(const struct gpucache_oom *oom)
{
	const struct gpucache_oom_torch *torch = &oom->torch;
	uint64_t unused = gpc_torch_unused(torch);
	uint64_t needed = gpc_bytes_add(gpc_bytes_add(torch->allocated, torch->allocated / 8),
		gpc_bytes_add(torch->requested, 2 * GPC_TORCH_LARGE_BUFFER));

	return torch->requested && !gpc_torch_is_mapped(oom) && oom->kind != GPUCACHE_KIND_TENSOR &&
	       unused / 8 >= torch->requested && unused >= torch->reserved / 8 &&
	       oom->growth_bytes <= unused && oom->balance.device_free != GPUCACHE_UNKNOWN &&
	       needed <= gpc_bytes_add(torch->reserved, oom->balance.device_free);
}

#endif
