/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls during which the driver allocates memory whose size the call does not name: for contexts, modules, libraries
 * and limits.
 */
#include "preload/shapes.h"
#include "runtime/context/endings.h"
#include "runtime/context/reach.h"
#include "runtime/ledger/implicit.h"

#define THE_CURRENT_CONTEXT (-1)

/*
 * IMPLICIT(name, out, kind, device, first, parameters, arguments) defines the hook `name`, which writes a handle to
 * *out.  `first` runs before the driver's call.  With a NULL `out` the driver alone is called, and refuses.
 */
#define IMPLICIT(name, out, of_kind, of_device, first, params, args)                           \
	CALL(name, gpc_implicit_call, call->ret_handle = (uint64_t)(uintptr_t)*a->out, params, \
		args)                                                                          \
	CUresult name params                                                                   \
	{                                                                                      \
		struct name##_call a = { { .make = make_##name,                                \
						 .kind = GPUCACHE_KIND_##of_kind,              \
						 .device = of_device },                        \
			LIST args };                                                           \
                                                                                               \
		if (!out || !enter())                                                          \
			return real_##name args;                                               \
		first;                                                                         \
		return left(gpc_runtime_implicit(&a.call));                                    \
	}

#define CONTEXT_MADE(name, params, args) \
	IMPLICIT(name, pctx, CONTEXT, dev, gpc_runtime_context_created(), params, args)
#define CODE_LOADED(name, out, params, args) \
	IMPLICIT(name, out, MODULE, THE_CURRENT_CONTEXT, (void)0, params, args)

/* clang-format off */
CONTEXT_MADE(cuCtxCreate, (CUcontext *pctx, unsigned int flags, CUdevice dev), (pctx, flags, dev))
CONTEXT_MADE(cuCtxCreate_v2, (CUcontext *pctx, unsigned int flags, CUdevice dev), (pctx, flags, dev))
CONTEXT_MADE(cuCtxCreate_v3,
	(CUcontext *pctx, CUexecAffinityParam *params, int n, unsigned int flags, CUdevice dev),
	(pctx, params, n, flags, dev))
CONTEXT_MADE(cuCtxCreate_v4,
	(CUcontext *pctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev),
	(pctx, params, flags, dev))
CODE_LOADED(cuModuleLoad, module, (CUmodule *module, const char *fname), (module, fname))
CODE_LOADED(cuModuleLoadData, module, (CUmodule *module, const void *image), (module, image))
CODE_LOADED(cuModuleLoadDataEx, module,
	(CUmodule *module, const void *image, unsigned int n, CUjit_option *options, void **values),
	(module, image, n, options, values))
CODE_LOADED(cuModuleLoadFatBinary, module, (CUmodule *module, const void *image), (module, image))
CODE_LOADED(cuLibraryLoadData, library,
	(CUlibrary *library, const void *code, CUjit_option *jit, void **jit_values,
		unsigned int n_jit, CUlibraryOption *options, void **values, unsigned int n),
	(library, code, jit, jit_values, n_jit, options, values, n))
CODE_LOADED(cuLibraryLoadFromFile, library,
	(CUlibrary *library, const char *file, CUjit_option *jit, void **jit_values,
		unsigned int n_jit, CUlibraryOption *options, void **values, unsigned int n),
	(library, file, jit, jit_values, n_jit, options, values, n))
/* clang-format on */

struct retain_call {
	struct gpc_implicit_call call;
	CUcontext *pctx;
};

static CUresult make_retain(struct gpc_implicit_call *call)
{
	const struct retain_call *retain = (const struct retain_call *)call;
	CUresult result;

	gpc_runtime_primary_begin(call->device);
	result = real_cuDevicePrimaryCtxRetain(retain->pctx, call->device);
	if (result == CUDA_SUCCESS)
		gpc_runtime_primary_retained(*retain->pctx, call->device);
	gpc_runtime_primary_end(call->device);
	if (result == CUDA_SUCCESS)
		call->ret_handle = (uint64_t)(uintptr_t)*retain->pctx;
	return result;
}

/* Only the first retain creates the context and is measured.  NVML may be asked, so no lock is held meanwhile. */
CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	struct retain_call retain = {
		.call = { .make = make_retain, .kind = GPUCACHE_KIND_CONTEXT, .device = dev },
		.pctx = pctx,
	};

	if (!pctx || !enter())
		return real_cuDevicePrimaryCtxRetain(pctx, dev);
	return left(gpc_runtime_primary_is_active(dev, false) ? make_retain(&retain.call)
							      : gpc_runtime_implicit(&retain.call));
}

CALL(cuCtxSetLimit, gpc_implicit_call, call->ret_handle = (uint64_t)a->limit,
	(CUlimit limit, size_t value), (limit, value))

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct cuCtxSetLimit_call limited = {
		.call = { .make = make_cuCtxSetLimit,
			.kind = GPUCACHE_KIND_CONTEXT,
			.device = THE_CURRENT_CONTEXT,
			.is_limit = true },
		.limit = limit,
		.value = value,
	};

	return ENTERED(gpc_runtime_implicit(&limited.call), real_cuCtxSetLimit(limit, value));
}

#define UNLOAD(name, type)                                                 \
	CUresult name(type handle)                                         \
	{                                                                  \
		CUresult result;                                           \
		int device;                                                \
                                                                           \
		queries(NULL);                                             \
		if (!handle || !enter())                                   \
			return real_##name(handle);                        \
		device = gpc_runtime_begin_unmeasured(NULL);               \
		FREE_TRACKED(result, MODULE, handle, real_##name(handle)); \
		gpc_runtime_end_unmeasured(device);                        \
		return left(result);                                       \
	}

UNLOAD(cuModuleUnload, CUmodule)
UNLOAD(cuLibraryUnload, CUlibrary)
