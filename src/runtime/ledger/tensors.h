/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors: the allocations of PyTorch's allocator inside memory that it got from us.
 *
 * Threads   Any.
 * Failure   Without metadata a tensor counts only in sums.
 */
#ifndef GPC_RUNTIME_LEDGER_TENSORS_H
#define GPC_RUNTIME_LEDGER_TENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_fns.h"
#include "gpucache_format.h"

struct gpc_device;

/* The stream that PyTorch works on in this thread, on that device; false: not known. */
typedef bool gpc_tensor_stream(int device, CUstream *ret_stream);

/*
 * PyTorch's allocator allocated `size` bytes, or freed -size, and reports its sums on that device; _failed:
 * it could not allocate them.
 */
void gpc_runtime_tensor(int device, uint64_t address, int64_t size, uint64_t allocated_bytes,
	uint64_t reserved_bytes, gpc_tensor_stream *find_stream);
void gpc_runtime_tensor_failed(
	int device, int64_t size, uint64_t allocated_bytes, uint64_t reserved_bytes);

/* This thread allocated device memory, an arena of PyTorch's if the thread's next tensor lies in it. */
void gpc_tensors_note_malloc(uint64_t address, uint64_t size);

/* This thread's request failed as OOM `number`, the cause of PyTorch's failure if that follows. */
void gpc_tensors_note_failure(const struct gpc_device *device, uint64_t number);

/* PyTorch's sums on the device, as of its last tensor there. */
struct gpucache_oom_torch gpc_tensors_have(const struct gpc_device *device);

/* What PyTorch has reserved on a device and not handed out, in bytes. */
uint64_t gpc_tensors_idle_bytes(const struct gpc_device *device);

/* PyTorch's counters of a device; read them by gpc_counter_get.  Lock for writers: that of tensors.c. */
struct gpucache_torch *gpc_tensors_sums(const struct gpc_device *device);

#endif
