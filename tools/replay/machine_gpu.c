/* SPDX-License-Identifier: Apache-2.0 */
/* A real GPU: loads this machine's driver at run time. */
#include <dlfcn.h>
#include <stdlib.h>

#include "driver/driver_cuda.h"
#include "format/memory.h"
#include "tools/replay/machine.h"

#define DRIVER_LIBRARY "libcuda.so.1"

struct gpc_gpu {
	void *library;
	struct gpc_cuda_fns fns;
	struct gpc_cuda_driver driver;
	CUdevice device;
	CUcontext context; /* the primary one */
	CUresult (*cuDeviceGet)(CUdevice *device, int ordinal);
	CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *context, CUdevice device);
	CUresult (*cuDevicePrimaryCtxRelease_v2)(CUdevice device);
	CUresult (*cuCtxSetCurrent)(CUcontext context);
	CUresult (*cuStreamCreate)(CUstream *stream, unsigned int flags);
	CUresult (*cuStreamDestroy_v2)(CUstream stream);
};

static void *lookup(void *library, const char *name)
{
	return dlsym(library, name);
}

/* Looks up functions that the preloaded library never calls. */
static bool find_functions(struct gpc_gpu *gpu)
{
	*(void **)&gpu->cuDeviceGet = dlsym(gpu->library, "cuDeviceGet");
	*(void **)&gpu->cuDevicePrimaryCtxRetain = dlsym(gpu->library, "cuDevicePrimaryCtxRetain");
	*(void **)&gpu->cuDevicePrimaryCtxRelease_v2 =
		dlsym(gpu->library, "cuDevicePrimaryCtxRelease_v2");
	*(void **)&gpu->cuCtxSetCurrent = dlsym(gpu->library, "cuCtxSetCurrent");
	*(void **)&gpu->cuStreamCreate = dlsym(gpu->library, "cuStreamCreate");
	*(void **)&gpu->cuStreamDestroy_v2 = dlsym(gpu->library, "cuStreamDestroy_v2");
	return gpu->cuDeviceGet && gpu->cuDevicePrimaryCtxRetain &&
	       gpu->cuDevicePrimaryCtxRelease_v2 && gpu->cuCtxSetCurrent && gpu->cuStreamCreate &&
	       gpu->cuStreamDestroy_v2 && !gpc_cuda_fns_fill(&gpu->fns, lookup, gpu->library);
}

static enum gpc_status start(struct gpc_gpu *gpu, int ordinal)
{
	CUresult (*init)(unsigned int flags) = NULL;
	CUresult result;

	gpu->library = dlopen(DRIVER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!gpu->library)
		return GPC_NOT_FOUND;
	*(void **)&init = dlsym(gpu->library, "cuInit");
	if (!init || !find_functions(gpu))
		return GPC_UNSUPPORTED;
	result = init(0);
	if (result == CUDA_SUCCESS)
		result = gpu->cuDeviceGet(&gpu->device, ordinal);
	if (result == CUDA_SUCCESS)
		result = gpu->cuDevicePrimaryCtxRetain(&gpu->context, gpu->device);
	if (result == CUDA_SUCCESS)
		result = gpu->cuCtxSetCurrent(gpu->context);
	return gpc_status_from_device((int)result);
}

enum gpc_status gpc_gpu_open(int ordinal, struct gpc_gpu **ret_gpu, struct gpc_driver **ret_driver)
{
	struct gpc_gpu *gpu = gpc_new(1, sizeof *gpu);
	enum gpc_status st;

	st = start(gpu, ordinal);
	if (st) {
		gpc_gpu_close(gpu);
		return st;
	}
	gpc_cuda_driver_init(&gpu->driver, &gpu->fns, gpu->context);
	*ret_gpu = gpu;
	*ret_driver = &gpu->driver.base;
	return GPC_OK;
}

/* The driver stays loaded: it does not support unloading. */
void gpc_gpu_close(struct gpc_gpu *gpu)
{
	if (gpu->context)
		(void)gpu->cuDevicePrimaryCtxRelease_v2(gpu->device);
	free(gpu);
}

enum gpc_status gpc_gpu_stream_create(struct gpc_gpu *gpu, gpc_stream *ret_stream)
{
	CUstream stream = NULL;
	CUresult result = gpu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);

	if (result == CUDA_SUCCESS)
		*ret_stream = (uintptr_t)stream;
	return gpc_status_from_device((int)result);
}

void gpc_gpu_stream_destroy(struct gpc_gpu *gpu, gpc_stream stream)
{
	(void)gpu->cuStreamDestroy_v2((CUstream)(uintptr_t)stream);
}

enum gpc_status gpc_gpu_record(struct gpc_gpu *gpu, gpc_stream stream, gpc_event event)
{
	return gpc_status_from_device((int)gpu->fns.cuEventRecord(
		(CUevent)(uintptr_t)event, (CUstream)(uintptr_t)stream));
}
