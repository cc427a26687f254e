/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points of the allocator.  A request is served from free blocks, from blocks whose fences have passed, or
 * from a new segment; a freed block becomes FREE at once or waits for its fence.
 */
#include "alloc/pool.h"

#include <string.h>

#include "alloc/pool_internal.h"
#include "model/counters.h"

/*
 * The open fence is closed after this many frees: enough to amortise the driver call, few enough to withhold little
 * memory.  A miss that pending memory could serve closes it earlier.
 */
#define FENCE_MAX_BLOCKS 64
/* The open fence is also closed when it holds 1 / FENCE_LIMIT_PART of pending_limit. */
#define FENCE_LIMIT_PART 8

void gpc_pool_init(struct gpc_pool *pool, struct gpc_heap *heap, struct gpc_driver *drv,
	struct gpc_budget *budget, const struct gpc_pool_params *params, uint32_t device,
	uint32_t context, struct gpucache_counters *counters)
{
	memset(pool, 0, sizeof *pool);
	pool->heap = heap;
	pool->drv = drv;
	pool->budget = budget;
	pool->params = *params;
	pool->device = device;
	pool->context = context;
	pool->place = (uint64_t)device << 16 | (uint64_t)context << 32;
	gpc_list_init(&pool->segments);
	gpc_list_init(&pool->idle);
	gpc_list_init(&pool->parked);
	gpc_fences_init(&pool->fences, drv, &heap->captures, params->is_one_stream);
	gpc_stream_order_init(&pool->order);
	pool->counters = counters ? counters : &pool->own_counters;
	gpc_lock_init(&pool->lock, GPC_RANK_POOL);
}

void gpc_pool_forget(struct gpc_pool *pool)
{
	struct gpc_driver *members[GPC_MAX_MEMBERS];
	struct gpc_list paged;
	uint32_t n_members;

	gpc_list_init(&paged);
	gpc_pool_lock(pool);
	pool->is_forgotten = true;
	/* The dead context's handle is invalid; of the contexts that the fences cover, only the others may still have work. */
	n_members = 0;
	for (uint32_t i = 0; i < pool->fences.n_members; i++)
		if (pool->fences.members[i] != pool->drv)
			members[n_members++] = pool->fences.members[i];
	gpc_fences_fini(&pool->fences, false);
	gpc_pool_end_barrier_locked(pool, false);
	gpc_stream_order_fini(&pool->order);
	gpc_pool_forget_segments_locked(pool, &paged);
	if (pool->unplaced)
		atomic_fetch_sub(&pool->budget->used_bytes, pool->unplaced_size);
	pool->unplaced = 0;
	for (int kind = 0; kind < GPC_N_POOL_KINDS; kind++)
		pool->pieces[kind] = (struct gpc_bins){ 0 };
	pool->wholes = (struct gpc_bins){ 0 };
	pool->exacts = (struct gpc_bins){ 0 };
	gpc_counter_set(&pool->cut_bytes, 0);
	gpc_counter_set(&pool->idle_segment_bytes, 0);
	gpc_list_init(&pool->idle);
	atomic_store(&pool->n_leaving, 0);
	gpc_address_map_fini(&pool->blocks);
	if (pool->spare)
		gpc_slab_give_back(&pool->heap->blocks, pool->spare->number);
	pool->spare = NULL;
	gpc_counters_clear(pool->counters, GPC_WHEN_HEAP);
	gpc_lock_release(&pool->lock);
	if (!gpc_list_is_empty(&paged))
		gpc_pool_drop_pages(pool, members, n_members, &paged);
}

void gpc_pool_fini(struct gpc_pool *pool)
{
	(void)gpc_pool_wait(pool, 0);
	(void)gpc_pool_trim(pool, UINT64_MAX, true);
	gpc_pool_lock(pool);
	gpc_fences_fini(&pool->fences, true);
	gpc_pool_end_barrier_locked(pool, true);
	gpc_lock_release(&pool->lock);
	gpc_pool_forget(pool);
}

/*
 * PyTorch's rule: with max_split_size, a block of at least that size serves only requests of at least that size, and
 * only if less than a medium segment would be wasted.
 */
static bool is_served_by(
	const struct gpc_pool *pool, uint64_t rounded, const struct gpc_block *block)
{
	uint64_t max = pool->params.max_split_size;

	if (max == 0)
		return true;
	return rounded < max ? block->size < max : block->size < rounded + GPC_MEDIUM_SEGMENT;
}

