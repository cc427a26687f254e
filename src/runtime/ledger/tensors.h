/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors: the allocations of PyTorch's allocator inside memory that it got from us.
 *
 * Threads   Any.
 * Failure   Without metadata a tensor counts only in PyTorch's sums.
 */
#ifndef GPC_RUNTIME_LEDGER_TENSORS_H
#define GPC_RUNTIME_LEDGER_TENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_fns.h"
#include "gpucache_format.h"

struct gpc_device;

/* Gives PyTorch's current stream of this thread on that device; false: it is unknown. */
typedef bool gpc_tensor_stream(int device, CUstream *ret_stream);

/*
 * PyTorch's allocator allocated `size` bytes, or freed -size bytes, and reports its sums on that device.  _failed: it
 * could not allocate `size` bytes.
 */
void gpc_runtime_tensor(int device, uint64_t address, int64_t size, uint64_t allocated_bytes,
	uint64_t reserved_bytes, gpc_tensor_stream *find_stream);
void gpc_runtime_tensor_failed(
	int device, int64_t size, uint64_t allocated_bytes, uint64_t reserved_bytes);

/* This thread allocated device memory, which is an arena of PyTorch if the thread's next tensor lies in it. */
void gpc_tensors_note_malloc(uint64_t address, uint64_t size);

/* This thread's request failed as OOM `number`.  If PyTorch then reports a failure, this one is its cause. */
void gpc_tensors_note_failure(const struct gpc_device *device, uint64_t number);

/* PyTorch's sums on the device, as of its last tensor there. */
struct gpucache_oom_torch gpc_tensors_have(const struct gpc_device *device);

/* The bytes that PyTorch has reserved on a device and not handed out. */
uint64_t gpc_tensors_idle_bytes(const struct gpc_device *device);

/* PyTorch's counters of a device; read them by gpc_counter_get.  Lock for writers: that of tensors.c. */
struct gpucache_torch *gpc_tensors_sums(const struct gpc_device *device);

#endif
