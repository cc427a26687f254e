/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: arrays.
 *
 * An array is memory of its context at a hidden address, laid out row by row, of the size given by
 * driver/array_bytes.h.  A level of a mipmapped array is a view of it that lives as long as the array.
 */
#include <stdlib.h>

#include "base/bytes.h"
#include "driver/array_bytes.h"
#include "sim/libcuda/face.h"

#define ARRAY_MAGIC    UINT32_C(0x61727279)
#define MAX_LEVELS     20
#define ROW_BYTES      64
#define LEVEL_AT(side) ((side) > 1 ? (side) : 1)

struct CUarray_st {
	uint32_t magic;
	bool is_level;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	uint64_t base; /* 0: the array has no memory of its own */
	uint64_t pitch;
};

struct CUmipmappedArray_st {
	uint32_t magic;
	unsigned n_levels;
	uint64_t base;
	struct CUarray_st levels[MAX_LEVELS];
};

/* The bytes of the longest row. */
static uint64_t row_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	CUDA_ARRAY3D_DESCRIPTOR row = *desc;

	row.Height = 0;
	row.Depth = 0;
	return gpc_array_bytes(&row, 1).asked;
}

static struct CUarray_st level(const CUDA_ARRAY3D_DESCRIPTOR *desc, uint64_t base)
{
	return (struct CUarray_st){
		.magic = ARRAY_MAGIC,
		.desc = *desc,
		.base = base,
		.pitch = gpc_round_up(row_bytes(desc), ROW_BYTES),
	};
}

static bool is_good(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	CUDA_ARRAY3D_DESCRIPTOR plain;

	if (!desc)
		return false;
	plain = *desc;
	plain.Flags &= ~(unsigned)(CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING);
	return desc->Width && gpc_array_bytes(&plain, 1).asked &&
	       (desc->NumChannels == 1 || desc->NumChannels == 2 || desc->NumChannels == 4);
}

/* Allocates memory for `n` mipmap levels; *ret_base is 0 if the program maps memory of its own later. */
static CUresult give_memory(
	const char *entry, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned n, uint64_t *ret_base)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_MALLOC, entry, &context);
	uint64_t bytes;

	if (res != CUDA_SUCCESS)
		return res;
	if (!is_good(desc))
		return CUDA_ERROR_INVALID_VALUE;
	bytes = gpc_array_bytes(desc, n).held;
	*ret_base = 0;
	return bytes ? gpc_sim_mem_alloc(context, bytes, ret_base) : CUDA_SUCCESS;
}

static CUresult create(const char *entry, CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	struct CUarray_st *made;
	uint64_t base = 0;
	CUresult res = array ? give_memory(entry, desc, 1, &base) : CUDA_ERROR_INVALID_VALUE;

	if (res != CUDA_SUCCESS)
		return res;
	made = malloc(sizeof *made);
	if (!made) {
		(void)gpc_sim_mem_free(face_sim(), base);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*made = level(desc, base);
	*array = made;
	return CUDA_SUCCESS;
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return create("cuArray3DCreate_v2", array, desc);
}

/* Of both versions, whose descriptors are of two types. */
#define CREATE(name, type)                                                \
	CUresult name(CUarray *array, const type *desc)                   \
	{                                                                 \
		if (!desc)                                                \
			return CUDA_ERROR_INVALID_VALUE;                  \
		return create(#name, array,                               \
			&(CUDA_ARRAY3D_DESCRIPTOR){ .Width = desc->Width, \
				.Height = desc->Height,                   \
				.Format = desc->Format,                   \
				.NumChannels = desc->NumChannels });      \
	}
CREATE(cuArrayCreate_v2, CUDA_ARRAY_DESCRIPTOR)
CREATE(cuArrayCreate, CUDA_ARRAY_DESCRIPTOR_v1)

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc)
{
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	return create("cuArray3DCreate", array,
		&(CUDA_ARRAY3D_DESCRIPTOR){ .Width = desc->Width,
			.Height = desc->Height,
			.Depth = desc->Depth,
			.Format = desc->Format,
			.NumChannels = desc->NumChannels,
			.Flags = desc->Flags });
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray array)
{
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	if (!array || array->magic != ARRAY_MAGIC)
		return CUDA_ERROR_INVALID_HANDLE;
	*desc = array->desc;
	return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray array)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_FREE, "cuArrayDestroy", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!array || array->magic != ARRAY_MAGIC || array->is_level)
		return CUDA_ERROR_INVALID_HANDLE;
	if (array->base)
		res = gpc_sim_mem_free(face_sim(), array->base);
	if (res != CUDA_SUCCESS)
		return res;
	array->magic = 0;
	free(array);
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(
	CUmipmappedArray *mipmapped, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int n)
{
	struct CUmipmappedArray_st *made;
	uint64_t base = 0;
	CUresult res = mipmapped && n ? give_memory("cuMipmappedArrayCreate", desc, n, &base)
				      : CUDA_ERROR_INVALID_VALUE;

	if (res != CUDA_SUCCESS)
		return res;
	made = calloc(1, sizeof *made);
	if (!made) {
		(void)gpc_sim_mem_free(face_sim(), base);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	made->magic = ARRAY_MAGIC;
	made->base = base;
	made->n_levels = n < MAX_LEVELS ? n : MAX_LEVELS;
	for (unsigned i = 0; i < made->n_levels; i++) {
		CUDA_ARRAY3D_DESCRIPTOR part = *desc;

		part.Width = LEVEL_AT(desc->Width >> i);
		part.Height = desc->Height ? LEVEL_AT(desc->Height >> i) : 0;
		made->levels[i] = level(&part, base + (i ? gpc_array_bytes(desc, i).held : 0));
		made->levels[i].is_level = true;
	}
	*mipmapped = made;
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(CUarray *array, CUmipmappedArray mipmapped, unsigned int number)
{
	if (!mipmapped || mipmapped->magic != ARRAY_MAGIC)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!array || number >= mipmapped->n_levels)
		return CUDA_ERROR_INVALID_VALUE;
	*array = &mipmapped->levels[number];
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmapped)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_FREE, "cuMipmappedArrayDestroy", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!mipmapped || mipmapped->magic != ARRAY_MAGIC)
		return CUDA_ERROR_INVALID_HANDLE;
	if (mipmapped->base)
		res = gpc_sim_mem_free(face_sim(), mipmapped->base);
	if (res != CUDA_SUCCESS)
		return res;
	mipmapped->magic = 0;
	free(mipmapped);
	return CUDA_SUCCESS;
}

bool face_array_find(CUarray array, uint64_t *ret_base, uint64_t *ret_pitch)
{
	if (!array || array->magic != ARRAY_MAGIC || !array->base)
		return false;
	*ret_base = array->base;
	*ret_pitch = array->pitch;
	return true;
}
