/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuInit, and the life of contexts, reference-counted ones included.  Only the driver's result tells whether a context
 * and its memory are gone, so we forget the memory after the call.  The driver may give an address of that memory to
 * another thread before: from then on it is that thread's.
 */
#include "preload/real.h"
#include "runtime/context/contexts.h"
#include "runtime/context/endings.h"
#include "runtime/context/green.h"
#include "runtime/context/reach.h"
#include "runtime/ledger/implicit.h"
#include "runtime/ledger/pools.h"
#include "runtime/process/enter.h"

CUresult gpc_hook_error(CUresult result)
{
	INSIDE(gpc_runtime_answered(result));
	return result;
}

CUresult cuInit(unsigned int Flags)
{
	CUresult result = real_cuInit(Flags);

	/*
	 * The runtime starts after cuInit: its start asks the driver for the devices, and our exit handler must be
	 * registered after the driver's.
	 */
	if (result == CUDA_SUCCESS) {
		gpc_runtime_saw_start();
		if (enter())
			gpc_runtime_leave();
	}
	return result;
}

/* Suspends measuring on the device: a concurrent measurement would count the memory of the primary context. */
#define OF_PRIMARY(name, of_device, before, after, params, args) \
	CUresult name params                                     \
	{                                                        \
		CUresult result;                                 \
		CUdevice device;                                 \
                                                                 \
		if (!enter())                                    \
			return real_##name args;                 \
		device = of_device;                              \
		gpc_runtime_primary_begin(device);               \
		gpc_runtime_begin_unmeasured_on(device);         \
		before;                                          \
		result = real_##name args;                       \
		after;                                           \
		gpc_runtime_end_unmeasured(device);              \
		gpc_runtime_primary_end(device);                 \
		return left(result);                             \
	}

static void end_reset(CUdevice device, CUresult result)
{
	if (gpc_runtime_end_reset(device, result))
		gpc_runtime_primary_reset(device);
}

/* clang-format off */
OF_PRIMARY(cuDevicePrimaryCtxReset, dev,
	gpc_runtime_begin_reset(dev), end_reset(dev, result), (CUdevice dev), (dev))
OF_PRIMARY(cuDevicePrimaryCtxReset_v2, dev,
	gpc_runtime_begin_reset(dev), end_reset(dev, result), (CUdevice dev), (dev))
OF_PRIMARY(cuDevicePrimaryCtxRelease, dev,
	(void)0, gpc_runtime_primary_released(dev), (CUdevice dev), (dev))
OF_PRIMARY(cuDevicePrimaryCtxRelease_v2, dev,
	(void)0, gpc_runtime_primary_released(dev), (CUdevice dev), (dev))

/*
 * A green context holds a reference to its device's primary context.  The runtime learns of a green context before the
 * driver creates it, because another thread may submit work to the new context at once.
 */
OF_PRIMARY(cuGreenCtxCreate, dev,
	gpc_runtime_green_begins(), (void)0,
	(CUgreenCtx *context, CUdevResourceDesc desc, CUdevice dev, unsigned int flags),
	(context, desc, dev, flags))
OF_PRIMARY(cuGreenCtxDestroy, gpc_runtime_green_ends(context),
	(void)0, gpc_runtime_primary_released(device), (CUgreenCtx context), (context))
/* clang-format on */

#define ENDED(name, begin)                                  \
	CUresult name(CUcontext ctx)                        \
	{                                                   \
		struct gpc_ending ending;                   \
		CUresult result;                            \
		int device;                                 \
                                                            \
		if (!ctx || !enter())                       \
			return real_##name(ctx);            \
		device = gpc_runtime_begin_unmeasured(ctx); \
		ending = begin(ctx);                        \
		result = real_##name(ctx);                  \
		gpc_runtime_end_destroy(ending, result);    \
		gpc_runtime_end_unmeasured(device);         \
		return left(result);                        \
	}

ENDED(cuCtxDestroy, gpc_runtime_begin_destroy)
ENDED(cuCtxDestroy_v2, gpc_runtime_begin_destroy)
ENDED(cuCtxDetach, gpc_runtime_begin_detach)

/* The deprecated cuCtxAttach adds a reference to the current context. */
/* clang-format off */
NOTED(cuCtxAttach, gpc_runtime_context_attached(),
	(CUcontext *context, unsigned int flags), (context, flags))
/* clang-format on */

ENCLOSED(cuCtxSynchronize, (void)0, struct gpc_sync, gpc_runtime_begin_sync(NULL),
	gpc_runtime_end_sync, (void), ())
ENCLOSED(cuCtxSynchronize_v2, (void)0, struct gpc_sync, gpc_runtime_begin_sync(ctx),
	gpc_runtime_end_sync, (CUcontext ctx), (ctx))

NOTED(cuCtxEnablePeerAccess, gpc_runtime_peer_enabled(peer), (CUcontext peer, unsigned int flags),
	(peer, flags))
