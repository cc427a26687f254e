/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's caching allocator, as far as others can see it: segments, tensors in them, and a report of each. */
#pragma once

#include <cstddef>
#include <cstdint>

namespace c10
{

struct Device {
	int8_t type;
	int8_t index;
};

__attribute__((visibility("default"))) void reportMemoryUsageToProfiler(
	void *ptr, int64_t size, size_t allocated, size_t reserved, Device device);
__attribute__((visibility("default"))) void reportOutOfMemoryToProfiler(
	int64_t size, size_t allocated, size_t reserved, Device device);

} // namespace c10

namespace c10::cuda
{

class __attribute__((visibility("default"))) CUDAStream
{
    public:
	CUDAStream(Device device, int64_t id) : device_(device), id_(id)
	{
	}
	void *stream() const;

    private:
	Device device_;
	int64_t id_;
};

__attribute__((visibility("default"))) CUDAStream getCurrentCUDAStream(int8_t device);

} // namespace c10::cuda

extern thread_local void *c10_stream; /* the one that this thread works on */

struct cache_sums {
	uint64_t allocated, reserved, n_malloc, n_free, n_failed;
};

extern cache_sums c10_sums;
void *c10_allocate(size_t size); /* NULL: out of memory */
bool c10_expand(size_t size); /* as expandable segments: in pages, which go back if not all of them come */
void c10_free(void *ptr, size_t size);
void c10_renew(void *ptr, size_t size); /* frees it, and has it again at once */
uint64_t c10_reports(); /* how many came through to libc10 */
