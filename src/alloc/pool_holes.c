/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holes: a segment of pages goes back to the driver piece by piece.
 *
 * A live block pins its segment, and with it all free memory around it.  In a segment of pages (driver_pages.h), the
 * pages wholly inside a free block are unmapped, and the segment splits in two there.
 *
 *      before   | live |          free            | live |        one segment
 *      pages    |    .    |    .    |    .    |    .     |
 *      after    | live | f|                   |f  | live |        two segments, two pages with the driver
 *
 * No block moves, and the driver can give the memory to the next segment.
 *
 * As a whole segment, pages go back only after the work on them has completed (gpc_pool_is_settled), and while no
 * capture is open: the driver's documentation does not promise that unmapping waits.
 */
#include "alloc/pool_internal.h"
#include "model/counters.h"

/* The pages wholly inside this FREE block; size 0: none. */
static struct gpc_memory pages_in(const struct gpc_block *block)
{
	const struct gpc_segment *segment = block->segment;
	uint64_t page = segment->page_bytes;
	uint64_t from = block->address - segment->address;
	uint64_t end = from + block->size;

	from = (from + page - 1) / page * page;
	if (end < segment->size)
		end -= end % page;
	return (struct gpc_memory){ .address = segment->address + from,
		.size = gpc_bytes_less(end, from),
		.range = segment->range,
		.page_bytes = page };
}

struct choice {
	struct gpc_block *block;
	struct gpc_memory memory;
	uint64_t wanted;
};

/* True if `size` is better than `than`: the smallest one that suffices is the best; if none suffices, the largest. */
static bool is_better(uint64_t size, uint64_t than, uint64_t wanted)
{
	if ((size >= wanted) != (than >= wanted))
		return size >= wanted;
	return size >= wanted ? size < than : size > than;
}

static void consider(struct gpc_block *block, void *arg)
{
	struct choice *choice = arg;
	struct gpc_memory memory;

	if (!block->segment->range || gpc_pool_is_idle(block->segment) ||
		!gpc_pool_is_settled(block->segment))
		return;
	memory = pages_in(block);
	if (memory.size == 0 ||
		(choice->block && !is_better(memory.size, choice->memory.size, choice->wanted)))
		return;
	choice->block = block;
	choice->memory = memory;
}

/* Reduces `memory` to the pages for `wanted` bytes, at that end of the block where the cut leaves fewer segments. */
static void take_less(const struct gpc_block *block, uint64_t wanted, struct gpc_memory *memory)
{
	uint64_t page = memory->page_bytes;
	uint64_t all = (memory->size + page - 1) / page;
	uint64_t enough;

	if (wanted >= memory->size)
		return;
	enough = (wanted + page - 1) / page;
	if (enough == all)
		return;
	/* The last page may be smaller than the others. */
	if (block->prev || !block->next)
		memory->address += (all - enough) * page;
	memory->size =
		block->prev || !block->next ? memory->size - (all - enough) * page : enough * page;
}

/* Suspends the accounting of a segment while its shape changes. */
static void begin_change_locked(struct gpc_pool *pool, struct gpc_segment *segment)
{
	pool->heap->observer.segment_removed(segment);
	if (segment->n_live == 0)
		gpc_counter_sub(&pool->idle_segment_bytes, segment->size);
	gpc_list_remove(&segment->idle);
}

static void end_change_locked(struct gpc_pool *pool, struct gpc_segment *segment, uint64_t now_ns)
{
	const struct gpc_request request = { .now_ns = now_ns, .mark = segment->mark };
	const struct gpc_observer *observer = &pool->heap->observer;
	struct gpc_block *at = segment->first;

	observer->segment_added(segment, &request);
	segment->n_live = 0;
	do {
		at->segment = segment;
		segment->n_live += at->state == GPC_BLOCK_LIVE;
		observer->block_changed(at, now_ns);
		at = at->next;
	} while (at);
	if (segment->n_live == 0)
		gpc_counter_add(&pool->idle_segment_bytes, segment->size);
	if (gpc_pool_is_idle(segment)) {
		segment->idle_since_ns = now_ns;
		gpc_list_append(&pool->idle, &segment->idle);
	}
}

/* Fills in the segment `right`, which gets the blocks of `left` from `first` on: those behind the pages. */
static void fill_right(
	struct gpc_segment *right, const struct gpc_segment *left, struct gpc_block *first)
{
	right->address = first->address;
	right->size = left->address + left->size - first->address;
	__atomic_store_n(&right->pool, left->pool, __ATOMIC_RELEASE);
	right->range = left->range;
	right->page_bytes = left->page_bytes;
	right->devices = left->devices;
	right->last_loose = left->last_loose;
	right->mark = left->mark;
	right->first = first;
	gpc_list_init(&right->idle);
}

/* Metadata for a hole: a second segment, and a block for the remainder behind the pages; NULL: not needed. */
struct hole {
	struct gpc_segment *right;
	struct gpc_block *rest;
};

