/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered memory, the driver's pools, and graphs, which own their nodes' memory. */
#include "preload/per_thread.h"
#include "preload/shapes.h"
#include "runtime/context/streams.h"
#include "runtime/export/ipc.h"
#include "runtime/ledger/pools.h"
#include "runtime/rescue/rescue.h"

/* The stream that NULL means in a _ptsz function. */
static CUstream per_thread(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

/* ---- allocations ---- */

/* `on`: the stream; for a _ptsz variant, with NULL replaced by the thread's own stream. */
#define ORDERED(name, is_fine, from, on, params, args)                                       \
	CALL(name, gpc_passed_call, GIVEN(*a->dptr, a->size), params, args)                  \
	CUresult name params                                                                 \
	{                                                                                    \
		struct name##_call a = { { .make = make_##name, .size = size }, LIST args }; \
                                                                                             \
		note_stream(on);                                                             \
		if (!(is_fine) || !enter())                                                  \
			return answered(real_##name args);                                   \
		return answered(left(gpc_runtime_is_captured(on)                             \
					     ? real_##name args                              \
					     : gpc_runtime_pool_malloc(&a.call, from, on))); \
	}

/* clang-format off */
#define ORDERED_ALLOC(name, on)                                                           \
	ORDERED(name, dptr, NULL, on, (CUdeviceptr *dptr, size_t size, CUstream stream), \
		(dptr, size, stream))
#define ORDERED_ALLOC_FROM(name, on)                                                   \
	ORDERED(name, dptr && pool, pool, on,                                           \
		(CUdeviceptr *dptr, size_t size, CUmemoryPool pool, CUstream stream), \
		(dptr, size, pool, stream))

ORDERED_ALLOC(cuMemAllocAsync, stream)
ORDERED_ALLOC(cuMemAllocAsync_ptsz, per_thread(stream))
ORDERED_ALLOC_FROM(cuMemAllocFromPoolAsync, stream)
ORDERED_ALLOC_FROM(cuMemAllocFromPoolAsync_ptsz, per_thread(stream))

NOTED(cuMemPoolImportPointer, gpc_runtime_imported(*ptr),
	(CUdeviceptr *ptr, CUmemoryPool pool, CUmemPoolPtrExportData *data), (ptr, pool, data))

/* ---- pools ---- */

NOTED(cuMemPoolCreate, gpc_runtime_pool_seen(*pool, props->location, props->allocType, props->maxSize),
	(CUmemoryPool *pool, const CUmemPoolProps *props), (pool, props))
NOTED(cuMemGetDefaultMemPool, gpc_runtime_pool_seen(*pool, *location, type, 0),
	(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type),
	(pool, location, type))
NOTED(cuMemGetMemPool, gpc_runtime_pool_seen(*pool, *location, type, 0),
	(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type),
	(pool, location, type))
NOTED(cuDeviceSetMemPool, gpc_runtime_pool_made_current(device, pool),
	(CUdevice device, CUmemoryPool pool), (device, pool))
/* clang-format on */

/* We forget the pool before the driver's call, because no query may name it afterwards. */
CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	CUresult result;

	if (!enter())
		return real_cuMemPoolDestroy(pool);
	gpc_runtime_pool_destroyed(pool);
	result = real_cuMemPoolDestroy(pool);
	if (result != CUDA_SUCCESS)
		gpc_runtime_pool_kept(pool);
	return left(result);
}

/* cuMemAllocAsync allocates from the device's current pool of type PINNED.  The others serve calls that name them. */
CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	CUresult result = real_cuMemSetMemPool(location, type, pool);

	if (result == CUDA_SUCCESS && type == CU_MEM_ALLOCATION_TYPE_PINNED &&
		location->type == CU_MEM_LOCATION_TYPE_DEVICE)
		INSIDE(gpc_runtime_pool_made_current(location->id, pool));
	return result;
}

static CUresult pools_changed(CUresult result)
{
	if (result == CUDA_SUCCESS)
		INSIDE(gpc_runtime_pools_changed());
	return answered(result);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	return pools_changed(real_cuMemPoolTrimTo(pool, minBytesToKeep));
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	return pools_changed(real_cuDeviceGraphMemTrim(device));
}

/* ---- graphs ---- */

static bool make_room(void)
{
	bool is_tried = false;

	INSIDE(is_tried = gpc_runtime_make_room());
	return is_tried;
}

static CUresult graph_made(CUresult result)
{
	if (result == CUDA_SUCCESS)
		INSIDE(gpc_runtime_graph_made());
	return answered(result);
}

/* The first launch of a graph allocates the memory of its nodes. */
static CUresult launched(CUresult result)
{
	if (__builtin_expect(__atomic_load_n(&gpc_runtime_graph_is_new, __ATOMIC_RELAXED), 0))
		return pools_changed(result);
	return answered(result);
}

/*
 * How much memory a graph needs is unknown.  If the driver's call fails for lack of memory, all idle memory goes back to
 * the driver, and the call is repeated.
 */
#define RETRIED(name, first, then, params, args)                       \
	CUresult name params                                           \
	{                                                              \
		CUresult result;                                       \
                                                                       \
		first;                                                 \
		result = real_##name args;                             \
		if (result == CUDA_ERROR_OUT_OF_MEMORY && make_room()) \
			result = real_##name args;                     \
		return then(result);                                   \
	}
#define INSTANTIATED(name, params, args) RETRIED(name, (void)0, graph_made, params, args)
#define LAUNCHED(name, on)                                                            \
	RETRIED(name, note_stream(on), launched, (CUgraphExec exec, CUstream stream), \
		(exec, stream))

/* clang-format off */
INSTANTIATED(cuGraphInstantiate,
	(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size),
	(exec, graph, node, log, size))
INSTANTIATED(cuGraphInstantiate_v2,
	(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size),
	(exec, graph, node, log, size))
INSTANTIATED(cuGraphInstantiateWithFlags,
	(CUgraphExec *exec, CUgraph graph, unsigned long long flags), (exec, graph, flags))
INSTANTIATED(cuGraphInstantiateWithParams,
	(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	(exec, graph, params))
INSTANTIATED(cuGraphInstantiateWithParams_ptsz,
	(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	(exec, graph, params))
/* clang-format on */

LAUNCHED(cuGraphLaunch, stream)
LAUNCHED(cuGraphLaunch_ptsz, per_thread(stream))
LAUNCHED(cuGraphUpload, stream)
LAUNCHED(cuGraphUpload_ptsz, per_thread(stream))
