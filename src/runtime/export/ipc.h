/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IPC: memory exported to other processes by handle, and memory imported from them.
 *
 * A block at the start of its segment has the driver's handle.  A block inside a segment gets a tag (ipc_registry.h)
 * instead.  If no tag can be made, the export fails with a line on stderr.
 *
 * Threads   Any.
 * Failure   CUresult: the driver's own, or CUDA_ERROR_NOT_SUPPORTED if no tag can be made, CUDA_ERROR_INVALID_VALUE for
 *           an address inside a segment without a live block there and for a tag whose block is gone, and
 *           CUDA_ERROR_OUT_OF_MEMORY without metadata.
 */
#ifndef GPC_RUNTIME_EXPORT_IPC_H
#define GPC_RUNTIME_EXPORT_IPC_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_fns.h"

struct gpc_context;

/* Call after the program imported memory of another process that is at this address now. */
void gpc_runtime_imported(CUdeviceptr ptr);

/* cuIpcGetMemHandle, cuIpcOpenMemHandle and cuIpcCloseMemHandle; `real` is the driver's function. */
CUresult gpc_runtime_ipc_export(CUipcMemHandle *ret_handle, CUdeviceptr ptr,
	CUresult (*real)(CUipcMemHandle *, CUdeviceptr));
CUresult gpc_runtime_ipc_open(CUdeviceptr *ret_ptr, CUipcMemHandle handle, unsigned int flags,
	CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned int),
	CUresult (*real_close)(CUdeviceptr));
CUresult gpc_runtime_ipc_close(CUdeviceptr ptr, CUresult (*real_close)(CUdeviceptr));

/* Call when the program queries the buffer id of `ptr`: all blocks of a segment have the same. */
void gpc_runtime_identified(CUdeviceptr ptr);

/*
 * The allocation that contains `ptr`, for cuMemGetAddressRange.  Returns true for a block that is exported by a tag,
 * and for memory opened by a tag.  Returns false if the driver's answer is right, which is the whole segment.  With
 * is_base_told the program gets the base of the range, so later answers for this block must agree
 * (gpc_pool_decide_view).
 */
bool gpc_runtime_ipc_range(
	CUdeviceptr ptr, bool is_base_told, CUdeviceptr *ret_base, size_t *ret_size);

/* Marks the memory as held by other processes: no more requests are served from its segment. */
void gpc_runtime_exported(CUdeviceptr ptr);

/*
 * gpc_ipc_withdraw makes the tag of the block at this address invalid, before its free.  gpc_ipc_forget_context makes
 * the tags of a dead context invalid, and forgets what it imported.  gpc_ipc_end removes the registry's file at the end
 * of the process; in a fork child it only closes the child's copy of the descriptor.
 */
void gpc_ipc_withdraw(uint64_t address);
void gpc_ipc_forget_context(const struct gpc_context *context);
void gpc_ipc_end(bool is_child);

#endif
