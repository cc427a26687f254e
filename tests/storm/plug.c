/* SPDX-License-Identifier: Apache-2.0 */
/* A library that allocates, and that storm.c closes. */
#include <cuda.h>

CUresult plug_take(CUdeviceptr *ret_ptr, size_t size);

CUresult plug_take(CUdeviceptr *ret_ptr, size_t size)
{
	return cuMemAlloc_v2(ret_ptr, size);
}
