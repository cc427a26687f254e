/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver_cuda.h"

#include "base/clock.h"
#include "driver/sticky.h"

#define EVENT_DISABLE_TIMING \
	0x2 /* CU_EVENT_DISABLE_TIMING: a tenth of the cost of a timed record */

static struct gpc_cuda_driver *of(struct gpc_driver *drv)
{
	return (struct gpc_cuda_driver *)drv;
}

void gpc_cuda_driver_heard(struct gpc_cuda_driver *drv, CUresult result)
{
	int none = 0;

	if (gpc_cuda_is_sticky(result))
		(void)atomic_compare_exchange_strong(&drv->sticky, &none, (int)result);
}

static enum gpc_status heard(struct gpc_driver *drv, CUresult result)
{
	if (result)
		gpc_cuda_driver_heard(of(drv), result);
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

static enum gpc_status mem_alloc(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr)
{
	const struct gpc_cuda_driver *cuda = of(drv);
	struct visit visit;
	CUdeviceptr ptr = 0;
	enum gpc_status st = enter(cuda, &visit);

	if (!st)
		st = heard(drv, cuda->fns->cuMemAlloc_v2(&ptr, size));
	if (!st)
		*ret_ptr = ptr;
	leave(cuda, &visit);
	return st;
}

static enum gpc_status mem_free(struct gpc_driver *drv, gpc_devptr ptr)
{
	const struct gpc_cuda_driver *cuda = of(drv);
	struct visit visit;
	enum gpc_status st = enter(cuda, &visit);

	if (!st)
		st = heard(drv, cuda->fns->cuMemFree_v2(ptr));
	leave(cuda, &visit);
	return st;
}

static enum gpc_status mem_info(struct gpc_driver *drv, uint64_t *ret_free, uint64_t *ret_total)
{
	const struct gpc_cuda_driver *cuda = of(drv);
	struct visit visit;
	size_t available = 0;
	size_t total = 0;
	enum gpc_status st = enter(cuda, &visit);

	if (!st)
		st = heard(drv, cuda->fns->cuMemGetInfo_v2(&available, &total));
	if (!st) {
		*ret_free = available;
		*ret_total = total;
	}
	leave(cuda, &visit);
	return st;
}

static enum gpc_status event_create(struct gpc_driver *drv, gpc_event *ret_event)
{
	const struct gpc_cuda_driver *cuda = of(drv);
	struct visit visit;
	CUevent event = NULL;
	enum gpc_status st = enter(cuda, &visit);

	if (!st)
		st = heard(drv, cuda->fns->cuEventCreate(&event, EVENT_DISABLE_TIMING));
	if (!st)
		*ret_event = (gpc_event)(uintptr_t)event;
	leave(cuda, &visit);
	return st;
}

static void event_destroy(struct gpc_driver *drv, gpc_event event)
{
	(void)of(drv)->fns->cuEventDestroy_v2((CUevent)(uintptr_t)event);
}

static enum gpc_status fence_record(struct gpc_driver *drv, gpc_event event)
{
	const struct gpc_cuda_driver *cuda = of(drv);
	struct visit visit;
	CUresult result;
	enum gpc_status st;

	if (!cuda->fns->cuCtxRecordEvent)
		return GPC_UNSUPPORTED;
	st = enter(cuda, &visit);
	if (!st) {
		result = cuda->fns->cuCtxRecordEvent(cuda->context, (CUevent)(uintptr_t)event);
		/*
		 * A driver that exports the function and refuses it is as old as one that lacks
		 * it.
		 */
		st = result == CUDA_ERROR_NOT_SUPPORTED ? GPC_UNSUPPORTED : heard(drv, result);
	}
	leave(cuda, &visit);
	return st;
}

static enum gpc_status event_query(struct gpc_driver *drv, gpc_event event)
{
	return heard(drv, of(drv)->fns->cuEventQuery((CUevent)(uintptr_t)event));
}

static enum gpc_status event_wait(struct gpc_driver *drv, gpc_event event)
{
	const struct gpc_cuda_driver *cuda = of(drv);
	struct visit visit;
	enum gpc_status st = enter(cuda, &visit);

	if (!st)
		st = heard(drv, cuda->fns->cuEventSynchronize((CUevent)(uintptr_t)event));
	leave(cuda, &visit);
	return st;
}

static enum gpc_status context_sync(struct gpc_driver *drv)
{
	const struct gpc_cuda_driver *cuda = of(drv);
	struct visit visit;
	enum gpc_status st = enter(cuda, &visit);

	if (!st)
		st = heard(drv, cuda->fns->cuCtxSynchronize());
	leave(cuda, &visit);
	return st;
}

static enum gpc_status legacy_record(struct gpc_driver *drv, gpc_event event)
{
	const struct gpc_cuda_driver *cuda = of(drv);
	struct visit visit;
	enum gpc_status st = enter(cuda, &visit);

	if (!st)
		st = heard(
			drv, cuda->fns->cuEventRecord((CUevent)(uintptr_t)event, CU_STREAM_LEGACY));
	leave(cuda, &visit);
	return st;
}

static enum gpc_status stream_wait(struct gpc_driver *drv, gpc_stream stream, gpc_event event)
{
	const struct gpc_cuda_driver *cuda = of(drv);
	struct visit visit;
	enum gpc_status st = enter(cuda, &visit);

	if (!st)
		st = heard(drv, cuda->fns->cuStreamWaitEvent(
					(CUstream)(uintptr_t)stream, (CUevent)(uintptr_t)event, 0));
	leave(cuda, &visit);
	return st;
}

static const struct gpc_driver_ops ops = {
	.now_ns = now_ns,
	.mem_alloc = mem_alloc,
	.mem_free = mem_free,
	.mem_info = mem_info,
	.event_create = event_create,
	.event_destroy = event_destroy,
	.fence_record = fence_record,
	.event_query = event_query,
	.event_wait = event_wait,
	.context_sync = context_sync,
	.legacy_record = legacy_record,
	.stream_wait = stream_wait,
};

void gpc_cuda_driver_init(
	struct gpc_cuda_driver *drv, const struct gpc_cuda_fns *fns, CUcontext context)
{
	*drv = (struct gpc_cuda_driver){ .base.ops = &ops, .fns = fns, .context = context };
}
