/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real driver: struct gpc_driver over the entry points of libcuda, for one context.
 *
 * The program must not notice our own calls.  So each call that needs the current context, or a relaxed capture mode of
 * the thread, sets both and restores both.  Our calls cannot change CUDA's last error (cudaGetLastError), because the
 * runtime library libcudart keeps it, and our calls bypass that library.
 *
 * After a sticky error every later call of the context returns that error (sticky.h).  The first sticky error is kept,
 * because the pool answers requests without the driver and must return the same error.
 *
 * Threads   Any; a struct gpc_cuda_driver is constant after init, except `sticky` and `beside`.
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
	_Atomic int sticky; /* the first sticky CUresult; 0: none */
	/* Our own stream, without work, for mem_free_beside; NULL: none yet.  It ends with the context. */
	_Atomic(CUstream) beside;
	CUdevice device;     /* set by gpc_cuda_driver_use_pages */
	bool has_rdma_pages; /* a network card may access the pages */
};

void gpc_cuda_driver_init(
	struct gpc_cuda_driver *drv, const struct gpc_cuda_fns *fns, CUcontext context);

/* Returns `result`, the driver's answer to a call about this context, as a status.  Keeps the first sticky one. */
enum gpc_status gpc_cuda_driver_note(struct gpc_cuda_driver *drv, CUresult result);

/* Enables pages (driver_pages.h) on `device`, that of the context.  False: the device does not support them. */
bool gpc_cuda_driver_use_pages(struct gpc_cuda_driver *drv, CUdevice device);

#endif
