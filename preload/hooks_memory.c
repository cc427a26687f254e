/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory, pinned host memory, and the query of free memory. */
#include "base/bytes.h"
#include "preload/per_thread.h"
#include "preload/shapes.h"
#include "runtime/memory.h"

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	return ENTERED(gpc_runtime_malloc(dptr, bytesize), real_cuMemAlloc_v2(dptr, bytesize));
}

/* Out of the way of what the cache serves. */
static __attribute__((noinline)) CUresult free_tracked(CUdeviceptr dptr)
{
	CUresult result;

	FREE_TRACKED(result, DEVICE, dptr, real_cuMemFree_v2(dptr));
	return result;
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	CUresult result;
	bool is_ours;

	/* Programs call cudaFree(NULL) to initialise the driver. */
	if (dptr == 0 || !enter())
		return real_cuMemFree_v2(gpc_runtime_is_of_parent(dptr) ? 0 : dptr);
	result = gpc_runtime_free(dptr, &is_ours);
	return left(is_ours ? result : free_tracked(dptr));
}

/*
 * cuMemFreeAsync also accepts memory of cuMemAlloc.  The driver cannot free a block of ours, which is a piece of a
 * segment.  So the block is pending until a fence has passed, which covers the work submitted before.  Nor does it free
 * managed memory in order, so that spilled memory is freed as by cuMemFree, which waits.  `none` is the stream that NULL
 * means.
 */
#define FREED_ASYNC(name, none)                                                             \
	CUresult name(CUdeviceptr dptr, CUstream stream)                                    \
	{                                                                                   \
		CUresult result;                                                            \
		bool is_ours;                                                               \
                                                                                            \
		note_stream(stream ? stream : none);                                        \
		if (dptr == 0 || !enter())                                                  \
			return gpc_runtime_is_of_parent(dptr) ? real_cuMemFree_v2(0)        \
							      : real_##name(dptr, stream);  \
		result = gpc_runtime_free_async(dptr, stream ? stream : none, &is_ours);    \
		if (!is_ours)                                                               \
			FREE_TRACKED(result, DEVICE, dptr,                                  \
				gpc_track_is_spilled(tracked) ? real_cuMemFree_v2(dptr)     \
							      : real_##name(dptr, stream)); \
		return left(result);                                                        \
	}

FREED_ASYNC(cuMemFreeAsync, CU_STREAM_LEGACY)
FREED_ASYNC(cuMemFreeAsync_ptsz, CU_STREAM_PER_THREAD)

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
	CUresult result = real_cuMemGetInfo_v2(available, total);

	if (result == CUDA_SUCCESS)
		INSIDE(gpc_runtime_adjust_free(available, total));
	return heard(result);
}

/* clang-format off */
TRACKED(cuMemAllocPitch_v2, dptr && pitch, PITCHED, gpc_bytes_times(width, height), *a->pitch * a->height, *a->dptr,
	(CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height, unsigned int element),
	(dptr, pitch, width, height, element))
TRACKED(cuMemAllocManaged, dptr, MANAGED, size, a->size, *a->dptr,
	(CUdeviceptr *dptr, size_t size, unsigned int flags), (dptr, size, flags))
TRACKED(cuMemHostAlloc, pp, HOST, size, a->size, *a->pp,
	(void **pp, size_t size, unsigned int flags), (pp, size, flags))
TRACKED(cuMemAllocHost_v2, pp, HOST, size, a->size, *a->pp, (void **pp, size_t size), (pp, size))
TRACKED(cuMemAllocHost, pp, HOST, size, a->size, *a->pp, (void **pp, unsigned int size), (pp, size))
/* clang-format on */

FREED(cuMemFreeHost, HOST, void *)
