/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: stream-ordered memory, pools, and the memory of graphs. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "sim/libcuda/face.h"

static CUmemoryPool handle_of(struct gpc_sim_mempool *pool)
{
	return (CUmemoryPool)(void *)pool;
}

/* Begins a call on a pool, which is potentially unsafe, so a capture may forbid it. */
static CUresult enter_pool(
	const char *entry, CUmemoryPool handle, struct gpc_sim_mempool **ret_pool)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, entry, NULL);

	if (res == CUDA_SUCCESS)
		res = gpc_sim_capture_check_unsafe(face_sim());
	if (res != CUDA_SUCCESS)
		return res;
	*ret_pool = gpc_sim_mempool_of(face_sim(), handle);
	return *ret_pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- allocations ---- */

static CUresult alloc_node(struct gpc_sim_device *device, size_t size, CUdeviceptr *ptr,
	struct gpc_sim_effect **ret_node)
{
	CUresult res = device ? gpc_sim_graph_block_create(device, face_sim(), size, ret_node)
			      : CUDA_ERROR_NOT_SUPPORTED;

	if (res == CUDA_SUCCESS)
		*ptr = (*ret_node)->dst;
	return res;
}

static CUresult alloc(
	struct gpc_sim_stream *stream, struct gpc_sim_mempool *pool, CUdeviceptr *ptr, size_t size)
{
	struct gpc_sim_effect *node = NULL;
	uint64_t address;

	if (!ptr || !size)
		return CUDA_ERROR_INVALID_VALUE;
	/* In a capture, add an allocation node instead of allocating. */
	if (atomic_load(&stream->capture)) {
		CUresult made = alloc_node(pool->slabs.device, size, ptr, &node);
		return made == CUDA_SUCCESS ? gpc_sim_capture_add(stream, node) : made;
	}
	CUresult res = gpc_sim_mempool_alloc(pool, stream, size, &address);
	if (res == CUDA_SUCCESS)
		*ptr = address;
	return res;
}

