/* SPDX-License-Identifier: Apache-2.0 */
#include "cache.hh"

#include <cuda.h>

extern "C" int cudaMalloc(void **ptr, size_t size);

static const size_t STEP = 512;
static const size_t SEGMENT = 20 << 20;
static const size_t N_PAGES = 1024;
static const uintptr_t MAPPED = 0x700000000000; /* where the pages would be mapped */
static const c10::Device CUDA_0 = { 1, 0 };

static char *at;
static size_t room;
cache_sums c10_sums;
thread_local void *c10_stream;

namespace c10::cuda
{

/* An external stream's id is its handle, in PyTorch as well. */
CUDAStream getCurrentCUDAStream(int8_t device)
{
	return { { 1, device }, reinterpret_cast<int64_t>(c10_stream) };
}

void *CUDAStream::stream() const
{
	return reinterpret_cast<void *>(id_);
}

} // namespace c10::cuda

static size_t rounded(size_t size)
{
	return (size + STEP - 1) / STEP * STEP;
}

bool c10_expand(size_t size)
{
	CUmemAllocationProp prop = {};
	static CUmemGenericAllocationHandle pages[N_PAGES];
	size_t n = 0;

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	while (n < N_PAGES && n * SEGMENT < size && !cuMemCreate(&pages[n], SEGMENT, &prop, 0))
		n++;
	if (n * SEGMENT >= size) {
		c10_sums.reserved += n * SEGMENT;
		c10_sums.allocated += rounded(size);
		c10_sums.n_malloc++;
		c10::reportMemoryUsageToProfiler(reinterpret_cast<void *>(MAPPED),
			(int64_t)rounded(size), c10_sums.allocated, c10_sums.reserved, CUDA_0);
		return true;
	}
	while (n > 0)
		cuMemRelease(pages[--n]);
	c10_sums.n_failed++;
	c10::reportOutOfMemoryToProfiler(
		(int64_t)size, c10_sums.allocated, c10_sums.reserved, CUDA_0);
	return false;
}

void *c10_allocate(size_t size)
{
	size_t segment = size > SEGMENT ? rounded(size) : SEGMENT;
	void *ptr = at;

	size = rounded(size);
	if (size > room) {
		if (cudaMalloc(&ptr, segment)) {
			c10_sums.n_failed++;
			c10::reportOutOfMemoryToProfiler(
				(int64_t)size, c10_sums.allocated, c10_sums.reserved, CUDA_0);
			return nullptr;
		}
		c10_sums.reserved += segment;
		at = static_cast<char *>(ptr);
		room = segment;
	}
	at += size;
	room -= size;
	c10_sums.allocated += size;
	c10_sums.n_malloc++;
	c10::reportMemoryUsageToProfiler(
		ptr, (int64_t)size, c10_sums.allocated, c10_sums.reserved, CUDA_0);
	return ptr;
}

void c10_free(void *ptr, size_t size)
{
	c10_sums.allocated -= rounded(size);
	c10_sums.n_free++;
	c10::reportMemoryUsageToProfiler(
		ptr, -(int64_t)rounded(size), c10_sums.allocated, c10_sums.reserved, CUDA_0);
}

void c10_renew(void *ptr, size_t size)
{
	c10_free(ptr, size);
	c10_sums.allocated += rounded(size);
	c10_sums.n_malloc++;
	c10::reportMemoryUsageToProfiler(
		ptr, (int64_t)rounded(size), c10_sums.allocated, c10_sums.reserved, CUDA_0);
}
