/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last resort once the driver has no more memory: a piece of any cached block that is large enough.
 *
 * The pools of small and large blocks are kept apart so that one does not fragment the other's segments.  Under memory
 * pressure that rule would hurt: a program that fails while half of the device lies in free pieces of another class is
 * worse off than with the plain driver.  Cut pieces coalesce again when they are freed.
 */
#include "alloc/pool.h"

#include "alloc/pool_internal.h"
#include "model/counters.h"

/* The smallest block of these bins that is large enough and smaller than `best`; else `best`. */
static struct gpc_block *better_of(
	const struct gpc_bins *bins, uint64_t rounded, bool may_be_idle, struct gpc_block *best)
{
	struct gpc_block *block = gpc_bins_find(bins, rounded);

	if (!block || (best && best->size <= block->size) ||
		(gpc_pool_is_idle(block->segment) && !may_be_idle))
		return best;
	return block;
}

/*
 * The smallest piece that is large enough, regardless of its class and of max_split_size; an idle segment only if it
 * cannot go back to the driver.
 */
static struct gpc_block *find_any(struct gpc_pool *pool, uint64_t rounded)
{
	bool is_captured = gpc_captures_is_any_open(&pool->heap->captures);
	struct gpc_block *best = NULL;

	for (int kind = 0; kind < GPC_N_POOL_KINDS; kind++)
		best = better_of(&pool->pieces[kind], rounded, is_captured, best);
	return is_captured ? better_of(&pool->wholes, rounded, true, best) : best;
}

enum gpc_status gpc_pool_cut(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address)
{
	uint64_t rounded = gpc_pool_rounded(pool, request);
	struct gpc_block *block;

	gpc_pool_lock(pool);
	block = find_any(pool, rounded);
	if (block) {
		*ret_address =
			gpc_pool_take_locked(pool, block, rounded, block->size > rounded, request);
		gpc_counter_add(&pool->counters->n_hit, 1);
		atomic_store_explicit(&pool->is_short, true, memory_order_relaxed);
	}
	gpc_lock_release(&pool->lock);
	return block ? GPC_OK : GPC_NOT_FOUND;
}
