/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of one context on another's memory: by peer access, and by copies and fills, which may access any memory of the
 * process by unified addressing.  A fence covers the work of its members, at first only of the context that owns the
 * memory.  So before the first access of another context, that context becomes a member of the owner's fences, for
 * good.  The hooks check nothing while the process has a single context.
 */
#include "runtime/context/reach.h"

#include "runtime/context/contexts.h"
#include "runtime/context/pages.h"
#include "runtime/process/state.h"

/* The context with this handle, current or not. */
static struct gpc_context *get_anywhere(CUcontext handle)
{
	struct gpc_context *context = gpc_context_find(handle);

	return context || !handle ? context : gpc_context_visit(handle);
}

/*
 * Work of a block's earlier owner may still run if the one-stream rule let the block be reused, and work of another
 * context must not overtake it.  fences->one_stream_end is recorded behind that work.  Waiting for this event leaves
 * captures intact; waiting for the whole context would invalidate them.
 */
void gpc_reach_end_one_stream(struct gpc_context *owner, enum gpucache_one_stream_end why)
{
	struct gpc_fences *fences = &owner->pool.fences;
	struct gpc_driver *drv = &owner->drv.base;
	gpc_event event;
	bool must_wait;

	gpc_lock_take(&owner->pool.lock);
	gpc_reach_note_end_locked(&owner->pool, why);
	must_wait = gpc_fences_peer_comes(fences);
	event = fences->is_end_due ? 0 : fences->one_stream_end;
	gpc_lock_release(&owner->pool.lock);
	if (must_wait && event)
		(void)!drv->ops->event_wait(drv, event);
	else if (must_wait)
		gpc_pool_wait_for_one_stream(&owner->pool);
	(void)!gpc_pool_settle(&owner->pool); /* a barrier orders streams of this context only */
}

void gpc_reach_order_one_stream(struct gpc_context *owner, enum gpucache_one_stream_end why)
{
	struct gpc_fences *fences = &owner->pool.fences;
	struct gpc_driver *drv = &owner->drv.base;
	enum gpc_status st = GPC_UNSUPPORTED;
	gpc_event event;

	gpc_lock_take(&owner->pool.lock);
	gpc_reach_note_end_locked(&owner->pool, why);
	(void)gpc_fences_peer_comes(fences);
	event = fences->one_stream_end;
	if (fences->is_end_due)
		event = 0;
	else if (!event)
		st = GPC_OK; /* no block was reused without a fence */
	gpc_lock_release(&owner->pool.lock);
	if (event && gpc_captures_try_hold(&gpc_runtime.heap.captures)) {
		st = drv->ops->fence_wait(drv, event);
		gpc_captures_release(&gpc_runtime.heap.captures);
	}
	if (st)
		gpc_reach_end_one_stream(owner, why);
}

/*
 * From now on fences of `owner` cover work of `reaching` as well.  `reaching` becomes a member after the wait, so a
 * thread that finds it among the members need not wait.
 */
static void join(struct gpc_context *owner, struct gpc_context *reaching)
{
	struct gpc_fences *fences = &owner->pool.fences;
	bool is_member;

	gpc_lock_take(&owner->pool.lock);
	is_member = gpc_fences_has_member(fences, &reaching->drv.base);
	if (!is_member)
		gpc_fences_expect_peer(fences);
	gpc_lock_release(&owner->pool.lock);
	if (is_member)
		return;
	gpc_reach_end_one_stream(owner, GPUCACHE_ONE_STREAM_END_PEER);
	gpc_lock_take(&owner->pool.lock);
	/* One that has ended meanwhile has left all fences (endings.c), and its work is over. */
	if (!atomic_load(&reaching->is_gone))
		(void)!gpc_fences_add_member(fences, &reaching->drv.base);
	gpc_lock_release(&owner->pool.lock);
	gpc_pages_reached(owner, reaching);
}

void gpc_runtime_peer_enabled(CUcontext of_memory)
{
	struct gpc_context *reaching = gpc_context_current();
	/* The owner may not have allocated yet, so its pool is created here: it needs the member at its first free. */
	struct gpc_context *owner = get_anywhere(of_memory);

	if (reaching && owner)
		join(owner, reaching);
}

/* Asks the driver: the stream may belong to a context that is not current. */
struct gpc_context *gpc_context_of_stream(CUstream stream)
{
	CUcontext handle = NULL;

	if (stream != NULL && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD &&
		gpc_runtime.fns->cuStreamGetCtx &&
		!gpc_runtime.fns->cuStreamGetCtx(stream, &handle))
		return get_anywhere(handle);
	return gpc_context_current();
}

void gpc_reach_join_all(struct gpc_context *reaching, bool is_mutual)
{
	struct gpc_pool_walk walk = { 0 };
	struct gpc_pool *pool;

	while ((pool = gpc_pool_next(&walk))) {
		struct gpc_context *other = gpc_context_of(pool);

		if (other == reaching)
			continue;
		join(other, reaching);
		if (is_mutual)
			join(reaching, other);
	}
}

void gpc_runtime_reached(CUstream stream, CUdeviceptr dst, CUdeviceptr src)
{
	struct gpc_pool *of_dst = gpc_heap_find_pool(&gpc_runtime.heap, dst);
	struct gpc_pool *of_src = gpc_heap_find_pool(&gpc_runtime.heap, src);
	struct gpc_context *reaching;

	if (!of_dst && !of_src && dst != GPC_ANYWHERE)
		return;
	reaching = gpc_context_of_stream(stream);
	if (!reaching)
		return;
	if (dst == GPC_ANYWHERE)
		gpc_reach_join_all(reaching, false);
	if (of_dst && of_dst != &reaching->pool)
		join(gpc_context_of(of_dst), reaching);
	if (of_src && of_src != &reaching->pool)
		join(gpc_context_of(of_src), reaching);
}

void gpc_runtime_context_created(void)
{
	__atomic_store_n(&gpc_runtime_many_contexts, true, __ATOMIC_RELEASE);
}

void gpc_runtime_leaves_order(CUdeviceptr ptr)
{
	struct gpc_pool *pool = gpc_heap_find_pool(&gpc_runtime.heap, ptr);

	gpc_pages_end();
	if (pool)
		gpc_reach_end_one_stream(gpc_context_of(pool), GPUCACHE_ONE_STREAM_END_EXPORT);
}
