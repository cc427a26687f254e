/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pool share.  Nobody else includes this. */
#ifndef GPC_ALLOC_POOL_INTERNAL_H
#define GPC_ALLOC_POOL_INTERNAL_H

#include "alloc/pool.h"

/*
 * Each file calls only those above it: pool_room.c, pool_block.c, pool_barrier.c, pool_segment.c, pool_wait.c, pool.c.
 * _locked: the caller holds the lock of the pool; the others are called without it.
 */

/* --- pool_room.c ------------------------------------------------------------------------------ */

/*
 * Asks the driver what is free, where the last answer is old, or where it has just refused `refused` bytes, 0: none,
 * that there should have been room for.
 */
void gpc_pool_look_for_room(struct gpc_pool *pool, uint64_t refused);

/* Whether a whole segment of this size is to be cut. */
bool gpc_pool_may_cut(const struct gpc_pool *pool, uint64_t segment_size);

/* Whether a block of `size` bytes is to serve `rounded` uncut. */
bool gpc_pool_may_waste(const struct gpc_pool *pool, uint64_t size, uint64_t rounded);

/* Whether so many bytes more may be wasted. */
bool gpc_pool_has_waste_left(const struct gpc_pool *pool, uint64_t bytes);

/* --- pool_block.c ----------------------------------------------------------------------------- */

/*
 * A FREE block with its number, found by its address, in no bin and without neighbours; NULL:
 * no metadata.
 */
struct gpc_block *gpc_pool_new_block_locked(
	struct gpc_pool *pool, struct gpc_segment *segment, gpc_devptr address, uint64_t size);

/* The end of a block that is in no bin and no fence. */
void gpc_pool_retire_block_locked(struct gpc_pool *pool, struct gpc_block *block);

/* The grain of a small segment at this address. */
static inline uint32_t gpc_pool_grain_of(const struct gpc_segment *segment, gpc_devptr address)
{
	return (uint32_t)((address - segment->address) / GPC_GRAIN);
}

/* Where the FREE blocks of this size and segment are kept besides the bin; NULL: in the bin alone. */
static inline struct gpc_grain_set *gpc_pool_set_of(const struct gpc_block *block)
{
	struct gpc_grain_map *grains = block->segment->grains;

	return grains ? gpc_grain_map_set(grains, block->size) : NULL;
}

/* The block of this segment that starts here, or NULL. */
struct gpc_block *gpc_pool_find_block_locked(
	const struct gpc_pool *pool, const struct gpc_segment *segment, gpc_devptr address);

/* A FREE block into the bin of its size, and out of it; of an exported segment: nothing. */
void gpc_pool_enter_bin_locked(struct gpc_pool *pool, struct gpc_block *block);
void gpc_pool_leave_bin_locked(struct gpc_pool *pool, struct gpc_block *block);

/*
 * A LIVE or PENDING block, already off its counter and its fence, becomes FREE: merged, binned,
 * counted.
 */
void gpc_pool_make_free_locked(struct gpc_pool *pool, struct gpc_block *block, uint64_t now_ns);

/* A block that is in no bin, no fence and off its counter becomes the program's. */
gpc_devptr gpc_pool_give_locked(
	struct gpc_pool *pool, struct gpc_block *block, const struct gpc_request *request);

/* Gives a binned FREE block of at least `rounded` bytes to the program; with `is_cut` only so many. */
gpc_devptr gpc_pool_take_locked(struct gpc_pool *pool, struct gpc_block *block, uint64_t rounded,
	bool is_cut, const struct gpc_request *request);

/*
 * A request of this size gets a segment of its own: the program exports memory, and a handle always opens at the
 * start of one; or it asks where allocations begin, and should hear what cudaMalloc told it.  Below 1 MiB that is most
 * of a segment lost, so only as far as may be wasted.
 */
static inline bool gpc_pool_gives_whole(const struct gpc_pool *pool, uint64_t rounded)
{
	if (rounded < atomic_load_explicit(&pool->heap->whole_from, memory_order_relaxed))
		return false;
	return rounded >= GPC_SMALL_MAX ||
	       gpc_pool_has_waste_left(pool, gpc_size_tight_segment(rounded) - rounded);
}

