/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: creates the pool of each, and finds it.  How they end: endings.h.
 *
 * Threads   Any.  Handles are found without a lock.
 * Failure   NULL: unknown to the driver, or beyond GPC_MAX_CONTEXTS; the call then goes to the driver.
 */
#ifndef GPC_RUNTIME_CONTEXT_CONTEXTS_H
#define GPC_RUNTIME_CONTEXT_CONTEXTS_H

#include <stdbool.h>

#include "driver/cuda_fns.h"
#include "gpucache_format.h"

struct gpc_context;
struct gpc_device;
struct gpc_pool;

/* Call before and after the program synchronizes a context; NULL: the current one. */
struct gpc_sync {
	void *context;
	uint64_t number;
};
struct gpc_sync gpc_runtime_begin_sync(CUcontext context);
void gpc_runtime_end_sync(struct gpc_sync sync, CUresult result);

/*
 * Call with the driver's answer to a call of the program: after a sticky error the current context's
 * cache returns it, too.
 */
void gpc_runtime_heard(CUresult result);

/*
 * True once the process may have several contexts: only then work can touch memory of another.  Read by
 * the copy hooks without entering.
 */
extern bool gpc_runtime_many_contexts;

/*
 * Returns the context with this handle, which must be current; creates it at first sight.  NULL: unknown
 * to the driver, or too many.
 */
struct gpc_context *gpc_context_get(CUcontext handle);

/* As gpc_context_get, but the handle need not be current. */
struct gpc_context *gpc_context_visit(CUcontext handle);

/* Returns a known context, current or not; NULL: unknown, or dead. */
struct gpc_context *gpc_context_find(CUcontext handle);

/* As gpc_context_find, but NULL for a green context. */
struct gpc_context *gpc_context_find_own(CUcontext handle);

/* The current context; NULL: none, or none of ours. */
struct gpc_context *gpc_context_current(void);

/*
 * The pseudo-context that accounts for memory of a device but of no context, and outlives all contexts.
 * It has counters, but no segments and no driver.  NULL: no metadata, or too many contexts.
 */
struct gpc_context *gpc_context_owner(struct gpc_device *device);

/* A context of this device for queries: the current one, or any live one; NULL: none. */
struct gpc_context *gpc_context_on(struct gpc_device *device);

/* Writes the pools of the device's live contexts to pools[GPC_MAX_CONTEXTS]; returns their number. */
uint32_t gpc_device_pools(const struct gpc_device *device, struct gpc_pool **pools);

/* The next pool of any live context; NULL: that was the last.  Starts with a zeroed walk. */
struct gpc_pool_walk {
	struct gpc_pool *pools[GPUCACHE_MAX_CONTEXTS]; /* of one device, as of its turn */
	uint32_t n_left;
	uint32_t device; /* the next one */
};
struct gpc_pool *gpc_pool_next(struct gpc_pool_walk *walk);

#endif
