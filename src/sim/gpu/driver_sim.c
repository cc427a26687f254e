/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct gpc_driver over the simulated machine: each function spends the call's cost, and then fails with the injected
 * fault that is due, or performs the call.
 */
#include "sim/gpu/driver_sim.h"

#include <stdlib.h>
#include <string.h>

#include "driver/driver_pages.h"
#include "driver/sticky.h"
#include "sim/gpu/execution/capture.h"

static struct gpc_sim_driver *self_of(struct gpc_driver *drv)
{
	return (struct gpc_sim_driver *)drv;
}

static struct gpc_sim_event *event_of(gpc_event event)
{
	return (struct gpc_sim_event *)(uintptr_t)event;
}

static struct gpc_sim_stream *stream_of(struct gpc_sim_driver *self, gpc_stream stream)
{
	if (stream <= (uintptr_t)CU_STREAM_LEGACY)
		return &self->context->legacy;
	if (stream == (uintptr_t)CU_STREAM_PER_THREAD)
		return gpc_sim_stream_of_thread(self->context);
	return (struct gpc_sim_stream *)(uintptr_t)stream;
}

static void count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* Begins a call.  Returns the error with which it must fail: an injected fault, or the error of a broken context. */
static CUresult begin(struct gpc_sim_driver *self, enum gpc_sim_cost cost, const char *entry)
{
	CUresult res = gpc_sim_call(self->sim, cost, entry);

	if (gpc_cuda_is_sticky(res))
		gpc_sim_context_break(self->context, res);
	return res != CUDA_SUCCESS ? res : gpc_sim_context_state(self->context);
}

static enum gpc_status status_of(CUresult res)
{
	return gpc_status_from_device((int)res);
}

static uint64_t sim_now_ns(struct gpc_driver *drv)
{
	return gpc_sim_clock_now(&self_of(drv)->sim->clock);
}

static enum gpc_status sim_mem_alloc(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr)
{
	struct gpc_sim_driver *self = self_of(drv);
	CUresult res;

	count(&self->counters.n_mem_alloc);
	res = begin(self, GPC_SIM_COST_MALLOC, "cuMemAlloc_v2");
	if (res != CUDA_SUCCESS)
		return status_of(res);
	CUstreamCaptureMode before = gpc_sim_capture_exchange_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
	res = gpc_sim_mem_alloc(self->context, size, ret_ptr);
	gpc_sim_capture_exchange_mode(before);
	return status_of(res);
}

static enum gpc_status sim_mem_free(struct gpc_driver *drv, gpc_devptr ptr)
{
	struct gpc_sim_driver *self = self_of(drv);
	CUresult res;

	count(&self->counters.n_mem_free);
	res = begin(self, GPC_SIM_COST_FREE, "cuMemFree_v2");
	if (res != CUDA_SUCCESS)
		return status_of(res);
	CUstreamCaptureMode before = gpc_sim_capture_exchange_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
	res = gpc_sim_mem_free(self->sim, ptr);
	gpc_sim_capture_exchange_mode(before);
	return status_of(res);
}

static enum gpc_status sim_prepare_beside(struct gpc_driver *drv)
{
	struct gpc_sim_driver *self = self_of(drv);
	enum gpc_status st = GPC_OK;

	if (!atomic_load(&self->has_beside))
		st = status_of(begin(self, GPC_SIM_COST_EVENT_CREATE, "cuStreamCreate"));
	atomic_store(&self->has_beside, st == GPC_OK);
	return st;
}

static enum gpc_status sim_mem_free_beside(struct gpc_driver *drv, gpc_devptr ptr)
{
	struct gpc_sim_driver *self = self_of(drv);
	CUresult res;

	count(&self->counters.n_mem_free);
	res = begin(self, GPC_SIM_COST_FREE, "cuMemFreeAsync");
	return status_of(res != CUDA_SUCCESS ? res : gpc_sim_mem_free_now(self->sim, ptr));
}

static enum gpc_status sim_mem_info(struct gpc_driver *drv, uint64_t *ret_free, uint64_t *ret_total)
{
	struct gpc_sim_driver *self = self_of(drv);
	CUresult res;

	count(&self->counters.n_mem_info);
	res = begin(self, GPC_SIM_COST_INFO, "cuMemGetInfo_v2");
	if (res != CUDA_SUCCESS)
		return status_of(res);
	gpc_sim_settle(self->sim);
	*ret_free = gpc_sim_device_free_bytes(self->context->device);
	*ret_total = self->context->device->memory;
	return GPC_OK;
}

static enum gpc_status sim_event_create(struct gpc_driver *drv, gpc_event *ret_event)
{
	struct gpc_sim_driver *self = self_of(drv);
	struct gpc_sim_event *event;
	CUresult res;

