/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own memory pools, and graph memory: what they reserve beyond what is in use.
 *
 * Threads   Any.
 * Failure   Pools beyond MAX_POOLS are not tracked.
 */
#ifndef GPC_RUNTIME_LEDGER_POOLS_H
#define GPC_RUNTIME_LEDGER_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_fns.h"

struct gpc_device;
struct gpc_passed_call;

/*
 * Allocates stream-ordered memory from this pool of the driver; NULL: the current pool of the stream's
 * device.  Sets call->kind.  Not for a capturing stream (gpc_runtime_is_captured).
 */
CUresult gpc_runtime_pool_malloc(struct gpc_passed_call *call, CUmemoryPool pool, CUstream stream);

/*
 * Call after a pool was created or imported; before one is destroyed; after the driver refused that; after one
 * became the current pool of a device.
 */
void gpc_runtime_pool_seen(CUmemoryPool pool, CUmemLocation location, CUmemAllocationType type);
void gpc_runtime_pool_destroyed(CUmemoryPool pool);
void gpc_runtime_pool_kept(CUmemoryPool pool);
void gpc_runtime_pool_made_current(CUdevice device, CUmemoryPool pool);

/* Call after the reserved memory of the current device's pools or graphs has changed. */
void gpc_runtime_pools_changed(void);

/* Call after a graph was instantiated: its first launch may reserve memory, so the hook then queries it. */
void gpc_runtime_graph_made(void);
extern bool gpc_runtime_graph_is_new;

/* Call after the primary context of the device was reset: forgets it, and the device's pools. */
void gpc_runtime_primary_reset(CUdevice device);

/*
 * look: queries the memory reserved by pools and graphs of this device, and accounts for it.  trim: makes them
 * return what they can.  are_used: false if the program has used neither.  count: an allocation from pool
 * `number` was made or freed.
 */
void gpc_pools_look(struct gpc_device *device);
void gpc_pools_trim(struct gpc_device *device);
bool gpc_pools_are_used(void);
void gpc_pools_count(uint32_t number, uint64_t size, bool is_malloc);

#endif
