/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: creates the pool of each, and finds it.  endings.h ends them.
 *
 * Threads   Any.  A lookup by handle takes no lock until the process has green contexts.
 * Failure   NULL: the driver does not know the context, or there are too many; the call then goes to the driver.
 */
#ifndef GPC_RUNTIME_CONTEXT_CONTEXTS_H
#define GPC_RUNTIME_CONTEXT_CONTEXTS_H

#include <stdbool.h>

#include "alloc/pool.h"
#include "driver/cuda_fns.h"
#include "gpucache_format.h"

struct gpc_context;
struct gpc_device;

/*
 * gpc_runtime_begin_sync and _end_sync enclose a call by which the program waits for all work of a context (NULL: the
 * current one).  If the call succeeds, blocks freed before the begin may be reused.
 */
struct gpc_sync {
	struct gpc_context *context;
	struct gpc_pool_sync covered;
};
struct gpc_sync gpc_runtime_begin_sync(CUcontext context);
void gpc_runtime_end_sync(struct gpc_sync sync, CUresult result);

/* Call with the driver's answer to a call of the program: after a sticky error, requests to the cache fail with it. */
void gpc_runtime_answered(CUresult result);

/*
 * True once the process may have several contexts: only then can work access another context's memory.  The hooks of
 * copies read it without entering.
 */
extern bool gpc_runtime_many_contexts;

/* Call when the context is gone and nothing refers to it any more: its object may become another context. */
void gpc_context_retire(struct gpc_context *context);

/*
 * Returns the context with this handle, which must be current; creates our object for a context seen first.  NULL: the
 * driver does not know the handle, or there are too many contexts.
 */
struct gpc_context *gpc_context_get(CUcontext handle);

/* How many contexts of the device we know, which have not ended. */
uint32_t gpc_contexts_count(const struct gpc_device *device);

/* As gpc_context_get, but the handle need not be current. */
struct gpc_context *gpc_context_visit(CUcontext handle);

/* Returns the context with this handle, current or not; NULL: we have not seen it, or it has ended. */
struct gpc_context *gpc_context_find(CUcontext handle);

/* As gpc_context_find, but NULL for a green context, for which gpc_context_find returns the primary one. */
struct gpc_context *gpc_context_find_own(CUcontext handle);

/* The current context; NULL: none is current, or it has no pool (see Failure). */
struct gpc_context *gpc_context_current(void);

/*
 * The pseudo-context of a device.  It accounts for memory that belongs to the device but to no context, and outlives
 * all contexts.  It has counters, but no segments, and a driver without a context.  NULL: no metadata, or too many
 * contexts.
 */
struct gpc_context *gpc_context_owner(struct gpc_device *device);

/* A context of this device for queries: the current one, or else any live one; NULL: there is none. */
struct gpc_context *gpc_context_on(struct gpc_device *device);

/* Writes the pools of the device's contexts that are not ending to pools[GPC_MAX_CONTEXTS]; returns their number. */
uint32_t gpc_device_pools(const struct gpc_device *device, struct gpc_pool **pools);

/* Returns the pools of all live contexts one by one, then NULL.  A walk begins zeroed. */
struct gpc_pool_walk {
	struct gpc_pool *pools[GPUCACHE_MAX_CONTEXTS]; /* of the device before `device` */
	uint32_t n_left;                               /* of `pools` */
	uint32_t device;
};
struct gpc_pool *gpc_pool_next(struct gpc_pool_walk *walk);

#endif