/* The block is its whole segment, and that is of large blocks. */
static inline bool gpc_pool_is_whole(const struct gpc_block *block)
{
	return block->segment->kind == GPC_POOL_LARGE && !block->prev && !block->next;
}

/* The bins that a FREE block is in. */
static inline struct gpc_bins *gpc_pool_bins_of(
	struct gpc_pool *pool, const struct gpc_block *block)
{
	return gpc_pool_is_whole(block) ? &pool->wholes : &pool->pieces[block->segment->kind];
}

/* Whether a block that serves this size is to be cut. */
static inline bool gpc_pool_should_cut(
	const struct gpc_pool *pool, const struct gpc_block *block, uint64_t rounded)
{
	return !gpc_pool_gives_whole(pool, rounded) &&
	       gpc_size_should_split((enum gpc_pool_kind)block->segment->kind, block->size, rounded,
		       pool->params.max_split_size) &&
	       (!gpc_pool_is_whole(block) || gpc_pool_may_cut(pool, block->size));
}

/* The whole segment is one FREE block. */
static inline bool gpc_pool_is_idle(const struct gpc_segment *segment)
{
	return !segment->first->next && segment->first->state == GPC_BLOCK_FREE;
}

/* All blocks of a list that fences gave become FREE.  Returns their bytes. */
uint64_t gpc_pool_free_passed_locked(
	struct gpc_pool *pool, struct gpc_list *passed, uint64_t now_ns);

/* --- pool_barrier.c --------------------------------------------------------------------------- */

/* This block will be FREE at once, though its work is perhaps not over. */
void gpc_pool_loosen_locked(struct gpc_pool *pool, struct gpc_block *block);

/*
 * cudaFree gives this block back: a barrier is due.  True: and behind it anybody may have the block, which
 * may be FREE at once.
 */
bool gpc_pool_owe_barrier_locked(struct gpc_pool *pool, struct gpc_block *block);

/* Asks whether the work before the last free is over, as far as that can be known without a wait. */
void gpc_pool_learn(struct gpc_pool *pool);

/* No work that was submitted before a free in this segment still runs: the driver may have it. */
static inline bool gpc_pool_is_settled(const struct gpc_segment *segment)
{
	return segment->last_loose <= segment->pool->barrier.passed;
}

void gpc_pool_end_barrier_locked(struct gpc_pool *pool, bool context_lives);

/* --- pool_segment.c --------------------------------------------------------------------------- */

/* The bytes of a new segment for a block of `rounded` bytes. */
uint64_t gpc_pool_segment_size(const struct gpc_pool *pool, uint64_t rounded);

/* Exported segments that are idle go back, where no capture forbids it. */
void gpc_pool_return_exported(struct gpc_pool *pool);

/* The same, and those idle for longer than decay_ns. */
void gpc_pool_return_due(struct gpc_pool *pool, uint64_t now_ns);

/* Gives idle segments back until no more than gc_threshold_ppm is taken. */
void gpc_pool_collect_garbage(struct gpc_pool *pool);

/* The context died: no segment is left, and nothing is told the driver. */
void gpc_pool_forget_segments_locked(struct gpc_pool *pool);

/* --- pool_wait.c ------------------------------------------------------------------------------ */

/*
 * Frees what has passed; with `must_close` an event is recorded for what is not yet covered by
 * one.  Fails where the context is broken.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_reap_locked(
	struct gpc_pool *pool, bool must_close, uint64_t now_ns, uint64_t *ret_bytes);

/* Whether fences hold more back than they may, if a miss of this size takes a new segment; 0: none does. */
bool gpc_pool_holds_too_much(const struct gpc_pool *pool, uint64_t rounded);

/* Puts what is pending in order, on the device, where that can be had.  True: it may serve now. */
bool gpc_pool_order_pending(struct gpc_pool *pool);

/*
 * In cudaFree: waits for the context's own work before the oldest frees that are pending, until no more than
 * pending_limit is.  For a peer it does not wait.
 */
void gpc_pool_bound_pending(struct gpc_pool *pool);

#endif
