/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits: pending blocks become FREE once the device is done with them.  Reaping queries events and returns at once;
 * waiting blocks the caller, without the lock, until an event or all work of a context completes.  A free waits only
 * while more than pending_limit is pending; plain cudaFree always waits.  A malloc waits only on the ladder.
 */
#include <string.h>

#include "alloc/pool_internal.h"
#include "base/bytes.h"
#include "base/pause.h"
#include "model/counters.h"

enum gpc_status gpc_pool_reap_locked(
	struct gpc_pool *pool, bool must_close, uint64_t now_ns, uint64_t *ret_bytes)
{
	struct gpc_list passed;
	enum gpc_status st;

	gpc_list_init(&passed);
	if (must_close && gpc_fences_get_open(&pool->fences)->n_blocks > 0 &&
		gpc_fences_close(&pool->fences))
		gpc_counter_add(&pool->counters->n_fence, 1);
	st = gpc_fences_take_passed(&pool->fences, &passed);
	*ret_bytes = gpc_pool_free_passed_locked(pool, &passed, now_ns);
	return st;
}

uint64_t gpc_pool_reap(struct gpc_pool *pool)
{
	uint64_t bytes = 0;

	gpc_pool_lock(pool);
	if (gpc_pool_reap_locked(pool, true, pool->drv->ops->now_ns(pool->drv), &bytes))
		bytes = 0; /* a broken context: the program's next call reports it */
	gpc_lock_release(&pool->lock);
	gpc_pool_return_exported(pool, false);
	return bytes;
}

bool gpc_pool_holds_too_much(const struct gpc_pool *pool, uint64_t rounded)
{
	const struct gpucache_counters *counters = pool->counters;
	uint64_t limit = pool->params.pending_limit;
	uint64_t held = gpc_counter_get(&counters->live_bytes) + rounded;
	uint64_t most = gpc_counter_get(&counters->peak_live_bytes);
	uint64_t then =
		gpc_counter_get(&counters->reserved_bytes) + gpc_pool_segment_size(pool, rounded);

	return gpc_counter_get(&counters->pending_bytes) > limit ||
	       gpc_bytes_less(then, gpc_larger(most, held)) > limit;
}

/* The event, in the pool's context, of the oldest fence that has one; closes the open fence if none has.  0: none. */
static gpc_event oldest_event_locked(struct gpc_pool *pool)
{
	struct gpc_fences *fences = &pool->fences;
	gpc_event event = gpc_fences_oldest_event(fences);

	if (!event && gpc_fences_get_open(fences)->n_blocks > 0 && gpc_fences_close(fences)) {
		gpc_counter_add(&pool->counters->n_fence, 1);
		event = gpc_fences_oldest_event(fences);
	}
	return event;
}

/* Waits for the event of the oldest fence that has an event.  Returns the bytes that became free. */
static uint64_t wait_for_oldest(struct gpc_pool *pool)
{
	uint64_t bytes = 0;
	gpc_event event;
	bool is_alone;
	bool is_waited;

	gpc_pool_lock(pool);
	is_alone = pool->fences.n_members == 1;
	event = pool->fences.has_more_contexts ? 0 : oldest_event_locked(pool);
	if (event)
		gpc_counter_add(&pool->counters->n_sync, 1);
	gpc_lock_release(&pool->lock);
	if (!event) /* before CUDA 12.5 no fence has an event */
		return is_alone ? gpc_pool_wait(pool, 0) : 0;
	is_waited = !pool->drv->ops->event_wait(pool->drv, event);
	gpc_pool_lock(pool);
	if (is_waited && !pool->is_forgotten)
		(void)!gpc_pool_reap_locked(pool, false, pool->drv->ops->now_ns(pool->drv), &bytes);
	gpc_lock_release(&pool->lock);
	return bytes;
}

void gpc_pool_bound_pending(struct gpc_pool *pool)
{
	while (gpc_counter_get(&pool->counters->pending_bytes) > 0 &&
		gpc_pool_holds_too_much(pool, 0) && wait_for_oldest(pool) > 0)
		;
}

