/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: kernels and globals of a module, by name.
 *
 * Of a module's code only the versions are read, so every requested kernel and global exists.  A global of any size takes
 * GLOBAL_BYTES of device memory from the first request until the end of its context.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sim/libcuda/face.h"

#define KERNEL_MAGIC 0x6b65726eu
#define GLOBAL_BYTES 65536
#define NAME_BYTES   512

struct named {
	uint32_t magic; /* 0: a global */
	const void *module;
	char *name;
	uint64_t address; /* a global's device memory; 0: not allocated yet */
	struct named *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct named *all;

static struct named *find_locked(const void *module, const char *name, uint32_t magic)
{
	struct named *at = all;

	while (at && (at->module != module || at->magic != magic || strcmp(at->name, name) != 0))
		at = at->next;
	return at;
}

static struct named *make_locked(const void *module, const char *name, uint32_t magic)
{
	struct named *made = calloc(1, sizeof *made);

	if (!made)
		return NULL;
	made->name = strndup(name, NAME_BYTES);
	if (!made->name) {
		free(made);
		return NULL;
	}
	made->magic = magic;
	made->module = module;
	made->next = all;
	all = made;
	return made;
}

void face_names_end(const void *module)
{
	pthread_mutex_lock(&lock);
	for (struct named **at = &all; *at;) {
		struct named *named = *at;
		if (named->module != module) {
			at = &named->next;
			continue;
		}
		*at = named->next;
		named->magic = 0;
		free(named->name);
		free(named);
	}
	pthread_mutex_unlock(&lock);
}

/* The kernel of a handle.  NULL if this file did not create the handle: the stand-in runtime launches its own ones. */
static const struct named *kernel_of(const void *handle)
{
	const struct named *at;

	pthread_mutex_lock(&lock);
	for (at = all; at && (const void *)at != handle; at = at->next)
		;
	pthread_mutex_unlock(&lock);
	return at && at->magic == KERNEL_MAGIC ? at : NULL;
}

static CUresult kernel_find(
	const char *entry, void **ret_kernel, const void *module, const char *name)
{
	struct named *kernel;
	CUresult res = face_enter(GPC_SIM_COST_INFO, entry, NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!ret_kernel || !module || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!*name || !face_is_module(module, NULL))
		return *name ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_NOT_FOUND;
	pthread_mutex_lock(&lock);
	kernel = find_locked(module, name, KERNEL_MAGIC);
	if (!kernel)
		kernel = make_locked(module, name, KERNEL_MAGIC);
	pthread_mutex_unlock(&lock);
	*ret_kernel = kernel;
	return kernel ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	return kernel_find("cuModuleGetFunction", (void **)function, module, name);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	return kernel_find("cuLibraryGetKernel", (void **)kernel, library, name);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	if (!module || !face_is_module(library, NULL))
		return CUDA_ERROR_INVALID_VALUE;
	*module = (CUmodule)(void *)library;
	return CUDA_SUCCESS;
}

/* Kernels and functions are the same objects here. */
CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	if (!function || !kernel_of(kernel))
		return CUDA_ERROR_INVALID_VALUE;
	*function = (CUfunction)(void *)kernel;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
	const struct named *kernel = kernel_of(function);

	if (!name || !kernel)
		return CUDA_ERROR_INVALID_VALUE;
	*name = kernel->name;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
	return cuFuncGetName(name, (CUfunction)(void *)kernel);
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
	const struct named *kernel = kernel_of(function);

	if (!module || !kernel)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(module, &kernel->module, sizeof *module);
	return CUDA_SUCCESS;
}

/* The versions of a kernel's code: those of its module, or of the GPU for a kernel that this file did not create. */
static struct gpc_sim_image image_of(const void *handle)
{
	const struct gpc_sim_model *model = face_sim()->config.model;
	int capability = model->major * 10 + model->minor;
	struct gpc_sim_image image = { .ptx = capability, .binary = capability };
	const struct named *kernel = kernel_of(handle);

	if (kernel)
		(void)face_is_module(kernel->module, &image);
	return image;
}

