/* SPDX-License-Identifier: Apache-2.0 */
/* Physical memory and its mappings, multicast objects, and what gives memory to others. */
#include "preload/real.h"
#include "preload/torch.h"

/* The arguments of a call that gives a handle, behind the part that the runtime knows. */
struct created {
	struct gpc_passed_call call;
	CUmemGenericAllocationHandle *handle;
	const CUmemAllocationProp *prop;
	const CUmulticastObjectProp *multicast;
	unsigned long long flags;
};

static CUresult note_handle(struct created *created, CUresult result)
{
	if (result == CUDA_SUCCESS) {
		created->call.ret_address = *created->handle;
		created->call.ret_size = created->call.size;
	}
	return result;
}

/* In the books, and held by its creator.  Such memory needs no current context. */
static CUresult create(struct created *created, int device)
{
	CUresult result = gpc_runtime_passed_malloc_of_device(&created->call, device);

	if (result == CUDA_SUCCESS)
		gpc_runtime_handle_created(*created->handle);
	return result;
}

static CUresult make_physical(struct gpc_passed_call *call)
{
	struct created *created = (struct created *)call;

	return note_handle(created,
		real_cuMemCreate(created->handle, call->size, created->prop, created->flags));
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct created created = {
		.call = { .make = make_physical, .size = size },
		.handle = handle,
		.prop = prop,
		.flags = flags,
	};
	bool is_on_device = prop && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
	CUresult result;

	if (!handle || !prop || !enter())
		return real_cuMemCreate(handle, size, prop, flags);
	created.call.kind = is_on_device ? GPUCACHE_KIND_PHYSICAL : GPUCACHE_KIND_PHYSICAL_HOST;
	result = create(&created, is_on_device ? prop->location.id : -1);
	if (result == CUDA_SUCCESS && is_on_device &&
		gpc_torch_is_caller(__builtin_return_address(0)))
		gpc_runtime_arena_created(*handle);
	gpc_runtime_leave();
	return result;
}

static CUresult make_multicast(struct gpc_passed_call *call)
{
	struct created *created = (struct created *)call;

	return note_handle(created, real_cuMulticastCreate(created->handle, created->multicast));
}

CUresult cuMulticastCreate(
	CUmemGenericAllocationHandle *mcHandle, const CUmulticastObjectProp *prop)
{
	struct created created = {
		.call = { .make = make_multicast, .kind = GPUCACHE_KIND_MULTICAST },
		.handle = mcHandle,
		.multicast = prop,
	};
	CUresult result;

	if (!mcHandle || !prop || !enter())
		return real_cuMulticastCreate(mcHandle, prop);
	created.call.size = prop->size;
	result = create(&created, -1);
	gpc_runtime_leave();
	return result;
}

/* The driver gave a handle that may be known already: one holder more. */
static CUresult held(CUresult result, const CUmemGenericAllocationHandle *handle)
{
	if (result == CUDA_SUCCESS && handle && enter()) {
		gpc_runtime_handle_held(*handle);
		gpc_runtime_leave();
	}
	return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	return held(real_cuMemRetainAllocationHandle(handle, addr), handle);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
	CUmemAllocationHandleType shHandleType)
{
	return held(real_cuMemImportFromShareableHandle(handle, osHandle, shHandleType), handle);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct gpc_parting parting;
	CUresult result;

	if (!enter())
		return real_cuMemRelease(handle);
	parting = gpc_runtime_begin_release(handle);
	result = real_cuMemRelease(handle);
	gpc_runtime_end_parting(parting, result);
	gpc_runtime_leave();
	return result;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
	unsigned long long flags)
{
	CUresult result = real_cuMemMap(ptr, size, offset, handle, flags);

	if (result == CUDA_SUCCESS && enter()) {
		gpc_runtime_handle_mapped(handle, ptr, size);
		gpc_runtime_leave();
	}
	return result;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	struct gpc_parting parting;
	CUresult result;

	if (!enter())
		return real_cuMemUnmap(ptr, size);
	parting = gpc_runtime_begin_unmap(ptr, size);
	result = real_cuMemUnmap(ptr, size);
	gpc_runtime_end_parting(parting, result);
	gpc_runtime_leave();
	return result;
}

/* Before the call: nobody may get this memory between it and our mark. */
static void exported(CUdeviceptr ptr)
{
	if (enter()) {
		gpc_runtime_exported(ptr);
		gpc_runtime_leave();
	}
}

/* The descriptor covers exactly these addresses, so unlike with IPC they may lie anywhere. */
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
	CUmemRangeHandleType handleType, unsigned long long flags)
{
	exported(dptr);
	return real_cuMemGetHandleForAddressRange(handle, dptr, size, handleType, flags);
}

/*
 * Set before a network card is given the memory.  It stays with the driver's allocation, which does no
 * harm: it only makes copies of whoever gets a part of that next more synchronous.
 */
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	if (attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && enter()) {
		gpc_runtime_leaves_order(ptr);
		gpc_runtime_leave();
	}
	return real_cuPointerSetAttribute(value, attribute, ptr);
}
