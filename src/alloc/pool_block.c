/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks within their segments: created, coalesced, split, and handed out.
 *
 * A block that becomes FREE coalesces with its free neighbours and enters the bin of its size, at once or when somebody
 * looks (pool_hit.h); one that is allocated leaves its bin, and its remainder becomes a block of its own.  So at most three blocks
 * enter or leave a bin, however many blocks there are.
 */
#include "alloc/pool_internal.h"
#include "model/counters.h"

void gpc_pool_enter_bin_locked(struct gpc_pool *pool, struct gpc_block *block)
{
	const struct gpc_segment *segment = block->segment;
	struct gpc_grain_set *set = gpc_pool_set_of(block);
	struct gpc_bins *bins = gpc_pool_bins_of(pool, block);

	if (segment->is_exported)
		return;
	if (set) {
		uint32_t grain = gpc_pool_grain_of(segment, block->address);
		uint32_t lowest = gpc_grain_set_lowest(set);

		gpc_grain_set_add(set, grain);
		if (lowest < grain)
			return;
		if (lowest < GPC_GRAINS)
			gpc_bins_remove(bins, gpc_pool_block_at_grain(pool, segment, lowest));
	}
	gpc_bins_insert(bins, block);
}

void gpc_pool_leave_bin_locked(struct gpc_pool *pool, struct gpc_block *block)
{
	const struct gpc_segment *segment = block->segment;
	struct gpc_grain_set *set = gpc_pool_set_of(block);
	struct gpc_bins *bins = gpc_pool_bins_of(pool, block);
	uint32_t lowest = GPC_GRAINS;

	if (segment->is_exported)
		return;
	if (set) {
		uint32_t grain = gpc_pool_grain_of(segment, block->address);

		gpc_grain_set_remove(set, grain);
		lowest = gpc_grain_set_lowest(set);
		if (lowest < grain)
			return;
	}
	gpc_bins_remove(bins, block);
	if (lowest < GPC_GRAINS)
		gpc_bins_insert(bins, gpc_pool_block_at_grain(pool, segment, lowest));
}

struct gpc_block *gpc_pool_new_block_locked(
	struct gpc_pool *pool, struct gpc_segment *segment, gpc_devptr address, uint64_t size)
{
	struct gpc_block *block;
	uint32_t number;

	if (!segment->grains && gpc_address_map_reserve(&pool->blocks, 1))
		return NULL;
	block = pool->spare;
	if (block) {
		pool->spare = NULL;
		number = block->number;
		/* The spare was FREE: its other fields are as new, or written before they are read. */
		block->prev = NULL;
		block->next = NULL;
	} else {
		block = gpc_slab_take(&pool->heap->blocks, &number);
		if (!block)
			return NULL;
	}
	block->number = number;
	block->address = address;
	block->size = size;
	block->segment = segment;
	block->state = GPC_BLOCK_FREE;
	if (segment->grains)
		segment->grains->numbers[gpc_pool_grain_of(segment, address)] = number + 1;
	else
		gpc_address_map_insert(&pool->blocks, address, block);
	return block;
}

void gpc_pool_retire_block_locked(struct gpc_pool *pool, struct gpc_block *block)
{
	const struct gpc_segment *segment = block->segment;

	if (segment->grains)
		segment->grains->numbers[gpc_pool_grain_of(segment, block->address)] = 0;
	else
		(void)gpc_address_map_take(&pool->blocks, block->address);
	block->state = GPC_BLOCK_UNUSED;
	pool->heap->observer.block_changed(block, 0);
	if (!pool->spare)
		pool->spare = block;
	else
		gpc_slab_give_back(&pool->heap->blocks, block->number);
}

/* Adds to cut_bytes a segment that is about to be cut; subtracts one that is whole again. */
static void count_cut(struct gpc_pool *pool, const struct gpc_block *block, bool is_cut)
{
	if (!gpc_pool_is_whole(block) || block->segment->range)
		return;
	if (is_cut)
		gpc_counter_add(&pool->cut_bytes, block->segment->size);
	else
		gpc_counter_sub(&pool->cut_bytes, block->segment->size);
}