void gpc_pool_wait_for_one_stream(struct gpc_pool *pool)
{
	struct gpc_captures *captures = &pool->heap->captures;
	bool is_held = gpc_captures_try_hold(captures);
	enum gpc_status st = pool->drv->ops->context_sync(pool->drv);

	if (is_held)
		gpc_captures_release(captures);
	if (st)
		return;
	gpc_pool_lock(pool);
	pool->fences.is_end_due = false;
	gpc_lock_release(&pool->lock);
}

void gpc_pool_settle_one_stream(struct gpc_pool *pool)
{
	bool is_due;

	gpc_pool_lock(pool);
	is_due = pool->fences.is_end_due;
	gpc_lock_release(&pool->lock);
	if (is_due && !gpc_captures_is_any_open(&pool->heap->captures))
		gpc_pool_wait_for_one_stream(pool);
}

/* Synchronises every member, unless a capture forbids it. */
static enum gpc_status sync_members(
	struct gpc_pool *pool, struct gpc_driver *const *members, uint32_t n_members)
{
	enum gpc_status st = GPC_OK;

	if (!gpc_captures_try_hold(&pool->heap->captures))
		return GPC_UNSUPPORTED;
	for (uint32_t m = 0; m < n_members && !st; m++)
		st = members[m]->ops->context_sync(members[m]);
	gpc_captures_release(&pool->heap->captures);
	return st;
}

/* Waits once.  *ret_has_rest: the ring of fences was full, so the latest frees were not covered. */
static uint64_t wait_once(struct gpc_pool *pool, uint64_t size, bool *ret_has_rest)
{
	struct gpc_driver *members[GPC_MAX_MEMBERS];
	struct gpc_list passed;
	gpc_event event = 0;
	uint32_t n_members;
	uint64_t number;
	uint64_t bytes = 0;
	enum gpc_status st;

	gpc_list_init(&passed);
	gpc_pool_lock(pool);
	if (pool->fences.pending_bytes == 0 || pool->fences.has_more_contexts) {
		gpc_lock_release(&pool->lock);
		return 0;
	}
	if (gpc_fences_get_open(&pool->fences)->n_blocks > 0 && gpc_fences_close(&pool->fences))
		gpc_counter_add(&pool->counters->n_fence, 1);
	number = size ? gpc_fences_find_useful(&pool->fences, size, &event) : 0;
	/* An event is better than a synchronisation: it lets captures begin meanwhile and covers no later work. */
	if (!event && gpc_fences_get_open(&pool->fences)->n_blocks == 0)
		number = gpc_fences_find_newest(&pool->fences, &event);
	n_members = pool->fences.n_members;
	memcpy(members, pool->fences.members, sizeof members);
	if (!event && gpc_captures_is_any_open(&pool->heap->captures)) {
		/* The context cannot be synchronised now, so the ring must not fill with fences that have no event. */
		gpc_lock_release(&pool->lock);
		return 0;
	}
	if (!event)
		number = gpc_fences_begin_sync(&pool->fences);
	*ret_has_rest = !event && gpc_fences_get_open(&pool->fences)->n_blocks > 0;
	gpc_counter_add(&pool->counters->n_sync, 1);
	gpc_lock_release(&pool->lock);

	st = event ? pool->drv->ops->event_wait(pool->drv, event)
		   : sync_members(pool, members, n_members);
	if (st)
		return 0;
	gpc_pool_lock(pool);
	if (n_members == pool->fences.n_members && !pool->is_forgotten)
		gpc_fences_pass(&pool->fences, number, &passed);
	bytes = gpc_pool_free_passed_locked(pool, &passed, pool->drv->ops->now_ns(pool->drv));
	gpc_lock_release(&pool->lock);
	return bytes;
}

uint64_t gpc_pool_wait(struct gpc_pool *pool, uint64_t size)
{
	bool has_rest = false;
	uint64_t bytes;

	(void)!gpc_pool_settle(pool);
	bytes = wait_once(pool, size, &has_rest);

	/* The first wait emptied the ring, so a second wait covers the frees that the first did not. */
	if (has_rest && bytes > 0)
		bytes += wait_once(pool, size, &has_rest);
	gpc_pool_return_exported(pool, false);
	return bytes;
}