/* The smallest idle segment that can be handed out whole: at most 1/8 larger than this size needs.  NULL: none. */
static struct gpc_block *find_whole(struct gpc_pool *pool, uint64_t rounded)
{
	uint64_t tight = gpc_size_tight_segment(rounded);
	struct gpc_block *best = NULL;

	gpc_list_each (link, &pool->idle) {
		struct gpc_segment *segment = gpc_list_entry(link, struct gpc_segment, idle);

		if (!segment->is_exported && !segment->is_exact && !segment->range &&
			segment->size >= rounded && segment->size <= tight + tight / 8 &&
			(!best || segment->size < best->size))
			best = segment->first;
	}
	return best;
}

/*
 * True if this idle segment may serve the request: it has no remainder that could be cut off, policy (pool_room.c)
 * allows cutting it or handing it out uncut, or it consists of pages, of which a piece pins no others.
 */
static bool may_use_whole(
	const struct gpc_pool *pool, const struct gpc_block *whole, uint64_t rounded)
{
	return whole->size <= gpc_size_tight_segment(rounded) ||
	       gpc_pool_may_cut(pool, whole->size, rounded) ||
	       gpc_pool_may_waste(pool, whole->size, rounded) || whole->segment->range;
}

/* The best fit, or NULL. */
static struct gpc_block *find_fit(struct gpc_pool *pool, uint64_t rounded, bool is_exact)
{
	enum gpc_pool_kind kind = gpc_size_pool(rounded);
	struct gpc_block *block;
	struct gpc_block *whole;

	if (is_exact)
		return gpc_pool_find_exact_locked(pool, rounded);
	if (gpc_pool_gives_whole(pool, rounded))
		return find_whole(pool, rounded);
	block = gpc_bins_find(&pool->pieces[kind], rounded);
	if (block && !gpc_pool_may_split(pool, block, rounded))
		block = NULL;
	whole = kind == GPC_POOL_LARGE ? gpc_bins_find(&pool->wholes, rounded) : NULL;
	if (whole && (!block || whole->size < block->size) && may_use_whole(pool, whole, rounded))
		block = whole;
	return block && is_served_by(pool, rounded, block) ? block : NULL;
}

/* True if the request's stream orders its work.  False during a capture: captured work runs later, on any stream. */
static bool is_in_order(const struct gpc_pool *pool, const struct gpc_request *request)
{
	return request->stream && !gpc_captures_is_any_open(&pool->heap->captures);
}

/*
 * Reuses a block that the request's stream freed, before its fence has passed.  Blocks that would have to be split do
 * not qualify: the remainder would need a fence of its own.  False if none fits.
 */
static __attribute__((noinline)) bool take_ordered_locked(struct gpc_pool *pool, uint64_t rounded,
	const struct gpc_request *request, gpc_devptr *ret_address)
{
	const bool may = is_in_order(pool, request) && !gpc_pool_gives_whole(pool, rounded);
	struct gpc_block *block =
		may ? gpc_stream_order_find(&pool->order, request->stream, rounded) : NULL;

	if (!block || !is_served_by(pool, rounded, block) ||
		gpc_size_should_split((enum gpc_pool_kind)block->segment->kind, block->size,
			rounded, pool->params.max_split_size))
		return false;
	gpc_stream_order_remove(&pool->order, block);
	gpc_fences_drop(&pool->fences, block);
	gpc_counter_sub(&pool->counters->pending_bytes, block->size);
	gpc_counter_add(&pool->counters->n_hit, 1);
	*ret_address = gpc_pool_give_locked(pool, block, request, &pool->heap->observer);
	return true;
}

enum gpc_status gpc_pool_search(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address)
{
	uint64_t rounded = gpc_pool_rounded(pool, request);
	enum gpc_status st = GPC_NOT_FOUND;
	struct gpc_block *block;
	uint64_t reaped;

