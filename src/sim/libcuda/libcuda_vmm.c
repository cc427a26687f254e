/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: virtual memory management, multicast objects, external memory.  Only external memory and
 * cuMemGetHandleForAddressRange need a context.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/libcuda/face.h"

static struct gpc_sim_vmm *vmm(void)
{
	return &face_sim()->vmm;
}

CUresult cuMemAddressReserve(
	CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuMemAddressReserve", NULL);
	uint64_t address = 0;

	if (res != CUDA_SUCCESS)
		return res;
	if (!ptr || flags)
		return CUDA_ERROR_INVALID_VALUE;
	res = gpc_sim_vmm_reserve(vmm(), size, alignment, &address);
	if (res == CUDA_SUCCESS)
		*ptr = address;
	return res;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	CUresult res = face_enter(GPC_SIM_COST_FREE, "cuMemAddressFree", NULL);

	return res == CUDA_SUCCESS ? gpc_sim_vmm_unreserve(vmm(), ptr, size) : res;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuMemCreate", NULL);
	uint64_t created = 0;

	if (res != CUDA_SUCCESS)
		return res;
	if (!handle || flags)
		return CUDA_ERROR_INVALID_VALUE;
	gpc_sim_settle(face_sim());
	res = gpc_sim_vmm_create(face_sim(), size, prop, &created);
	if (res == CUDA_SUCCESS)
		*handle = created;
	return res;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	CUresult res = face_enter(GPC_SIM_COST_FREE, "cuMemRelease", NULL);

	return res == CUDA_SUCCESS ? gpc_sim_vmm_release(face_sim(), handle) : res;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
	unsigned long long flags)
{
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuMemMap", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	return offset || flags ? CUDA_ERROR_INVALID_VALUE
			       : gpc_sim_vmm_map(face_sim(), ptr, size, handle);
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult res = face_enter(GPC_SIM_COST_FREE, "cuMemUnmap", NULL);

	return res == CUDA_SUCCESS ? gpc_sim_vmm_unmap(face_sim(), ptr, size) : res;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuMemSetAccess", NULL);

	if (res == CUDA_SUCCESS && (!desc || !count))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; res == CUDA_SUCCESS && i < count; i++)
		res = gpc_sim_vmm_set_access(face_sim(), ptr, size, &desc[i]);
	return res;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuMemGetAccess", NULL);
	unsigned has = 0;

	if (res != CUDA_SUCCESS)
		return res;
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	res = gpc_sim_vmm_get_access(face_sim(), ptr, location, &has);
	if (res == CUDA_SUCCESS)
		*flags = has;
	return res;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags option)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuMemGetAllocationGranularity", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!granularity || !prop || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = GPC_SIM_CHUNK;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	CUresult res =
		face_enter(GPC_SIM_COST_INFO, "cuMemGetAllocationPropertiesFromHandle", NULL);
	struct gpc_sim_physical piece;

	if (res != CUDA_SUCCESS)
		return res;
	if (!prop || !gpc_sim_vmm_find(vmm(), handle, &piece))
		return CUDA_ERROR_INVALID_VALUE;
	*prop = piece.prop;
	return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuMemRetainAllocationHandle", NULL);
	uint64_t retained = 0;

	if (res != CUDA_SUCCESS)
		return res;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	res = gpc_sim_vmm_retain(vmm(), (uintptr_t)addr, &retained);
	if (res == CUDA_SUCCESS)
		*handle = retained;
	return res;
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuMemExportToShareableHandle", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	return shareable && !flags ? gpc_sim_vmm_export(vmm(), handle, type, shareable)
				   : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemImportFromShareableHandle(
	CUmemGenericAllocationHandle *handle, void *shareable, CUmemAllocationHandleType type)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuMemImportFromShareableHandle", NULL);
	uint64_t imported = 0;

	if (res != CUDA_SUCCESS)
		return res;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	res = gpc_sim_vmm_import(vmm(), (int)(intptr_t)shareable, &imported);
	if (res == CUDA_SUCCESS)
		*handle = imported;
	return res;
}

/* ---- multicast objects: handles without memory ---- */

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop)
{
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuMulticastCreate", NULL);
	uint64_t created = 0;

	if (res != CUDA_SUCCESS)
		return res;
	if (!handle || !prop || !prop->numDevices || prop->flags)
		return CUDA_ERROR_INVALID_VALUE;
	res = gpc_sim_vmm_multicast(face_sim(), prop->size, &created);
	if (res == CUDA_SUCCESS)
		*handle = created;
	return res;
}

