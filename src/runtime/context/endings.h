/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of contexts: forgets what the driver destroys with a context, once it has answered.
 *
 * Threads   Any; no lock is held over the driver's call that destroys a context, which waits for its kernels.
 * Failure   None: a context that the driver does not end is unchanged, except that fences wait for more work.
 */
#ifndef GPC_RUNTIME_CONTEXT_ENDINGS_H
#define GPC_RUNTIME_CONTEXT_ENDINGS_H

#include <stdbool.h>

#include "base/status.h"
#include "driver/cuda_fns.h"

struct gpc_context;

/* Returns true if the device's primary context exists: a retain then takes no memory. */
bool gpc_runtime_primary_is_active(CUdevice device, bool if_unknown);

/*
 * We do not see every retain, so only the driver knows whether a release was the last: it is queried after
 * each.  Retains, releases and resets of one device are serialized between begin and end, because a retain
 * between release and query could revive a dead context unseen.
 */
void gpc_runtime_primary_begin(CUdevice device);
void gpc_runtime_primary_end(CUdevice device);
void gpc_runtime_primary_retained(CUcontext context, CUdevice device);
void gpc_runtime_primary_released(CUdevice device);
void gpc_runtime_primary_forget(CUdevice device);

/*
 * Call around a driver call that may end a context: only its result says whether the memory died.  In between other
 * contexts neither use its pool nor wait for its events, which may be gone at any time.  If the driver refuses, the
 * context is as before.
 */
struct gpc_ending {
	struct gpc_context *context; /* NULL: none of ours ends, or another thread is ending it */
	bool is_last;                /* false: a detach that leaves others */
};
GPC_MUST_CHECK struct gpc_ending gpc_runtime_begin_destroy(CUcontext context);
void gpc_runtime_end_destroy(struct gpc_ending ending, CUresult result);

/* cuCtxAttach and cuCtxDetach, deprecated: the last detach destroys the context, even one that was never attached. */
void gpc_runtime_context_attached(void);
GPC_MUST_CHECK struct gpc_ending gpc_runtime_begin_detach(CUcontext context);

/* Call around a reset, between gpc_runtime_primary_begin and _end.  Returns true if the primary context was reset. */
void gpc_runtime_begin_reset(CUdevice device);
bool gpc_runtime_end_reset(CUdevice device, CUresult result);

/*
 * Waits until concurrent ends of contexts are complete, on any device: before that, the driver may reuse addresses and
 * handles that are still in our maps.  Waits at most a second for contexts being destroyed, but without bound for
 * primary contexts being retained, released or reset.
 */
void gpc_context_await_end(void);

#endif
