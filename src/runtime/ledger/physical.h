/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference counts of physical memory: handles, retains, imports and mappings.
 *
 * Threads   Any.
 * Failure   Memory without an entry is assumed to be freed by its release.
 */
#ifndef GPC_RUNTIME_LEDGER_PHYSICAL_H
#define GPC_RUNTIME_LEDGER_PHYSICAL_H

#include <stdint.h>

#include "driver/cuda_fns.h"

struct gpc_mapping;
struct gpc_tracked;

/*
 * Physical memory lives until the last reference to its handle and its last mapping are gone.  Call these after the
 * driver created the memory (an old handle of the same number was freed unseen), retained or imported it, or mapped it.
 */
void gpc_runtime_handle_created(uint64_t handle);
void gpc_runtime_handle_held(uint64_t handle);
void gpc_runtime_handle_mapped(uint64_t handle, uint64_t address, uint64_t size);

/* cuMemRelease and cuMemUnmap: begin before the driver's call, end after it. */
struct gpc_release {
	uint64_t handle; /* released; 0: none */
	struct gpc_tracked *tracked;
	struct gpc_mapping *mappings;
};
struct gpc_release gpc_runtime_begin_release(uint64_t handle);
struct gpc_release gpc_runtime_begin_unmap(uint64_t address, uint64_t size);
void gpc_runtime_end_release(struct gpc_release release, CUresult result);

#endif
