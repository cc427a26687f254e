/* SPDX-License-Identifier: Apache-2.0 */
/* The heap checker: verifies the invariants of block.h and the counters, one by one, over a whole pool. */
#include <stddef.h>

#include "alloc/pool.h"
#include "alloc/pool_internal.h"

struct totals {
	uint64_t live;
	uint64_t requested;
	uint64_t pending;
	uint64_t cached;
	uint64_t segments;
	uint64_t cut;
	uint64_t idle_segments;
	uint64_t n_segments;
	uint64_t n_blocks;
	uint64_t n_live;
	uint64_t n_free_visible;
	uint64_t n_ordered;
	uint64_t n_idle;
	uint64_t n_leaving;
	uint64_t n_numbers; /* blocks that grain maps name */
	bool is_unmapped;   /* a small FREE block is missing in its grain map */
	bool is_miscounted; /* a segment's n_live is wrong */
};

/* True if the grain map is right about this FREE block, or does not cover its size. */
static bool is_in_set(const struct gpc_block *block)
{
	const struct gpc_grain_set *set = gpc_pool_set_of(block);

	return !set || gpc_grain_set_has(set, gpc_pool_grain_of(block->segment, block->address));
}

static uint64_t count_numbers(const struct gpc_grain_map *grains)
{
	uint64_t n = 0;

	for (uint32_t grain = 0; grains && grain < GPC_GRAINS; grain++)
		n += grains->numbers[grain] != 0;
	return n;
}

static const char *check_block(
	struct gpc_pool *pool, const struct gpc_block *block, struct totals *totals)
{
	if (block->size == 0 || block->size % GPC_GRAIN != 0 || block->requested > block->size)
		return "I5: a block's size is a positive multiple of the grain and covers the "
		       "request";
	if (gpc_pool_find_block_locked(pool, block->segment, block->address) != block)
		return "I7: a block is found by its address";
	totals->n_blocks++;
	switch ((enum gpc_block_state)block->state) {
	case GPC_BLOCK_LIVE:
		totals->live += block->size;
		totals->requested += block->requested;
		totals->n_live++;
		return NULL;
	case GPC_BLOCK_PENDING:
		totals->pending += block->size;
		totals->n_ordered += block->order > 0;
		return gpc_list_is_empty(&block->link) ? "I4: a pending block is on a fence" : NULL;
	case GPC_BLOCK_FREE:
		totals->cached += block->size;
		if (block->segment->is_exported)
			return NULL;
		totals->n_free_visible++;
		totals->is_unmapped |= !is_in_set(block);
		return NULL;
	case GPC_BLOCK_PARKED:
	case GPC_BLOCK_UNUSED:
		break;
	}
	return "a block of a segment has a state";
}

static const char *check_segment(
	struct gpc_pool *pool, const struct gpc_segment *segment, struct totals *totals)
{
	uint64_t n_live_before = totals->n_live;
	gpc_devptr expected = segment->address;
	const struct gpc_block *last = NULL;
	const char *broken;

	for (const struct gpc_block *at = segment->first; at; at = at->next) {
		if (at->address != expected || at->prev != last || at->segment != segment)
			return "I1: blocks tile their segment";
		if (last && last->state == GPC_BLOCK_FREE && at->state == GPC_BLOCK_FREE)
			return "I2: two neighbours are never both free";
		broken = check_block(pool, at, totals);
		if (broken)
			return broken;
		expected += at->size;
		last = at;
	}
	if (!last || expected != segment->address + segment->size)
		return "I1: blocks tile their segment";
	if (segment->is_exact && segment->first != last)
		return "I10: an exact segment is one block";
	if ((segment->first == last && last->state == GPC_BLOCK_FREE) !=
		!gpc_list_is_empty(&segment->idle))
		return "I8: a segment is on the idle list if and only if it is one free block";
	totals->n_idle += !gpc_list_is_empty(&segment->idle);
	totals->n_leaving += segment->is_exported && !gpc_list_is_empty(&segment->idle);
	totals->is_miscounted |= segment->n_live != totals->n_live - n_live_before;
	totals->idle_segments += segment->n_live ? 0 : segment->size;
	totals->n_segments++;
	totals->n_numbers += count_numbers(segment->grains);
	totals->segments += segment->size;
	totals->cut += segment->kind == GPC_POOL_LARGE && !segment->range && segment->first->next
			       ? segment->size
			       : 0;
	return NULL;
}

