// SPDX-License-Identifier: Apache-2.0
// CUB's caching allocator with its default bins: beyond 2 MiB it caches nothing, but for its limit.
#include <cub/util_allocator.cuh>

#include "peer.hh"

static cub::CachingDeviceAllocator *allocator;

void start()
{
	allocator = new cub::CachingDeviceAllocator(8, 3, 7, cub::CachingDeviceAllocator::INVALID_SIZE, true);
}

void *take(std::size_t size)
{
	void *ptr = nullptr;

	if (allocator->DeviceAllocate(&ptr, size, nullptr) != cudaSuccess)
		std::_Exit(3);
	return ptr;
}

void give(void *ptr, std::size_t)
{
	allocator->DeviceFree(ptr);
}
