/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IN_CONTEXT makes the context current if it is not, relaxes the thread's capture mode, makes the call, and restores
 * both.  One cuCtxRecordEvent records a fence over all streams of the context; drivers before 12.5 lack that function.
 * To query or destroy an event needs no current context.
 */
#include "driver/driver_cuda.h"

#include "base/clock.h"
#include "driver/sticky.h"

static struct gpc_cuda_driver *of(struct gpc_driver *drv)
{
	return (struct gpc_cuda_driver *)drv;
}

enum gpc_status gpc_cuda_driver_note(struct gpc_cuda_driver *drv, CUresult result)
{
	int none = 0;

	if (gpc_cuda_is_sticky(result))
		(void)atomic_compare_exchange_strong(&drv->sticky, &none, (int)result);
	return gpc_status_from_device((int)result);
}

/* What enter() changed, for leave() to put back. */
struct visit {
	bool is_pushed;
	bool is_relaxed;
	CUstreamCaptureMode mode;
};

static enum gpc_status enter(const struct gpc_cuda_driver *cuda, struct visit *visit)
{
	CUcontext current = NULL;
	CUresult result = cuda->fns->cuCtxGetCurrent(&current);

	*visit = (struct visit){ .mode = CU_STREAM_CAPTURE_MODE_RELAXED };
	if (!result && current != cuda->context) {
		result = cuda->fns->cuCtxPushCurrent_v2(cuda->context);
		visit->is_pushed = !result;
	}
	if (!result)
		visit->is_relaxed = !cuda->fns->cuThreadExchangeStreamCaptureMode(&visit->mode);
	return gpc_status_from_device((int)result);
}

static void leave(const struct gpc_cuda_driver *cuda, struct visit *visit)
{
	CUcontext popped;

	if (visit->is_relaxed)
		(void)cuda->fns->cuThreadExchangeStreamCaptureMode(&visit->mode);
	if (visit->is_pushed)
		(void)cuda->fns->cuCtxPopCurrent_v2(&popped);
}

static uint64_t now_ns(struct gpc_driver *drv)
{
	(void)drv;
	return gpc_clock_monotonic_ns();
}

/* The status of the driver call `call`, made in our context. */
#define IN_CONTEXT(drv, call)                                                \
	({                                                                   \
		struct gpc_cuda_driver *cuda_ = of(drv);                     \
		struct visit visit_;                                         \
		enum gpc_status st_ = enter(cuda_, &visit_);                 \
                                                                             \
		if (!st_)                                                    \
			st_ = gpc_cuda_driver_note(cuda_, cuda_->fns->call); \
		leave(cuda_, &visit_);                                       \
		st_;                                                         \
	})

static enum gpc_status mem_alloc(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr)
{
	CUdeviceptr ptr = 0;
	enum gpc_status st = IN_CONTEXT(drv, cuMemAlloc_v2(&ptr, size));

	if (!st)
		*ret_ptr = ptr;
	return st;
}

static enum gpc_status mem_free(struct gpc_driver *drv, gpc_devptr ptr)
{
	return IN_CONTEXT(drv, cuMemFree_v2(ptr));
}

static bool has_pools(struct gpc_cuda_driver *cuda)
{
	CUdevice device = 0;
	int value = 0;

	return cuda->fns->cuDeviceGetAttribute &&
	       !IN_CONTEXT(&cuda->base, cuCtxGetDevice(&device)) &&
	       !cuda->fns->cuDeviceGetAttribute(
		       &value, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device) &&
	       value;
}

/* Two threads may each create a stream, of which one stays unused. */
static enum gpc_status prepare_beside(struct gpc_driver *drv)
{
	struct gpc_cuda_driver *cuda = of(drv);
	CUstream stream = NULL;
	enum gpc_status st;

