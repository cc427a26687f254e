/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hits: a free that parks its block, and a request that takes a parked block of exactly its size.
 *
 *      free:  LIVE ----> PARKED ----> LIVE  :malloc      neither touches a neighbour or a bin
 *                           |
 *                           '---- whoever looks ----> FREE   coalesced, in its bin
 *
 * A parked block is as free as any other: it counts as cached, it is FREE in the recording, and what orders its next
 * owner's work behind its last one's was done at the free (barrier.h).  Only to coalesce it and to enter it into its
 * bin waits until somebody looks.  Who may look at a block that is not LIVE, at a bin or at the idle segments takes the
 * lock by gpc_pool_lock, which first unparks all blocks: nobody else meets a parked block, or free blocks that are not
 * coalesced.  The work is put off, and never more than before.
 *
 * The functions are inline for the allocator and for runtime/memory.c, which passes a constant observer.
 *
 * Invariants  P1 A PARKED block is in the list of its slot, in front of those parked before it, and in the list of all
 *                parked blocks, in the order of their frees.  These lists have no others, and at most GPC_MAX_PARKED.
 *             P2 A parked block may serve a request of its size: its segment is not exported, and of the size's kind.
 * Threads     The pool's lock.
 * Failure     None: what cannot be parked is FREE or PENDING at once.
 */
#ifndef GPC_ALLOC_POOL_HIT_H
#define GPC_ALLOC_POOL_HIT_H

#include "alloc/pool.h"
#include "base/hot.h"
#include "model/counters.h"

/* Unparks all blocks: coalesces each with its free neighbours, and enters it into its bin. */
void gpc_pool_unpark_locked(struct gpc_pool *pool);

/* Of pool_barrier.c. */

/*
 * Makes a barrier due for a block that cudaFree frees.  Returns true if the block may be FREE at once,
 * because the barrier orders its reuse.
 */
bool gpc_pool_owe_barrier_locked(struct gpc_pool *pool, struct gpc_block *block);

/* Makes a mark due behind which a segment could go back, if memory may be short soon. */
void gpc_pool_owe_mark_locked(struct gpc_pool *pool, const struct gpc_segment *segment);

/* Numbers the free of a block that will be FREE at once although work on it may still run. */
GPC_HOT void gpc_pool_number_free_locked(struct gpc_pool *pool, struct gpc_block *block)
{
	struct gpc_segment *segment = block->segment;

	segment->last_loose = ++pool->barrier.n_frees;
	if (segment->n_live == 0 || segment->range)
		gpc_pool_owe_mark_locked(pool, segment);
}

/* Takes the lock for a look at what is not LIVE. */
GPC_HOT void gpc_pool_lock(struct gpc_pool *pool)
{
	gpc_lock_take(&pool->lock);
	if (pool->n_parked)
		gpc_pool_unpark_locked(pool);
}

GPC_HOT struct gpc_block **gpc_pool_slot_of(struct gpc_pool *pool, uint64_t size)
{
	return &pool->slots[size / GPC_GRAIN % GPC_PARKED_SLOTS];
}

/* The block that starts at this grain of a small segment, or NULL. */
GPC_HOT struct gpc_block *gpc_pool_block_at_grain(
	const struct gpc_pool *pool, const struct gpc_segment *segment, uint32_t grain)
{
	uint32_t number = segment->grains->numbers[grain];

	return number ? gpc_slab_get(&pool->heap->blocks, number - 1) : NULL;
}

/* The block of this segment that starts here, or NULL. */
GPC_HOT struct gpc_block *gpc_pool_find_block_locked(
	const struct gpc_pool *pool, const struct gpc_segment *segment, gpc_devptr address)
{
	if (!segment->grains)
		return gpc_address_map_find(&pool->blocks, address);
	if (address % GPC_GRAIN)
		return NULL;
	return gpc_pool_block_at_grain(
		pool, segment, (uint32_t)((address - segment->address) / GPC_GRAIN));
}

