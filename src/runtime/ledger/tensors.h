/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors: what PyTorch's allocator hands out of the memory that it got from us.
 *
 * Threads   Any.
 * Failure   Without metadata a tensor counts in sums only.
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
 * PyTorch's allocator handed out `size` bytes, or took -size back, and says what it then has
 * on that device; it could not hand out so many.
 */
void gpc_runtime_tensor(int device, uint64_t address, int64_t size, uint64_t allocated_bytes,
	uint64_t reserved_bytes, gpc_tensor_stream *find_stream);
void gpc_runtime_tensor_failed(
	int device, int64_t size, uint64_t allocated_bytes, uint64_t reserved_bytes);

/* This thread got device memory; PyTorch's, if its next tensor lies in it. */
void gpc_tensors_note_malloc(uint64_t address, uint64_t size);

/* This thread's request failed for good, as OOM `number`; why PyTorch gives up, if that is next. */
void gpc_tensors_note_failure(const struct gpc_device *device, uint64_t number);

/* What PyTorch has on the device, as of its last tensor there. */
struct gpucache_oom_torch gpc_tensors_have(const struct gpc_device *device);

/* What PyTorch keeps of a device in no tensor; how many tensors it ever made there. */
uint64_t gpc_tensors_idle_bytes(const struct gpc_device *device);
uint64_t gpc_tensors_n_malloc(const struct gpc_device *device);
uint64_t gpc_tensors_n_free(const struct gpc_device *device);

#endif
