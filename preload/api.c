/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C API of gpucache.h.  Its functions enter the runtime as hooks do.  If the runtime is off, or in a forked child,
 * memory comes from the driver and all other functions fail.
 *
 * Nothing here calls a hook by its exported name (cuMemAlloc_v2): if the program links libcuda before us, that name is
 * the driver's function.
 */
#include "runtime/process/api.h"
#include "base/thread.h"
#include "gpucache.h"
#include "preload/shapes.h"
#include "preload/torch.h"
#include "runtime/memory.h"
#include "runtime/process/enter.h"
#include "runtime/process/tags.h"

static CUdeviceptr address_of(void *ptr)
{
	return (CUdeviceptr)(uintptr_t)ptr;
}

/* The error to return if the runtime cannot be entered. */
static CUresult why_not(void)
{
	int n_devices = 0;
	const struct gpc_runtime_loader *loader = gpc_real_loader();

	if (!loader || loader->fns->cuDeviceGetCount(&n_devices) == CUDA_ERROR_NOT_INITIALIZED)
		return CUDA_ERROR_NOT_INITIALIZED;
	return CUDA_ERROR_NOT_SUPPORTED;
}

const char *gpucache_error_text(int error)
{
	switch (error) {
#define RESULT(name, number) \
	case number:         \
		return #name;
#include "driver/cuda_results.def"
#undef RESULT
	default:
		return "an error that CUDA 13.0 does not know";
	}
}

/* Allocates from the driver alone. */
static CUresult malloc_real(void **ret_ptr, size_t size)
{
	CUdeviceptr ptr = 0;
	CUresult result =
		gpc_real_find() ? real_cuMemAlloc_v2(&ptr, size) : CUDA_ERROR_NOT_INITIALIZED;

	if (!result)
		*ret_ptr = (void *)(uintptr_t)ptr;
	return result;
}

/* Allocates for `stream` if `is_told`, else for no particular stream.  The caller has entered the runtime. */
static CUresult malloc_entered(void **ret_ptr, size_t size, bool is_told, CUstream stream)
{
	CUdeviceptr ptr = 0;
	CUresult result = is_told ? gpc_runtime_malloc_on(&ptr, size, stream)
				  : gpc_runtime_malloc(&ptr, size);

	if (!result)
		*ret_ptr = (void *)(uintptr_t)ptr;
	return result;
}

static int malloc_any(void **ret_ptr, size_t size, bool is_told, CUstream stream)
{
	if (!ret_ptr)
		return CUDA_ERROR_INVALID_VALUE;
	return (int)ENTERED(
		malloc_entered(ret_ptr, size, is_told, stream), malloc_real(ret_ptr, size));
}

int gpucache_malloc(void **ret_ptr, size_t size)
{
	return malloc_any(ret_ptr, size, false, NULL);
}

int gpucache_malloc_on(void **ret_ptr, size_t size, CUstream stream)
{
	return malloc_any(ret_ptr, size, true, stream);
}

static CUresult free_any(void *ptr, bool is_told, CUstream stream)
{
	CUresult result;
	bool is_ours;

	if (!ptr)
		return CUDA_SUCCESS;
	if (!enter())
		return !gpc_real_find()
			       ? CUDA_ERROR_NOT_INITIALIZED
			       : real_cuMemFree_v2(gpc_runtime_is_of_parent(address_of(ptr))
							   ? 0
							   : address_of(ptr));
	result = is_told ? gpc_runtime_free_on(address_of(ptr), stream, &is_ours)
			 : gpc_runtime_free(address_of(ptr), &is_ours);
	if (!is_ours)
		FREE_TRACKED(result, DEVICE, address_of(ptr), real_cuMemFree_v2(address_of(ptr)));
	return left(result);
}

int gpucache_free(void *ptr)
{
	return (int)free_any(ptr, false, NULL);
}

int gpucache_free_on(void *ptr, CUstream stream)
{
	return (int)free_any(ptr, true, stream);
}

/*
 * The stream does not matter: the next free of this block makes it wait for a fence, which covers all streams.  Memory
 * outside the cache needs no such call, because the driver waits for all streams when it frees that memory.
 */