struct bin_walk {
	struct gpc_pool *pool;
	const struct gpc_bins *bins;
	uint64_t n;
	bool is_sound;
	const struct gpc_block *last;
};

static bool is_before(const struct gpc_block *a, const struct gpc_block *b)
{
	return a->size < b->size || (a->size == b->size && a->address < b->address);
}

/*
 * The number of FREE blocks this one represents in its bin: itself and, if it is in a grain map, all of its size in the
 * segment.  0 if it should not be in a bin.
 */
static uint64_t stands_for(const struct gpc_block *block)
{
	const struct gpc_grain_set *set = gpc_pool_set_of(block);

	if (!set)
		return 1;
	return gpc_grain_set_lowest(set) == gpc_pool_grain_of(block->segment, block->address)
		       ? gpc_grain_set_count(set)
		       : 0;
}

/* In order.  The recursion is a few dozen levels deep. */
static void walk_tree(const struct gpc_block *at, uint32_t bin, struct bin_walk *walk)
{
	if (!at)
		return;
	walk_tree(at->tree.left, bin, walk);
	walk->n += stands_for(at);
	walk->is_sound &= at->state == GPC_BLOCK_FREE && !at->segment->is_exported &&
			  gpc_size_bin(at->size) == bin &&
			  gpc_pool_bins_of(walk->pool, at) == walk->bins &&
			  (!walk->last || is_before(walk->last, at));
	walk->last = at;
	walk_tree(at->tree.right, bin, walk);
}

/* Returns false if a bin's bit disagrees with its tree. */
static bool walk_bins(const struct gpc_bins *bins, struct bin_walk *walk)
{
	walk->bins = bins;
	for (uint32_t bin = 0; bin < GPC_N_BINS; bin++) {
		bool bit = bins->bitmap[bin / 64] >> (bin % 64) & 1;

		if (bit != (bins->roots[bin] != NULL))
			return false;
		walk->last = NULL;
		walk_tree(bins->roots[bin], bin, walk);
	}
	return true;
}

static const char *check_bins(struct gpc_pool *pool, const struct totals *totals)
{
	struct bin_walk walk = { .pool = pool, .is_sound = true };
	bool is_marked = walk_bins(&pool->wholes, &walk) & walk_bins(&pool->exacts, &walk);

	for (int kind = 0; kind < GPC_N_POOL_KINDS; kind++)
		is_marked &= walk_bins(&pool->pieces[kind], &walk);
	if (!is_marked)
		return "I3: a bin's bit says whether it holds anything";
	if (totals->is_unmapped)
		return "I3: a grain map has the small free blocks of its segment";
	return walk.is_sound && walk.n == totals->n_free_visible
		       ? NULL
		       : "I3: a block is in a bin iff it is free, and in that of its size";
}

static void count_ordered(struct gpc_block *block, void *arg)
{
	struct bin_walk *walk = arg;

	walk->n++;
	walk->is_sound &= block->state == GPC_BLOCK_PENDING && block->order > 0;
}

static const char *check_order(const struct gpc_stream_order *order, const struct totals *totals)
{
	struct bin_walk walk = { .is_sound = true };

	for (uint32_t slot = 0; order->bins && slot < order->n_slots; slot++)
		gpc_bins_each(&order->bins[slot], count_ordered, &walk);
	return walk.is_sound && walk.n == totals->n_ordered
		       ? NULL
		       : "I9: a block is in the order of a stream only while it is pending";
}

