/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers as the hooks ask for them (alloc/barrier.h).
 *
 * Threads   Any.
 * Failure   The driver's errors are the program's next call's to tell.
 */
#ifndef GPC_RUNTIME_CONTEXT_BARRIER_H
#define GPC_RUNTIME_CONTEXT_BARRIER_H

#include "alloc/barrier.h"
#include "driver/cuda_fns.h"

/*
 * Before work is submitted to this stream, and before the program looks how far the device is: where
 * gpc_runtime_duties says that there is something to do (alloc/barrier.h).
 */
void gpc_runtime_submits(CUstream stream);
void gpc_runtime_looks(CUstream stream);

/* What the contexts owe for frees; read by the hooks without entering. */
extern struct gpc_duties gpc_runtime_duties;

/* Every context that owes a barrier raises it. */
void gpc_barriers_raise_all(void);

#endif
