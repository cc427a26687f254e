/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered memory, the driver's pools, and graphs, which own the memory of their nodes. */
#include "preload/per_thread.h"

/* What NULL means as a stream of a _ptsz function. */
static CUstream per_thread(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

/* ---- allocations ---- */

/* One of the four functions; those that name no pool leave it NULL. */
struct passed {
	struct gpc_passed_call call;
	CUresult (*real)(CUdeviceptr *dptr, size_t size, CUstream stream);
	CUresult (*real_from)(CUdeviceptr *dptr, size_t size, CUmemoryPool pool, CUstream stream);
	CUdeviceptr *dptr;
	CUmemoryPool pool;
	CUstream stream;
};

static CUresult ask(const struct passed *passed)
{
	return passed->real ? passed->real(passed->dptr, passed->call.size, passed->stream)
			    : passed->real_from(passed->dptr, passed->call.size, passed->pool,
				      passed->stream);
}

static CUresult make(struct gpc_passed_call *call)
{
	const struct passed *passed = (struct passed *)call;
	CUresult result = ask(passed);

	if (result == CUDA_SUCCESS) {
		call->ret_address = *passed->dptr;
		call->ret_size = call->size;
	}
	return result;
}

/* `on`: the stream, with what NULL means put in. */
static CUresult alloc(struct passed *passed, CUstream on)
{
	CUresult result;

	note_stream(on);
	passed->call.make = make;
	if (!passed->dptr || (passed->real_from && !passed->pool) || !enter())
		return heard(ask(passed));
	result = gpc_runtime_is_captured(on)
			 ? ask(passed)
			 : gpc_runtime_pool_malloc(&passed->call, passed->pool, on);
	gpc_runtime_leave();
	return heard(result);
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	struct passed passed = {
		.call.size = bytesize, .real = real_cuMemAllocAsync, .dptr = dptr, .stream = hStream
	};

	return alloc(&passed, hStream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	struct passed passed = { .call.size = bytesize,
		.real = real_cuMemAllocAsync_ptsz,
		.dptr = dptr,
		.stream = hStream };

	return alloc(&passed, per_thread(hStream));
}

CUresult cuMemAllocFromPoolAsync(
	CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	struct passed passed = { .call.size = bytesize,
		.real_from = real_cuMemAllocFromPoolAsync,
		.dptr = dptr,
		.pool = pool,
		.stream = hStream };

	return alloc(&passed, hStream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(
	CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	struct passed passed = { .call.size = bytesize,
		.real_from = real_cuMemAllocFromPoolAsync_ptsz,
		.dptr = dptr,
		.pool = pool,
		.stream = hStream };

	return alloc(&passed, per_thread(hStream));
}

CUresult cuMemPoolImportPointer(
	CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
	CUresult result = real_cuMemPoolImportPointer(ptr_out, pool, shareData);

	if (result == CUDA_SUCCESS && enter()) {
		gpc_runtime_imported(*ptr_out);
		gpc_runtime_leave();
	}
	return result;
}

/* ---- pools ---- */

static void pool_seen(CUmemoryPool pool, CUmemLocation location, CUmemAllocationType type)
{
	if (!enter())
		return;
	gpc_runtime_pool_seen(pool, location, type);
	gpc_runtime_leave();
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	CUresult result = real_cuMemPoolCreate(pool, poolProps);

	if (result == CUDA_SUCCESS)
		pool_seen(*pool, poolProps->location, poolProps->allocType);
	return result;
}

CUresult cuMemGetDefaultMemPool(
	CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
	CUresult result = real_cuMemGetDefaultMemPool(pool_out, location, type);

	if (result == CUDA_SUCCESS)
		pool_seen(*pool_out, *location, type);
	return result;
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	CUresult result = real_cuMemGetMemPool(pool, location, type);

	if (result == CUDA_SUCCESS)
		pool_seen(*pool, *location, type);
	return result;
}

/* Forgotten first: from the driver's call on nobody may ask about it. */
CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	CUresult result;

	if (!enter())
		return real_cuMemPoolDestroy(pool);
	gpc_runtime_pool_destroyed(pool);
	result = real_cuMemPoolDestroy(pool);
	if (result != CUDA_SUCCESS)
		gpc_runtime_pool_kept(pool);
	gpc_runtime_leave();
	return result;
}

static void made_current(CUdevice dev, CUmemoryPool pool)
{
	if (!enter())
		return;
	gpc_runtime_pool_made_current(dev, pool);
	gpc_runtime_leave();
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	CUresult result = real_cuDeviceSetMemPool(dev, pool);

	if (result == CUDA_SUCCESS)
		made_current(dev, pool);
	return result;
}

/* cuMemAllocAsync takes pinned memory of a device; the others are for functions that name them. */
CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	CUresult result = real_cuMemSetMemPool(location, type, pool);

	if (result == CUDA_SUCCESS && type == CU_MEM_ALLOCATION_TYPE_PINNED &&
		location->type == CU_MEM_LOCATION_TYPE_DEVICE)
		made_current(location->id, pool);
	return result;
}

static CUresult pools_changed(CUresult result)
{
	if (result == CUDA_SUCCESS && enter()) {
		gpc_runtime_pools_changed();
		gpc_runtime_leave();
	}
	return heard(result);
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

	if (enter()) {
		is_tried = gpc_runtime_make_room();
		gpc_runtime_leave();
	}
	return is_tried;
}

/* How much a graph needs is not known before the driver has it. */
#define RETRIED(call)                                          \
	CUresult result = call;                                \
                                                               \
	if (result == CUDA_ERROR_OUT_OF_MEMORY && make_room()) \
	result = call

static CUresult graph_made(CUresult result)
{
	if (result == CUDA_SUCCESS && enter()) {
		gpc_runtime_graph_made();
		gpc_runtime_leave();
	}
	return heard(result);
}

CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
	char *logBuffer, size_t bufferSize)
{
	RETRIED(real_cuGraphInstantiate(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize));

	return graph_made(result);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
	char *logBuffer, size_t bufferSize)
{
	RETRIED(real_cuGraphInstantiate_v2(
		phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize));

	return graph_made(result);
}

CUresult cuGraphInstantiateWithFlags(
	CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	RETRIED(real_cuGraphInstantiateWithFlags(phGraphExec, hGraph, flags));

	return graph_made(result);
}

CUresult cuGraphInstantiateWithParams(
	CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	RETRIED(real_cuGraphInstantiateWithParams(phGraphExec, hGraph, instantiateParams));

	return graph_made(result);
}

CUresult cuGraphInstantiateWithParams_ptsz(
	CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	RETRIED(real_cuGraphInstantiateWithParams_ptsz(phGraphExec, hGraph, instantiateParams));

	return graph_made(result);
}

/* The first launch is where memory is put behind the nodes. */
static CUresult launched(CUresult result)
{
	if (__builtin_expect(__atomic_load_n(&gpc_runtime_graph_is_new, __ATOMIC_RELAXED), 0))
		return pools_changed(result);
	return heard(result);
}

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
	note_stream(hStream);
	RETRIED(real_cuGraphLaunch(hGraphExec, hStream));
	return launched(result);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream)
{
	note_stream(per_thread(hStream));
	RETRIED(real_cuGraphLaunch_ptsz(hGraphExec, hStream));
	return launched(result);
}

CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
	note_stream(hStream);
	RETRIED(real_cuGraphUpload(hGraphExec, hStream));
	return launched(result);
}

CUresult cuGraphUpload_ptsz(CUgraphExec hGraphExec, CUstream hStream)
{
	note_stream(per_thread(hStream));
	RETRIED(real_cuGraphUpload_ptsz(hGraphExec, hStream));
	return launched(result);
}
