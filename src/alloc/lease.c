/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc/lease.h"

#include "alloc/pool_internal.h"
#include "stats/counters.h"

/* How long a lease serves before a hit goes the long way: as often as a history has points. */
#define LEASE_NS (UINT64_C(10) * 1000000)

static struct gpucache_lane *lane_of(struct gpc_pool *pool, const struct gpc_lease *lease)
{
	return &pool->counters->lanes[lease - pool->leases];
}

static void set_block(struct gpc_lease *lease, struct gpc_block *block)
{
	atomic_store_explicit(&lease->block, block, memory_order_relaxed);
}

/* The program gives back what is on this lease.  Needs the lease's lock. */
static void take_back(
	struct gpc_pool *pool, struct gpc_lease *lease, const struct gpc_request *request)
{
	struct gpucache_lane *lane = lane_of(pool, lease);

	gpc_counter_set(&lane->free_bytes, lease->now.size);
	gpc_counter_set(&lane->free_requested, lease->now.requested);
	gpc_counter_add(&lane->n_free, 1);
	lease->freed_ns = request->now_ns;
	pool->heap->observer.freed(pool->heap->observer.self, &lease->now, request);
	lease->now.state = GPC_BLOCK_FREE;
	lease->now.requested = 0;
	lease->now.mark = 0;
	pool->heap->observer.block_changed(pool->heap->observer.self, &lease->now, request->now_ns);
}

bool gpc_pool_free_leased(
	struct gpc_pool *pool, gpc_devptr address, const struct gpc_request *request)
{
	struct gpc_lease *lease = gpc_pool_lease_of(pool, request);
	bool is_hit;

	if (!gpc_lock_try(&lease->lock))
		return false;
	is_hit = gpc_lease_block(lease) && lease->now.address == address &&
		 lease->now.state == GPC_BLOCK_LIVE && gpc_fences_is_free_safe(&pool->fences);
	if (is_hit)
		take_back(pool, lease, request);
	gpc_lock_release(&lease->lock);
	return is_hit;
}

bool gpc_pool_alloc_leased(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address)
{
	struct gpc_lease *lease = gpc_pool_lease_of(pool, request);
	struct gpucache_lane *lane = lane_of(pool, lease);
	bool is_hit;

	if (!gpc_lock_try(&lease->lock))
		return false;
	is_hit = gpc_lease_block(lease) && lease->now.state == GPC_BLOCK_FREE &&
		 lane->free_requested == request->size && request->now_ns < lease->until_ns &&
		 !gpc_pool_gives_whole(pool, lease->now.size);
	if (is_hit) {
		gpc_counter_set(&lane->free_bytes, 0);
		gpc_counter_set(&lane->free_requested, 0);
		gpc_counter_add(&lane->n_malloc, 1);
		gpc_pool_set_owner(pool, &lease->now, request);
		*ret_address = lease->now.address;
	}
	gpc_lock_release(&lease->lock);
	return is_hit;
}

/* The counters go by the block again, which is FREE as its copy was. */
static void count_free_locked(struct gpc_pool *pool, const struct gpc_lease *lease)
{
	struct gpucache_counters *counters = pool->counters;
	struct gpucache_lane *lane = lane_of(pool, lease);

	gpc_counter_sub(&counters->live_bytes, lane->free_bytes);
	gpc_counter_sub(&counters->requested_bytes, lane->free_requested);
	gpc_counter_sub(&counters->n_blocks, 1);
	gpc_counter_add(&counters->cached_bytes, lane->free_bytes);
	gpc_counter_set(&lane->free_bytes, 0);
	gpc_counter_set(&lane->free_requested, 0);
}

/*
 * Takes the block off the lease, with `is_free_only` only where it is free.  Returns it where it is
 * FREE: to be given or settled.
 */
static struct gpc_block *take_off_locked(
	struct gpc_pool *pool, struct gpc_lease *lease, bool is_free_only)
{
	struct gpc_block *block = gpc_lease_block(lease);
	bool is_free;

	if (!block)
		return NULL;
	gpc_lock_take(&lease->lock);
	is_free = lease->now.state == GPC_BLOCK_FREE;
	if (is_free || !is_free_only)
		set_block(lease, NULL);
	gpc_lock_release(&lease->lock);
	if (gpc_lease_block(lease))
		return NULL;
	block->state = lease->now.state;
	block->requested = lease->now.requested;
	block->mark = lease->now.mark;
	block->lease = 0;
	pool->n_leased--;
	if (!is_free)
		return NULL;
	count_free_locked(pool, lease);
	return block;
}

/* Ends a lease.  True where its block was FREE: it is settled, and may be merged away. */
static bool settle_lease_locked(struct gpc_pool *pool, struct gpc_lease *lease)
{
	struct gpc_block *block = take_off_locked(pool, lease, false);

	if (block)
		gpc_pool_settle_locked(pool, block, lease->freed_ns);
	return block != NULL;
}

void gpc_pool_settle_leases_locked(struct gpc_pool *pool)
{
	for (unsigned i = 0; i < GPC_N_LEASES && pool->n_leased > 0; i++)
		(void)settle_lease_locked(pool, &pool->leases[i]);
}

bool gpc_pool_settle_lease_of_locked(struct gpc_pool *pool, const struct gpc_block *block)
{
	return settle_lease_locked(pool, &pool->leases[block->lease - 1]);
}

struct gpc_block *gpc_pool_end_lease_locked(
	struct gpc_pool *pool, uint64_t rounded, const struct gpc_request *request)
{
	struct gpc_lease *lease = gpc_pool_lease_of(pool, request);
	struct gpc_block *block = take_off_locked(pool, lease, true);

	if (!block || (block->size == rounded && !gpc_pool_gives_whole(pool, rounded)))
		return block;
	gpc_pool_settle_locked(pool, block, lease->freed_ns);
	return NULL;
}

void gpc_pool_free_on_lease_locked(
	struct gpc_pool *pool, struct gpc_block *block, const struct gpc_request *request)
{
	struct gpc_lease *lease = gpc_pool_lease_of(pool, request);

	(void)settle_lease_locked(pool, lease);
	pool->n_leased++;
	block->is_shared = false;
	block->view = GPC_VIEW_OPEN;
	block->lease = (uint8_t)(1 + (lease - pool->leases));
	gpc_lock_take(&lease->lock);
	lease->now = *block;
	lease->until_ns = request->now_ns + LEASE_NS;
	lease->numbers = (struct gpc_numbers){ 0 };
	set_block(lease, block);
	take_back(pool, lease, request);
	gpc_lock_release(&lease->lock);
}
