/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds physical memory: handles, retains, imports and mappings.
 *
 * Threads   Any.
 * Failure   What finds no entry is taken to go with its release.
 */
#ifndef GPC_RUNTIME_LEDGER_PHYSICAL_H
#define GPC_RUNTIME_LEDGER_PHYSICAL_H

#include <stdint.h>

#include "driver/cuda_fns.h"

struct gpc_mapping;
struct gpc_tracked;

/*
 * Physical memory lives until the last holder of its handle and the last mapping went (physical.c).
 * After the driver's call, which succeeded: the handle is new, whatever had that number before went
 * unseen; somebody retained or imported it; it was mapped.
 */
void gpc_runtime_handle_created(uint64_t handle);
void gpc_runtime_handle_held(uint64_t handle);
void gpc_runtime_handle_mapped(uint64_t handle, uint64_t address, uint64_t size);

/* cuMemRelease and cuMemUnmap: the first before the driver's call, end_parting after it. */
struct gpc_parting {
	uint64_t handle; /* whose holder went; 0: none */
	struct gpc_tracked *tracked;
	struct gpc_mapping *mappings;
};
struct gpc_parting gpc_runtime_begin_release(uint64_t handle);
struct gpc_parting gpc_runtime_begin_unmap(uint64_t address, uint64_t size);
void gpc_runtime_end_parting(struct gpc_parting parting, CUresult result);

#endif