/* The segment of this pool that contains the address, or NULL.  Of a segment of another pool only the pool is read. */
GPC_HOT struct gpc_segment *gpc_pool_find_segment_locked(
	const struct gpc_pool *pool, gpc_devptr address)
{
	struct gpc_segment *segment = gpc_segment_map_find(&pool->heap->segment_map, address);

	return segment && __atomic_load_n(&segment->pool, __ATOMIC_RELAXED) == pool ? segment
										    : NULL;
}

/* Finds the live block that starts at `address`; errors as gpc_pool_free. */
GPC_HOT enum gpc_status gpc_pool_find_live_locked(
	struct gpc_pool *pool, gpc_devptr address, struct gpc_block **ret_block)
{
	const struct gpc_segment *segment = gpc_pool_find_segment_locked(pool, address);
	struct gpc_block *block;

	if (!segment)
		return GPC_NOT_FOUND;
	block = gpc_pool_find_block_locked(pool, segment, address);
	if (!block || block->state != GPC_BLOCK_LIVE)
		return GPC_INVALID;
	*ret_block = block;
	return GPC_OK;
}

/* A recent peak is at most that of the whole run, so what does not raise the one does not raise the other. */
void gpc_pool_raise_peaks_locked(struct gpc_pool *pool, uint64_t live, uint64_t requested);

/* Makes a block LIVE.  The caller has taken it out of its bin, fence or slot, and off its counter. */
GPC_HOT gpc_devptr gpc_pool_give_locked(struct gpc_pool *pool, struct gpc_block *block,
	const struct gpc_request *request, const struct gpc_observer *observer)
{
	struct gpucache_counters *counters = pool->counters;
	uint64_t live = gpc_counter_get(&counters->live_bytes) + block->size;
	uint64_t requested = gpc_counter_get(&counters->requested_bytes) + request->size;

	if (block->segment->n_live++ == 0)
		gpc_counter_sub(&pool->idle_segment_bytes, block->segment->size);
	block->state = GPC_BLOCK_LIVE;
	block->requested = request->size;
	block->mark = request->mark;
	block->is_arena = false;
	block->is_shared = false;
	block->view = GPC_VIEW_OPEN;
	block->is_told = request->stream != 0;
	if (block->is_told)
		block->stream = request->stream;
	gpc_counter_set(&counters->live_bytes, live);
	gpc_counter_set(&counters->requested_bytes, requested);
	if (__builtin_expect(live > gpc_counter_get(&pool->recent.live_bytes) ||
				     requested > gpc_counter_get(&pool->recent.requested_bytes),
		    0))
		gpc_pool_raise_peaks_locked(pool, live, requested);
	gpc_counter_add(&counters->n_blocks, 1);
	gpc_counter_add(&counters->n_malloc, 1);
	observer->taken(block, request);
	return block->address;
}

/* Gives the block of exactly this size that was parked last; false: there is none. */
GPC_HOT bool gpc_pool_take_parked_locked(struct gpc_pool *pool, uint64_t rounded,
	const struct gpc_request *request, const struct gpc_observer *observer,
	gpc_devptr *ret_address)
{
	struct gpc_block **slot = gpc_pool_slot_of(pool, rounded);
	struct gpc_block *block = *slot;

	if (!block || block->size != rounded ||
		rounded >= atomic_load_explicit(&pool->heap->whole_from, memory_order_relaxed))
		return false;
	*slot = block->parked.next;
	gpc_list_remove(&block->link);
	pool->n_parked--;
	gpc_counter_sub(&pool->counters->cached_bytes, rounded);
	gpc_counter_add(&pool->counters->n_hit, 1);
	*ret_address = gpc_pool_give_locked(pool, block, request, observer);
	return true;
}

/*
 * gpc_pool_alloc, with the heap's observer, for a request that a parked block serves.  False: none does, and nothing was
 * done.
 */
GPC_HOT bool gpc_pool_hit(struct gpc_pool *pool, const struct gpc_request *request,
	const struct gpc_observer *observer, gpc_devptr *ret_address)
{
	uint64_t rounded = gpc_size_round(request->size, pool->params.roundup_divisions);
	bool is_hit;

	gpc_lock_take(&pool->lock);
	is_hit = gpc_pool_take_parked_locked(pool, rounded, request, observer, ret_address);
	gpc_lock_release(&pool->lock);
	return is_hit;
}

