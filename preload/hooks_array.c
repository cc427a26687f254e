/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, known by their handles.  The driver does not say how large one is: driver/array_bytes.h. */
#include "driver/array_bytes.h"
#include "preload/shapes.h"

/* What each kind of descriptor says, in the form of today. */
static struct gpc_array_bytes bytes_3d(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return gpc_array_bytes(desc, 1);
}

static struct gpc_array_bytes bytes_2d(const CUDA_ARRAY_DESCRIPTOR *desc)
{
	return bytes_3d(&(CUDA_ARRAY3D_DESCRIPTOR){
		.Width = desc->Width,
		.Height = desc->Height,
		.Format = desc->Format,
		.NumChannels = desc->NumChannels,
	});
}

static struct gpc_array_bytes bytes_2d_v1(const CUDA_ARRAY_DESCRIPTOR_v1 *desc)
{
	return bytes_2d(&(CUDA_ARRAY_DESCRIPTOR){
		.Width = desc->Width,
		.Height = desc->Height,
		.Format = desc->Format,
		.NumChannels = desc->NumChannels,
	});
}

static struct gpc_array_bytes bytes_3d_v1(const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc)
{
	return bytes_3d(&(CUDA_ARRAY3D_DESCRIPTOR){
		.Width = desc->Width,
		.Height = desc->Height,
		.Depth = desc->Depth,
		.Format = desc->Format,
		.NumChannels = desc->NumChannels,
		.Flags = desc->Flags,
	});
}

/* clang-format off */
#define ARRAY(name, bytes, of_desc)                                                                \
	TRACKED(name, array && desc, ARRAY, bytes(desc).asked, bytes(a->desc).held, *a->array,     \
		(CUarray *array, const of_desc *desc), (array, desc), (a->array, a->desc),         \
		CUarray *array; const of_desc *desc;)

ARRAY(cuArrayCreate, bytes_2d_v1, CUDA_ARRAY_DESCRIPTOR_v1)
ARRAY(cuArrayCreate_v2, bytes_2d, CUDA_ARRAY_DESCRIPTOR)
ARRAY(cuArray3DCreate, bytes_3d_v1, CUDA_ARRAY3D_DESCRIPTOR_v1)
ARRAY(cuArray3DCreate_v2, bytes_3d, CUDA_ARRAY3D_DESCRIPTOR)

TRACKED(cuMipmappedArrayCreate, array && desc, ARRAY,
	gpc_array_bytes(desc, n_levels).asked, gpc_array_bytes(a->desc, a->n_levels).held, *a->array,
	(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int n_levels),
	(array, desc, n_levels), (a->array, a->desc, a->n_levels),
	CUmipmappedArray *array; const CUDA_ARRAY3D_DESCRIPTOR *desc; unsigned int n_levels;)
/* clang-format on */

FREED(cuArrayDestroy, ARRAY, CUarray)
FREED(cuMipmappedArrayDestroy, ARRAY, CUmipmappedArray)
