/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain device memory: the entry points of the cache.
 *
 * Threads   Any.
 * Failure   CUresult, the driver's own if the driver was called.
 */
#ifndef GPC_RUNTIME_MEMORY_H
#define GPC_RUNTIME_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_fns.h"
#include "driver/driver.h"

/* cuMemAlloc, cuMemFree and cuMemFreeAsync.  *ret_is_ours false: not in the cache; free it elsewhere. */
CUresult gpc_runtime_malloc(CUdeviceptr *ret_ptr, size_t size);
CUresult gpc_runtime_free(CUdeviceptr ptr, bool *ret_is_ours);
CUresult gpc_runtime_free_async(CUdeviceptr ptr, CUstream stream, bool *ret_is_ours);

/*
 * In a child: true for a block of the parent's cache.  After a raw clone, which no handler sees, the
 * driver still has the parent's handles and would free the segment for the parent, too.
 */
bool gpc_runtime_is_of_parent(CUdeviceptr ptr);

/* cuMemGetInfo: counts idle segments as free, and applies limits. */
void gpc_runtime_adjust_free(size_t *available, size_t *total);

/*
 * As gpc_runtime_malloc and gpc_runtime_free, with a stream named by the program (alloc/stream_order.h).
 * gpc_runtime_record_use declares use by a stream that the free will not name; memory outside the cache needs
 * no such call, because its free waits for all streams.
 */
CUresult gpc_runtime_malloc_on(CUdeviceptr *ret_ptr, size_t size, CUstream stream);
CUresult gpc_runtime_free_on(CUdeviceptr ptr, CUstream stream, bool *ret_is_ours);
CUresult gpc_runtime_record_use(CUdeviceptr ptr, bool *ret_is_ours);

/*
 * The stream's name in alloc/stream_order.h; 0: it has none, because the handle stands for several streams.
 * Per-thread default streams share one handle, and in a program that uses them NULL may mean one, too.
 * Each green context has its own legacy stream.
 */
gpc_stream gpc_runtime_order_of(CUstream stream);

/*
 * Call when the program suballocates from the device memory that starts here: from now on only the pieces
 * count, each for its own stack.
 */
void gpc_memory_lend(uint64_t address);

#endif
