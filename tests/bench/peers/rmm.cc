// SPDX-License-Identifier: Apache-2.0
// RMM's pool, which begins with 2 MiB and grows, over cudaMalloc; or with ARENA its arena, which does not grow: it takes all.
#include <memory>

#ifdef ARENA
#include <rmm/mr/device/arena_memory_resource.hpp>
#else
#include <rmm/mr/device/pool_memory_resource.hpp>
#endif
#include <rmm/mr/device/cuda_memory_resource.hpp>

#include "peer.hh"

#ifdef ARENA
using resource = rmm::mr::arena_memory_resource<rmm::mr::cuda_memory_resource>;
#else
using resource = rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource>;
#endif

static rmm::mr::cuda_memory_resource upstream;
static resource *pool;

void start()
{
#ifdef ARENA
	std::size_t free = 0, total = 0;

	cudaMemGetInfo(&free, &total);
	pool = new resource(&upstream, free / (std::size_t{ 2 } << 20) * (std::size_t{ 2 } << 20));
#else
	pool = new resource(&upstream, std::size_t{ 2 } << 20);
#endif
}

void *take(std::size_t size)
{
	try {
		return pool->allocate(size, rmm::cuda_stream_view{});
	} catch (const std::exception &) {
		std::_Exit(3);
	}
}

void give(void *ptr, std::size_t size)
{
	pool->deallocate(ptr, size, rmm::cuda_stream_view{});
}
