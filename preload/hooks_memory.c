/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory, pinned host memory, and the query of free memory. */
#include "base/bytes.h"
#include "preload/per_thread.h"
#include "preload/pjrt.h"
#include "preload/shapes.h"
#include "runtime/context/contexts.h"
#include "runtime/ledger/arrays.h"
#include "runtime/memory.h"
#include "runtime/process/state.h"
#include "runtime/rescue/asked.h"
#include "runtime/rescue/refused.h"

/* XLA's pool, which is lent to arrays. */
static __attribute__((noinline)) CUresult malloc_pool(CUdeviceptr *ret_ptr, size_t size)
{
	const struct gpc_context *context = gpc_context_current();
	int device = context ? (int)context->device->ordinal : -1;
	CUresult result;

	gpc_runtime_arrays_pool(device, (int64_t)size);
	result = gpc_runtime_malloc(ret_ptr, size);
	if (result != CUDA_SUCCESS) {
		gpc_runtime_arrays_pool(device, -(int64_t)size);
		return result;
	}
	gpc_memory_mark_arena(*ret_ptr);
	gpc_arrays_piece(device, *ret_ptr, size);
	return result;
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	if (gpc_pjrt_is_pool(__builtin_return_address(0), bytesize))
		return ENTERED(malloc_pool(dptr, bytesize), real_cuMemAlloc_v2(dptr, bytesize));
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
	if (!is_ours)
		result = free_tracked(dptr);
	if (__builtin_expect(result != CUDA_SUCCESS, 0))
		gpc_refused_free(result);
	return left(result);
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
		if (result)                                                                 \
			gpc_refused_free(result);                                           \
		return left(result);                                                        \
	}

FREED_ASYNC(cuMemFreeAsync, CU_STREAM_LEGACY)
FREED_ASYNC(cuMemFreeAsync_ptsz, CU_STREAM_PER_THREAD)

static void note_free(const size_t *available, const size_t *total)
{
	if (available && total)
		gpc_asked_note(*available, *total);
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
	CUresult result = real_cuMemGetInfo_v2(available, total);

	if (result == CUDA_SUCCESS)
		INSIDE(gpc_runtime_adjust_free(available, total); note_free(available, total));
	return answered(result);
}

/* What the driver needs for rows of `width` bytes: it pads them, and says how much only once it has the memory. */
static size_t pitched(size_t width, size_t height)
{
	const size_t step = 512;

	return gpc_bytes_times(gpc_bytes_times(width / step + (width % step != 0), step), height);
}

/* clang-format off */
CALL(cuMemAllocPitch_v2, gpc_passed_call,
	GIVEN(*a->dptr, *a->pitch * a->height); call->padding = (*a->pitch - a->width) * a->height,
	(CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height, unsigned int element),
	(dptr, pitch, width, height, element))
/* clang-format on */

CUresult cuMemAllocPitch_v2(
	CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height, unsigned int element)
{
	struct cuMemAllocPitch_v2_call a = { { .make = make_cuMemAllocPitch_v2,
						     .kind = GPUCACHE_KIND_PITCHED },
		dptr, pitch, width, height, element };

	if (!dptr || !pitch || !enter())
		return real_cuMemAllocPitch_v2(dptr, pitch, width, height, element);
	a.call.size = pitched(width, height);
	return left(gpc_runtime_passed_malloc(&a.call));
}

/* clang-format off */
TRACKED(cuMemAllocManaged, dptr, MANAGED, size, a->size, *a->dptr,
	(CUdeviceptr *dptr, size_t size, unsigned int flags), (dptr, size, flags))
TRACKED(cuMemHostAlloc, pp, HOST, size, a->size, *a->pp,
	(void **pp, size_t size, unsigned int flags), (pp, size, flags))
TRACKED(cuMemAllocHost_v2, pp, HOST, size, a->size, *a->pp, (void **pp, size_t size), (pp, size))
TRACKED(cuMemAllocHost, pp, HOST, size, a->size, *a->pp, (void **pp, unsigned int size), (pp, size))
/* clang-format on */

FREED(cuMemFreeHost, HOST, void *)