	count(&self->counters.n_event_create);
	res = begin(self, GPC_SIM_COST_EVENT_CREATE, "cuEventCreate");
	if (res == CUDA_SUCCESS)
		res = gpc_sim_event_create(self->context, CU_EVENT_DISABLE_TIMING, &event);
	if (res == CUDA_SUCCESS)
		*ret_event = (uintptr_t)event;
	return status_of(res);
}

static void sim_event_destroy(struct gpc_driver *drv, gpc_event event)
{
	count(&self_of(drv)->counters.n_event_destroy);
	gpc_sim_event_destroy(event_of(event));
}

static enum gpc_status sim_fence_record(struct gpc_driver *drv, gpc_event event)
{
	struct gpc_sim_driver *self = self_of(drv);
	CUresult res;

	if (self->sim->config.driver_version < GPC_SIM_CONTEXT_EVENTS)
		return GPC_UNSUPPORTED;
	count(&self->counters.n_fence_record);
	res = begin(self, GPC_SIM_COST_RECORD, "cuCtxRecordEvent");
	return status_of(
		res != CUDA_SUCCESS ? res : gpc_sim_context_record(self->context, event_of(event)));
}

static enum gpc_status sim_fence_wait(struct gpc_driver *drv, gpc_event event)
{
	struct gpc_sim_driver *self = self_of(drv);
	CUresult res;

	if (self->sim->config.driver_version < GPC_SIM_CONTEXT_EVENTS)
		return GPC_UNSUPPORTED;
	count(&self->counters.n_fence_wait);
	res = begin(self, GPC_SIM_COST_WAIT, "cuCtxWaitEvent");
	return status_of(
		res != CUDA_SUCCESS ? res : gpc_sim_context_wait(self->context, event_of(event)));
}

static enum gpc_status sim_event_query(struct gpc_driver *drv, gpc_event event)
{
	CUstreamCaptureMode before = gpc_sim_capture_exchange_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
	struct gpc_sim_driver *self = self_of(drv);
	CUresult res;

	count(&self->counters.n_event_query);
	res = begin(self, GPC_SIM_COST_QUERY, "cuEventQuery");
	if (res == CUDA_SUCCESS)
		res = gpc_sim_event_query(event_of(event));
	(void)gpc_sim_capture_exchange_mode(before);
	return status_of(res);
}

static enum gpc_status sim_event_wait(struct gpc_driver *drv, gpc_event event)
{
	struct gpc_sim_driver *self = self_of(drv);
	CUresult res;

	count(&self->counters.n_sync);
	res = begin(self, GPC_SIM_COST_SYNC, "cuEventSynchronize");
	if (res != CUDA_SUCCESS)
		return status_of(res);
	CUstreamCaptureMode before = gpc_sim_capture_exchange_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
	res = gpc_sim_event_sync(event_of(event));
	gpc_sim_capture_exchange_mode(before);
	return status_of(res);
}

static enum gpc_status sim_context_sync(struct gpc_driver *drv)
{
	struct gpc_sim_driver *self = self_of(drv);
	CUresult res;

	count(&self->counters.n_sync);
	res = begin(self, GPC_SIM_COST_SYNC, "cuCtxSynchronize");
	return status_of(res != CUDA_SUCCESS ? res : gpc_sim_context_sync(self->context));
}

static enum gpc_status sim_legacy_record(struct gpc_driver *drv, gpc_event event)
{
	struct gpc_sim_driver *self = self_of(drv);
	CUresult res;

	count(&self->counters.n_fence_record);
	res = begin(self, GPC_SIM_COST_RECORD, "cuEventRecord");
	return status_of(res != CUDA_SUCCESS
				 ? res
				 : gpc_sim_stream_record(&self->context->legacy, event_of(event)));
}

static enum gpc_status sim_stream_wait(struct gpc_driver *drv, gpc_stream stream, gpc_event event)
{
	struct gpc_sim_driver *self = self_of(drv);
	CUresult res;

	count(&self->counters.n_stream_wait);
	res = begin(self, GPC_SIM_COST_WAIT, "cuStreamWaitEvent");
	if (res != CUDA_SUCCESS)
		return status_of(res);
	struct gpc_sim_stream *sim_stream = stream_of(self, stream);
	if (!sim_stream)
		return GPC_DEVICE_NO_MEMORY;
	return status_of(gpc_sim_stream_wait(sim_stream, event_of(event)));
}

/* ---- pages: each operation makes the calls of driver_cuda_pages.c, with their injected faults ---- */

static enum gpc_status page_reserve(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr)
{
	CUresult res = gpc_sim_call(self_of(drv)->sim, GPC_SIM_COST_INFO, "cuMemAddressReserve");

	if (res == CUDA_SUCCESS)
		res = gpc_sim_vmm_reserve(&self_of(drv)->sim->vmm, size, 0, ret_ptr);
	return status_of(res);
}

static void page_release(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	if (gpc_sim_call(self_of(drv)->sim, GPC_SIM_COST_INFO, "cuMemAddressFree") == CUDA_SUCCESS)
		(void)gpc_sim_vmm_unreserve(&self_of(drv)->sim->vmm, ptr, size);
}

