/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IPC: memory exported to other processes by handle, and memory imported from them.
 *
 * A block at the start of its segment has the driver's handle; one inside gets a tag (ipc_registry.h), or, if none is
 * available, an error and a line on stderr.
 *
 * Threads   Any.
 * Failure   CUresult.
 */
#ifndef GPC_RUNTIME_EXPORT_IPC_H
#define GPC_RUNTIME_EXPORT_IPC_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_fns.h"

struct gpc_context;

/* Notes that memory of another process is open at this address. */
void gpc_runtime_imported(CUdeviceptr ptr);

/* cuIpcGetMemHandle, cuIpcOpenMemHandle and cuIpcCloseMemHandle; `real` is the driver's function. */
CUresult gpc_runtime_ipc_export(CUipcMemHandle *ret_handle, CUdeviceptr ptr,
	CUresult (*real)(CUipcMemHandle *, CUdeviceptr));
CUresult gpc_runtime_ipc_open(CUdeviceptr *ret_ptr, CUipcMemHandle handle, unsigned int flags,
	CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned int),
	CUresult (*real_close)(CUdeviceptr));
CUresult gpc_runtime_ipc_close(CUdeviceptr ptr, CUresult (*real_close)(CUdeviceptr));

/* Call when the program queries the buffer id of `ptr`, which is that of the whole segment. */
void gpc_runtime_identified(CUdeviceptr ptr);

/*
 * The allocation that contains `ptr`, for cuMemGetAddressRange.  Returns true for a block that is exported by a
 * handle of its own, and for memory opened by such a handle.  Returns false if the driver's answer stands: the
 * whole segment.  With is_base_told the program sees that base, and the answer is final (gpc_pool_decide_view).
 */
bool gpc_runtime_ipc_range(
	CUdeviceptr ptr, bool is_base_told, CUdeviceptr *ret_base, size_t *ret_size);

/* Marks the memory as held by other processes: its segment serves no more requests. */
void gpc_runtime_exported(CUdeviceptr ptr);

/*
 * Withdraw exports and forget imports: of the block that starts here, before its free; of a dead context;
 * at the end of the process or in a fork child.
 */
void gpc_ipc_withdraw(uint64_t address);
void gpc_ipc_forget_context(const struct gpc_context *context);
void gpc_ipc_end(bool is_child);

#endif
