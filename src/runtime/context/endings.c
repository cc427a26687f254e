/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of contexts.  Before the driver's call, the context leaves the fences of other contexts, and walks over all
 * pools skip it.  After the call, everything of the context is forgotten, or nothing if the driver refused.  During the
 * call the driver may give the context's addresses to another one, whose segments then take the place of the old ones
 * (alloc/segment_map.h).
 */
#include "runtime/context/endings.h"

#include "base/pause.h"
#include "driver/sticky.h"
#include "runtime/context/contexts.h"
#include "runtime/context/reach.h"
#include "runtime/context/streams.h"
#include "runtime/export/ipc.h"
#include "runtime/ledger/observe.h"
#include "runtime/ledger/track.h"
#include "runtime/process/state.h"

/*
 * Bounds the wait for contexts being destroyed, and that for memory on the move: the driver may make both wait for
 * kernels.
 */
#define MOST_MS 1000

/* True if fences of another context's memory include this one. */
static bool is_member_elsewhere(const struct gpc_context *context)
{
	struct gpc_pool_walk walk = { 0 };
	struct gpc_pool *pool;
	bool is_member = false;

	while ((pool = gpc_pool_next(&walk))) {
		gpc_lock_take(&pool->lock);
		is_member |= pool != &context->pool &&
			     gpc_fences_has_member(&pool->fences, &context->drv.base);
		gpc_lock_release(&pool->lock);
	}
	return is_member;
}

/*
 * The context's events end with the context, and a fence that still queried such an event would never pass.  A fence
 * that no longer covers the context's work would pass too early, because the driver waits for that work only in the
 * call that follows.  So the work is awaited here.
 */
static void leave_fences(struct gpc_context *context)
{
	if (is_member_elsewhere(context))
		(void)!context->drv.base.ops->context_sync(&context->drv.base);
	for (uint32_t d = 0; d < gpc_runtime.n_devices; d++) {
		struct gpc_device *device = &gpc_runtime.devices[d];

		gpc_lock_take(&gpc_runtime.lock);
		for (uint32_t i = 0; i < atomic_load(&device->n_contexts); i++) {
			struct gpc_context *other = device->contexts[i];

			if (!other)
				continue;
			gpc_lock_take(&other->pool.lock);
			gpc_fences_remove_member(&other->pool.fences, &context->drv.base);
			gpc_lock_release(&other->pool.lock);
		}
		gpc_lock_release(&gpc_runtime.lock);
	}
}

static void forget(CUcontext handle)
{
	struct gpc_context *context = gpc_context_find_own(handle);

	if (!context || atomic_exchange(&context->is_gone, true))
		return;
	gpc_observe_context(context, 2);
	gpc_streams_forget_context(context);
	leave_fences(context);
	gpc_pool_forget(&context->pool);
	gpc_track_forget(context, NULL);
	gpc_ipc_forget_context(context);
	gpc_lock_take(&context->pool.lock);
	context->is_retired = true; /* frees in flight no longer touch its counters */
	gpc_lock_release(&context->pool.lock);
	if (context->pool.counters != &context->pool.own_counters)
		gpc_record_counters_retire(&gpc_runtime.record, context->pool.context);
	gpc_context_retire(context);
}

/* True for a primary context, which the driver refuses to destroy. */
static bool is_primary(CUcontext handle)
{
	bool is_primary = false;

	gpc_lock_take(&gpc_runtime.lock);
	for (uint32_t d = 0; d < gpc_runtime.n_devices; d++)
		is_primary |= gpc_runtime.devices[d].primary == handle;
	gpc_lock_release(&gpc_runtime.lock);
	return is_primary;
}

/* Returns false if another thread is ending it. */
static bool begin_end(struct gpc_context *context)
{
	uint64_t left_ms = MOST_MS;

	if (atomic_exchange(&context->is_ending, true))
		return false;
	gpc_pool_close(&context->pool, &left_ms);
	leave_fences(context);
	return true;
}

/* Accesses to other contexts' memory made in the meantime are unknown, so all are assumed, in both directions. */
static void live_on(struct gpc_context *context)
{
	gpc_pool_reopen(&context->pool);
	atomic_store(&context->is_ending, false);
	gpc_reach_join_all(context, true);
}

/* True if the context has ended.  After a sticky error of earlier work it may exist, but its memory is useless. */
static bool is_end(CUresult result)
{
	return !result || result == CUDA_ERROR_CONTEXT_IS_DESTROYED || gpc_cuda_is_sticky(result);
}

/* NULL: a context that we do not know, or a primary context, which cannot be destroyed. */
static struct gpc_context *find_for_end(CUcontext handle)
{
	return is_primary(handle) ? NULL : gpc_context_find_own(handle);
}

