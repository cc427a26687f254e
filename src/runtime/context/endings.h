/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of contexts: forgets what the driver destroys with a context, once the driver has answered.
 *
 * Threads   Any; no lock is held over the driver's call that destroys a context, which waits for the context's kernels.
 * Failure   None.  A context that the driver refuses to end lives on.  From then on its fences cover work of all
 *           contexts, and the fences of all contexts cover its work.
 */
#ifndef GPC_RUNTIME_CONTEXT_ENDINGS_H
#define GPC_RUNTIME_CONTEXT_ENDINGS_H

#include <stdbool.h>

#include "base/status.h"
#include "driver/cuda_fns.h"

struct gpc_context;

/* Returns true if the device's primary context exists; `if_unknown` if the driver does not tell. */
bool gpc_runtime_primary_is_active(CUdevice device, bool if_unknown);

/*
 * We do not see every retain of a primary context.  So after each release the driver is asked whether the context still
 * exists.  Retains, releases and resets of one device run one at a time, each between gpc_runtime_primary_begin and
 * _end: a retain between the release and the question would make a new context, which we would take for the old one.
 */
void gpc_runtime_primary_begin(CUdevice device);
void gpc_runtime_primary_end(CUdevice device);
void gpc_runtime_primary_retained(CUcontext context, CUdevice device);
void gpc_runtime_primary_released(CUdevice device);
void gpc_runtime_primary_forget(CUdevice device);

/*
 * Call around a driver call that may end a context: only the result of that call says whether the memory is gone.
 * Between begin and end, other contexts neither use the context's pool nor wait for its events, because the driver may
 * destroy both at any time.
 */
struct gpc_ending {
	struct gpc_context *context; /* NULL: no context that we know, or another thread ends it */
	bool is_last;                /* false: a detach, and other references are left */
};
GPC_MUST_CHECK struct gpc_ending gpc_runtime_begin_destroy(CUcontext context);
void gpc_runtime_end_destroy(struct gpc_ending ending, CUresult result);

/* The deprecated cuCtxAttach and cuCtxDetach count references, from one on; the last detach destroys the context. */
void gpc_runtime_context_attached(void);
GPC_MUST_CHECK struct gpc_ending gpc_runtime_begin_detach(CUcontext context);

/* Call around a reset, between gpc_runtime_primary_begin and _end.  True: the driver reset the primary context. */
void gpc_runtime_begin_reset(CUdevice device);
bool gpc_runtime_end_reset(CUdevice device, CUresult result);

/*
 * Waits until the ends of contexts that other threads have begun are complete, on all devices.  Until then the driver
 * may reuse handles that we still know.  The wait for contexts being destroyed is at most a
 * second; the wait for primary contexts being retained, released or reset has no bound.
 */
void gpc_context_await_end(void);

#endif
