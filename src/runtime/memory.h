/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain device memory: the entry points of the cache.
 *
 * Threads   Any.
 * Failure   CUresult: the driver's own if the driver was called, else the code that the driver would return.
 */
#ifndef GPC_RUNTIME_MEMORY_H
#define GPC_RUNTIME_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_fns.h"
#include "driver/driver.h"

/* cuMemAlloc, cuMemFree and cuMemFreeAsync.  *ret_is_ours false: the address is not in the cache, and was not freed. */
CUresult gpc_runtime_malloc(CUdeviceptr *ret_ptr, size_t size);
CUresult gpc_runtime_free(CUdeviceptr ptr, bool *ret_is_ours);
CUresult gpc_runtime_free_async(CUdeviceptr ptr, CUstream stream, bool *ret_is_ours);

/*
 * True in a child process for a block of its parent's cache.  The driver must not free it: after a raw clone, which
 * runs no atfork handler, the child's driver has the parent's handles and would free the whole segment for both.
 */
bool gpc_runtime_is_of_parent(CUdeviceptr ptr);

/* Corrects the driver's answer to cuMemGetInfo: idle segments are free, a limit bounds both.  Either may be NULL. */
void gpc_runtime_adjust_free(size_t *available, size_t *total);

/*
 * As gpc_runtime_malloc and gpc_runtime_free, with a stream named by the program (alloc/stream_order.h).
 * gpc_runtime_record_use declares that the block is used on a stream that its free will not name.  Memory outside the
 * cache needs no such call, because its free waits for all streams.
 */
CUresult gpc_runtime_malloc_on(CUdeviceptr *ret_ptr, size_t size, CUstream stream);
CUresult gpc_runtime_free_on(CUdeviceptr ptr, CUstream stream, bool *ret_is_ours);
CUresult gpc_runtime_record_use(CUdeviceptr ptr, bool *ret_is_ours);

/*
 * The stream's name in alloc/stream_order.h; 0: none, because the handle stands for several streams.  All per-thread
 * default streams share one handle, and NULL may mean one of them in a program that uses them.  NULL also stands for
 * several streams once there are green contexts, each of which has a legacy stream of its own.
 */
gpc_stream gpc_runtime_order_of(CUstream stream);

/*
 * Call when the program suballocates from the device memory that starts here.  From now on each piece counts for the
 * stack that allocated the piece, and the whole memory for none.  No-op with tensors:off.
 */
void gpc_memory_mark_arena(uint64_t address);

#endif
