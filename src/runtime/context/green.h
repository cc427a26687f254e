/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts, and the primary contexts that own their memory.
 *
 * Threads   Any.
 * Failure   NULL: the owner is unknown; memory of that context is not cached.
 */
#ifndef GPC_RUNTIME_CONTEXT_GREEN_H
#define GPC_RUNTIME_CONTEXT_GREEN_H

#include "driver/cuda_fns.h"

/*
 * Call before a green context is created, and before one is destroyed.  gpc_runtime_green_ends returns the device to
 * whose primary context `green` holds a reference; -1: unknown.
 */
void gpc_runtime_green_begins(void);
CUdevice gpc_runtime_green_ends(CUgreenCtx green);

/* The context that owns the memory of the current context `handle`: itself, or the primary context of a green one. */
CUcontext gpc_green_owner(CUcontext handle);

/* The primary context of a known green context; NULL: unknown, or not green. */
CUcontext gpc_green_find(CUcontext handle);

#endif