/* Parks a LIVE block that is to be FREE, which the caller has taken off the counters, and told the observer. */
GPC_HOT void gpc_pool_park_locked(struct gpc_pool *pool, struct gpc_block *block, uint64_t now_ns)
{
	struct gpc_block **slot = gpc_pool_slot_of(pool, block->size);

	if (__builtin_expect(pool->n_parked == GPC_MAX_PARKED, 0))
		gpc_pool_unpark_locked(pool);
	gpc_counter_add(&pool->counters->cached_bytes, block->size);
	block->requested = 0;
	block->mark = 0;
	block->state = GPC_BLOCK_PARKED;
	block->parked.time_ns = now_ns;
	block->parked.next = *slot;
	*slot = block;
	gpc_list_append(&pool->parked, &block->link);
	pool->n_parked++;
}

/*
 * True if a freed block may be FREE before its work is known to be complete: the one-stream rule, or a barrier that
 * this call makes due, orders its reuse.
 */
GPC_HOT bool gpc_pool_is_free_at_once_locked(
	struct gpc_pool *pool, struct gpc_block *block, const struct gpc_request *request)
{
	if (gpc_fences_is_free_safe(&pool->fences)) {
		gpc_pool_number_free_locked(pool, block);
		return true;
	}
	if (!request->stream && !request->is_async && gpc_pool_owe_barrier_locked(pool, block))
		return true;
	return pool->params.is_fence_skipped;
}

/* Makes a LIVE block, which the caller has taken off the counters, FREE or PENDING. */
void gpc_pool_release_locked(struct gpc_pool *pool, struct gpc_block *block,
	const struct gpc_request *request, bool is_free);

/* What a free does after it has released the lock: it may wait, and return memory to the driver. */
void gpc_pool_end_free(struct gpc_pool *pool, const struct gpc_request *request);

/* gpc_pool_free, with the heap's observer. */
GPC_HOT enum gpc_status gpc_pool_free_as(struct gpc_pool *pool, gpc_devptr address,
	const struct gpc_request *request, const struct gpc_observer *observer)
{
	struct gpucache_counters *counters = pool->counters;
	struct gpc_request slow; /* a copy, so that a hit keeps the request in registers */
	struct gpc_block *block = NULL;
	enum gpc_status st;
	bool is_parked;
	bool is_free;

	gpc_lock_take(&pool->lock);
	st = gpc_pool_find_live_locked(pool, address, &block);
	if (__builtin_expect(st != GPC_OK, 0)) {
		gpc_lock_release(&pool->lock);
		return st;
	}
	gpc_counter_sub(&counters->live_bytes, block->size);
	gpc_counter_sub(&counters->requested_bytes, block->requested);
	gpc_counter_sub(&counters->n_blocks, 1);
	gpc_counter_add(&counters->n_free, 1);
	if (--block->segment->n_live == 0)
		gpc_counter_add(&pool->idle_segment_bytes, block->segment->size);
	is_free = gpc_pool_is_free_at_once_locked(pool, block, request);
	is_parked = is_free && !block->segment->is_exported &&
		    block->segment->kind == gpc_size_pool(block->size);
	observer->freed(block, request, is_parked);
	if (__builtin_expect(is_parked, 1)) {
		gpc_pool_park_locked(pool, block, request->now_ns);
	} else {
		slow = *request;
		gpc_pool_release_locked(pool, block, &slow, is_free);
	}
	gpc_lock_release(&pool->lock);
	if (__builtin_expect(gpc_counter_get(&counters->pending_bytes) > 0 ||
				     pool->params.gc_threshold_ppm || pool->params.decay_ns ||
				     atomic_load_explicit(&pool->n_leaving, memory_order_relaxed),
		    0)) {
		slow = *request;
		gpc_pool_end_free(pool, &slow);
	}
	return GPC_OK;
}

#endif
