/* SPDX-License-Identifier: Apache-2.0 */
/* The size rules of PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp), with its names; the names of its nodes. */
#ifndef GPC_MODEL_TORCH_H
#define GPC_MODEL_TORCH_H

#include <string.h>

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

/* What is said of a framework whose allocator cuts our blocks into tensors, by enum gpucache_framework. */
struct gpc_framework_words {
	const char *name;
	const char *pieces;
	const char *in_pieces;
	const char *unused;
};

static inline const struct gpc_framework_words *gpc_framework_words(uint64_t framework)
{
	static const struct gpc_framework_words words[GPUCACHE_FRAMEWORK_COUNT] = {
		[GPUCACHE_FRAMEWORK_PYTORCH] = { "PyTorch", "tensors of PyTorch",
			"in PyTorch's tensors", "PyTorch's cache, in no tensor" },
		[GPUCACHE_FRAMEWORK_XLA] = { "XLA", "arrays of XLA", "in XLA's arrays",
			"XLA's pool, in no array" },
	};

	return &words[framework < GPUCACHE_FRAMEWORK_COUNT ? framework : 0];
}

/* True if PyTorch failed in the end with the request of the failure before, after it had returned its cache. */
static inline bool gpc_torch_repeats(
	const struct gpucache_oom *oom, const struct gpucache_oom *before)
{
	/* Of an expandable segment the first one is for a page of it. */
	return oom->number == before->number + 1 && oom->device == before->device &&
	       oom->thread == before->thread && oom->kind == before->kind &&
	       (oom->kind == GPUCACHE_KIND_PHYSICAL || oom->requested == before->requested) &&
	       oom->torch.requested && !before->torch.requested;
}

/* PyTorch's cached memory: reserved, but in no tensor. */
static inline uint64_t gpc_torch_unused(const struct gpucache_oom_torch *torch)
{
	return gpc_bytes_less(torch->reserved, torch->allocated);
}

/* Bytes of the call sites that a failure does not list.  Of the rest, what PyTorch caches and what the driver refuses is nobody's. */
static inline uint64_t gpc_oom_unlisted(const struct gpucache_oom *oom)
{
	return gpc_bytes_less(gpc_bytes_less(oom->rest_bytes, gpc_torch_unused(&oom->torch)),
		oom->kind_bytes[GPUCACHE_KIND_REFUSED]);
}

/*
 * True if PyTorch uses expandable segments: it maps physical memory instead of calling cudaMalloc, and so reserves more
 * than it requested from our cache.
 */
static inline bool gpc_torch_is_mapped(const struct gpucache_oom *oom)
{
	return oom->torch.reserved > oom->balance.requested;
}

/*
 * The node of the backward pass in the name of its function: "AddmmBackward0", of *ret_len bytes, in
 * "torch::autograd::generated::AddmmBackward0::apply(...)".  NULL: the function is none.
 */
static inline const char *gpc_torch_node(const char *function, size_t *ret_len)
{
	static const char scope[] = "torch::autograd::";
	const char *end = strstr(function, "::apply");
	const char *name = end;

	if (strncmp(function, scope, sizeof scope - 1) != 0 || !end || (end[7] && end[7] != '('))
		return NULL;
	while (name[-1] != ':')
		name--;
	*ret_len = (size_t)(end - name);
	return name;
}

#endif
