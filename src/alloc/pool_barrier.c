/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The barriers of a pool (barrier.h says why they suffice).  A free makes one due; a submission raises it;
 * queries, and memory that leaves the process, wait for it.
 */
#include "alloc/pool_internal.h"

#include "driver/sticky.h"

static void add_due_locked(struct gpc_pool *pool)
{
	if (!pool->barrier.is_due)
		atomic_fetch_add(&pool->heap->duties->n_due, 1);
	pool->barrier.is_due = true;
}

static void add_duty(struct gpc_pool *pool)
{
	add_due_locked(pool);
	if (!pool->barrier.is_unsettled)
		atomic_fetch_add(&pool->heap->duties->n_unsettled, 1);
	pool->barrier.is_unsettled = true;
}

static void end_due_locked(struct gpc_pool *pool)
{
	if (pool->barrier.is_due)
		atomic_fetch_sub(&pool->heap->duties->n_due, 1);
	pool->barrier.is_due = false;
}

static void end_unsettled_locked(struct gpc_pool *pool)
{
	if (pool->barrier.is_unsettled)
		atomic_fetch_sub(&pool->heap->duties->n_unsettled, 1);
	pool->barrier.is_unsettled = false;
}

static bool has_barriers(const struct gpc_pool *pool)
{
	return pool->params.has_barriers &&
	       !atomic_load_explicit(&pool->barrier.is_unsupported, memory_order_relaxed);
}

bool gpc_pool_keeps_order(struct gpc_pool *pool)
{
	bool is_safe;

	if (has_barriers(pool))
		return true;
	gpc_lock_take(&pool->lock);
	is_safe = gpc_fences_is_free_safe(&pool->fences);
	gpc_lock_release(&pool->lock);
	return is_safe;
}

void gpc_pool_owe_mark_locked(struct gpc_pool *pool, const struct gpc_segment *segment)
{
	if (gpc_pool_may_be_short(pool, segment->size))
		add_due_locked(pool);
}

bool gpc_pool_owe_barrier_locked(struct gpc_pool *pool, struct gpc_block *block)
{
	if (!has_barriers(pool))
		return false;
	add_duty(pool);
	if (pool->fences.is_peer_near || block->segment->is_exported ||
		gpc_captures_is_near(&pool->heap->captures)) {
		pool->barrier.n_frees++;
		return false;
	}
	gpc_pool_number_free_locked(pool, block);
	return true;
}

/* A barrier that this thread is about to raise. */
struct raising {
	uint64_t number; /* of the last free that the barrier covers */
	uint64_t fence;  /* of the last fence that the barrier covers; 0: none */
	gpc_event event;
	bool is_on_legacy; /* an event on the legacy stream, which orders nothing: only its completion is of interest */
	bool is_mark; /* the same, and nobody needs it now: not worth a wait */
	bool is_lost; /* neither the device nor the host keeps the order: the barrier stays due */
	enum gpc_status st;
};

static gpc_event *event_of(struct gpc_barrier *barrier, bool is_on_legacy)
{
	return is_on_legacy ? &barrier->legacy_event : &barrier->event;
}

/*
 * Returns false if the last barrier covers all frees, or if a capture forbids one.  The legacy stream has an event of
 * its own: a slow thread may record it after another thread has raised a barrier that covers more.
 */
static bool begin_raising_locked(struct gpc_pool *pool, bool is_forced, struct raising *raising)
{
	struct gpc_barrier *barrier = &pool->barrier;
	gpc_event *event;

	if (barrier->raised == barrier->n_frees || pool->is_forgotten ||
		!gpc_captures_try_hold(&pool->heap->captures))
		return false;
	*raising = (struct raising){
		.number = barrier->n_frees,
		.is_on_legacy = pool->fences.is_one_stream || !has_barriers(pool),
		.is_mark = pool->fences.is_one_stream && !is_forced,
	};
	event = event_of(barrier, raising->is_on_legacy);
	if (!*event)
		raising->st = pool->drv->ops->event_create(pool->drv, event);
	if (!raising->is_on_legacy && pool->fences.n_members == 1 &&
		!pool->fences.has_more_contexts)
		raising->fence = gpc_fences_begin_sync(&pool->fences);
	raising->event = *event;
	return true;
}

