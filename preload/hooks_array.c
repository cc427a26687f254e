/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, tracked by handle.  The driver does not report their size, so driver/array_bytes.h computes it. */
#include "driver/array_bytes.h"
#include "preload/shapes.h"

/* The bytes of an array, from a descriptor of any version. */
#define BYTES_2D(desc)                                                      \
	gpc_array_bytes(&(CUDA_ARRAY3D_DESCRIPTOR){ .Width = (desc)->Width, \
				.Height = (desc)->Height,                   \
				.Format = (desc)->Format,                   \
				.NumChannels = (desc)->NumChannels },       \
		1)
#define BYTES_3D(desc)                                                      \
	gpc_array_bytes(&(CUDA_ARRAY3D_DESCRIPTOR){ .Width = (desc)->Width, \
				.Height = (desc)->Height,                   \
				.Depth = (desc)->Depth,                     \
				.Format = (desc)->Format,                   \
				.NumChannels = (desc)->NumChannels,         \
				.Flags = (desc)->Flags },                   \
		1)

/* clang-format off */
#define ARRAY(name, bytes, of_desc)                                                           \
	TRACKED(name, array && desc, ARRAY, bytes(desc).asked, bytes(a->desc).held, *a->array, \
		(CUarray *array, const of_desc *desc), (array, desc))

ARRAY(cuArrayCreate, BYTES_2D, CUDA_ARRAY_DESCRIPTOR_v1)
ARRAY(cuArrayCreate_v2, BYTES_2D, CUDA_ARRAY_DESCRIPTOR)
ARRAY(cuArray3DCreate, BYTES_3D, CUDA_ARRAY3D_DESCRIPTOR_v1)
ARRAY(cuArray3DCreate_v2, BYTES_3D, CUDA_ARRAY3D_DESCRIPTOR)

TRACKED(cuMipmappedArrayCreate, array && desc, ARRAY, gpc_array_bytes(desc, n_levels).asked,
	gpc_array_bytes(a->desc, a->n_levels).held, *a->array,
	(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int n_levels),
	(array, desc, n_levels))
/* clang-format on */

FREED(cuArrayDestroy, ARRAY, CUarray)
FREED(cuMipmappedArrayDestroy, ARRAY, CUmipmappedArray)