static CUresult alloc_async(
	const char *entry, enum face_null null, CUstream handle, CUdeviceptr *ptr, size_t size)
{
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(GPC_SIM_COST_LAUNCH, entry, handle, null, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	return alloc(
		stream, face_sim()->mempools.currents[stream->context->device->ordinal], ptr, size);
}

static CUresult alloc_from_pool(const char *entry, enum face_null null, CUstream handle,
	CUdeviceptr *ptr, size_t size, CUmemoryPool pool_handle)
{
	struct gpc_sim_mempool *pool = gpc_sim_mempool_of(face_sim(), pool_handle);
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(GPC_SIM_COST_LAUNCH, entry, handle, null, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	return pool ? alloc(stream, pool, ptr, size) : CUDA_ERROR_INVALID_VALUE;
}

/* Frees, in stream order, memory from cuMemAlloc, which cuMemFreeAsync accepts. */
static CUresult free_plain_async(struct gpc_sim_stream *stream, CUdeviceptr ptr)
{
	struct gpc_sim_device *device = gpc_sim_device_of(face_sim(), ptr);
	uint64_t base;

	if (!device || !gpc_sim_device_find(device, ptr, &base, NULL, NULL) || base != ptr)
		return CUDA_ERROR_INVALID_VALUE;
	/* Not behind a host function of another stream, which holds back all effects (effect.h). */
	if (gpc_sim_stream_is_idle(stream) && !face_sim()->config.is_async_free_late)
		return gpc_sim_mem_free_now(face_sim(), ptr);
	struct gpc_sim_effect *effect = gpc_sim_effect_create(GPC_SIM_EFFECT_FREE, 0);
	if (!effect)
		return CUDA_ERROR_OUT_OF_MEMORY;
	effect->dst = ptr;
	if (face_sim()->config.is_async_free_late)
		effect->duration_ns = gpc_bytes_less(
			atomic_load(&device->tail_ns), gpc_sim_clock_now(&face_sim()->clock));
	return gpc_sim_stream_submit(stream, effect);
}

static CUresult free_async(const char *entry, enum face_null null, CUstream handle, CUdeviceptr ptr)
{
	struct gpc_sim_stream *stream;
	struct gpc_sim_effect *node = NULL;
	CUresult res = face_enter_stream(GPC_SIM_COST_LAUNCH, entry, handle, null, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	if (atomic_load(&stream->capture)) {
		res = gpc_sim_graph_block_free_node(face_sim(), ptr, &node);
		return res == CUDA_SUCCESS ? gpc_sim_capture_add(stream, node) : res;
	}
	if (gpc_sim_mempool_forget_import(face_sim(), ptr) ||
		gpc_sim_graph_memory_free(face_sim(), stream, ptr))
		return CUDA_SUCCESS;
	if (gpc_sim_mempool_has(face_sim(), ptr))
		return gpc_sim_mempool_free_async(stream, ptr);
	return free_plain_async(stream, ptr);
}

bool face_pool_free(uint64_t ptr, CUresult *ret_res)
{
	*ret_res = CUDA_SUCCESS;
	if (gpc_sim_mempool_forget_import(face_sim(), ptr) ||
		gpc_sim_graph_memory_free(face_sim(), NULL, ptr))
		return true;
	if (!gpc_sim_mempool_has(face_sim(), ptr))
		return false;
	*ret_res = gpc_sim_mempool_free(face_sim(), ptr);
	return true;
}

FACE_PAIR(cuMemAllocAsync, _ptsz, (CUdeviceptr * ptr, size_t size, CUstream stream),
	alloc_async(entry, null, stream, ptr, size))
FACE_PAIR(cuMemAllocFromPoolAsync, _ptsz,
	(CUdeviceptr * ptr, size_t size, CUmemoryPool pool, CUstream stream),
	alloc_from_pool(entry, null, stream, ptr, size, pool))
FACE_PAIR(cuMemFreeAsync, _ptsz, (CUdeviceptr ptr, CUstream stream),
	free_async(entry, null, stream, ptr))

/* ---- pools ---- */

CUresult cuMemPoolCreate(CUmemoryPool *handle, const CUmemPoolProps *props)
{
	struct gpc_sim_mempool *pool;
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuMemPoolCreate", NULL);

	if (res == CUDA_SUCCESS && (!handle || !props))
		res = CUDA_ERROR_INVALID_VALUE;
	if (res == CUDA_SUCCESS)
		res = gpc_sim_mempool_create(face_sim(), props, &pool);
	if (res == CUDA_SUCCESS)
		*handle = handle_of(pool);
	return res;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
	struct gpc_sim_mempool *pool;
	CUresult res = enter_pool("cuMemPoolDestroy", handle, &pool);

	return res == CUDA_SUCCESS ? gpc_sim_mempool_destroy(face_sim(), pool) : res;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
	struct gpc_sim_mempool *pool;
	CUresult res = enter_pool("cuMemPoolTrimTo", handle, &pool);

	if (res == CUDA_SUCCESS)
		gpc_sim_mempool_trim(face_sim(), pool, keep);
	return res;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
	struct gpc_sim_mempool *pool;
	CUresult res = enter_pool("cuMemPoolSetAttribute", handle, &pool);

	if (res != CUDA_SUCCESS)
		return res;
	return value ? gpc_sim_mempool_set(face_sim(), pool, attribute, value)
		     : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
	struct gpc_sim_mempool *pool;
	CUresult res = enter_pool("cuMemPoolGetAttribute", handle, &pool);

	if (res != CUDA_SUCCESS)
		return res;
	return value ? gpc_sim_mempool_get(face_sim(), pool, attribute, value)
		     : CUDA_ERROR_INVALID_VALUE;
}

/* Has no effect: every device can access every pool of the machine. */
CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map, size_t count)
{
	struct gpc_sim_mempool *pool;
	CUresult res = enter_pool("cuMemPoolSetAccess", handle, &pool);

	return res == CUDA_SUCCESS && (!map || !count) ? CUDA_ERROR_INVALID_VALUE : res;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle, CUmemLocation *location)
{
	struct gpc_sim_mempool *pool;
	CUresult res = enter_pool("cuMemPoolGetAccess", handle, &pool);

	if (res != CUDA_SUCCESS)
		return res;
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *handle, CUdevice dev)
{
	CUresult res = face_enter_device("cuDeviceGetDefaultMemPool", dev);

	if (res != CUDA_SUCCESS)
		return res;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	*handle = handle_of(face_sim()->mempools.defaults[dev]);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *handle, CUdevice dev)
{
	CUresult res = face_enter_device("cuDeviceGetMemPool", dev);

	if (res != CUDA_SUCCESS)
		return res;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	*handle = handle_of(face_sim()->mempools.currents[dev]);
	return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool handle)
{
	struct gpc_sim_mempool *pool = gpc_sim_mempool_of(face_sim(), handle);
	CUresult res = face_enter_device("cuDeviceSetMemPool", dev);

	if (res != CUDA_SUCCESS)
		return res;
	return pool ? gpc_sim_mempool_set_current(face_sim(), (unsigned)dev, pool)
		    : CUDA_ERROR_INVALID_VALUE;
}

/* The calls by location (since 13.0) support only pinned memory, of a device or of the host. */
static bool is_device_place(const CUmemLocation *location, CUmemAllocationType type)
{
	return location && type == CU_MEM_ALLOCATION_TYPE_PINNED &&
	       location->type == CU_MEM_LOCATION_TYPE_DEVICE;
}

static bool is_host_place(const CUmemLocation *location, CUmemAllocationType type)
{
	return location && type == CU_MEM_ALLOCATION_TYPE_PINNED &&
	       location->type == CU_MEM_LOCATION_TYPE_HOST;
}

CUresult cuMemGetDefaultMemPool(
	CUmemoryPool *handle, CUmemLocation *location, CUmemAllocationType type)
{
	if (is_device_place(location, type))
		return cuDeviceGetDefaultMemPool(handle, location->id);
	if (!handle || !is_host_place(location, type))
		return CUDA_ERROR_INVALID_VALUE;
	*handle = handle_of(face_sim()->mempools.host);
	return CUDA_SUCCESS;
}

CUresult cuMemGetMemPool(CUmemoryPool *handle, CUmemLocation *location, CUmemAllocationType type)
{
	return is_device_place(location, type) ? cuDeviceGetMemPool(handle, location->id)
					       : cuMemGetDefaultMemPool(handle, location, type);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool handle)
{
	return is_device_place(location, type) ? cuDeviceSetMemPool(location->id, handle)
					       : CUDA_ERROR_INVALID_VALUE;
}

/* ---- shared pools: the file of an exported descriptor names a process and a pool ---- */

struct shared_pool {
	uint64_t magic;
	int64_t pid;
	uint64_t ptr;
};

#define SHARED_MAGIC UINT64_C(0x6770757369706f6f)

CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool_handle,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	struct gpc_sim_mempool *pool;
	struct shared_pool content = { .magic = SHARED_MAGIC, .pid = getpid() };
	CUresult res = enter_pool("cuMemPoolExportToShareableHandle", pool_handle, &pool);

	if (res != CUDA_SUCCESS)
		return res;
	if (!handle || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
		!pool->is_shareable)
		return CUDA_ERROR_INVALID_VALUE;
	content.ptr = (uintptr_t)pool_handle;
	int fd = memfd_create("gpusim-pool", MFD_CLOEXEC);
	if (fd < 0 || write(fd, &content, sizeof content) != (ssize_t)sizeof content)
		return CUDA_ERROR_OPERATING_SYSTEM;
	memcpy(handle, &fd, sizeof fd);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	struct shared_pool content = { .magic = 0 };
	struct gpc_sim_mempool *pool;
	struct gpc_sim_mempool *made;
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuMemPoolImportFromShareableHandle", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!pool_out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
		pread((int)(intptr_t)handle, &content, sizeof content, 0) !=
			(ssize_t)sizeof content ||
		content.magic != SHARED_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	if (content.pid != getpid())
		return CUDA_ERROR_MAP_FAILED;
	pool = gpc_sim_mempool_of(face_sim(), (CUmemoryPool)(uintptr_t)content.ptr);
	res = pool ? gpc_sim_mempool_import(face_sim(), pool, &made) : CUDA_ERROR_INVALID_VALUE;
	if (res == CUDA_SUCCESS)
		*pool_out = handle_of(made);
	return res;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr ptr)
{
	struct shared_pool content = { .magic = SHARED_MAGIC, .pid = getpid(), .ptr = ptr };
	struct gpc_sim_mempool *pool;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuMemPoolExportPointer", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!data || !gpc_sim_mempool_find(face_sim(), ptr, NULL, NULL, &pool) ||
		!pool->is_shareable)
		return CUDA_ERROR_INVALID_VALUE;
	memset(data, 0, sizeof *data);
	memcpy(data, &content, sizeof content);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(
	CUdeviceptr *ptr, CUmemoryPool pool_handle, CUmemPoolPtrExportData *data)
{
	struct shared_pool content;
	struct gpc_sim_mempool *pool;
	uint64_t made;
	CUresult res = enter_pool("cuMemPoolImportPointer", pool_handle, &pool);

	if (res != CUDA_SUCCESS)
		return res;
	if (!ptr || !data || !pool->is_imported)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&content, data, sizeof content);
	if (content.magic != SHARED_MAGIC || content.pid != getpid())
		return CUDA_ERROR_INVALID_VALUE;
	res = gpc_sim_mempool_import_pointer(face_sim(), content.ptr, &made);
	if (res == CUDA_SUCCESS)
		*ptr = made;
	return res;
}