/* Makes the driver calls of a barrier, without the lock.  Returns true if the host waited for the context instead. */
static bool tell_driver(struct gpc_pool *pool, struct raising *raising)
{
	const struct gpc_driver_ops *ops = pool->drv->ops;
	enum gpc_status st = raising->st;
	bool has_waited = false;

	if (!st)
		st = raising->is_on_legacy ? ops->legacy_record(pool->drv, raising->event)
					   : ops->fence_record(pool->drv, raising->event);
	if (!st && !raising->is_on_legacy)
		st = ops->fence_wait(pool->drv, raising->event);
	raising->st = st;
	if (st && raising->is_mark) {
		raising->is_lost = true;
	} else if (st) {
		st = ops->context_sync(pool->drv);
		has_waited = !st;
		/* In a broken context no work runs any more, so its order is kept. */
		raising->is_lost = st && !gpc_cuda_is_sticky((CUresult)gpc_status_to_device(st));
	}
	gpc_captures_release(&pool->heap->captures);
	return has_waited;
}

static void end_raising_locked(
	struct gpc_pool *pool, const struct raising *raising, bool has_waited)
{
	struct gpc_barrier *barrier = &pool->barrier;
	struct gpc_list passed;

	if (pool->is_forgotten)
		return;
	/*
	 * is_unsupported must not be set: the next event would be recorded on the legacy stream, which ends the duty
	 * but orders nothing.
	 */
	if (raising->is_lost)
		return;
	if (raising->st == GPC_UNSUPPORTED)
		atomic_store(&barrier->is_unsupported, true);
	barrier->raised = gpc_larger(barrier->raised, raising->number);
	if (!raising->st && barrier->recorded < raising->number) {
		barrier->recorded = raising->number;
		barrier->is_on_legacy = raising->is_on_legacy;
	}
	if (has_waited)
		barrier->passed = gpc_larger(barrier->passed, raising->number);
	/* Blocks that were freed since begin_raising_locked() need another barrier. */
	if (barrier->raised == barrier->n_frees)
		end_due_locked(pool);
	if (barrier->passed == barrier->n_frees)
		end_unsettled_locked(pool);
	/* The barrier orders the work on all blocks of the fences that it covers: these blocks become FREE, and loose. */
	gpc_list_init(&passed);
	if (raising->fence && pool->fences.n_members == 1 && (!raising->st || has_waited))
		gpc_fences_pass(&pool->fences, raising->fence, &passed);
	gpc_list_each (link, &passed)
		gpc_list_entry(link, struct gpc_block, link)->segment->last_loose = raising->number;
	(void)gpc_pool_free_passed_locked(pool, &passed, pool->drv->ops->now_ns(pool->drv));
}

static void raise_barrier(struct gpc_pool *pool, bool is_forced)
{
	struct raising raising;
	bool is_raising;
	bool has_waited;

	gpc_lock_take(&pool->lock);
	is_raising = (is_forced || pool->barrier.is_due) &&
		     begin_raising_locked(pool, is_forced, &raising);
	gpc_lock_release(&pool->lock);
	if (!is_raising)
		return;
	has_waited = tell_driver(pool, &raising);
	gpc_lock_take(&pool->lock);
	end_raising_locked(pool, &raising, has_waited);
	gpc_lock_release(&pool->lock);
}

void gpc_pool_raise_barrier(struct gpc_pool *pool)
{
	raise_barrier(pool, false);
}

bool gpc_pool_order_pending(struct gpc_pool *pool)
{
	bool is_possible;

	gpc_lock_take(&pool->lock);
	is_possible =
		pool->fences.pending_bytes > 0 && has_barriers(pool) && !pool->fences.is_peer_near;
	/* Counting a free here makes the barrier cover all work until now. */
	if (is_possible) {
		add_duty(pool);
		pool->barrier.n_frees++;
	}
	gpc_lock_release(&pool->lock);
	if (is_possible)
		raise_barrier(pool, true);
	return is_possible;
}

