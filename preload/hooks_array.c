/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, known by their handles.  The driver does not say how large one is: driver/array_bytes.h. */
#include "driver/array_bytes.h"
#include "preload/real.h"

/* The arguments of one call, behind the part that the runtime knows. */
struct passed {
	struct gpc_passed_call call;
	CUarray *array;
	CUmipmappedArray *mipmapped;
	const void *desc; /* of the function's own version */
	unsigned int n_levels;
	uint64_t held_bytes;
};

static CUresult note(struct passed *passed, CUresult result)
{
	const void *handle = NULL;

	if (result == CUDA_SUCCESS && passed->array)
		handle = *passed->array;
	else if (result == CUDA_SUCCESS && passed->mipmapped)
		handle = *passed->mipmapped;
	passed->call.ret_address = (uint64_t)(uintptr_t)handle;
	passed->call.ret_size = passed->held_bytes;
	return result;
}

static CUresult make_array(struct gpc_passed_call *call)
{
	struct passed *passed = (struct passed *)call;

	return note(passed, real_cuArrayCreate_v2(passed->array, passed->desc));
}

static CUresult make_array_v1(struct gpc_passed_call *call)
{
	struct passed *passed = (struct passed *)call;

	return note(passed, real_cuArrayCreate(passed->array, passed->desc));
}

static CUresult make_array_3d(struct gpc_passed_call *call)
{
	struct passed *passed = (struct passed *)call;

	return note(passed, real_cuArray3DCreate_v2(passed->array, passed->desc));
}

static CUresult make_array_3d_v1(struct gpc_passed_call *call)
{
	struct passed *passed = (struct passed *)call;

	return note(passed, real_cuArray3DCreate(passed->array, passed->desc));
}

static CUresult make_mipmapped(struct gpc_passed_call *call)
{
	struct passed *passed = (struct passed *)call;

	return note(passed,
		real_cuMipmappedArrayCreate(passed->mipmapped, passed->desc, passed->n_levels));
}

/* `shape` is what `desc` says, in the form of today. */
static CUresult create(struct passed *passed, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
	struct gpc_array_bytes bytes = gpc_array_bytes(shape, passed->n_levels);
	CUresult result;

	passed->call.kind = GPUCACHE_KIND_ARRAY;
	passed->call.size = bytes.asked;
	passed->held_bytes = bytes.held;
	result = gpc_runtime_passed_malloc(&passed->call);
	gpc_runtime_leave();
	return result;
}

CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	struct passed passed = {
		.call = { .make = make_array },
		.array = pHandle,
		.desc = pAllocateArray,
		.n_levels = 1,
	};

	if (!pHandle || !pAllocateArray || !enter())
		return real_cuArrayCreate_v2(pHandle, pAllocateArray);
	return create(&passed, &(CUDA_ARRAY3D_DESCRIPTOR){
				       .Width = pAllocateArray->Width,
				       .Height = pAllocateArray->Height,
				       .Format = pAllocateArray->Format,
				       .NumChannels = pAllocateArray->NumChannels,
			       });
}

CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray)
{
	struct passed passed = {
		.call = { .make = make_array_v1 },
		.array = pHandle,
		.desc = pAllocateArray,
		.n_levels = 1,
	};

	if (!pHandle || !pAllocateArray || !enter())
		return real_cuArrayCreate(pHandle, pAllocateArray);
	return create(&passed, &(CUDA_ARRAY3D_DESCRIPTOR){
				       .Width = pAllocateArray->Width,
				       .Height = pAllocateArray->Height,
				       .Format = pAllocateArray->Format,
				       .NumChannels = pAllocateArray->NumChannels,
			       });
}

CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	struct passed passed = {
		.call = { .make = make_array_3d },
		.array = pHandle,
		.desc = pAllocateArray,
		.n_levels = 1,
	};

	if (!pHandle || !pAllocateArray || !enter())
		return real_cuArray3DCreate_v2(pHandle, pAllocateArray);
	return create(&passed, pAllocateArray);
}

CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
{
	struct passed passed = {
		.call = { .make = make_array_3d_v1 },
		.array = pHandle,
		.desc = pAllocateArray,
		.n_levels = 1,
	};

	if (!pHandle || !pAllocateArray || !enter())
		return real_cuArray3DCreate(pHandle, pAllocateArray);
	return create(&passed, &(CUDA_ARRAY3D_DESCRIPTOR){
				       .Width = pAllocateArray->Width,
				       .Height = pAllocateArray->Height,
				       .Depth = pAllocateArray->Depth,
				       .Format = pAllocateArray->Format,
				       .NumChannels = pAllocateArray->NumChannels,
				       .Flags = pAllocateArray->Flags,
			       });
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
	const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc, unsigned int numMipmapLevels)
{
	struct passed passed = {
		.call = { .make = make_mipmapped },
		.mipmapped = pHandle,
		.desc = pMipmappedArrayDesc,
		.n_levels = numMipmapLevels,
	};

	if (!pHandle || !pMipmappedArrayDesc || !enter())
		return real_cuMipmappedArrayCreate(pHandle, pMipmappedArrayDesc, numMipmapLevels);
	return create(&passed, pMipmappedArrayDesc);
}

CUresult cuArrayDestroy(CUarray hArray)
{
	struct gpc_tracked *tracked;
	CUresult result;

	if (!enter())
		return real_cuArrayDestroy(hArray);
	tracked = gpc_runtime_forget_key(GPUCACHE_KIND_ARRAY, (uint64_t)(uintptr_t)hArray);
	result = real_cuArrayDestroy(hArray);
	gpc_runtime_forgotten(tracked, result);
	gpc_runtime_leave();
	return result;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	struct gpc_tracked *tracked;
	CUresult result;

	if (!enter())
		return real_cuMipmappedArrayDestroy(hMipmappedArray);
	tracked = gpc_runtime_forget_key(GPUCACHE_KIND_ARRAY, (uint64_t)(uintptr_t)hMipmappedArray);
	result = real_cuMipmappedArrayDestroy(hMipmappedArray);
	gpc_runtime_forgotten(tracked, result);
	gpc_runtime_leave();
	return result;
}
