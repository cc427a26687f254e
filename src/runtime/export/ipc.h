/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that leaves the process by handle, and memory of others that comes in.
 *
 * A block that starts its segment has the driver's handle; one further inside gets a tag (ipc_registry.h), or, where that
 * cannot be, an error and a line on stderr.
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

/* Memory of another process is open at this address. */
void gpc_runtime_imported(CUdeviceptr ptr);

/*
 * Memory that other processes open by handle.  The real functions are the driver's.
 *
 * A block that starts its segment has the driver's handle; one further inside gets a tag
 * (ipc_registry.h), or, where that cannot be, an error and a line on stderr.
 */
CUresult gpc_runtime_ipc_export(CUipcMemHandle *ret_handle, CUdeviceptr ptr,
	CUresult (*real)(CUipcMemHandle *, CUdeviceptr));
CUresult gpc_runtime_ipc_open(CUdeviceptr *ret_ptr, CUipcMemHandle handle, unsigned int flags,
	CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned int),
	CUresult (*real_close)(CUdeviceptr));
CUresult gpc_runtime_ipc_close(CUdeviceptr ptr, CUresult (*real_close)(CUdeviceptr));

/* The program asks for the number of the allocation in which `ptr` lies: the driver's, of the whole segment. */
void gpc_runtime_identified(CUdeviceptr ptr);

/*
 * The program asks in which allocation `ptr` lies.  The truth is the driver's, and a base that it tells
 * binds us: false, ask it.  True: this is a block with a handle of its own, or what such a handle
 * opened, and everybody takes it for an allocation.
 */
bool gpc_runtime_ipc_range(
	CUdeviceptr ptr, bool is_base_told, CUdeviceptr *ret_base, size_t *ret_size);

/* The same, and others will hold the memory: its segment is never recycled from here on. */
void gpc_runtime_exported(CUdeviceptr ptr);

/*
 * The block that starts here is about to be freed, the context died, the process ends or is
 * a child of fork: what was exported is withdrawn, what was opened is forgotten.
 */
void gpc_ipc_withdraw(uint64_t address);
void gpc_ipc_forget_context(const struct gpc_context *context);
void gpc_ipc_end(bool is_child);

#endif
