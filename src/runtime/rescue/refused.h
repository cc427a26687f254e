/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frees that the driver refuses: of an address that no allocation begins at, or that was freed before.  Programs seldom
 * look at what cudaFree returns, and what they meant stays.  A failure on the device tells of them.
 *
 * Threads     Any; the caller is inside the runtime, and holds no lock.
 * Failure     None.
 */
#ifndef GPC_RUNTIME_RESCUE_REFUSED_H
#define GPC_RUNTIME_RESCUE_REFUSED_H

#include "driver/cuda_fns.h"

/* The driver answered a free of device memory with this error; names the first one of a device by its stack. */
void gpc_refused_free(CUresult error);

#endif
