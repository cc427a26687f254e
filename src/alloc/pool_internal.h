/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pool share.  Nobody else includes this. */
#ifndef GPC_ALLOC_POOL_INTERNAL_H
#define GPC_ALLOC_POOL_INTERNAL_H

#include "alloc/pool.h"

/*
 * A FREE block with its number, found by its address, in no bin and without neighbours; NULL:
 * no metadata.
 */
struct gpc_block *gpc_pool_new_block_locked(
	struct gpc_pool *pool, struct gpc_segment *segment, gpc_devptr address, uint64_t size);

/* The end of a block that is in no bin and no fence. */
void gpc_pool_retire_block_locked(struct gpc_pool *pool, struct gpc_block *block);

/*
 * A LIVE or PENDING block, already off its counter and its fence, becomes FREE: merged, binned,
 * counted.
 */
void gpc_pool_make_free_locked(struct gpc_pool *pool, struct gpc_block *block, uint64_t now_ns);

/* All blocks of a list that fences gave become FREE.  Returns their bytes. */
uint64_t gpc_pool_free_passed_locked(
	struct gpc_pool *pool, struct gpc_list *passed, uint64_t now_ns);

/* Gives a binned FREE block of at least `rounded` bytes to the program; with `is_cut` only so many. */
gpc_devptr gpc_pool_take_locked(struct gpc_pool *pool, struct gpc_block *block, uint64_t rounded,
	bool is_cut, const struct gpc_request *request);

/* Without the lock: exported segments that are idle go back, where no capture forbids it. */
void gpc_pool_return_exported(struct gpc_pool *pool);

/* What may follow a free, without the lock: that, and old idle segments decay. */
void gpc_pool_after_free(struct gpc_pool *pool, uint64_t now_ns);

/*
 * A request of this size gets a segment of its own: the program exports memory, and a handle always
 * opens at the start of one.
 */
static inline bool gpc_pool_gives_whole(const struct gpc_pool *pool, uint64_t rounded)
{
	return rounded >= GPC_SMALL_MAX &&
	       atomic_load_explicit(&pool->heap->is_exporting, memory_order_relaxed);
}

/* Whether a block that serves this size is to be cut: in times of plenty. */
static inline bool gpc_pool_should_cut(
	const struct gpc_pool *pool, const struct gpc_block *block, uint64_t rounded)
{
	return !gpc_pool_gives_whole(pool, rounded) &&
	       gpc_size_should_split((enum gpc_pool_kind)block->segment->kind, block->size, rounded,
		       pool->params.max_split_size);
}

/* The whole segment is one FREE block. */
static inline bool gpc_pool_is_idle(const struct gpc_segment *segment)
{
	return !segment->first->next && segment->first->state == GPC_BLOCK_FREE;
}

#endif
