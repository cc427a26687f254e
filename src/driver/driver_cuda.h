/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real driver: struct gpc_driver over the entry points of libcuda, for one context.
 *
 * Our own calls must not disturb the program.  Around each call that needs it the context is made
 * current and the thread's capture mode is relaxed, and both are put back; CUDA's last error is
 * the runtime library's business and never sees what we did.
 *
 * After some errors every later call of the context returns the same (cuda.h says of which).  The
 * first that we hear of is kept, for those who answer without asking the driver.
 *
 * Threads   Any; a struct gpc_cuda_driver is constant after init, but for `sticky`.
 * Failure   As driver.h says.  The driver's code is carried in the status.
 */
#ifndef GPC_DRIVER_DRIVER_CUDA_H
#define GPC_DRIVER_DRIVER_CUDA_H

#include <stdatomic.h>
#include <stdbool.h>

#include "driver/cuda_fns.h"
#include "driver/driver.h"

struct gpc_cuda_driver {
	struct gpc_driver base; /* first: a struct gpc_driver * of ours is one of these */
	const struct gpc_cuda_fns *fns;
	CUcontext context;
	_Atomic int sticky; /* the CUresult that the context is broken with; 0: none is known */
};

void gpc_cuda_driver_init(
	struct gpc_cuda_driver *drv, const struct gpc_cuda_fns *fns, CUcontext context);

/* The driver answered a call about this context with `result`, which is remembered where sticky. */
void gpc_cuda_driver_heard(struct gpc_cuda_driver *drv, CUresult result);

#endif
