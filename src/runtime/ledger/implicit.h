/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implicit allocations: memory that the driver takes on its own during another call, measured.
 *
 * Threads   Any; calls that overlap on a device are not measured.
 * Failure   Memory that cannot be measured stays untracked ("this process, not tracked").
 */
#ifndef GPC_RUNTIME_LEDGER_IMPLICIT_H
#define GPC_RUNTIME_LEDGER_IMPLICIT_H

#include <stdbool.h>

#include "driver/cuda_fns.h"
#include "gpucache_format.h"

/*
 * A call during which the driver may allocate on its own: the memory is measured, and accounted for under
 * the handle that the call returns.  `make` calls the driver, again for each rung of the ladder.
 */
struct gpc_implicit_call {
	CUresult (*make)(struct gpc_implicit_call *call);
	enum gpucache_kind kind;
	int device; /* of the context that the call creates; -1: the current context */
	/* ret_handle is a CUlimit of the current context; the next call for that limit replaces this entry. */
	bool is_limit;
	uint64_t ret_handle; /* written by make on success */
};

CUresult gpc_runtime_implicit(struct gpc_implicit_call *call);

/*
 * Suspend measuring on a device while the driver allocates or frees memory that is not measured: a module is
 * unloaded, a context is destroyed, a green context may create its primary.  NULL: the current context.
 * Returns the device, to be passed to gpc_runtime_end_unmeasured; -1: unknown.
 */
int gpc_runtime_begin_unmeasured(CUcontext context);
void gpc_runtime_begin_unmeasured_on(int device);
void gpc_runtime_end_unmeasured(int device);

#endif