static const char *check_fences(const struct gpc_fences *fences, uint64_t pending)
{
	uint64_t bytes = 0;

	for (uint64_t number = fences->oldest; number <= fences->open; number++) {
		const struct gpc_fence *fence = &fences->ring[number % GPC_MAX_FENCES];
		uint64_t fence_bytes = 0;

		gpc_list_each (link, &fence->blocks) {
			const struct gpc_block *block =
				gpc_list_entry(link, struct gpc_block, link);

			if (block->state != GPC_BLOCK_PENDING)
				return "I4: a block on a fence is pending";
			fence_bytes += block->size;
		}
		if (fence_bytes != fence->bytes)
			return "F2: a fence counts its bytes";
		bytes += fence_bytes;
	}
	return bytes == pending && bytes == fences->pending_bytes
		       ? NULL
		       : "I4: a pending block is on one fence";
}

static const char *check_counters(
	const struct gpucache_counters *counters, const struct totals *totals)
{
	if (totals->live + totals->pending + totals->cached != totals->segments)
		return "I6: live + pending + cached = segments";
	if (counters->live_bytes != totals->live ||
		counters->requested_bytes != totals->requested ||
		counters->pending_bytes != totals->pending ||
		counters->cached_bytes != totals->cached ||
		counters->reserved_bytes != totals->segments ||
		counters->n_blocks != totals->n_live || counters->n_segments != totals->n_segments)
		return "I6: the counters are what the heap holds";
	return NULL;
}

static const char *check_segment_counts(const struct gpc_pool *pool, const struct totals *totals)
{
	if (totals->is_miscounted || pool->idle_segment_bytes != totals->idle_segments)
		return "the live blocks of segments, and the segments without one, are counted";
	if (pool->cut_bytes != totals->cut)
		return "the segments of large blocks that are cut are counted";
	return NULL;
}

static uint64_t length(const struct gpc_list *list)
{
	uint64_t n = 0;

	gpc_list_each (link, list)
		n++;
	return n;
}

static const char *check_locked(struct gpc_pool *pool)
{
	struct totals totals = { 0 };
	const char *broken = NULL;

	gpc_list_each (link, &pool->segments) {
		broken = check_segment(
			pool, gpc_list_entry(link, struct gpc_segment, link), &totals);
		if (broken)
			return broken;
	}
	if (pool->blocks.n_entries + totals.n_numbers != totals.n_blocks)
		return "I7: nothing but blocks is found by address";
	if (length(&pool->idle) != totals.n_idle)
		return "I8: nothing else is on the idle list";
	if (pool->n_leaving != totals.n_leaving)
		return "the exported segments that are idle are counted";
	broken = check_bins(pool, &totals);
	if (!broken)
		broken = check_fences(&pool->fences, totals.pending);
	if (!broken)
		broken = check_order(&pool->order, &totals);
	if (!broken)
		broken = check_counters(pool->counters, &totals);
	return broken ? broken : check_segment_counts(pool, &totals);
}

static const char *check_parked(struct gpc_pool *pool)
{
	uint32_t n_in_slots = 0;
	uint32_t n = 0;

	gpc_list_each (link, &pool->parked) {
		const struct gpc_block *block = gpc_list_entry(link, struct gpc_block, link);

		if (block->state != GPC_BLOCK_PARKED)
			return "P1: what is listed as parked is";
		if (block->segment->is_exported ||
			gpc_size_pool(block->size) != block->segment->kind)
			return "P2: a parked block could serve a request of its size";
		n++;
	}
	for (uint32_t i = 0; i < GPC_PARKED_SLOTS; i++) {
		for (const struct gpc_block *at = pool->slots[i]; at; at = at->parked.next) {
			if (at->state != GPC_BLOCK_PARKED ||
				at->size / GPC_GRAIN % GPC_PARKED_SLOTS != i)
				return "P1: a slot has the parked blocks of its sizes";
			n_in_slots++;
		}
	}
	return n == pool->n_parked && n == n_in_slots && n <= GPC_MAX_PARKED
		       ? NULL
		       : "P1: the parked blocks are counted, and at most GPC_MAX_PARKED";
}

const char *gpc_pool_check(struct gpc_pool *pool)
{
	const char *broken;

	gpc_lock_take(&pool->lock);
	broken = check_parked(pool);
	if (!broken) {
		gpc_pool_unpark_locked(pool);
		broken = check_locked(pool);
	}
	gpc_lock_release(&pool->lock);
	return broken;
}
