/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and captures, tracked for the fences (alloc/fence.h).  For a submission or a wait, finds the context of the
 * stream and calls its pool; without a due barrier that costs a lookup.
 */
#include "runtime/context/streams.h"

#include "base/thread.h"
#include "record/record.h"
#include "runtime/context/contexts.h"
#include "runtime/context/reach.h"
#include "runtime/process/state.h"

struct gpc_duties gpc_runtime_duties;
bool gpc_runtime_per_thread_seen;
bool gpc_runtime_overlap_seen;

void gpc_streams_name(CUstream stream)
{
	uint64_t handle = stream ? (uint64_t)(uintptr_t)stream : GPUCACHE_STREAM_LEGACY;

	gpc_thread_name_stream(gpc_record_stream(&gpc_runtime.record, handle));
}

void gpc_runtime_stream_created(CUstream stream)
{
	/* A stream of a green context may be created while another context is current. */
	struct gpc_context *context =
		gpc_green_is_used() ? gpc_context_of_stream(stream) : gpc_context_current();
	enum gpc_status st;

	if (!context)
		return;
	gpc_lock_take(&context->pool.lock);
	gpc_reach_note_end_locked(&context->pool, GPUCACHE_ONE_STREAM_END_STREAM);
	st = gpc_fences_stream_created(&context->pool.fences, (gpc_stream)(uintptr_t)stream);
	gpc_stream_order_created(&context->pool.order, (gpc_stream)(uintptr_t)stream);
	gpc_lock_release(&context->pool.lock);
	/* The new stream must not overtake the legacy stream.  If the device cannot make it wait, the host waits. */
	if (st)
		gpc_pool_wait_for_one_stream(&context->pool);
}

void gpc_runtime_stream_destroyed(CUstream stream)
{
	struct gpc_pool_walk walk = { 0 };
	struct gpc_pool *pool;

	gpc_runtime_capture_ended(stream);
	gpc_record_end_stream(&gpc_runtime.record, (uint64_t)(uintptr_t)stream);
	/* The driver may reuse the handle for a stream of any context. */
	while ((pool = gpc_pool_next(&walk))) {
		gpc_lock_take(&pool->lock);
		gpc_stream_order_destroyed(&pool->order, (gpc_stream)(uintptr_t)stream);
		gpc_lock_release(&pool->lock);
	}
}

/*
 * Applies to every context of the process, because the thread may use its default stream in any of them.  The flag is
 * set first, so that a context created meanwhile reads it.  No wait is needed: the driver orders a per-thread default
 * stream and the legacy stream.
 */
void gpc_runtime_per_thread_stream_used(void)
{
	struct gpc_pool_walk walk = { 0 };
	struct gpc_pool *pool;

	gpc_lock_take(&gpc_runtime.lock);
	gpc_runtime.is_per_thread_used = true;
	gpc_lock_release(&gpc_runtime.lock);
	while ((pool = gpc_pool_next(&walk))) {
		gpc_lock_take(&pool->lock);
		gpc_reach_note_end_locked(pool, GPUCACHE_ONE_STREAM_END_PER_THREAD);
		gpc_fences_per_thread_stream_used(&pool->fences);
		gpc_lock_release(&pool->lock);
	}
	__atomic_store_n(&gpc_runtime_per_thread_seen, true, __ATOMIC_RELEASE);
}

void gpc_runtime_overlap_used(void)
{
	struct gpc_pool_walk walk = { 0 };
	struct gpc_pool *pool;

	/* Contexts created meanwhile read this flag.  gpc_runtime_overlap_seen, which ends these calls, is set last. */
	gpc_lock_take(&gpc_runtime.lock);
	gpc_runtime.is_overlap_used = true;
	gpc_lock_release(&gpc_runtime.lock);
	/* Also where the rule has ended: work on blocks reused before that may still be running. */
	while ((pool = gpc_pool_next(&walk)))
		gpc_reach_order_one_stream(gpc_context_of(pool), GPUCACHE_ONE_STREAM_END_OVERLAP);
	__atomic_store_n(&gpc_runtime_overlap_seen, true, __ATOMIC_RELEASE);
}

