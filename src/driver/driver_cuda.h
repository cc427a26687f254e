/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real driver: struct gpc_driver over the entry points of libcuda, for one context.
 *
 * Our own calls must not disturb the program.  Around each call that needs it the context is made
 * current and the thread's capture mode is relaxed, and both are put back; CUDA's last error is
 * the runtime library's business and never sees what we did.
 *
 * Threads   Any; a struct gpc_cuda_driver is constant after init.
 * Failure   As driver.h says.  The driver's code is carried in the status.
 */
#ifndef GPC_DRIVER_DRIVER_CUDA_H
#define GPC_DRIVER_DRIVER_CUDA_H

#include "driver/cuda_fns.h"
#include "driver/driver.h"

struct gpc_cuda_driver {
	struct gpc_driver base; /* first: a struct gpc_driver * of ours is one of these */
	const struct gpc_cuda_fns *fns;
	CUcontext context;
};

void gpc_cuda_driver_init(
	struct gpc_cuda_driver *drv, const struct gpc_cuda_fns *fns, CUcontext context);

#endif
