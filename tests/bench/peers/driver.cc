// SPDX-License-Identifier: Apache-2.0
// cuMemAlloc and cuMemFree, without the runtime library.
#include <cuda.h>

#include "peer.hh"

void start() {}

void *take(std::size_t size)
{
	CUdeviceptr ptr = 0;

	if (cuMemAlloc(&ptr, size) != CUDA_SUCCESS)
		std::_Exit(3);
	return reinterpret_cast<void *>(ptr);
}

void give(void *ptr, std::size_t)
{
	cuMemFree(reinterpret_cast<CUdeviceptr>(ptr));
}