	gpc_lock_take(&pool->lock);
	if (request->stream && take_ordered_locked(pool, rounded, request, ret_address)) {
		gpc_lock_release(&pool->lock);
		return GPC_OK;
	}
	if (!request->is_exact && gpc_pool_take_parked_locked(pool, rounded, request,
					  &pool->heap->observer, ret_address)) {
		gpc_lock_release(&pool->lock);
		return GPC_OK;
	}
	if (pool->n_parked)
		gpc_pool_unpark_locked(pool);
	block = find_fit(pool, rounded, request->is_exact);
	if (!block && pool->fences.pending_bytes >= rounded) {
		enum gpc_status reap_st =
			gpc_pool_reap_locked(pool, true, request->now_ns, &reaped);

		if (reap_st)
			st = reap_st;
		else
			block = find_fit(pool, rounded, request->is_exact);
	}
	if (block) {
		*ret_address = gpc_pool_take_locked(
			pool, block, rounded, gpc_pool_should_cut(pool, block, rounded), request);
		gpc_counter_add(&pool->counters->n_hit, 1);
		st = GPC_OK;
	}
	gpc_lock_release(&pool->lock);
	return st;
}

enum gpc_status gpc_pool_alloc(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address)
{
	enum gpc_status st;
	uint64_t rounded;

	if (request->size == 0 || request->size > GPC_SIZE_MAX)
		return GPC_INVALID;
	if (atomic_load_explicit(&pool->is_off_grid, memory_order_relaxed))
		return GPC_UNSUPPORTED;
	st = gpc_pool_search(pool, request, ret_address);
	if (st != GPC_NOT_FOUND)
		return st;
	if (!request->is_exact && atomic_load_explicit(&pool->is_short, memory_order_relaxed) &&
		!gpc_pool_cut(pool, request, ret_address))
		return GPC_OK;
	rounded = gpc_pool_rounded(pool, request);
	if (gpc_pool_holds_too_much(pool, rounded) && gpc_pool_order_pending(pool)) {
		st = gpc_pool_search(pool, request, ret_address);
		if (st != GPC_NOT_FOUND)
			return st;
	}
	return request->is_exact ? gpc_pool_grow_exact(pool, request, ret_address)
				 : gpc_pool_grow(pool, request, ret_address);
}

enum gpc_status gpc_pool_retry(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address)
{
	enum gpc_status st = gpc_pool_search(pool, request, ret_address);

	if (st == GPC_NOT_FOUND)
		st = gpc_pool_grow(pool, request, ret_address);
	if ((st == GPC_DEVICE_NO_MEMORY || st == GPC_LIMIT) &&
		!gpc_pool_cut(pool, request, ret_address))
		st = GPC_OK;
	return st;
}

/* Closes the open fence if it is full.  A driver error is not lost: it is sticky, so the next call returns it. */
static void close_full_fence(struct gpc_pool *pool, uint64_t now_ns)
{
	const struct gpc_fence *open = gpc_fences_get_open(&pool->fences);
	uint64_t max_bytes = pool->params.pending_limit / FENCE_LIMIT_PART;
	uint64_t reaped;

	if (open->n_blocks >= FENCE_MAX_BLOCKS || (max_bytes > 0 && open->bytes >= max_bytes))
		(void)!gpc_pool_reap_locked(pool, true, now_ns, &reaped);
}

/* Makes a LIVE block PENDING: the device may still be using the block, so it waits for a fence. */
static void make_pending_locked(
	struct gpc_pool *pool, struct gpc_block *block, const struct gpc_request *request)
{
	struct gpucache_counters *counters = pool->counters;

	block->state = GPC_BLOCK_PENDING;
	gpc_counter_add_peak(&counters->pending_bytes, &counters->peak_pending_bytes, block->size);
	gpc_fences_add(&pool->fences, block);
	if (is_in_order(pool, request) && !block->is_shared && !block->segment->is_exported)
		gpc_stream_order_add(&pool->order, request->stream, block);
	pool->heap->observer.block_changed(block, request->now_ns);
	close_full_fence(pool, request->now_ns);
}

void gpc_pool_release_locked(struct gpc_pool *pool, struct gpc_block *block,
	const struct gpc_request *request, bool is_free)
{
	if (is_free)
		gpc_pool_make_free_locked(pool, block, request->now_ns);
	else
		make_pending_locked(pool, block, request);
}

enum gpc_status gpc_pool_lend(struct gpc_pool *pool, gpc_devptr address)
{
	const struct gpc_observer *observer = &pool->heap->observer;
	struct gpc_block *block = NULL;
	enum gpc_status st;

