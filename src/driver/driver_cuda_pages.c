/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of the real driver.  Unlike those of driver_cuda.c, these calls need neither a current context nor a relaxed
 * capture mode: the driver ignores the current context, and the pool reserves, maps and unmaps only while no capture
 * can begin.  The pool may call open_pages at any time.
 */
#include "driver/driver_cuda.h"
#include "driver/driver_pages.h"

#define MAX_DEVICES 64 /* one bit each in the mask `devices` of open_pages */

static struct gpc_cuda_driver *of(struct gpc_driver *drv)
{
	return (struct gpc_cuda_driver *)drv;
}

static enum gpc_status reserve(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr)
{
	CUdeviceptr ptr = 0;
	CUresult result = of(drv)->fns->cuMemAddressReserve(&ptr, size, GPC_PAGE_ALIGN, 0, 0);

	if (!result)
		*ret_ptr = ptr;
	return gpc_cuda_driver_note(of(drv), result);
}

static void release(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	(void)gpc_cuda_driver_note(of(drv), of(drv)->fns->cuMemAddressFree(ptr, size));
}

static CUmemAllocationProp prop_of(const struct gpc_cuda_driver *cuda)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, cuda->device },
		.allocFlags.gpuDirectRDMACapable = cuda->has_rdma_pages,
	};
}

static enum gpc_status map(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	const struct gpc_cuda_fns *fns = of(drv)->fns;
	const CUmemAllocationProp prop = prop_of(of(drv));
	CUmemGenericAllocationHandle handle = 0;
	CUresult result = fns->cuMemCreate(&handle, size, &prop, 0);

	if (result)
		return gpc_cuda_driver_note(of(drv), result);
	result = fns->cuMemMap(ptr, size, 0, handle, 0);
	/* The mapping holds the memory.  If cuMemMap failed, this frees the memory. */
	(void)gpc_cuda_driver_note(of(drv), fns->cuMemRelease(handle));
	return gpc_cuda_driver_note(of(drv), result);
}

static enum gpc_status open_pages(
	struct gpc_driver *drv, gpc_devptr ptr, uint64_t size, uint64_t devices)
{
	CUmemAccessDesc desc[MAX_DEVICES];
	size_t n = 0;

	devices |= UINT64_C(1) << of(drv)->device;
	for (int i = 0; i < MAX_DEVICES; i++)
		if (devices >> i & 1)
			desc[n++] = (CUmemAccessDesc){
				.location = { CU_MEM_LOCATION_TYPE_DEVICE, i },
				.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
			};
	return gpc_cuda_driver_note(of(drv), of(drv)->fns->cuMemSetAccess(ptr, size, desc, n));
}

static enum gpc_status unmap(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	return gpc_cuda_driver_note(of(drv), of(drv)->fns->cuMemUnmap(ptr, size));
}

static const struct gpc_page_ops page_ops = {
	.reserve = reserve,
	.release = release,
	.map = map,
	.open = open_pages,
	.unmap = unmap,
};

static bool has_attribute(const struct gpc_cuda_driver *cuda, CUdevice_attribute attribute)
{
	int value = 0;

	return cuda->fns->cuDeviceGetAttribute &&
	       !cuda->fns->cuDeviceGetAttribute(&value, attribute, cuda->device) && value;
}

static bool has_functions(const struct gpc_cuda_fns *fns)
{
	return fns->cuMemAddressReserve && fns->cuMemAddressFree && fns->cuMemCreate &&
	       fns->cuMemRelease && fns->cuMemMap && fns->cuMemUnmap && fns->cuMemSetAccess &&
	       fns->cuMemGetAllocationGranularity;
}

bool gpc_cuda_driver_use_pages(struct gpc_cuda_driver *drv, CUdevice device)
{
	CUmemAllocationProp prop;
	size_t least = 0;

	drv->device = device;
	if (device < 0 || device >= MAX_DEVICES || !has_functions(drv->fns) ||
		!has_attribute(drv, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
		return false;
	drv->has_rdma_pages =
		has_attribute(drv, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
	prop = prop_of(drv);
	if (drv->fns->cuMemGetAllocationGranularity(
		    &least, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ||
		least == 0 || GPC_PAGE_ALIGN % least)
		return false;
	drv->base.pages = &page_ops;
	return true;
}