/* ---- graphs ---- */

/* Appends the node, whatever its edges: the model runs a graph sequentially. */
static CUresult add_to_graph(
	CUgraph graph, CUresult res, struct gpc_sim_effect *effect, CUgraphNode *ret_node)
{
	if (res != CUDA_SUCCESS)
		return res;
	gpc_sim_graph_add((struct gpc_sim_graph *)(void *)graph, effect);
	*ret_node = (CUgraphNode)(void *)effect;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
	size_t n, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	struct gpc_sim_effect *effect = NULL;
	CUresult res = face_enter(GPC_SIM_COST_RECORD, "cuGraphAddMemAllocNode", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!node || !graph || !params ||
		params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	res = face_enter_device("cuGraphAddMemAllocNode", params->poolProps.location.id);
	if (res == CUDA_SUCCESS)
		res = alloc_node(&face_sim()->devices[params->poolProps.location.id],
			params->bytesize, &params->dptr, &effect);
	return add_to_graph(graph, res, effect, node);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
	size_t n, CUdeviceptr ptr)
{
	struct gpc_sim_effect *effect = NULL;
	CUresult res = face_enter(GPC_SIM_COST_RECORD, "cuGraphAddMemFreeNode", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!node || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	res = gpc_sim_graph_block_free_node(face_sim(), ptr, &effect);
	return add_to_graph(graph, res, effect, node);
}

static CUresult enter_graph_memory(const char *entry, CUdevice dev)
{
	CUresult res = face_enter_device(entry, dev);

	if (res == CUDA_SUCCESS)
		res = gpc_sim_capture_check_unsafe(face_sim());
	if (res == CUDA_SUCCESS)
		gpc_sim_settle(face_sim());
	return res;
}

CUresult cuDeviceGraphMemTrim(CUdevice dev)
{
	CUresult res = enter_graph_memory("cuDeviceGraphMemTrim", dev);

	if (res == CUDA_SUCCESS)
		gpc_sim_graph_memory_trim(face_sim(), (unsigned)dev);
	return res;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
	CUresult res = enter_graph_memory("cuDeviceGetGraphMemAttribute", dev);

	if (res != CUDA_SUCCESS)
		return res;
	return value ? gpc_sim_graph_memory_get(face_sim(), (unsigned)dev, attribute, value)
		     : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
	uint64_t number = 0;
	CUresult res = enter_graph_memory("cuDeviceSetGraphMemAttribute", dev);

	if (res != CUDA_SUCCESS)
		return res;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&number, value, sizeof number);
	return gpc_sim_graph_memory_set(face_sim(), (unsigned)dev, attribute, number);
}