static enum gpc_status page_map(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	struct gpc_sim_driver *self = self_of(drv);
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, (int)self->context->device->ordinal },
	};
	CUresult res = gpc_sim_call(self->sim, GPC_SIM_COST_MALLOC, "cuMemCreate");
	uint64_t handle = 0;

	if (res == CUDA_SUCCESS)
		res = gpc_sim_vmm_create(self->sim, size, &prop, &handle);
	if (res != CUDA_SUCCESS)
		return status_of(res);
	count(&self->counters.n_page_map);
	res = gpc_sim_call(self->sim, GPC_SIM_COST_INFO, "cuMemMap");
	if (res == CUDA_SUCCESS)
		res = gpc_sim_vmm_map(self->sim, ptr, size, handle);
	(void)gpc_sim_vmm_release(self->sim, handle);
	return status_of(res);
}

static CUresult page_open_to(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size, int device)
{
	const CUmemAccessDesc desc = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, device },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};

	return gpc_sim_vmm_set_access(self_of(drv)->sim, ptr, size, &desc);
}

static enum gpc_status page_open(
	struct gpc_driver *drv, gpc_devptr ptr, uint64_t size, uint64_t devices)
{
	const struct gpc_sim_driver *self = self_of(drv);
	CUresult res = gpc_sim_call(self->sim, GPC_SIM_COST_INFO, "cuMemSetAccess");

	devices |= UINT64_C(1) << self->context->device->ordinal;
	for (unsigned i = 0; res == CUDA_SUCCESS && i < self->sim->config.n_devices; i++)
		if (devices >> i & 1)
			res = page_open_to(drv, ptr, size, (int)i);
	return status_of(res);
}

static enum gpc_status page_unmap(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	struct gpc_sim_driver *self = self_of(drv);
	CUresult res = gpc_sim_call(self->sim, GPC_SIM_COST_FREE, "cuMemUnmap");

	count(&self->counters.n_page_unmap);
	return status_of(res == CUDA_SUCCESS ? gpc_sim_vmm_unmap(self->sim, ptr, size) : res);
}

static const struct gpc_page_ops page_ops = {
	.reserve = page_reserve,
	.release = page_release,
	.map = page_map,
	.open = page_open,
	.unmap = page_unmap,
};

/* ---- the driver ---- */

static const struct gpc_driver_ops sim_ops = {
	.now_ns = sim_now_ns,
	.mem_alloc = sim_mem_alloc,
	.mem_free = sim_mem_free,
	.prepare_beside = sim_prepare_beside,
	.mem_free_beside = sim_mem_free_beside,
	.mem_info = sim_mem_info,
	.event_create = sim_event_create,
	.event_destroy = sim_event_destroy,
	.fence_record = sim_fence_record,
	.fence_wait = sim_fence_wait,
	.event_query = sim_event_query,
	.event_wait = sim_event_wait,
	.context_sync = sim_context_sync,
	.legacy_record = sim_legacy_record,
	.stream_wait = sim_stream_wait,
};

enum gpc_status gpc_sim_driver_init(struct gpc_sim_driver *driver, struct gpc_sim *sim,
	unsigned device, struct gpc_sim_context *context)
{
	CUresult res = CUDA_SUCCESS;

	memset(driver, 0, sizeof *driver);
	driver->owns_context = !context;
	if (!context)
		res = gpc_sim_context_create(sim, device, 0, &context);
	if (res != CUDA_SUCCESS)
		return status_of(res);
	driver->base.ops = &sim_ops;
	driver->base.pages = &page_ops;
	driver->sim = sim;
	driver->context = context;
	return GPC_OK;
}

void gpc_sim_driver_fini(struct gpc_sim_driver *driver)
{
	if (driver->owns_context)
		gpc_sim_context_destroy(driver->context);
	driver->context = NULL;
}

enum gpc_status gpc_sim_driver_launch(struct gpc_sim_driver *driver, gpc_stream stream,
	uint64_t duration_ns, gpc_devptr ptr, uint64_t size, int fill)
{
	struct gpc_sim_stream *sim_stream = stream_of(driver, stream);
	struct gpc_sim_effect *effect = gpc_sim_effect_create(GPC_SIM_EFFECT_KERNEL, duration_ns);

	if (!sim_stream || !effect)
		goto undo_effect;
	if (size) {
		effect->ranges = calloc(1, sizeof *effect->ranges);
		if (!effect->ranges)
			goto undo_effect;
		effect->n_ranges = 1;
		effect->ranges[0] =
			(struct gpc_sim_range){ .ptr = ptr, .size = size, .fill = fill };
	}
	return status_of(gpc_sim_stream_submit(sim_stream, effect));

undo_effect:
	gpc_sim_effect_destroy(effect);
	return GPC_DEVICE_NO_MEMORY;
}
