/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain device memory: the front door of the cache.
 *
 * Threads   Any.
 * Failure   CUresult, the driver's own wherever the driver was asked.
 */
#ifndef GPC_RUNTIME_MEMORY_H
#define GPC_RUNTIME_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_fns.h"
#include "driver/driver.h"

/* Plain device memory: cuMemAlloc, cuMemFree, cuMemFreeAsync, cuMemGetInfo. */
CUresult gpc_runtime_malloc(CUdeviceptr *ret_ptr, size_t size);
CUresult gpc_runtime_free(CUdeviceptr ptr, bool *ret_is_ours);
CUresult gpc_runtime_free_async(CUdeviceptr ptr, CUstream stream, bool *ret_is_ours);

/*
 * In a child: a block of its parent's cache.  After a raw clone, which no handler sees, the driver
 * still holds the parent's handles and would free the segment, for the parent, too.
 */
bool gpc_runtime_is_of_parent(CUdeviceptr ptr);
void gpc_runtime_adjust_free(size_t *available, size_t *total);

/*
 * The same where the program names the stream (alloc/stream_order.h).  A use by other streams than
 * the one that its free will name; not ours: memory of the driver, whose free waits for all.
 */
CUresult gpc_runtime_malloc_on(CUdeviceptr *ret_ptr, size_t size, CUstream stream);
CUresult gpc_runtime_free_on(CUdeviceptr ptr, CUstream stream, bool *ret_is_ours);
CUresult gpc_runtime_record_use(CUdeviceptr ptr, bool *ret_is_ours);

/*
 * The stream as the allocator's orders name it; 0: its order is not kept.  A per-thread default
 * stream has one handle for all threads; and where a program uses those at all, NULL may be meant
 * as one, too.  Each green context has a legacy stream of its own.
 */
gpc_stream gpc_runtime_order_of(CUstream stream);

/*
 * Who holds the device memory that starts here hands out pieces of it, which have holders of
 * their own: its stack holds it no longer.
 */
void gpc_memory_lend(uint64_t address);

#endif