/* True if the barrier of the last free has passed, and nothing is pending or, with `size` > 0, `bytes` suffices. */
static bool is_over(struct gpc_pool *pool, uint64_t size, uint64_t bytes)
{
	bool is_over;

	gpc_pool_lock(pool);
	is_over = pool->barrier.passed == pool->barrier.n_frees &&
		  (pool->fences.pending_bytes == 0 || (size && bytes >= size));
	gpc_lock_release(&pool->lock);
	return is_over;
}

uint64_t gpc_pool_wait_within(struct gpc_pool *pool, uint64_t size, uint64_t *left_ms)
{
	uint64_t bytes = 0;

	for (;;) {
		gpc_pool_learn(pool);
		bytes += gpc_pool_reap(pool);
		if (is_over(pool, size, bytes) || !gpc_pause(1, left_ms))
			return bytes;
	}
}

void gpc_pool_wait_for_moves(struct gpc_pool *pool, uint64_t *left_ms)
{
	struct gpc_budget *budget = pool->budget;
	uint64_t before = atomic_load(&budget->moved_bytes);
	uint64_t moving = atomic_load(&budget->moving_bytes);

	while (atomic_load(&budget->moving_bytes) > 0 &&
		atomic_load(&budget->moved_bytes) - before < moving && gpc_pause(1, left_ms))
		;
}

void gpc_pool_close(struct gpc_pool *pool, uint64_t *left_ms)
{
	/* Under the lock: a thread that detaches memory does both under it, and one that asks for memory looks after it began. */
	gpc_pool_lock(pool);
	atomic_store(&pool->is_closed, true);
	gpc_lock_release(&pool->lock);
	gpc_pool_wait_for_moves(pool, left_ms);
}

void gpc_pool_reopen(struct gpc_pool *pool)
{
	atomic_store(&pool->is_closed, false);
}

enum gpc_status gpc_pool_wait_idle(struct gpc_pool *pool, uint64_t *left_ms)
{
	enum gpc_status st = gpc_pool_ask_idle(pool);

	while (st == GPC_DEVICE_NOT_READY && gpc_pause(1, left_ms))
		st = gpc_pool_ask_idle(pool);
	return st;
}

bool gpc_pool_wait_late(struct gpc_pool *pool, uint64_t *left_ms)
{
	if (atomic_exchange(&pool->late_bytes, 0) == 0)
		return false;
	(void)!gpc_pool_wait_idle(pool, left_ms);
	return true;
}

void gpc_pool_wait_out(struct gpc_pool *pool)
{
	(void)!sync_members(pool, &pool->drv, 1);
}

struct gpc_pool_sync gpc_pool_begin_sync(struct gpc_pool *pool)
{
	struct gpc_pool_sync sync = { 0 };

	gpc_pool_lock(pool);
	/* With peers, synchronising one context says nothing about the others' work. */
	if (pool->fences.n_members == 1)
		sync.fence = gpc_fences_begin_sync(&pool->fences);
	sync.frees = pool->barrier.n_frees;
	gpc_lock_release(&pool->lock);
	return sync;
}

void gpc_pool_end_sync(struct gpc_pool *pool, struct gpc_pool_sync sync, uint64_t now_ns)
{
	struct gpc_list passed;

	gpc_list_init(&passed);
	gpc_pool_lock(pool);
	/* A peer may have joined in the meantime. */
	if (pool->fences.n_members == 1 && !pool->is_forgotten)
		gpc_fences_pass(&pool->fences, sync.fence, &passed);
	if (!pool->is_forgotten)
		gpc_pool_pass_locked(pool, sync.frees);
	(void)gpc_pool_free_passed_locked(pool, &passed, now_ns);
	gpc_lock_release(&pool->lock);
	gpc_pool_return_exported(pool, true);
}
