/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own pools, and the memory of graphs: what is reserved there and in nobody's use.
 *
 * Threads   Any.
 * Failure   A pool beyond MAX_POOLS is not seen.
 */
#ifndef GPC_RUNTIME_LEDGER_POOLS_H
#define GPC_RUNTIME_LEDGER_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_fns.h"

struct gpc_device;
struct gpc_passed_call;

/*
 * Stream-ordered memory, of this pool of the driver; NULL: the current one of the stream's device.
 * Sets call->kind.  Not for a stream that is captured (gpc_runtime_is_captured).
 */
CUresult gpc_runtime_pool_malloc(struct gpc_passed_call *call, CUmemoryPool pool, CUstream stream);

/*
 * Pools: one that the program made or was given; before one is destroyed, and where the driver
 * refused that; one that a device uses.
 */
void gpc_runtime_pool_seen(CUmemoryPool pool, CUmemLocation location, CUmemAllocationType type);
void gpc_runtime_pool_destroyed(CUmemoryPool pool);
void gpc_runtime_pool_kept(CUmemoryPool pool);
void gpc_runtime_pool_made_current(CUdevice device, CUmemoryPool pool);

/* What the pools or graphs of the current device reserve has changed. */
void gpc_runtime_pools_changed(void);

/* A graph can be launched now, and may hold memory; the first launch after that looks. */
void gpc_runtime_graph_made(void);
extern bool gpc_runtime_graph_is_new;

/* The primary context of the device was reset: what its pools hold, and whose they are, is asked anew. */
void gpc_runtime_primary_reset(CUdevice device);

/*
 * Asks the driver what its pools and graphs hold on this device, and books it; has them
 * give back what they can; an allocation of the pool with this number came or went.
 */
void gpc_pools_look(struct gpc_device *device);
void gpc_pools_trim(struct gpc_device *device);
bool gpc_pools_are_used(void);
void gpc_pools_took(uint32_t number, uint64_t size);
void gpc_pools_gave(uint32_t number, uint64_t size);

#endif
