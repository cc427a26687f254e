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

/* A FREE block that is in no bin merges with its neighbours and goes into the bin of its size. */
void gpc_pool_settle_locked(struct gpc_pool *pool, struct gpc_block *block, uint64_t now_ns);

static inline struct gpc_lease *gpc_pool_lease_of(
	struct gpc_pool *pool, const struct gpc_request *request)
{
	return &pool->leases[request->thread % GPC_N_LEASES];
}

/* Whether the thread of the request has a block on lease: a hint. */
static inline bool gpc_pool_has_lease(struct gpc_pool *pool, const struct gpc_request *request)
{
	return gpc_lease_block(gpc_pool_lease_of(pool, request)) != NULL;
}

/* lease.c: the hit of lease.h, without the lock.  False: the long way. */
bool gpc_pool_free_leased(
	struct gpc_pool *pool, gpc_devptr address, const struct gpc_request *request);
bool gpc_pool_alloc_leased(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address);

/*
 * The thread of the request frees this LIVE block, safely, and gets it on its lease; what that held
 * before is settled.
 */
void gpc_pool_free_on_lease_locked(
	struct gpc_pool *pool, struct gpc_block *block, const struct gpc_request *request);

/*
 * Ends the lease of the thread of the request where its block is FREE.  Returns it, in no bin, where
 * it has this size; else it is settled, and NULL.
 */
struct gpc_block *gpc_pool_end_lease_locked(
	struct gpc_pool *pool, uint64_t rounded, const struct gpc_request *request);

/* Ends the lease that this block is on.  True where it was FREE: settled, perhaps merged away. */
bool gpc_pool_settle_lease_of_locked(struct gpc_pool *pool, const struct gpc_block *block);

/*
 * Whether the program holds this block, which is then on no lease.  False: it is not to be touched
 * again.
 */
static inline bool gpc_pool_is_live_locked(struct gpc_pool *pool, const struct gpc_block *block)
{
	if (block->lease && gpc_pool_settle_lease_of_locked(pool, block))
		return false;
	return block->state == GPC_BLOCK_LIVE;
}

/*
 * Ends all leases.  Whoever looks at all bins or idle segments does so before: then I1 to I8 hold
 * for every block.
 */
void gpc_pool_settle_leases_locked(struct gpc_pool *pool);

/* All blocks of a list that fences gave become FREE.  Returns their bytes. */
uint64_t gpc_pool_free_passed_locked(
	struct gpc_pool *pool, struct gpc_list *passed, uint64_t now_ns);

/* Gives a binned FREE block of at least `rounded` bytes to the program, cut where that pays. */
gpc_devptr gpc_pool_take_locked(struct gpc_pool *pool, struct gpc_block *block, uint64_t rounded,
	const struct gpc_request *request);

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

/* The block is the program's.  Needs the lock that its state needs. */
static inline void gpc_pool_set_owner(
	struct gpc_pool *pool, struct gpc_block *block, const struct gpc_request *request)
{
	block->state = GPC_BLOCK_LIVE;
	block->requested = request->size;
	block->mark = request->mark;
	block->is_shared = false;
	block->view = GPC_VIEW_OPEN;
	pool->heap->observer.block_changed(pool->heap->observer.self, block, request->now_ns);
	pool->heap->observer.taken(pool->heap->observer.self, block, request);
}

#endif
