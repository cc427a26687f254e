/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implicit allocations: measures the memory that the driver takes for itself during another call.
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
 * A call during which the driver may allocate memory for itself.  The memory is measured, and accounted for under the
 * handle that the call returns.  `make` calls the driver: once, and again after each rung of the ladder.
 */
struct gpc_implicit_call {
	CUresult (*make)(struct gpc_implicit_call *call);
	enum gpucache_kind kind;
	int device; /* the device of the context that the call creates; -1: the call uses the current context */
	/* ret_handle is a CUlimit of the current context; the next call for the same limit replaces the entry. */
	bool is_limit;
	uint64_t ret_handle; /* written by `make` on success */
};

CUresult gpc_runtime_implicit(struct gpc_implicit_call *call);

/*
 * Call around a driver call that allocates or frees memory which is not measured: the unload of a module, the end of a
 * context, a green context that may create its primary one.  Calls that overlap it are not measured either.
 * gpc_runtime_begin_unmeasured takes a context (NULL: the current one) and returns its device for
 * gpc_runtime_end_unmeasured; -1: unknown.
 */
int gpc_runtime_begin_unmeasured(CUcontext context);
void gpc_runtime_begin_unmeasured_on(int device);
void gpc_runtime_end_unmeasured(int device);

#endif
