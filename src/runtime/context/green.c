/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: parts of a device that act as contexts.  Their memory belongs to the device's primary context, which
 * outlives them, so they use its pool.
 *
 *      primary  P  <--.          one pool, one set of fences: cuCtxRecordEvent(P) and
 *      green  A --> P  |         cuCtxSynchronize of P cover P and all its green contexts
 *      green  B --> P -'         (CUDA driver API, "Context Management")
 *
 * The reverse does not hold: a wait for one green context is no wait for P or for other green contexts.  Each green
 * context has a legacy stream of its own.  So once one exists, NULL may mean several streams, and the one-stream rule
 * (alloc/fence.h) ends in every context.
 *
 * Only the driver knows which handles are green.  It is asked once per handle, while the handle is current.
 *
 * Invariants  1 An entry of the table agrees with the driver as long as its green context lives: the entry is removed
 *               before the driver destroys the context.  If the driver refuses, the next use of the handle asks again.
 * Threads     Any; the table is protected by runtime.lock.
 * Failure     A driver before 12.5 cannot name the primary context of a green one.  Once such a program uses green
 *             contexts, memory of contexts that we have not seen before is left to the driver.
 */
#include "runtime/context/green.h"

#include "runtime/context/contexts.h"
#include "runtime/context/endings.h"
#include "runtime/context/reach.h"
#include "runtime/process/state.h"

/* The size of the table.  Each use of a green context without an entry asks the driver. */
#define MAX_KNOWN 64

static struct {
	CUcontext handles[MAX_KNOWN]; /* NULL: free */
	CUcontext primaries[MAX_KNOWN];
	_Atomic uint32_t n;
} known;

static uint32_t place_of_locked(CUcontext handle)
{
	uint32_t i = 0;

	while (i < MAX_KNOWN && known.handles[i] != handle)
		i++;
	return i;
}

CUcontext gpc_green_find(CUcontext handle)
{
	CUcontext primary = NULL;
	uint32_t i;

	if (!handle || atomic_load_explicit(&known.n, memory_order_relaxed) == 0)
		return NULL;
	gpc_lock_take(&gpc_runtime.lock);
	i = place_of_locked(handle);
	if (i < MAX_KNOWN)
		primary = known.primaries[i];
	gpc_lock_release(&gpc_runtime.lock);
	return primary;
}

static void remember(CUcontext handle, CUcontext primary)
{
	uint32_t i;

	gpc_lock_take(&gpc_runtime.lock);
	i = place_of_locked(handle);
	if (i == MAX_KNOWN)
		i = place_of_locked(NULL);
	if (i < MAX_KNOWN) {
		if (!known.handles[i])
			atomic_fetch_add(&known.n, 1);
		known.handles[i] = handle;
		known.primaries[i] = primary;
	}
	gpc_lock_release(&gpc_runtime.lock);
}

static void forget(CUcontext handle)
{
	uint32_t i;

	gpc_lock_take(&gpc_runtime.lock);
	i = place_of_locked(handle);
	if (i < MAX_KNOWN) {
		known.handles[i] = NULL;
		atomic_fetch_sub(&known.n, 1);
	}
	gpc_lock_release(&gpc_runtime.lock);
}

CUcontext gpc_green_owner(CUcontext handle)
{
	const struct gpc_cuda_fns *fns = gpc_runtime.fns;
	CUcontext primary = gpc_green_find(handle);
	CUresult result = CUDA_ERROR_NOT_SUPPORTED;
	CUgreenCtx green = NULL;
	CUdevice device;

	if (primary)
		return primary;
	if (fns->cuStreamGetCtx_v2)
		result = fns->cuStreamGetCtx_v2(CU_STREAM_LEGACY, &primary, &green);
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		return gpc_green_is_used() ? NULL : handle;
	if (result || !primary)
		return NULL;
	if (!green)
		return handle;
	if (!fns->cuCtxGetDevice(&device))
		gpc_runtime_primary_retained(primary, device);
	remember(handle, primary);
	/* The green context was created before the library started, so its hook did not run. */
	if (!gpc_green_is_used())
		gpc_runtime_green_begins();
	return primary;
}

void gpc_runtime_green_begins(void)
{
	struct gpc_pool_walk walk = { 0 };
	struct gpc_pool *pool;

	__atomic_store_n(&gpc_runtime.is_green_used, true, __ATOMIC_RELEASE);
	while ((pool = gpc_pool_next(&walk)))
		gpc_reach_end_one_stream(gpc_context_of(pool), GPUCACHE_ONE_STREAM_END_GREEN);
}

CUdevice gpc_runtime_green_ends(CUgreenCtx green)
{
	const struct gpc_cuda_fns *fns = gpc_runtime.fns;
	CUcontext handle = NULL;
	CUcontext popped;
	CUdevice device = -1;

	if (!fns->cuCtxFromGreenCtx || fns->cuCtxFromGreenCtx(&handle, green) || !handle)
		return -1;
	forget(handle);
	if (fns->cuCtxPushCurrent_v2(handle))
		return -1;
	if (fns->cuCtxGetDevice(&device))
		device = -1;
	(void)fns->cuCtxPopCurrent_v2(&popped);
	return device;
}