static struct gpc_ending begin_last(struct gpc_context *context)
{
	if (!context || !begin_end(context))
		return (struct gpc_ending){ 0 };
	atomic_fetch_add(&gpc_runtime.n_ending, 1);
	return (struct gpc_ending){ .context = context, .is_last = true };
}

struct gpc_ending gpc_runtime_begin_destroy(CUcontext handle)
{
	return begin_last(find_for_end(handle));
}

static void count_attached(struct gpc_context *context)
{
	gpc_lock_take(&gpc_runtime.lock);
	context->n_attached++;
	gpc_lock_release(&gpc_runtime.lock);
}

/* Reads `ending`, not the context: while this thread detaches, another thread may end the context. */
void gpc_runtime_end_destroy(struct gpc_ending ending, CUresult result)
{
	if (ending.is_last) {
		if (is_end(result))
			forget(ending.context->handle);
		else
			live_on(ending.context);
		atomic_fetch_sub(&gpc_runtime.n_ending, 1);
	} else if (ending.context && result) {
		count_attached(ending.context);
	}
}

bool gpc_runtime_primary_is_active(CUdevice device, bool if_unknown)
{
	unsigned int flags = 0;
	int is_active = 0;

	if (!gpc_runtime.fns->cuDevicePrimaryCtxGetState ||
		gpc_runtime.fns->cuDevicePrimaryCtxGetState(device, &flags, &is_active))
		return if_unknown;
	return is_active;
}

void gpc_runtime_context_attached(void)
{
	struct gpc_context *context = gpc_context_current();

	if (context)
		count_attached(context);
}

/* True for the last detach.  Call before the driver does: of two concurrent detaches only the second is the last. */
static bool count_detached(struct gpc_context *context)
{
	bool is_last;

	gpc_lock_take(&gpc_runtime.lock);
	is_last = context->n_attached == 0;
	if (!is_last)
		context->n_attached--;
	gpc_lock_release(&gpc_runtime.lock);
	return is_last;
}

struct gpc_ending gpc_runtime_begin_detach(CUcontext handle)
{
	struct gpc_context *context;
	CUcontext current = NULL;

	/* The driver detaches only the current context. */
	if (gpc_runtime.fns->cuCtxGetCurrent(&current) || current != handle)
		return (struct gpc_ending){ 0 };
	context = find_for_end(handle);
	if (context && !count_detached(context))
		return (struct gpc_ending){ .context = context };
	return begin_last(context);
}

void gpc_runtime_primary_begin(CUdevice device)
{
	if (gpc_device_at(device))
		gpc_lock_take(&gpc_device_at(device)->primary_lock);
}

void gpc_runtime_primary_end(CUdevice device)
{
	if (gpc_device_at(device))
		gpc_lock_release(&gpc_device_at(device)->primary_lock);
}

void gpc_context_await_end(void)
{
	uint64_t left_ms = MOST_MS;

	while (atomic_load(&gpc_runtime.n_ending) > 0 && gpc_pause(1, &left_ms))
		;
	for (uint32_t d = 0; d < gpc_runtime.n_devices; d++) {
		gpc_runtime_primary_begin((CUdevice)d);
		gpc_runtime_primary_end((CUdevice)d);
	}
}

void gpc_runtime_primary_retained(CUcontext context, CUdevice device)
{
	if (!gpc_device_at(device))
		return;
	gpc_lock_take(&gpc_runtime.lock);
	gpc_device_at(device)->primary = context;
	gpc_lock_release(&gpc_runtime.lock);
}

void gpc_runtime_primary_released(CUdevice device)
{
	if (!gpc_runtime_primary_is_active(device, true))
		gpc_runtime_primary_forget(device);
}

/* NULL: no primary context is known; no context has that handle. */
static CUcontext primary_of(CUdevice device)
{
	CUcontext primary = NULL;

	if (!gpc_device_at(device))
		return NULL;
	gpc_lock_take(&gpc_runtime.lock);
	primary = gpc_device_at(device)->primary;
	gpc_lock_release(&gpc_runtime.lock);
	return primary;
}

void gpc_runtime_primary_forget(CUdevice device)
{
	forget(primary_of(device));
}

void gpc_runtime_begin_reset(CUdevice device)
{
	struct gpc_context *context = gpc_context_find_own(primary_of(device));

	if (context)
		(void)begin_end(context);
}

bool gpc_runtime_end_reset(CUdevice device, CUresult result)
{
	struct gpc_context *context = gpc_context_find_own(primary_of(device));

	if (is_end(result))
		return true;
	if (context)
		live_on(context);
	return false;
}
