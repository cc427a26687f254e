/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in runtime: device properties, peers, and memory pools. */
#include <stddef.h>
#include <string.h>

#include "sim/libcudart/runtime.h"

/* The two layouts of cudaDeviceProp: the members of device_prop.def, and room for the members after them. */
#define FIELD(type, name, count, attribute)   type name[count];
#define ONLY_12(type, name, count, attribute) FIELD(type, name, count, attribute)
struct layout_12 {
#include "sim/libcudart/device_prop.def"
	int rest[63];
};
#undef ONLY_12
#define ONLY_12(type, name, count, attribute)
struct layout_13 {
#include "sim/libcudart/device_prop.def"
	int rest[63];
};
#undef FIELD
#undef ONLY_12

struct field {
	size_t at;
	size_t size;
	int count;
	int attribute;
};

#define ROW(layout, type, name, count, attribute) \
	{ offsetof(struct layout, name), sizeof(type), count, attribute },
#define FIELD(type, name, count, attribute)   ROW(layout_12, type, name, count, attribute)
#define ONLY_12(type, name, count, attribute) FIELD(type, name, count, attribute)
static const struct field fields_12[] = {
#include "sim/libcudart/device_prop.def"
};
#undef FIELD
#undef ONLY_12
#define FIELD(type, name, count, attribute) ROW(layout_13, type, name, count, attribute)
#define ONLY_12(type, name, count, attribute)
static const struct field fields_13[] = {
#include "sim/libcudart/device_prop.def"
};

/* Fills `count` numbers of a member from the driver's attributes that start at field->attribute. */
static void fill(char *prop, const struct field *field, CUdevice device)
{
	for (int i = 0; i < field->count; i++) {
		int value = 0;
		size_t wide;

		(void)cu.device_attribute(
			&value, (CUdevice_attribute)(field->attribute + i), device);
		wide = (size_t)value;
		/* On a little-endian host the low bytes of `wide` are the narrower number. */
		memcpy(prop + field->at + (size_t)i * field->size, &wide, field->size);
	}
}

static cudaError_t properties(char *prop, int ordinal, const struct field *fields, size_t n)
{
	CUdevice device;
	CUuuid uuid;
	size_t memory = 0;
	cudaError_t error = rt_begin();

	if (error == cudaSuccess)
		error = rt_give(cu.device_get(&device, ordinal));
	if (error != cudaSuccess)
		return error;
	(void)cu.device_name(prop, 256, device);
	(void)cu.device_memory(&memory, device);
	memcpy(prop + offsetof(struct layout_13, totalGlobalMem), &memory, sizeof memory);
	if (cu.device_uuid(&uuid, device) == CUDA_SUCCESS)
		memcpy(prop + offsetof(struct layout_13, uuid), &uuid, sizeof uuid);
	for (size_t i = 0; i < n; i++)
		if (fields[i].attribute)
			fill(prop, &fields[i], device);
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device)
{
	memset(prop, 0, sizeof(struct layout_12));
	return properties((char *)prop, device, fields_12, sizeof fields_12 / sizeof fields_12[0]);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	if (rt_version() < 13000)
		return cudaGetDeviceProperties_v2(prop, device);
	memset(prop, 0, sizeof(struct layout_13));
	return properties((char *)prop, device, fields_13, sizeof fields_13 / sizeof fields_13[0]);
}

/* ---- peers ---- */

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	WITH_RUNTIME(cu.can_access_peer(can, device, peer));
}

/* Makes the call with the peer's primary context, which the runtime never releases. */
static cudaError_t with_peer(int peer, CUresult (*call)(CUcontext, unsigned))
{
	CUcontext context = NULL;
	CUdevice device;
	cudaError_t error = rt_begin_with_context();

	if (error == cudaSuccess)
		error = rt_give(cu.device_get(&device, peer));
	if (error == cudaSuccess)
		error = rt_give(cu.retain(&context, device));
	return error == cudaSuccess ? rt_give(call(context, 0)) : error;
}

static CUresult enable(CUcontext context, unsigned flags)
{
	return cu.enable_peer(context, flags);
}

static CUresult disable(CUcontext context, unsigned flags)
{
	return cu.disable_peer(context);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	return flags ? rt_give(CUDA_ERROR_INVALID_VALUE) : with_peer(peer, enable);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	return with_peer(peer, disable);
}

/* ---- pools ---- */

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	WITH_CONTEXT(cu.default_pool(pool, device));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	WITH_CONTEXT(cu.current_pool(pool, device));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr which, void *value)
{
	WITH_CONTEXT(cu.pool_get(pool, (CUmemPool_attribute)which, value));
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr which, void *value)
{
	WITH_CONTEXT(cu.pool_set(pool, (CUmemPool_attribute)which, value));
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	WITH_CONTEXT(cu.pool_trim(pool, keep));
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t n)
{
	WITH_CONTEXT(cu.pool_access(pool, (const CUmemAccessDesc *)(const void *)list, n));
}

cudaError_t cudaDeviceGetGraphMemAttribute(
	int device, enum cudaGraphMemAttributeType which, void *value)
{
	WITH_CONTEXT(cu.graph_memory_get(device, (CUgraphMem_attribute)which, value));
}

cudaError_t cudaDeviceSetGraphMemAttribute(
	int device, enum cudaGraphMemAttributeType which, void *value)
{
	WITH_CONTEXT(cu.graph_memory_set(device, (CUgraphMem_attribute)which, value));
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
	WITH_RUNTIME(cu.graph_memory_trim(device));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	WITH_CONTEXT(cu.priority_range(least, greatest));
}

/* Profiling controls, without effect: there is no profiler. */
cudaError_t cudaProfilerStart(void)
{
	return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
	return cudaSuccess;
}