void gpc_pool_pass_locked(struct gpc_pool *pool, uint64_t number)
{
	struct gpc_barrier *barrier = &pool->barrier;

	barrier->passed = gpc_larger(barrier->passed, number);
	barrier->raised = gpc_larger(barrier->raised, number);
	if (barrier->raised == barrier->n_frees)
		end_due_locked(pool);
	if (barrier->passed == barrier->n_frees)
		end_unsettled_locked(pool);
}

/* Without the lock, because a record may block: another thread may record the event again, which then covers more. */
enum gpc_status gpc_pool_ask_idle(struct gpc_pool *pool)
{
	const struct gpc_driver_ops *ops = pool->drv->ops;
	struct gpc_barrier *barrier = &pool->barrier;
	enum gpc_status st = GPC_OK;
	bool is_one_stream;
	gpc_event event;
	uint64_t number;

	gpc_lock_take(&pool->lock);
	if (pool->is_forgotten || !gpc_pool_may_return_locked(pool)) {
		gpc_lock_release(&pool->lock);
		return GPC_UNSUPPORTED;
	}
	if (!barrier->idle_event)
		st = ops->event_create(pool->drv, &barrier->idle_event);
	event = barrier->idle_event;
	is_one_stream = pool->fences.is_one_stream;
	number = barrier->n_frees;
	gpc_lock_release(&pool->lock);
	if (!st)
		st = is_one_stream ? ops->legacy_record(pool->drv, event)
				   : ops->fence_record(pool->drv, event);
	if (!st)
		st = ops->event_query(pool->drv, event);
	gpc_captures_release(&pool->heap->captures);
	if (st)
		return st;
	gpc_lock_take(&pool->lock);
	if (!pool->is_forgotten)
		gpc_pool_pass_locked(pool, number);
	gpc_lock_release(&pool->lock);
	atomic_store(&pool->late_bytes, 0);
	return GPC_OK;
}

/* The event is queried under the lock: the query is cheap, and no other thread can destroy the event meanwhile. */
void gpc_pool_learn(struct gpc_pool *pool)
{
	struct gpc_barrier *barrier = &pool->barrier;

	raise_barrier(pool, true);
	gpc_lock_take(&pool->lock);
	if (barrier->passed < barrier->recorded &&
		!pool->drv->ops->event_query(pool->drv, *event_of(barrier, barrier->is_on_legacy)))
		barrier->passed = barrier->recorded;
	gpc_lock_release(&pool->lock);
}

enum gpc_status gpc_pool_settle(struct gpc_pool *pool)
{
	struct gpc_barrier *barrier = &pool->barrier;
	enum gpc_status st = GPC_OK;
	gpc_event event;
	uint64_t number;
	bool must_wait;

	raise_barrier(pool, true);
	gpc_lock_take(&pool->lock);
	number = barrier->recorded;
	event = *event_of(barrier, barrier->is_on_legacy);
	must_wait = barrier->passed < number;
	gpc_lock_release(&pool->lock);
	if (must_wait)
		st = pool->drv->ops->event_wait(pool->drv, event);
	gpc_lock_take(&pool->lock);
	if (must_wait && !st && !pool->is_forgotten)
		barrier->passed = gpc_larger(barrier->passed, number);
	/* If the wait fails, the context is broken, and each further call of the program returns the error. */
	if (st || barrier->passed == barrier->n_frees)
		end_unsettled_locked(pool);
	gpc_lock_release(&pool->lock);
	return st;
}

void gpc_pool_end_barrier_locked(struct gpc_pool *pool, bool context_lives)
{
	const struct gpc_driver_ops *ops = pool->drv->ops;

	if (context_lives && pool->barrier.event)
		ops->event_destroy(pool->drv, pool->barrier.event);
	if (context_lives && pool->barrier.legacy_event)
		ops->event_destroy(pool->drv, pool->barrier.legacy_event);
	if (context_lives && pool->barrier.idle_event)
		ops->event_destroy(pool->drv, pool->barrier.idle_event);
	end_due_locked(pool);
	end_unsettled_locked(pool);
	pool->barrier.n_frees = 0;
	pool->barrier.raised = 0;
	pool->barrier.recorded = 0;
	pool->barrier.passed = 0;
	pool->barrier.event = pool->barrier.legacy_event = pool->barrier.idle_event = 0;
}
