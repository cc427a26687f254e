/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers (alloc/barrier.h), for the hooks.
 *
 * Threads   Any.
 * Failure   None: the program's next call returns the driver's error.
 */
#ifndef GPC_RUNTIME_CONTEXT_BARRIER_H
#define GPC_RUNTIME_CONTEXT_BARRIER_H

#include "alloc/barrier.h"
#include "driver/cuda_fns.h"

/*
 * Call before work is submitted to this stream, and before a query or wait, if gpc_runtime_duties says
 * that a barrier is due or unsettled.
 */
void gpc_runtime_submits(CUstream stream);
void gpc_runtime_looks(CUstream stream);

/* Summed over all contexts; read by the hooks without entering. */
extern struct gpc_duties gpc_runtime_duties;

/* Raises every barrier that is due. */
void gpc_barriers_raise_all(void);

#endif
