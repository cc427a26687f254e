// SPDX-License-Identifier: Apache-2.0
// cudaMalloc and cudaFree, of the plain driver or with gpucache preloaded.
#include "peer.hh"

void start() {}

void *take(std::size_t size)
{
	void *ptr = nullptr;

	if (cudaMalloc(&ptr, size) != cudaSuccess)
		std::_Exit(3);
	return ptr;
}

void give(void *ptr, std::size_t)
{
	cudaFree(ptr);
}
