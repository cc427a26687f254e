/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact segments: for callers that have a cache of their own, such as PyTorch's allocator.
 *
 * Such a caller takes large pieces from the driver, cuts them itself, and gives one back only to let go of it.  To cut its
 * pieces once more saves nothing, and costs the device what a piece of ours pins.  So an exact request gets an allocation
 * of the driver's of its own, which is never cut nor joined, and what its caller gives back is idle until a
 * request of the same size takes it, or until it goes back to the driver:
 *
 *      caller's cache    [ 20 MiB ] [ 64 MiB ]   empty_cache()        [ 64 MiB ]
 *      segments here     [  live  ] [  live  ]   [ idle ] [ idle ]    [ idle ] [ live ]     no driver call
 *      the driver        [  used  ] [  used  ]   [ used ] [ used ]    [ used ] [ used ]     counts as free (cuMemGetInfo)
 *
 * Why the caller then needs no larger device than without us:
 *
 *   live    A segment has the size that the driver would hold for the request: its multiple of 2 MiB.
 *   idle    All of it can go back, since nothing else lies on it.  It does before an exact request is refused
 *           (gpc_pool_grow_exact), before any other is (the ladder), and before a capture begins, during which no
 *           barrier tells what is idle.  What work may still use goes back as soon as that work is over, for which
 *           the plain cudaFree would have waited.
 *
 * And why nothing else differs: it is a block like any other.  The same barriers and fences order its reuse (a block is
 * in this list only once it is FREE), the same books count it, and a free finds it by its address, whoever calls.  A
 * request of another caller that is parked for its size may get it, whole.  So a wrong guess about a caller costs a driver call
 * for each new size, and no more.
 *
 * Idle ones are in bins of their own, where no other request looks.
 */
#include "alloc/pool_internal.h"
#include "model/counters.h"

struct gpc_block *gpc_pool_find_exact_locked(struct gpc_pool *pool, uint64_t rounded)
{
	struct gpc_block *block = gpc_bins_find(&pool->exacts, rounded);

	return block && block->size == rounded ? block : NULL;
}

enum gpc_status gpc_pool_grow_exact(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address)
{
	enum gpc_status st = gpc_pool_grow(pool, request, ret_address);

	if ((st == GPC_DEVICE_NO_MEMORY || st == GPC_LIMIT) &&
		gpc_pool_trim(pool, gpc_pool_rounded(pool, request), false))
		st = gpc_pool_grow(pool, request, ret_address);
	return st;
}

void gpc_pool_return_exact(struct gpc_pool *pool)
{
	bool is_any;

	gpc_pool_lock(pool);
	is_any = gpc_bins_largest(&pool->exacts) > 0;
	gpc_lock_release(&pool->lock);
	if (is_any)
		(void)gpc_pool_trim(pool, UINT64_MAX, false);
}
