/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts that are held by counting: green ones hold their device's primary context, and the
 * deprecated cuCtxAttach holds any.  What the last hold takes with it is forgotten first where that
 * can be known, as in hooks_context.c.
 */
#include "preload/real.h"

CUresult cuGreenCtxCreate(
	CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	CUresult result;

	if (!enter())
		return real_cuGreenCtxCreate(phCtx, desc, dev, flags);
	gpc_runtime_primary_begin(dev);
	gpc_runtime_begin_unmeasured_on(dev);
	/* Before the driver makes it: its first work may follow at once. */
	gpc_runtime_green_begins();
	result = real_cuGreenCtxCreate(phCtx, desc, dev, flags);
	gpc_runtime_end_unmeasured(dev);
	gpc_runtime_primary_end(dev);
	gpc_runtime_leave();
	return result;
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx)
{
	CUdevice dev;
	CUresult result;

	if (!enter())
		return real_cuGreenCtxDestroy(hCtx);
	dev = gpc_runtime_green_ends(hCtx);
	gpc_runtime_primary_begin(dev);
	gpc_runtime_begin_unmeasured_on(dev);
	result = real_cuGreenCtxDestroy(hCtx);
	gpc_runtime_primary_released(dev);
	gpc_runtime_end_unmeasured(dev);
	gpc_runtime_primary_end(dev);
	gpc_runtime_leave();
	return result;
}

CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
	CUresult result = real_cuCtxAttach(pctx, flags);

	if (result == CUDA_SUCCESS)
		INSIDE(gpc_runtime_context_attached());
	return result;
}

CUresult cuCtxDetach(CUcontext ctx)
{
	CUresult result;
	int device;

	if (!ctx || !enter())
		return real_cuCtxDetach(ctx);
	device = gpc_runtime_begin_unmeasured(ctx);
	gpc_runtime_context_detached(ctx);
	gpc_runtime_leave();
	result = real_cuCtxDetach(ctx);
	gpc_runtime_end_unmeasured(device);
	return result;
}
