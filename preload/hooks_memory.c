/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: device, pinned host, and what the program is told of how much is free. */
#include "preload/real.h"

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	CUresult result;

	if (!enter())
		return real_cuMemAlloc_v2(dptr, bytesize);
	result = gpc_runtime_malloc(dptr, bytesize);
	gpc_runtime_leave();
	return result;
}

/*
 * A tracked allocation is forgotten before the driver frees it, and remembered where the driver
 * refused.
 */
static CUresult free_tracked(CUdeviceptr dptr)
{
	struct gpc_tracked *tracked = gpc_runtime_forget(dptr);
	CUresult result = real_cuMemFree_v2(dptr);

	gpc_runtime_forgotten(tracked, result);
	gpc_runtime_heard(result);
	return result;
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	CUresult result;
	bool is_ours;

	/* cudaFree(NULL) is how programs make the driver start. */
	if (dptr == 0 || !enter())
		return real_cuMemFree_v2(dptr);
	result = gpc_runtime_free(dptr, &is_ours);
	if (!is_ours)
		result = free_tracked(dptr);
	gpc_runtime_leave();
	return result;
}

/*
 * The driver takes memory of cuMemAlloc here, too.  Ours cannot go there, it is a piece of a
 * segment; the fence covers the work that was submitted to the stream before.
 */
static CUresult free_async(
	CUdeviceptr dptr, CUstream stream, CUresult (*real)(CUdeviceptr, CUstream))
{
	struct gpc_tracked *tracked;
	CUresult result;
	bool is_ours;

	if (dptr == 0 || !enter())
		return real(dptr, stream);
	result = gpc_runtime_free(dptr, &is_ours);
	if (!is_ours) {
		tracked = gpc_runtime_forget(dptr);
		result = real(dptr, stream);
		gpc_runtime_forgotten(tracked, result);
		gpc_runtime_heard(result);
	}
	gpc_runtime_leave();
	return result;
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	return free_async(dptr, hStream, real_cuMemFreeAsync);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
	return free_async(dptr, hStream, real_cuMemFreeAsync_ptsz);
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
	CUresult result = real_cuMemGetInfo_v2(available, total);

	if (result == CUDA_SUCCESS && enter()) {
		gpc_runtime_adjust_free(available, total);
		gpc_runtime_leave();
	}
	return heard(result);
}

/* The arguments of one tracked allocation, behind the part that the runtime knows. */
struct passed {
	struct gpc_passed_call call;
	CUdeviceptr *dptr;
	void **pp;
	size_t *pitch;
	size_t width;
	size_t height;
	unsigned int element;
	unsigned int flags;
};

static CUresult make_pitched(struct gpc_passed_call *call)
{
	struct passed *passed = (struct passed *)call;
	CUresult result = real_cuMemAllocPitch_v2(
		passed->dptr, passed->pitch, passed->width, passed->height, passed->element);

	if (result == CUDA_SUCCESS) {
		call->ret_address = *passed->dptr;
		call->ret_size = *passed->pitch * passed->height;
	}
	return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
	unsigned int ElementSizeBytes)
{
	struct passed passed = {
		.call = { .make = make_pitched,
			.kind = GPUCACHE_KIND_PITCHED,
			.size = WidthInBytes * Height },
		.dptr = dptr,
		.pitch = pPitch,
		.width = WidthInBytes,
		.height = Height,
		.element = ElementSizeBytes,
	};
	CUresult result;

	if (!dptr || !pPitch || !enter())
		return real_cuMemAllocPitch_v2(
			dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
	result = gpc_runtime_passed_malloc(&passed.call);
	gpc_runtime_leave();
	return result;
}

static CUresult make_managed(struct gpc_passed_call *call)
{
	struct passed *passed = (struct passed *)call;
	CUresult result = real_cuMemAllocManaged(passed->dptr, call->size, passed->flags);

	if (result == CUDA_SUCCESS) {
		call->ret_address = *passed->dptr;
		call->ret_size = call->size;
	}
	return result;
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	struct passed passed = {
		.call = { .make = make_managed, .kind = GPUCACHE_KIND_MANAGED, .size = bytesize },
		.dptr = dptr,
		.flags = flags,
	};
	CUresult result;

	if (!dptr || !enter())
		return real_cuMemAllocManaged(dptr, bytesize, flags);
	result = gpc_runtime_passed_malloc(&passed.call);
	gpc_runtime_leave();
	return result;
}

static void note_host(struct gpc_passed_call *call, void *const *pp)
{
	call->ret_address = (uint64_t)(uintptr_t)*pp;
	call->ret_size = call->size;
}

static CUresult make_host(struct gpc_passed_call *call)
{
	struct passed *passed = (struct passed *)call;
	CUresult result = real_cuMemHostAlloc(passed->pp, call->size, passed->flags);

	if (result == CUDA_SUCCESS)
		note_host(call, passed->pp);
	return result;
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	struct passed passed = {
		.call = { .make = make_host, .kind = GPUCACHE_KIND_HOST, .size = bytesize },
		.pp = pp,
		.flags = Flags,
	};
	CUresult result;

	if (!pp || !enter())
		return real_cuMemHostAlloc(pp, bytesize, Flags);
	result = gpc_runtime_passed_malloc(&passed.call);
	gpc_runtime_leave();
	return result;
}

static CUresult make_host_v2(struct gpc_passed_call *call)
{
	struct passed *passed = (struct passed *)call;
	CUresult result = real_cuMemAllocHost_v2(passed->pp, call->size);

	if (result == CUDA_SUCCESS)
		note_host(call, passed->pp);
	return result;
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	struct passed passed = {
		.call = { .make = make_host_v2, .kind = GPUCACHE_KIND_HOST, .size = bytesize },
		.pp = pp,
	};
	CUresult result;

	if (!pp || !enter())
		return real_cuMemAllocHost_v2(pp, bytesize);
	result = gpc_runtime_passed_malloc(&passed.call);
	gpc_runtime_leave();
	return result;
}

static CUresult make_host_v1(struct gpc_passed_call *call)
{
	struct passed *passed = (struct passed *)call;
	CUresult result = real_cuMemAllocHost(passed->pp, (unsigned int)call->size);

	if (result == CUDA_SUCCESS)
		note_host(call, passed->pp);
	return result;
}

CUresult cuMemAllocHost(void **pp, unsigned int bytesize)
{
	struct passed passed = {
		.call = { .make = make_host_v1, .kind = GPUCACHE_KIND_HOST, .size = bytesize },
		.pp = pp,
	};
	CUresult result;

	if (!pp || !enter())
		return real_cuMemAllocHost(pp, bytesize);
	result = gpc_runtime_passed_malloc(&passed.call);
	gpc_runtime_leave();
	return result;
}

CUresult cuMemFreeHost(void *p)
{
	struct gpc_tracked *tracked;
	CUresult result;

	if (!p || !enter())
		return real_cuMemFreeHost(p);
	tracked = gpc_runtime_forget((uint64_t)(uintptr_t)p);
	result = real_cuMemFreeHost(p);
	gpc_runtime_forgotten(tracked, result);
	gpc_runtime_heard(result);
	gpc_runtime_leave();
	return result;
}
