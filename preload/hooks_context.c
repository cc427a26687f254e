/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start, and the life of contexts.  Where memory is about to die with a context it is
 * forgotten first: once the driver has made it nobody's, its addresses may be somebody else's.  Only
 * of a release nobody knows before whether it is the last.
 */
#include "preload/real.h"

void gpc_hook_error(CUresult result)
{
	INSIDE(gpc_runtime_heard(result));
}

CUresult cuInit(unsigned int Flags)
{
	CUresult result = real_cuInit(Flags);

	/*
	 * Not before: the devices are asked for at the start, and our exit handler must follow
	 * the driver's own.
	 */
	if (result == CUDA_SUCCESS) {
		gpc_runtime_saw_start();
		if (enter())
			gpc_runtime_leave();
	}
	return result;
}

/* Forgotten again after it: what another thread allocated while the driver was at it died, too. */
static CUresult reset_primary(CUdevice dev, CUresult (*real)(CUdevice))
{
	CUresult result;

	if (!enter())
		return real(dev);
	gpc_runtime_primary_begin(dev);
	gpc_runtime_begin_unmeasured_on(dev);
	gpc_runtime_primary_reset(dev);
	result = real(dev);
	gpc_runtime_primary_reset(dev);
	gpc_runtime_end_unmeasured(dev);
	gpc_runtime_primary_end(dev);
	gpc_runtime_leave();
	return result;
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return reset_primary(dev, real_cuDevicePrimaryCtxReset);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	return reset_primary(dev, real_cuDevicePrimaryCtxReset_v2);
}

static CUresult release_primary(CUdevice dev, CUresult (*real)(CUdevice))
{
	CUresult result;

	if (!enter())
		return real(dev);
	gpc_runtime_primary_begin(dev);
	gpc_runtime_begin_unmeasured_on(dev);
	result = real(dev);
	gpc_runtime_primary_released(dev);
	gpc_runtime_end_unmeasured(dev);
	gpc_runtime_primary_end(dev);
	gpc_runtime_leave();
	return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return release_primary(dev, real_cuDevicePrimaryCtxRelease);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	return release_primary(dev, real_cuDevicePrimaryCtxRelease_v2);
}

static CUresult destroy(CUcontext ctx, CUresult (*real)(CUcontext))
{
	CUresult result;
	int device;

	if (!ctx || !enter())
		return real(ctx);
	device = gpc_runtime_begin_unmeasured(ctx);
	gpc_runtime_context_forget(ctx);
	gpc_runtime_leave();
	result = real(ctx);
	gpc_runtime_end_unmeasured(device);
	return result;
}

CUresult cuCtxDestroy(CUcontext ctx)
{
	return destroy(ctx, real_cuCtxDestroy);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	return destroy(ctx, real_cuCtxDestroy_v2);
}

CUresult cuCtxSynchronize(void)
{
	struct gpc_sync sync;
	CUresult result;

	if (!enter())
		return real_cuCtxSynchronize();
	sync = gpc_runtime_begin_sync(NULL);
	result = real_cuCtxSynchronize();
	gpc_runtime_end_sync(sync, result);
	gpc_runtime_leave();
	return result;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	struct gpc_sync sync;
	CUresult result;

	if (!enter())
		return real_cuCtxSynchronize_v2(ctx);
	sync = gpc_runtime_begin_sync(ctx);
	result = real_cuCtxSynchronize_v2(ctx);
	gpc_runtime_end_sync(sync, result);
	gpc_runtime_leave();
	return result;
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	CUresult result = real_cuCtxEnablePeerAccess(peerContext, Flags);

	if (result == CUDA_SUCCESS)
		INSIDE(gpc_runtime_peer_enabled(peerContext));
	return result;
}