/* Reports the figures of a small kernel, whatever was compiled, but for its versions. */
static CUresult attribute_of(
	const char *entry, int *value, CUfunction_attribute which, const void *kernel)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, entry, NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!value || (int)which < 0 || (int)which > 15)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)which) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = 1024;
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = 32;
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
		*value = image_of(kernel).ptx;
		break;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = image_of(kernel).binary;
		break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = 49152;
		break;
	default:
		*value = 0;
	}
	return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function)
{
	return function ? attribute_of("cuFuncGetAttribute", value, which, function)
			: CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetAttribute(
	int *value, CUfunction_attribute which, CUkernel kernel, CUdevice device)
{
	return kernel ? attribute_of("cuKernelGetAttribute", value, which, kernel)
		      : CUDA_ERROR_INVALID_HANDLE;
}

/* Accepts settings of a kernel, without effect. */
static CUresult accept(const char *entry, const void *kernel)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, entry, NULL);

	return res != CUDA_SUCCESS ? res : kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value)
{
	return accept("cuFuncSetAttribute", function);
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	return accept("cuFuncSetCacheConfig", function);
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config)
{
	return accept("cuFuncSetSharedMemConfig", function);
}

/* Only cuLaunchGrid uses the shape, and is not simulated (lacking.def).  PyCUDA sets one before each cuLaunchKernel. */
CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z)
{
	return x > 0 && y > 0 && z > 0 ? accept("cuFuncSetBlockShape", function)
				       : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncLoad(CUfunction function)
{
	return accept("cuFuncLoad", function);
}

CUresult cuKernelSetAttribute(
	CUfunction_attribute which, int value, CUkernel kernel, CUdevice device)
{
	return accept("cuKernelSetAttribute", kernel);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
	return accept("cuKernelSetCacheConfig", kernel);
}

/* ---- occupancy: from threads and blocks only; registers and shared memory are unknown ---- */

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *n, CUfunction function, int block, size_t shared, unsigned int flags)
{
	const struct gpc_sim_model *model = face_sim()->config.model;
	CUresult res = accept("cuOccupancyMaxActiveBlocksPerMultiprocessor", function);

	if (res != CUDA_SUCCESS)
		return res;
	if (!n || block < 1)
		return CUDA_ERROR_INVALID_VALUE;
	*n = model->threads_per_sm / block;
	if (*n > model->blocks_per_sm)
		*n = model->blocks_per_sm;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
	int *n, CUfunction function, int block, size_t shared)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, function, block, shared, 0);
}

CUresult cuOccupancyMaxActiveClusters(int *n, CUfunction function, const CUlaunchConfig *config)
{
	const struct gpc_sim_model *model = face_sim()->config.model;
	CUresult res = accept("cuOccupancyMaxActiveClusters", function);

	if (res != CUDA_SUCCESS)
		return res;
	if (!n || !config)
		return CUDA_ERROR_INVALID_VALUE;
	/* Assumes clusters of two blocks, whatever the configuration's attributes say. */
	*n = model->sms / 2;
	return CUDA_SUCCESS;
}

/* ---- globals ---- */

static CUresult global_find(const char *entry, CUdeviceptr *ret_ptr, size_t *ret_size,
	const void *module, const char *name)
{
	struct gpc_sim_context *context;
	struct named *global;
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, entry, &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!name || !face_is_module(module, NULL))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	global = find_locked(module, name, 0);
	if (!global)
		global = make_locked(module, name, 0);
	if (!global)
		res = CUDA_ERROR_OUT_OF_MEMORY;
	else if (!global->address)
		res = gpc_sim_device_alloc(
			context->device, context->number, GLOBAL_BYTES, &global->address);
	if (res == CUDA_SUCCESS && ret_ptr)
		*ret_ptr = global->address;
	if (res == CUDA_SUCCESS && ret_size)
		*ret_size = GLOBAL_BYTES;
	pthread_mutex_unlock(&lock);
	return res;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *ptr, size_t *size, CUmodule module, const char *name)
{
	return global_find("cuModuleGetGlobal_v2", ptr, size, module, name);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *ptr, size_t *size, CUlibrary library, const char *name)
{
	return global_find("cuLibraryGetGlobal", ptr, size, library, name);
}

/* Leaves the descriptor zero: only kernels read it. */
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
	void *address, const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
	const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	if (!map || !address || !dims || !box || !element_strides || rank < 1 || rank > 5)
		return CUDA_ERROR_INVALID_VALUE;
	memset(map, 0, sizeof *map);
	return CUDA_SUCCESS;
}
