/* SPDX-License-Identifier: Apache-2.0 */
/* What PyTorch does and reports, for tests. */
#ifndef GPC_TESTS_UNIT_RUNTIME_TORCH_SIDE_H
#define GPC_TESTS_UNIT_RUNTIME_TORCH_SIDE_H

#include "runtime/ledger/tensors.h"
#include "runtime/process/enter.h"
#include "world.h"

/* The PyTorch side: its allocator's state and reports, and the stream of its thread. */
static struct {
	uint64_t allocated;
	uint64_t reserved;
	CUstream stream;
	bool has_streams;
} torch;

static inline bool find_stream(int device, CUstream *ret_stream)
{
	CHECK(device == 0);
	*ret_stream = torch.stream;
	return torch.has_streams;
}

static inline void tell(CUdeviceptr ptr, int64_t size)
{
	torch.allocated += (uint64_t)size;
	CHECK(world_enter());
	gpc_runtime_tensor(0, ptr, size, torch.allocated, torch.reserved, find_stream);
	gpc_runtime_leave();
}

static inline CUdeviceptr segment(size_t size)
{
	CUdeviceptr ptr = 0;

	CHECK(!world_malloc(&ptr, size));
	torch.reserved += size;
	return ptr;
}

#endif
