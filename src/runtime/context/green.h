/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: whose memory theirs is.
 *
 * Threads   Any.
 * Failure   NULL: nobody can say, and memory there is the driver's.
 */
#ifndef GPC_RUNTIME_CONTEXT_GREEN_H
#define GPC_RUNTIME_CONTEXT_GREEN_H

#include "driver/cuda_fns.h"

/*
 * A green context is about to be made; and about to end, with a reference to the primary context of
 * the device that is returned (-1: not known).
 */
void gpc_runtime_green_begins(void);
CUdevice gpc_runtime_green_ends(CUgreenCtx green);

/*
 * Whose memory a context has that is current: its own handle, or the primary context's
 * where it is a green one.  NULL: nobody can say.
 */
CUcontext gpc_green_owner(CUcontext handle);

/* The primary context of a green one that is known already; NULL: not known, or not green. */
CUcontext gpc_green_find(CUcontext handle);

#endif