	gpc_lock_take(&pool->lock);
	st = gpc_pool_find_live_locked(pool, address, &block);
	if (!st && !block->is_arena) {
		observer->became_arena(block);
		block->is_arena = true;
		block->mark = 0;
		observer->block_changed(block, pool->drv->ops->now_ns(pool->drv));
	}
	gpc_lock_release(&pool->lock);
	return st;
}

enum gpc_status gpc_pool_free(
	struct gpc_pool *pool, gpc_devptr address, const struct gpc_request *request)
{
	return gpc_pool_free_as(pool, address, request, &pool->heap->observer);
}

void gpc_pool_end_free(struct gpc_pool *pool, const struct gpc_request *request)
{
	/* A free may wait: in the plain driver it waits for all earlier work. */
	if (!request->stream && !request->is_async && pool->params.pending_limit &&
		gpc_counter_get(&pool->counters->pending_bytes) > 0)
		gpc_pool_bound_pending(pool);
	if (pool->params.gc_threshold_ppm)
		gpc_pool_collect_garbage(pool);
	if (pool->params.decay_ns || atomic_load_explicit(&pool->n_leaving, memory_order_relaxed))
		gpc_pool_return_due(pool, request->now_ns);
}

enum gpc_status gpc_pool_record_use(struct gpc_pool *pool, gpc_devptr address)
{
	struct gpc_block *block = NULL;
	enum gpc_status st;

	gpc_lock_take(&pool->lock);
	st = gpc_pool_find_live_locked(pool, address, &block);
	if (!st)
		block->is_shared = true;
	gpc_lock_release(&pool->lock);
	return st;
}

uint64_t gpc_pool_idle(struct gpc_pool *pool)
{
	uint64_t bytes;

	gpc_lock_take(&pool->lock);
	bytes = gpc_counter_get(&pool->counters->cached_bytes) +
		gpc_counter_get(&pool->counters->pending_bytes) + atomic_load(&pool->late_bytes);
	gpc_lock_release(&pool->lock);
	return bytes;
}

uint64_t gpc_pool_returnable(struct gpc_pool *pool)
{
	return gpc_counter_get(&pool->idle_segment_bytes) + gpc_pool_idle_pages(pool);
}

uint64_t gpc_pool_largest_free(struct gpc_pool *pool)
{
	uint64_t largest;

	gpc_pool_lock(pool);
	largest = gpc_bins_largest(&pool->wholes);
	for (int kind = 0; kind < GPC_N_POOL_KINDS; kind++) {
		uint64_t size = gpc_bins_largest(&pool->pieces[kind]);

		if (size > largest)
			largest = size;
	}
	gpc_lock_release(&pool->lock);
	return largest;
}

void gpc_pool_raise_peaks_locked(struct gpc_pool *pool, uint64_t live, uint64_t requested)
{
	gpc_counter_raise(&pool->recent.live_bytes, live);
	gpc_counter_raise(&pool->recent.requested_bytes, requested);
	gpc_counter_raise(&pool->counters->peak_live_bytes, live);
	gpc_counter_raise(&pool->counters->peak_requested_bytes, requested);
}

void gpc_pool_reset_peaks(struct gpc_pool *pool)
{
	const struct gpucache_counters *counters = pool->counters;

	gpc_lock_take(&pool->lock);
	gpc_counter_set(&pool->recent.requested_bytes, gpc_counter_get(&counters->requested_bytes));
	gpc_counter_set(&pool->recent.live_bytes, gpc_counter_get(&counters->live_bytes));
	gpc_counter_set(&pool->recent.reserved_bytes, gpc_counter_get(&counters->reserved_bytes));
	gpc_lock_release(&pool->lock);
}

/* A sum per stream would cost every hit, so this rare query walks the blocks. */
void gpc_pool_count_stream(
	struct gpc_pool *pool, gpc_stream stream, uint64_t *bytes, uint64_t *n_blocks)
{
	gpc_lock_take(&pool->lock);
	gpc_list_each (at, &pool->segments) {
		const struct gpc_segment *segment = gpc_list_entry(at, struct gpc_segment, link);

		for (const struct gpc_block *block = segment->first; block; block = block->next) {
			if (block->state != GPC_BLOCK_LIVE || !block->is_told ||
				block->stream != stream)
				continue;
			*bytes += block->requested;
			++*n_blocks;
		}
	}
	gpc_lock_release(&pool->lock);
}
