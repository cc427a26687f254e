/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the driver takes for itself while it answers another call, measured.
 *
 * Threads   Any; calls that overlap on a device book nothing.
 * Failure   What cannot be measured is not booked, and stays "outside our books".
 */
#ifndef GPC_RUNTIME_LEDGER_IMPLICIT_H
#define GPC_RUNTIME_LEDGER_IMPLICIT_H

#include <stdbool.h>

#include "driver/cuda_fns.h"
#include "gpucache_format.h"

/*
 * A call for which the driver takes memory that nobody names: it is measured, and booked under the
 * handle that the call gave.  `make` as above.
 */
struct gpc_implicit_call {
	CUresult (*make)(struct gpc_implicit_call *call);
	enum gpucache_kind kind;
	int device; /* the handle will be a new context of this device; -1: for the current one */
	/* The handle is a number in the current context; the next call of it adds, or takes away. */
	bool is_limit;
	uint64_t ret_handle; /* written by make on success */
};

CUresult gpc_runtime_implicit(struct gpc_implicit_call *call);

/*
 * The driver takes or gives back memory of its own, and nobody measures it: a module is unloaded, a
 * context ends with all that it holds, a green one may begin its primary.  Until the second call
 * nothing is measured there.  NULL: the current context; -1: the device is not known.
 */
int gpc_runtime_begin_unmeasured(CUcontext context);
void gpc_runtime_begin_unmeasured_on(int device);
void gpc_runtime_end_unmeasured(int device);

#endif