/* Replaces an entry `from` of the list by `to`; NULL is a free entry.  False: there is no such entry. */
static bool replace_capturing_locked(CUstream from, CUstream to, const struct gpc_context *context)
{
	for (uint32_t i = 0; i < GPC_MAX_CAPTURES; i++) {
		if (gpc_runtime.capturing[i] == from) {
			gpc_runtime.capturing[i] = to;
			gpc_runtime.capturing_in[i] = context;
			return true;
		}
	}
	return false;
}

/* True if the driver does not tell: the call is then passed to the driver, which is right in both cases. */
bool gpc_runtime_is_captured(CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	if (!gpc_captures_is_any_open(&gpc_runtime.heap.captures))
		return false;
	return !gpc_runtime.fns->cuStreamIsCapturing ||
	       gpc_runtime.fns->cuStreamIsCapturing(stream, &status) ||
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void gpc_runtime_submits(CUstream stream)
{
	struct gpc_context *context = gpc_context_of_stream(stream);

	if (context)
		gpc_pool_raise_barrier(&context->pool);
}

/* An error is left to the driver: every call of a broken context returns the error. */
void gpc_runtime_queries(CUstream stream)
{
	struct gpc_context *context = gpc_context_of_stream(stream);

	if (context)
		(void)!gpc_pool_settle(&context->pool);
}

/* Does in every pool what cannot be done during a capture. */
static void prepare_pools(void)
{
	struct gpc_pool_walk walk = { 0 };
	struct gpc_pool *pool;

	while ((pool = gpc_pool_next(&walk))) {
		gpc_pool_raise_barrier(pool);
		gpc_pool_settle_one_stream(pool);
		gpc_pool_return_exact(pool);
	}
}

void gpc_runtime_capture_begins(CUstream stream)
{
	const struct gpc_context *context = gpc_context_current();

	gpc_captures_announce(&gpc_runtime.heap.captures);
	prepare_pools();
	gpc_captures_begin_announced(&gpc_runtime.heap.captures);
	gpc_lock_take(&gpc_runtime.lock);
	if (context && atomic_load(&context->is_gone))
		context = NULL;
	if (!replace_capturing_locked(NULL, stream, context))
		gpc_runtime.n_unlisted_captures++;
	gpc_lock_release(&gpc_runtime.lock);
}

/* Also called when a stream is destroyed: that ends its capture, if it has one.  Other streams are ignored. */
void gpc_runtime_capture_ended(CUstream stream)
{
	bool was_capturing;

	if (!gpc_captures_is_any_open(&gpc_runtime.heap.captures))
		return;
	gpc_lock_take(&gpc_runtime.lock);
	was_capturing = stream && replace_capturing_locked(stream, NULL, NULL);
	/*
	 * A stream without an entry may not have been capturing.  If it still counts as the end of an unlisted
	 * capture, our next event may invalidate that capture.  If it did not count, a capture could count as open for
	 * ever, and no block would be reused any more.
	 */
	if (!was_capturing && gpc_runtime.n_unlisted_captures > 0) {
		gpc_runtime.n_unlisted_captures--;
		was_capturing = true;
	}
	gpc_lock_release(&gpc_runtime.lock);
	if (was_capturing)
		gpc_captures_end(&gpc_runtime.heap.captures);
}

void gpc_streams_forget_context(const struct gpc_context *context)
{
	gpc_lock_take(&gpc_runtime.lock);
	for (uint32_t i = 0; i < GPC_MAX_CAPTURES; i++) {
		if (!gpc_runtime.capturing[i] || gpc_runtime.capturing_in[i] != context)
			continue;
		gpc_runtime.capturing[i] = NULL;
		gpc_captures_end(&gpc_runtime.heap.captures);
	}
	gpc_lock_release(&gpc_runtime.lock);
}