static bool prepare_hole_locked(struct gpc_pool *pool, const struct gpc_block *block,
	const struct gpc_memory *memory, struct hole *hole)
{
	struct gpc_segment *segment = block->segment;
	gpc_devptr end = memory->address + memory->size;
	bool has_right = end < segment->address + segment->size;

	*hole = (struct hole){ 0 };
	if (has_right && memory->address > segment->address) {
		hole->right = gpc_pool_new_segment(pool->heap, GPC_POOL_LARGE);
		if (!hole->right)
			return false;
	}
	if (block->address + block->size == end)
		return true;
	hole->rest =
		gpc_pool_new_block_locked(pool, segment, end, block->address + block->size - end);
	if (!hole->rest && hole->right)
		gpc_slab_give_back(&pool->heap->segments, hole->right->number);
	return hole->rest != NULL;
}

/* Unlinks the pages from the chain of blocks.  Returns the first block behind them, or NULL. */
static struct gpc_block *unlink_pages_locked(struct gpc_pool *pool, struct gpc_block *block,
	const struct gpc_memory *memory, struct gpc_block *rest)
{
	struct gpc_block *next = block->next;
	struct gpc_block *behind = rest ? rest : next;

	gpc_pool_leave_bin_locked(pool, block);
	if (rest) {
		rest->next = next;
		if (next)
			next->prev = rest;
	}
	if (behind)
		behind->prev = NULL;
	if (memory->address > block->address) {
		block->size = memory->address - block->address;
		block->next = NULL;
		gpc_pool_enter_bin_locked(pool, block);
	} else {
		if (block->prev)
			block->prev->next = NULL;
		gpc_pool_retire_block_locked(pool, block);
	}
	if (rest)
		gpc_pool_enter_bin_locked(pool, rest);
	return behind;
}

/*
 * Cuts some, not all, of a segment's pages out of a FREE block.  The segment keeps what lies before them, or, if that
 * is nothing, what lies behind.  False: no metadata; nothing has changed.
 */
static bool cut_out_locked(
	struct gpc_pool *pool, struct gpc_block *block, const struct gpc_memory *memory)
{
	struct gpc_segment *segment = block->segment;
	struct gpucache_counters *counters = pool->counters;
	uint64_t now_ns = pool->drv->ops->now_ns(pool->drv);
	struct gpc_block *behind;
	struct hole hole;

	if (!prepare_hole_locked(pool, block, memory, &hole))
		return false;
	gpc_pool_begin_move(pool, memory->size);
	begin_change_locked(pool, segment);
	behind = unlink_pages_locked(pool, block, memory, hole.rest);
	if (hole.right)
		fill_right(hole.right, segment, behind);
	/* hole.right must be complete: threads without the lock find in it the pool of the blocks behind the hole. */
	gpc_segment_map_cut(
		&pool->heap->segment_map, segment, memory->address, memory->size, hole.right);
	if (memory->address > segment->address) {
		segment->size = memory->address - segment->address;
	} else {
		segment->address += memory->size;
		segment->size -= memory->size;
		segment->first = behind;
	}
	gpc_counter_sub(&counters->cached_bytes, memory->size);
	gpc_counter_sub(&counters->reserved_bytes, memory->size);
	gpc_counter_add(&counters->n_driver_free, 1);
	atomic_store_explicit(&pool->is_short, false, memory_order_relaxed);
	end_change_locked(pool, segment, now_ns);
	if (hole.right) {
		gpc_list_append(&pool->segments, &hole.right->link);
		gpc_counter_add(&counters->n_segments, 1);
		end_change_locked(pool, hole.right, now_ns);
	}
	return true;
}

bool gpc_pool_take_pages_locked(struct gpc_pool *pool, struct gpc_block *idle, uint64_t wanted,
	struct gpc_memory *ret_memory)
{
	struct choice choice = { .block = idle, .wanted = wanted };

	if (idle)
		choice.memory = pages_in(idle);
	else
		gpc_bins_each(&pool->pieces[GPC_POOL_LARGE], consider, &choice);
	if (!choice.block || !gpc_pool_may_return_locked(pool))
		return false;
	take_less(choice.block, wanted, &choice.memory);
	if (!cut_out_locked(pool, choice.block, &choice.memory)) {
		gpc_captures_release(&pool->heap->captures);
		return false;
	}
	*ret_memory = choice.memory;
	return true;
}

static void add_idle(struct gpc_block *block, void *arg)
{
	uint64_t *bytes = arg;

	if (block->segment->range && block->segment->n_live > 0)
		*bytes += pages_in(block).size;
}

uint64_t gpc_pool_idle_pages(struct gpc_pool *pool)
{
	uint64_t bytes = 0;

	if (pool->params.vmm == GPC_VMM_OFF)
		return 0;
	gpc_pool_lock(pool);
	gpc_bins_each(&pool->pieces[GPC_POOL_LARGE], add_idle, &bytes);
	gpc_lock_release(&pool->lock);
	return bytes;
}
