/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points of CUDA 2 and 3.1, whose addresses and sizes have 32 bits: there, and refused.
 *
 * No address of today has 32 bits.  Programs look some of them up all the same, and take the driver for none if
 * they are missing; hashcat does so with cuMemsetD8 and cuMemsetD32, which it never calls.
 */
#include "simcuda/face.h"

CUresult cuMemAlloc(CUdeviceptr_v1 *ptr, unsigned int size)
{
	(void)ptr;
	(void)size;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *ptr, unsigned int *pitch, unsigned int width,
	unsigned int height, unsigned int element)
{
	(void)ptr;
	(void)pitch;
	(void)width;
	(void)height;
	(void)element;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemFree(CUdeviceptr_v1 ptr)
{
	(void)ptr;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total)
{
	(void)free_bytes;
	(void)total;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *size, CUdeviceptr_v1 ptr)
{
	(void)base;
	(void)size;
	(void)ptr;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemsetD8(CUdeviceptr_v1 dst, unsigned char v, unsigned int n)
{
	(void)dst;
	(void)v;
	(void)n;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemsetD32(CUdeviceptr_v1 dst, unsigned int v, unsigned int n)
{
	(void)dst;
	(void)v;
	(void)n;
	return CUDA_ERROR_NOT_SUPPORTED;
}
