/* SPDX-License-Identifier: Apache-2.0 */
/* What CUDAPluggableAllocator wants: memory of the runtime, without a cache. */
#include <cuda_runtime_api.h>
#include <sys/types.h>

void *take(ssize_t size, int device, cudaStream_t stream);
void give(void *ptr, ssize_t size, int device, cudaStream_t stream);

void *take(ssize_t size, int device, cudaStream_t stream)
{
	void *ptr = NULL;

	(void)device;
	(void)stream;
	return cudaMalloc(&ptr, (size_t)size) == cudaSuccess ? ptr : NULL;
}

void give(void *ptr, ssize_t size, int device, cudaStream_t stream)
{
	(void)size;
	(void)device;
	(void)stream;
	cudaFree(ptr);
}
