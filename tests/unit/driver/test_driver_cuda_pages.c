/* SPDX-License-Identifier: Apache-2.0 */
/* Pages over fake functions of libcuda, which log their calls and fail on demand. */
#include "base/bytes.h"
#include "driver/driver_pages.h"
#include "tests/unit/driver/calls.h"

#define PAGES  ((CUdeviceptr)0x40000000)
#define HANDLE ((CUmemGenericAllocationHandle)0x77)

static int has_vmm;
static size_t granularity;

static CUresult ask_attribute(int *value, CUdevice_attribute attribute, CUdevice dev)
{
	assert_int_equal(dev, 3);
	*value = attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ? has_vmm : 1;
	return CUDA_SUCCESS;
}

static CUresult ask_granularity(
	size_t *least, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
	assert_int_equal(prop->location.id, 3);
	assert_int_equal(option, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	*least = granularity;
	return CUDA_SUCCESS;
}

static CUresult address_reserve(
	CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	assert_true(size == 4 * GPC_MIB && alignment == 2 * GPC_MIB && !addr && !flags);
	*ptr = PAGES;
	return called("reserve");
}

static CUresult address_free(CUdeviceptr ptr, size_t size)
{
	assert_true(ptr == PAGES && size == 4 * GPC_MIB);
	return called("release");
}

static CUresult mem_create(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	assert_true(size == 2 * GPC_MIB && !flags && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED);
	assert_true(prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && prop->location.id == 3);
	assert_true(prop->allocFlags.gpuDirectRDMACapable);
	*handle = HANDLE;
	return called("make");
}

static CUresult mem_release(CUmemGenericAllocationHandle handle)
{
	assert_int_equal(handle, HANDLE);
	return called("drop");
}

static CUresult mem_map(CUdeviceptr ptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	assert_true(ptr == PAGES && size == 2 * GPC_MIB && !offset && !flags && handle == HANDLE);
	return called("map");
}

static CUresult mem_unmap(CUdeviceptr ptr, size_t size)
{
	assert_true(ptr == PAGES && size == 4 * GPC_MIB);
	return called("unmap");
}

static CUresult set_access(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	assert_true(ptr == PAGES && size == 4 * GPC_MIB && count == 2);
	assert_true(desc[0].location.id == 1 && desc[1].location.id == 3);
	assert_true(desc[0].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	return called("access");
}

static struct gpc_cuda_fns fns;
static struct gpc_cuda_driver driver;
static struct gpc_driver *const drv = &driver.base;

static int start(void **state)
{
	memset(&calls, 0, sizeof calls);
	has_vmm = 1;
	granularity = 2 * GPC_MIB;
	fns = (struct gpc_cuda_fns){
		.cuDeviceGetAttribute = ask_attribute,
		.cuMemGetAllocationGranularity = ask_granularity,
		.cuMemAddressReserve = address_reserve,
		.cuMemAddressFree = address_free,
		.cuMemCreate = mem_create,
		.cuMemRelease = mem_release,
		.cuMemMap = mem_map,
		.cuMemUnmap = mem_unmap,
		.cuMemSetAccess = set_access,
	};
	gpc_cuda_driver_init(&driver, &fns, NULL);
	return 0;
}

FIXTURE(start, NULL);

TEST(pages_are_had_where_the_device_has_them)
{
	assert_null(drv->pages);
	has_vmm = 0;
	assert_false(gpc_cuda_driver_use_pages(&driver, 3));
	has_vmm = 1;
	granularity = 3 * GPC_MIB;
	assert_false(gpc_cuda_driver_use_pages(&driver, 3));
	granularity = 64 * GPC_KIB;
	fns.cuMemSetAccess = NULL; /* a driver before 10.2 */
	assert_false(gpc_cuda_driver_use_pages(&driver, 3));
	assert_null(drv->pages);
	fns.cuMemSetAccess = set_access;
	assert_true(gpc_cuda_driver_use_pages(&driver, 3));
	assert_non_null(drv->pages);
}

TEST(a_page_is_held_by_its_mapping_alone)
{
	gpc_devptr ptr = 0;

	assert_true(gpc_cuda_driver_use_pages(&driver, 3));
	assert_int_equal(drv->pages->reserve(drv, 4 * GPC_MIB, &ptr), GPC_OK);
	assert_int_equal(ptr, PAGES);
	assert_int_equal(drv->pages->map(drv, PAGES, 2 * GPC_MIB), GPC_OK);
	assert_int_equal(drv->pages->open(drv, PAGES, 4 * GPC_MIB, 2), GPC_OK);
	assert_int_equal(drv->pages->unmap(drv, PAGES, 4 * GPC_MIB), GPC_OK);
	drv->pages->release(drv, PAGES, 4 * GPC_MIB);
	assert_string_equal(calls.log, "reserve make map drop access unmap release ");
}

TEST(a_page_that_cannot_be_mapped_is_let_go)
{
	assert_true(gpc_cuda_driver_use_pages(&driver, 3));
	calls.failing = "map";
	calls.code = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(drv->pages->map(drv, PAGES, 2 * GPC_MIB), GPC_DEVICE_NO_MEMORY);
	assert_string_equal(calls.log, "make map drop ");
	calls.failing = "make";
	assert_int_equal(drv->pages->map(drv, PAGES, 2 * GPC_MIB), GPC_DEVICE_NO_MEMORY);
	assert_string_equal(calls.log, "make map drop make ");
}
