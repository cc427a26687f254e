/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points that exist and fail: programs link them, or look them up, and reject a driver without them.
 *
 * The variants of CUDA 2 and 3.1 take 32-bit addresses, too short for today's memory; hashcat looks up cuMemsetD8 and
 * cuMemsetD32 but never calls them.  The functions of lacking.def are not simulated, which their first call prints;
 * PyCUDA links all of them.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "sim/libcuda/face.h"

/* Callers may pass any arguments, which are ignored. */
#define LACKS(name)                                                                       \
	__attribute__((visibility("default"))) CUresult name(void);                       \
	CUresult name(void)                                                               \
	{                                                                                 \
		static atomic_flag is_told = ATOMIC_FLAG_INIT;                            \
                                                                                          \
		if (!atomic_flag_test_and_set(&is_told))                                  \
			fprintf(stderr, "gpusim: libcuda: %s is not simulated\n", #name); \
		return CUDA_ERROR_NOT_SUPPORTED;                                          \
	}
#include "sim/libcuda/lacking.def"

/* ---- 32 bits ---- */

CUresult cuMemAlloc(CUdeviceptr_v1 *ptr, unsigned int size)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *ptr, unsigned int *pitch, unsigned int width,
	unsigned int height, unsigned int element)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemFree(CUdeviceptr_v1 ptr)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *size, CUdeviceptr_v1 ptr)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemsetD8(CUdeviceptr_v1 dst, unsigned char v, unsigned int n)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemsetD32(CUdeviceptr_v1 dst, unsigned int v, unsigned int n)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}