/* Coalesces `left` with the block behind it.  Both are FREE and in no bin. */
static void absorb_next(struct gpc_pool *pool, struct gpc_block *left)
{
	struct gpc_block *right = left->next;

	left->size += right->size;
	left->next = right->next;
	if (right->next)
		right->next->prev = left;
	count_cut(pool, left, false);
	gpc_pool_retire_block_locked(pool, right);
}

/* Makes a block that is in no bin and counts as cached FREE: coalesces it and enters it into its bin. */
static void settle(struct gpc_pool *pool, struct gpc_block *block, uint64_t now_ns)
{
	struct gpc_segment *segment = block->segment;

	block->state = GPC_BLOCK_FREE;
	if (block->next && block->next->state == GPC_BLOCK_FREE) {
		gpc_pool_leave_bin_locked(pool, block->next);
		absorb_next(pool, block);
	}
	if (block->prev && block->prev->state == GPC_BLOCK_FREE) {
		block = block->prev;
		gpc_pool_leave_bin_locked(pool, block);
		absorb_next(pool, block);
	}
	gpc_pool_enter_bin_locked(pool, block);
	pool->heap->observer.block_changed(block, now_ns);
	if (gpc_pool_is_idle(segment)) {
		segment->idle_since_ns = now_ns;
		gpc_list_append(&pool->idle, &segment->idle);
		if (segment->is_exported)
			atomic_fetch_add(&pool->n_leaving, 1);
	}
}

void gpc_pool_make_free_locked(struct gpc_pool *pool, struct gpc_block *block, uint64_t now_ns)
{
	gpc_pool_unpark_locked(pool); /* those freed before */
	gpc_counter_add(&pool->counters->cached_bytes, block->size);
	block->requested = 0;
	block->mark = 0;
	settle(pool, block, now_ns);
}

void gpc_pool_unpark_locked(struct gpc_pool *pool)
{
	gpc_list_each_safe (link, &pool->parked) {
		struct gpc_block *block = gpc_list_entry(link, struct gpc_block, link);

		*gpc_pool_slot_of(pool, block->size) = NULL;
		gpc_list_remove(link);
		settle(pool, block, block->parked.time_ns);
	}
	pool->n_parked = 0;
}

uint64_t gpc_pool_free_passed_locked(
	struct gpc_pool *pool, struct gpc_list *passed, uint64_t now_ns)
{
	uint64_t bytes = 0;

	gpc_list_each_safe (link, passed) {
		struct gpc_block *block = gpc_list_entry(link, struct gpc_block, link);

		gpc_stream_order_remove(&pool->order, block);
		bytes += block->size;
		gpc_counter_sub(&pool->counters->pending_bytes, block->size);
		gpc_pool_make_free_locked(pool, block, now_ns);
	}
	return bytes;
}

/* Cuts `block`, which is FREE and in no bin, to `size`.  Without metadata for the remainder, the block stays whole. */
static void split(struct gpc_pool *pool, struct gpc_block *block, uint64_t size, uint64_t now_ns)
{
	struct gpc_block *rest = gpc_pool_new_block_locked(
		pool, block->segment, block->address + size, block->size - size);

	if (!rest)
		return;
	count_cut(pool, block, true);
	block->size = size;
	rest->prev = block;
	rest->next = block->next;
	if (rest->next)
		rest->next->prev = rest;
	block->next = rest;
	gpc_pool_enter_bin_locked(pool, rest);
	pool->heap->observer.block_changed(rest, now_ns);
}

gpc_devptr gpc_pool_take_locked(struct gpc_pool *pool, struct gpc_block *block, uint64_t rounded,
	bool is_cut, const struct gpc_request *request)
{
	struct gpc_segment *segment = block->segment;

	gpc_pool_leave_bin_locked(pool, block);
	if (gpc_pool_is_idle(segment))
		gpc_list_remove(&segment->idle);
	if (is_cut)
		split(pool, block, rounded, request->now_ns);
	gpc_counter_sub(&pool->counters->cached_bytes, block->size);
	return gpc_pool_give_locked(pool, block, request, &pool->heap->observer);
}
