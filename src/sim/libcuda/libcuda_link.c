/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: linking of device code, which is never run, and preferences of a context, which have no effect.
 *
 * The linker's output is a few bytes that can be loaded as a module.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/libcuda/face.h"

#define LINK_MAGIC 0x6c696e6bu

struct linker {
	uint32_t magic;
	char code[64];
};

static struct linker *of(CUlinkState state)
{
	struct linker *linker = (struct linker *)(void *)state;

	return linker && linker->magic == LINK_MAGIC ? linker : NULL;
}

CUresult cuLinkCreate_v2(
	unsigned int n_options, CUjit_option *options, void **values, CUlinkState *state)
{
	struct gpc_sim_context *context;
	struct linker *linker;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuLinkCreate_v2", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	linker = calloc(1, sizeof *linker);
	if (!linker)
		return CUDA_ERROR_OUT_OF_MEMORY;
	linker->magic = LINK_MAGIC;
	memcpy(linker->code, "linked", sizeof "linked");
	*state = (CUlinkState)(void *)linker;
	return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
	const char *name, unsigned int n_options, CUjit_option *options, void **values)
{
	if (!of(state))
		return CUDA_ERROR_INVALID_HANDLE;
	return data && size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
	unsigned int n_options, CUjit_option *options, void **values)
{
	if (!of(state))
		return CUDA_ERROR_INVALID_HANDLE;
	return path ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* *code is valid until cuLinkDestroy, as with the real driver. */
CUresult cuLinkComplete(CUlinkState state, void **code, size_t *size)
{
	struct linker *linker = of(state);

	if (!linker)
		return CUDA_ERROR_INVALID_HANDLE;
	if (code)
		*code = linker->code;
	if (size)
		*size = sizeof linker->code;
	return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state)
{
	struct linker *linker = of(state);

	if (!linker)
		return CUDA_ERROR_INVALID_HANDLE;
	linker->magic = 0;
	free(linker);
	return CUDA_SUCCESS;
}

/* ---- preferences of caches and banks ---- */

static CUresult answer(const char *entry, unsigned *ret_value, unsigned value)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_INFO, entry, &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!ret_value)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_value = value;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	return answer("cuCtxGetCacheConfig", config, 0);
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	return answer("cuCtxSetCacheConfig", &config, config);
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
	return answer("cuCtxGetSharedMemConfig", config, 1);
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	return answer("cuCtxSetSharedMemConfig", &config, config);
}

/* Profiling controls, without effect: there is no profiler. */
CUresult cuProfilerStart(void)
{
	return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void)
{
	return CUDA_SUCCESS;
}