static CUresult multicast(const char *entry, CUmemGenericAllocationHandle handle)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, entry, NULL);
	struct gpc_sim_physical object;

	if (res != CUDA_SUCCESS)
		return res;
	return gpc_sim_vmm_find(vmm(), handle, &object) && object.is_multicast
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice dev)
{
	if (!face_has_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	return multicast("cuMulticastAddDevice", handle);
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
	CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
	unsigned long long flags)
{
	CUresult res = multicast("cuMulticastBindMem", handle);
	struct gpc_sim_physical piece;

	if (res != CUDA_SUCCESS)
		return res;
	if (flags || offset % GPC_SIM_CHUNK || !gpc_sim_vmm_find(vmm(), memory, &piece) ||
		piece.is_multicast || memory_offset + size > piece.size)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr ptr,
	size_t size, unsigned long long flags)
{
	CUresult res = multicast("cuMulticastBindAddr", handle);

	if (res != CUDA_SUCCESS)
		return res;
	if (flags || offset % GPC_SIM_CHUNK || !gpc_sim_vmm_has(vmm(), ptr) ||
		!gpc_sim_is_valid(face_sim(), ptr, size))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMulticastUnbind(
	CUmemGenericAllocationHandle handle, CUdevice dev, size_t offset, size_t size)
{
	return multicast("cuMulticastUnbind", handle);
}

/* ---- external memory: host memory, whatever the descriptor names ---- */

#define EXTERNAL_MAGIC UINT32_C(0x65787465)

/* Its address in `prop` tells external memory from host memory that the program created. */
static char external_mark;

struct CUextMemory_st {
	uint32_t magic;
	uint64_t size;
	uint64_t handle;
};

CUresult cuImportExternalMemory(
	CUexternalMemory *external, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
	const CUmemAllocationProp on_host = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_HOST },
		.win32HandleMetaData = &external_mark,
	};
	struct gpc_sim_context *context;
	struct CUextMemory_st *made;
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuImportExternalMemory", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!external || !desc || !desc->size)
		return CUDA_ERROR_INVALID_VALUE;
	made = calloc(1, sizeof *made);
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->magic = EXTERNAL_MAGIC;
	made->size = (desc->size + GPC_SIM_CHUNK - 1) / GPC_SIM_CHUNK * GPC_SIM_CHUNK;
	res = gpc_sim_vmm_create(face_sim(), made->size, &on_host, &made->handle);
	if (res != CUDA_SUCCESS) {
		free(made);
		return res;
	}
	/* The driver owns the descriptor from now on. */
	close(desc->handle.fd);
	*external = made;
	return CUDA_SUCCESS;
}

CUresult cuExternalMemoryGetMappedBuffer(
	CUdeviceptr *ptr, CUexternalMemory external, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, "cuExternalMemoryGetMappedBuffer", &context);
	uint64_t address = 0;

	if (res != CUDA_SUCCESS)
		return res;
	if (!ptr || !desc || !external || external->magic != EXTERNAL_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	const CUmemAccessDesc access = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, (int)context->device->ordinal },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	res = gpc_sim_vmm_reserve(vmm(), external->size, 0, &address);
	if (res == CUDA_SUCCESS)
		res = gpc_sim_vmm_map(face_sim(), address, external->size, external->handle);
	if (res == CUDA_SUCCESS)
		res = gpc_sim_vmm_set_access(face_sim(), address, external->size, &access);
	if (res == CUDA_SUCCESS)
		*ptr = address;
	return res;
}

CUresult cuDestroyExternalMemory(CUexternalMemory external)
{
	CUresult res = face_enter(GPC_SIM_COST_FREE, "cuDestroyExternalMemory", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!external || external->magic != EXTERNAL_MAGIC)
		return CUDA_ERROR_INVALID_HANDLE;
	res = gpc_sim_vmm_release(face_sim(), external->handle);
	external->magic = 0;
	free(external);
	return res;
}

CUresult face_free_mapped(uint64_t ptr)
{
	struct gpc_sim_physical piece;
	uint64_t base = 0;
	uint64_t size = 0;
	uint64_t handle = 0;

	if (!gpc_sim_vmm_mapping_at(vmm(), ptr, &base, &size, &handle) || base != ptr ||
		!gpc_sim_vmm_find(vmm(), handle, &piece) ||
		piece.prop.win32HandleMetaData != &external_mark)
		return CUDA_ERROR_INVALID_VALUE;
	(void)gpc_sim_vmm_unmap(face_sim(), base, size);
	return gpc_sim_vmm_unreserve(vmm(), base, size);
}

/* ---- export of memory ---- */

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr, size_t size,
	CUmemRangeHandleType type, unsigned long long flags)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuMemGetHandleForAddressRange", &context);
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (res != CUDA_SUCCESS)
		return res;
	/* 1 is CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD. */
	if (!handle || type != 1 || flags || ptr % page || size % page || !size ||
		!gpc_sim_device_of(face_sim(), ptr) || !gpc_sim_is_valid(face_sim(), ptr, size))
		return CUDA_ERROR_INVALID_VALUE;
	/* Any descriptor will do, because nothing here can import a DMA-BUF. */
	*(int *)handle = dup(STDERR_FILENO);
	return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuPointerSetAttribute", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
		!gpc_sim_device_of(face_sim(), ptr) || !gpc_sim_is_valid(face_sim(), ptr, 1))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
