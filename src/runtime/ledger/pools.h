/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own memory pools, and graph memory: what they reserve beyond what is in use.
 *
 * Threads   Any.
 * Failure   Of more than MAX_POOLS pools (pools.c) the later ones are not tracked.
 */
#ifndef GPC_RUNTIME_LEDGER_POOLS_H
#define GPC_RUNTIME_LEDGER_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/cuda_fns.h"

struct gpc_device;
struct gpc_passed_call;

/*
 * Allocates stream-ordered memory from this pool of the driver; NULL: the current pool of the stream's device.  Sets
 * call->kind and call->pool.  Do not call it for a capturing stream (gpc_runtime_is_captured).
 */
CUresult gpc_runtime_pool_malloc(struct gpc_passed_call *call, CUmemoryPool pool, CUstream stream);

/*
 * Call _seen after the driver gave the program a pool, _destroyed before the driver destroys it, _kept if the driver
 * refused to, and _made_current after it became the current pool of a device.
 */
void gpc_runtime_pool_seen(CUmemoryPool pool, CUmemLocation location, CUmemAllocationType type,
	uint64_t max); /* maxSize; 0: none, or unknown */
void gpc_runtime_pool_destroyed(CUmemoryPool pool);
void gpc_runtime_pool_kept(CUmemoryPool pool);
void gpc_runtime_pool_made_current(CUdevice device, CUmemoryPool pool);

/* Call after the program trimmed the pools or graphs of the current device, or a graph may have reserved memory. */
void gpc_runtime_pools_changed(void);

/* Call after a graph was instantiated.  Its launch may reserve memory, so the hook then calls _pools_changed. */
void gpc_runtime_graph_made(void);
extern bool gpc_runtime_graph_is_new;

/* Call after the primary context of the device was reset: forgets the context, and the pools of the device. */
void gpc_runtime_primary_reset(CUdevice device);

/*
 * gpc_pools_look asks the driver what the pools and graphs of this device reserve, and accounts for it.  gpc_pools_trim
 * makes them return what they can.  gpc_pools_are_used is false if the program has used neither.  gpc_pools_count: an
 * allocation of `size` bytes from pool `number` of this device (0: from none) was made or freed.  gpc_pools_max is the
 * pool's maxSize; 0: none.
 */
void gpc_pools_look(struct gpc_device *device);
void gpc_pools_trim(struct gpc_device *device);
bool gpc_pools_are_used(void);
uint64_t gpc_pools_max(uint32_t number, uint64_t *ret_used);
void gpc_pools_count(struct gpc_device *device, uint32_t number, uint64_t size, bool is_malloc);

#endif
