/* SPDX-License-Identifier: Apache-2.0 */
/* Physical memory and its mappings, multicast objects, and calls that export memory. */
#include "preload/pjrt.h"
#include "preload/shapes.h"
#include "preload/torch.h"
#include "runtime/context/reach.h"
#include "runtime/export/ipc.h"
#include "runtime/ledger/arrays.h"
#include "runtime/ledger/physical.h"
#include "runtime/ledger/track.h"

/*
 * Makes the call and tracks what it creates, with one holder.  Needs no current context.  Device -1: it counts for that
 * of the current context, or for the first.
 */
static CUresult create(struct gpc_passed_call *call, const CUmemGenericAllocationHandle *handle,
	int device, bool is_arena)
{
	CUresult result = gpc_runtime_passed_malloc_of_device(call, device);

	if (result == CUDA_SUCCESS)
		gpc_runtime_handle_created(*handle);
	if (result == CUDA_SUCCESS && is_arena)
		gpc_runtime_mark_arena(GPUCACHE_KIND_PHYSICAL, *handle);
	return left(result);
}

/* As create, for XLA's pool. */
static CUresult create_pool(
	struct gpc_passed_call *call, const CUmemGenericAllocationHandle *handle, int device)
{
	CUresult result;

	gpc_runtime_arrays_pool(device, (int64_t)call->size);
	result = create(call, handle, device, true);
	if (result == CUDA_SUCCESS)
		INSIDE(gpc_arrays_piece(device, *handle, call->size));
	else
		INSIDE(gpc_runtime_arrays_pool(device, -(int64_t)call->size));
	return result;
}

/* clang-format off */
CALL(cuMemCreate, gpc_passed_call, GIVEN(*a->handle, a->size),
	(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
		unsigned long long flags),
	(handle, size, prop, flags))
CALL(cuMulticastCreate, gpc_passed_call, GIVEN(*a->handle, a->prop->size),
	(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop), (handle, prop))
/* clang-format on */

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct cuMemCreate_call a = { { .make = make_cuMemCreate, .size = size }, handle, size,
		prop, flags };
	bool is_on_device = prop && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;

	if (!handle || !prop || !enter())
		return real_cuMemCreate(handle, size, prop, flags);
	a.call.kind = is_on_device ? GPUCACHE_KIND_PHYSICAL : GPUCACHE_KIND_PHYSICAL_HOST;
	if (is_on_device && gpc_pjrt_is_physical_pool(__builtin_return_address(0), size))
		return create_pool(&a.call, handle, prop->location.id);
	return create(&a.call, handle, is_on_device ? prop->location.id : -1,
		is_on_device && gpc_torch_is_caller(__builtin_return_address(0)));
}

CUresult cuMulticastCreate(
	CUmemGenericAllocationHandle *mcHandle, const CUmulticastObjectProp *prop)
{
	struct cuMulticastCreate_call a = {
		{ .make = make_cuMulticastCreate, .kind = GPUCACHE_KIND_MULTICAST }, mcHandle, prop
	};

	if (!mcHandle || !prop || !enter())
		return real_cuMulticastCreate(mcHandle, prop);
	a.call.size = prop->size;
	return create(&a.call, mcHandle, -1, false);
}

ENCLOSED(cuMemRelease, queries(NULL), struct gpc_release, gpc_runtime_begin_release(handle),
	gpc_runtime_end_release, (CUmemGenericAllocationHandle handle), (handle))
ENCLOSED(cuMemUnmap, queries(NULL), struct gpc_release, gpc_runtime_begin_unmap(ptr, size),
	gpc_runtime_end_release, (CUdeviceptr ptr, size_t size), (ptr, size))

/* After these two calls the handle has one more holder. */
/* clang-format off */
NOTED(cuMemRetainAllocationHandle, gpc_runtime_handle_held(*handle),
	(CUmemGenericAllocationHandle *handle, void *addr), (handle, addr))
NOTED(cuMemImportFromShareableHandle, gpc_runtime_handle_held(*handle),
	(CUmemGenericAllocationHandle *handle, void *osHandle, CUmemAllocationHandleType type),
	(handle, osHandle, type))

NOTED(cuMemMap, gpc_runtime_handle_mapped(handle, ptr, size),
	(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		unsigned long long flags),
	(ptr, size, offset, handle, flags))
/* clang-format on */

/*
 * The descriptor covers exactly these addresses, so unlike with IPC they may lie anywhere in a segment.  The block is
 * marked before the driver's call, because it could be freed and reused between the call and a later mark.
 */
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
	CUmemRangeHandleType handleType, unsigned long long flags)
{
	INSIDE(gpc_runtime_exported(dptr));
	return real_cuMemGetHandleForAddressRange(handle, dptr, size, handleType, flags);
}

/*
 * Programs set SYNC_MEMOPS on memory that they are about to give to a network card, whose accesses no stream orders.  So
 * the one-stream rule ends here, and the host waits for earlier work.  The driver sets the attribute for the whole
 * segment, for good.  That does no harm: the host merely waits for copies from and to later blocks of the segment.
 */
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	if (attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		INSIDE(gpc_runtime_leaves_order(ptr));
	return real_cuPointerSetAttribute(value, attribute, ptr);
}