static CUresult record_use(void *ptr)
{
	bool is_ours;

	if (!ptr)
		return CUDA_ERROR_INVALID_VALUE;
	return ENTERED(gpc_runtime_record_use(address_of(ptr), &is_ours),
		gpc_real_find() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED);
}

int gpucache_record_use(void *ptr, CUstream stream)
{
	(void)stream;
	return (int)record_use(ptr);
}

int gpucache_trim(size_t bytes, size_t *ret_bytes)
{
	size_t went = 0;
	CUresult result = ENTERED(gpc_runtime_trim(-1, bytes, &went), why_not());

	if (!result && ret_bytes)
		*ret_bytes = went;
	return (int)result;
}

int gpucache_stats(int device, struct gpucache_stats *stats)
{
	if (!stats)
		return CUDA_ERROR_INVALID_VALUE;
	return (int)ENTERED(gpc_runtime_stats(device, stats), why_not());
}

int gpucache_reset_peaks(int device)
{
	return (int)ENTERED(gpc_runtime_reset_peaks(device), why_not());
}

int gpucache_stream_stats(int device, CUstream stream, struct gpucache_part_stats *stats)
{
	if (!stats)
		return CUDA_ERROR_INVALID_VALUE;
	return (int)ENTERED(gpc_runtime_stream_stats(device, stream, stats), why_not());
}

int gpucache_tag_stats(int device, const char *name, struct gpucache_part_stats *stats)
{
	if (!stats)
		return CUDA_ERROR_INVALID_VALUE;
	return (int)ENTERED(gpc_runtime_tag_stats(device, name, stats), why_not());
}

int gpucache_snapshot(char *ret_path, size_t size)
{
	return (int)ENTERED(gpc_runtime_snapshot(ret_path, size), why_not());
}

int gpucache_set_limit(int device, uint64_t bytes)
{
	return (int)ENTERED(gpc_runtime_set_limit(device, bytes), why_not());
}

void gpucache_set_oom_handler(gpucache_oom_handler handler, void *arg)
{
	gpc_runtime_set_oom_handler(handler, arg);
}

int gpucache_tag_push(const char *name)
{
	if (!name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	(void)gpc_runtime_tag_push(GPC_TAG_OF_API, name);
	return CUDA_SUCCESS;
}

int gpucache_tag_pop(void)
{
	uint32_t level;

	return gpc_runtime_tag_pop(GPC_TAG_OF_API, &level) ? CUDA_SUCCESS
							   : CUDA_ERROR_INVALID_VALUE;
}

void *gpucache_torch_malloc(size_t size, int device, CUstream stream)
{
	void *ptr = NULL;
	CUresult result;
	bool must_pop;

	if (size == 0)
		return NULL;
	if (enter()) {
		result = gpc_runtime_enter_device(device, &must_pop);
		if (!result) {
			result = malloc_entered(&ptr, size, true, stream);
			gpc_runtime_leave_device(must_pop);
		}
		gpc_runtime_leave();
	} else {
		result = malloc_real(&ptr, size);
	}
	if (result)
		gpc_torch_raise(__builtin_return_address(0), result, size, device);
	return result ? NULL : ptr;
}

void gpucache_torch_free(void *ptr, size_t size, int device, CUstream stream)
{
	(void)size;
	(void)device;
	(void)free_any(ptr, true, stream);
}

void gpucache_torch_record_stream(void *ptr, CUstream stream)
{
	(void)stream;
	(void)record_use(ptr);
}

void gpucache_torch_reset(void)
{
	size_t went;

	if (!enter())
		return;
	/* The trim fails at the first number without a device. */
	for (int device = 0; !gpc_runtime_trim(device, SIZE_MAX, &went); device++)
		;
	gpc_runtime_leave();
}

void gpucache_torch_memory_fraction(double fraction, int device)
{
	INSIDE((void)gpc_runtime_set_fraction(device, fraction));
}

void *gpucache_torch_base_alloc(void *ptr, size_t *ret_size)
{
	CUdeviceptr base = address_of(ptr);
	size_t size = 0;

	INSIDE((void)gpc_runtime_segment_of(base, &base, &size));
	if (ret_size)
		*ret_size = size;
	return (void *)(uintptr_t)base;
}
