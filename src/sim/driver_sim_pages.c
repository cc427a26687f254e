/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the simulated driver: each op makes the calls of driver_cuda_pages.c, with their injected faults. */
#include "driver/driver_pages.h"
#include "sim/driver_sim.h"
#include "sim/sim.h"

static struct gpc_sim_driver *self_of(struct gpc_driver *drv)
{
	return (struct gpc_sim_driver *)drv;
}

static CUresult begin(struct gpc_driver *drv, enum gpc_sim_cost cost, const char *entry)
{
	return gpc_sim_call(self_of(drv)->sim, cost, entry);
}

static enum gpc_status status_of(CUresult res)
{
	return gpc_status_from_device((int)res);
}

static enum gpc_status reserve(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr)
{
	CUresult res = begin(drv, GPC_SIM_COST_INFO, "cuMemAddressReserve");

	if (res == CUDA_SUCCESS)
		res = gpc_sim_vmm_reserve(&self_of(drv)->sim->vmm, size, 0, ret_ptr);
	return status_of(res);
}

static void release(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	if (begin(drv, GPC_SIM_COST_INFO, "cuMemAddressFree") == CUDA_SUCCESS)
		(void)gpc_sim_vmm_unreserve(&self_of(drv)->sim->vmm, ptr, size);
}

static enum gpc_status map(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	struct gpc_sim_driver *self = self_of(drv);
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, (int)self->context->device->ordinal },
	};
	CUresult res = begin(drv, GPC_SIM_COST_MALLOC, "cuMemCreate");
	uint64_t handle = 0;

	if (res == CUDA_SUCCESS)
		res = gpc_sim_vmm_create(self->sim, size, &prop, &handle);
	if (res != CUDA_SUCCESS)
		return status_of(res);
	atomic_fetch_add_explicit(&self->counters.n_page_map, 1, memory_order_relaxed);
	res = begin(drv, GPC_SIM_COST_INFO, "cuMemMap");
	if (res == CUDA_SUCCESS)
		res = gpc_sim_vmm_map(self->sim, ptr, size, handle);
	(void)gpc_sim_vmm_release(self->sim, handle);
	return status_of(res);
}

static CUresult open_to(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size, int device)
{
	const CUmemAccessDesc desc = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, device },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};

	return gpc_sim_vmm_set_access(self_of(drv)->sim, ptr, size, &desc);
}

static enum gpc_status open_pages(
	struct gpc_driver *drv, gpc_devptr ptr, uint64_t size, uint64_t devices)
{
	const struct gpc_sim_driver *self = self_of(drv);
	CUresult res = begin(drv, GPC_SIM_COST_INFO, "cuMemSetAccess");

	devices |= UINT64_C(1) << self->context->device->ordinal;
	for (unsigned i = 0; res == CUDA_SUCCESS && i < self->sim->config.n_devices; i++)
		if (devices >> i & 1)
			res = open_to(drv, ptr, size, (int)i);
	return status_of(res);
}

static enum gpc_status unmap(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	struct gpc_sim_driver *self = self_of(drv);
	CUresult res = begin(drv, GPC_SIM_COST_FREE, "cuMemUnmap");

	atomic_fetch_add_explicit(&self->counters.n_page_unmap, 1, memory_order_relaxed);
	return status_of(res == CUDA_SUCCESS ? gpc_sim_vmm_unmap(self->sim, ptr, size) : res);
}

const struct gpc_page_ops gpc_sim_page_ops = {
	.reserve = reserve,
	.release = release,
	.map = map,
	.open = open_pages,
	.unmap = unmap,
};
