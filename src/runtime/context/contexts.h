/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: the pool of each, when it is made and when it is forgotten.
 *
 * Threads   Any.  A handle is found without a lock.
 * Failure   NULL: unknown to the driver, or more than GPC_MAX_CONTEXTS; then the call passes.
 */
#ifndef GPC_RUNTIME_CONTEXT_CONTEXTS_H
#define GPC_RUNTIME_CONTEXT_CONTEXTS_H

#include <stdbool.h>

#include "driver/cuda_fns.h"

struct gpc_context;
struct gpc_device;
struct gpc_pool;

/* The primary context of the device exists: a retain takes nothing. */
bool gpc_runtime_primary_is_active(CUdevice device);

/* The program waits for a whole context: NULL is the current one.  The second after its call. */
struct gpc_sync {
	void *context;
	uint64_t number;
};
struct gpc_sync gpc_runtime_begin_sync(CUcontext context);
void gpc_runtime_end_sync(struct gpc_sync sync, CUresult result);

/*
 * The driver answered a call of the program with this error: where it means that the current
 * context is broken, its cache says so from now on, as the driver does.
 */
void gpc_runtime_heard(CUresult result);

/*
 * Whether a release was the last only the driver knows: not every retain passes us.  So
 * it is asked after each, and retains, releases and resets of one device are made one at a time,
 * between begin and end: a retain in between would give a dead context a second life unseen.
 */
void gpc_runtime_primary_begin(CUdevice device);
void gpc_runtime_primary_end(CUdevice device);
void gpc_runtime_primary_retained(CUcontext context, CUdevice device);
void gpc_runtime_primary_released(CUdevice device);
void gpc_runtime_primary_forget(CUdevice device);
void gpc_runtime_context_forget(CUcontext context);

/* Deprecated, and counted: the last cuCtxDetach, also of one that was never attached, destroys. */
void gpc_runtime_context_attached(void);
void gpc_runtime_context_detached(CUcontext context);

/*
 * True where the process may have more than one context: only then work can touch another one's
 * memory.  Read by the hooks of copies without entering.
 */
extern bool gpc_runtime_many_contexts;

/*
 * The context with this handle, made at first sight; NULL: unknown to the driver,
 * or too many.
 */
struct gpc_context *gpc_context_get(CUcontext handle);

/* As gpc_context_get, for one that need not be current. */
struct gpc_context *gpc_context_visit(CUcontext handle);

/* A context that is known already, whether it is current or not; NULL: not known, or gone. */
struct gpc_context *gpc_context_find(CUcontext handle);

/* The context that is current, NULL: none, or none of ours. */
struct gpc_context *gpc_context_current(void);

/*
 * Whose books hold what the driver gives to a device and to no context: it outlives them all.  It
 * has counters, and neither segments nor a driver.  NULL: no metadata.
 */
struct gpc_context *gpc_context_owner(struct gpc_device *device);

/* A context to ask about this device: the current one, or any that lives; NULL: none. */
struct gpc_context *gpc_context_on(struct gpc_device *device);

/*
 * Waits until whoever ends the device's primary context has done so and it is forgotten: meanwhile
 * the driver gives its addresses to others, and they are still in our maps.
 */
void gpc_context_await_end(struct gpc_device *device);

/* The pools of a device whose contexts live; their number.  `pools` has GPC_MAX_CONTEXTS places. */
uint32_t gpc_device_pools(const struct gpc_device *device, struct gpc_pool **pools);

#endif