	if (atomic_load(&cuda->beside))
		return GPC_OK;
	if (!cuda->fns->cuMemFreeAsync || !cuda->fns->cuStreamCreate || !has_pools(cuda))
		return GPC_UNSUPPORTED;
	st = IN_CONTEXT(drv, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	if (!st)
		atomic_store(&cuda->beside, stream);
	return st;
}

/* cuMemFreeAsync accepts memory of cuMemAlloc, and frees it in the order of its stream alone. */
static enum gpc_status mem_free_beside(struct gpc_driver *drv, gpc_devptr ptr)
{
	return IN_CONTEXT(drv, cuMemFreeAsync(ptr, atomic_load(&of(drv)->beside)));
}

static enum gpc_status mem_info(struct gpc_driver *drv, uint64_t *ret_free, uint64_t *ret_total)
{
	size_t available = 0;
	size_t total = 0;
	enum gpc_status st = IN_CONTEXT(drv, cuMemGetInfo_v2(&available, &total));

	if (!st) {
		*ret_free = available;
		*ret_total = total;
	}
	return st;
}

static enum gpc_status event_create(struct gpc_driver *drv, gpc_event *ret_event)
{
	CUevent event = NULL;
	/* Recording an event without timing costs a tenth of recording one with it. */
	enum gpc_status st = IN_CONTEXT(drv, cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));

	if (!st)
		*ret_event = (gpc_event)(uintptr_t)event;
	return st;
}

static void event_destroy(struct gpc_driver *drv, gpc_event event)
{
	(void)of(drv)->fns->cuEventDestroy_v2((CUevent)(uintptr_t)event);
}

/* A driver that exports cuCtxRecordEvent or cuCtxWaitEvent but refuses every call counts as one without it. */
static enum gpc_status fence_record(struct gpc_driver *drv, gpc_event event)
{
	enum gpc_status st;

	if (!of(drv)->fns->cuCtxRecordEvent)
		return GPC_UNSUPPORTED;
	st = IN_CONTEXT(drv, cuCtxRecordEvent(of(drv)->context, (CUevent)(uintptr_t)event));
	return gpc_status_to_device(st) == CUDA_ERROR_NOT_SUPPORTED ? GPC_UNSUPPORTED : st;
}

static enum gpc_status fence_wait(struct gpc_driver *drv, gpc_event event)
{
	enum gpc_status st;

	if (!of(drv)->fns->cuCtxWaitEvent)
		return GPC_UNSUPPORTED;
	st = IN_CONTEXT(drv, cuCtxWaitEvent(of(drv)->context, (CUevent)(uintptr_t)event));
	return gpc_status_to_device(st) == CUDA_ERROR_NOT_SUPPORTED ? GPC_UNSUPPORTED : st;
}

static enum gpc_status event_query(struct gpc_driver *drv, gpc_event event)
{
	const struct gpc_cuda_fns *fns = of(drv)->fns;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	bool is_relaxed = !fns->cuThreadExchangeStreamCaptureMode(&mode);
	enum gpc_status st =
		gpc_cuda_driver_note(of(drv), fns->cuEventQuery((CUevent)(uintptr_t)event));

	if (is_relaxed)
		(void)fns->cuThreadExchangeStreamCaptureMode(&mode);
	return st;
}

static enum gpc_status event_wait(struct gpc_driver *drv, gpc_event event)
{
	return IN_CONTEXT(drv, cuEventSynchronize((CUevent)(uintptr_t)event));
}

static enum gpc_status context_sync(struct gpc_driver *drv)
{
	return IN_CONTEXT(drv, cuCtxSynchronize());
}

static enum gpc_status legacy_record(struct gpc_driver *drv, gpc_event event)
{
	return IN_CONTEXT(drv, cuEventRecord((CUevent)(uintptr_t)event, CU_STREAM_LEGACY));
}

static enum gpc_status stream_wait(struct gpc_driver *drv, gpc_stream stream, gpc_event event)
{
	return IN_CONTEXT(
		drv, cuStreamWaitEvent((CUstream)(uintptr_t)stream, (CUevent)(uintptr_t)event, 0));
}

static const struct gpc_driver_ops ops = GPC_DRIVER_OPS;

void gpc_cuda_driver_init(
	struct gpc_cuda_driver *drv, const struct gpc_cuda_fns *fns, CUcontext context)
{
	*drv = (struct gpc_cuda_driver){ .base.ops = &ops, .fns = fns, .context = context };
}
