// SPDX-License-Identifier: Apache-2.0
// PyTorch's allocator, from the wheel.  HISTORY=state records its memory history; HISTORY=cpp with C++ stacks.
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/csrc/profiler/combined_traceback.h>

#include "peer.hh"

namespace allocator = c10::cuda::CUDACachingAllocator;

static std::shared_ptr<c10::GatheredContext> gather()
{
	return torch::CapturedTraceback::gather(false, false, true);
}

void start()
{
	const char *history = std::getenv("HISTORY");

	allocator::init(1);
	if (history)
		allocator::recordHistory(true, std::strcmp(history, "cpp") ? nullptr : gather, 10000,
			std::strcmp(history, "cpp") ? allocator::RecordContext::NEVER : allocator::RecordContext::ALLOC, true, {});
}

void *take(std::size_t size)
{
	try {
		return allocator::raw_alloc(size);
	} catch (const c10::Error &) {
		std::_Exit(3);
	}
}

void give(void *ptr, std::size_t)
{
	allocator::raw_delete(ptr);
}
