/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real driver: struct gpc_driver over the entry points of libcuda, for one context.
 *
 * Our own calls must be invisible to the program.  Around each call that needs it, the context is made
 * current and the thread's capture mode is relaxed, and both are restored.  CUDA's last error belongs to
 * the runtime library and never sees our calls.
 *
 * After a sticky error every later call of the context returns it (sticky.h).  The first one seen is
 * kept, for calls that are answered without the driver.
 *
 * Threads   Any; a struct gpc_cuda_driver is constant after init, except `sticky`.
 * Failure   As driver.h; the status carries the driver's code.
 */
#ifndef GPC_DRIVER_DRIVER_CUDA_H
#define GPC_DRIVER_DRIVER_CUDA_H

#include <stdatomic.h>
#include <stdbool.h>

#include "driver/cuda_fns.h"
#include "driver/driver.h"

struct gpc_cuda_driver {
	struct gpc_driver base; /* must be first */
	const struct gpc_cuda_fns *fns;
	CUcontext context;
	_Atomic int sticky;  /* the CUresult that broke the context; 0: none seen */
	CUdevice device;     /* set by gpc_cuda_driver_use_pages */
	bool has_rdma_pages; /* pages are made so that a network card may access them */
};

void gpc_cuda_driver_init(
	struct gpc_cuda_driver *drv, const struct gpc_cuda_fns *fns, CUcontext context);

/* Keeps `result`, the driver's answer to a call about this context, if it is sticky. */
void gpc_cuda_driver_heard(struct gpc_cuda_driver *drv, CUresult result);

/* Enables pages (driver_pages.h) on `device`, the context's.  False: the device has none. */
bool gpc_cuda_driver_use_pages(struct gpc_cuda_driver *drv, CUdevice device);

#endif
