/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libcuda that we call, as a table of typed pointers.
 *
 * We do not link libcuda: preload/real.c finds it and fills the table.  The pointers are libcuda's own functions, so a
 * call through the table does not call one of our hooks.
 */
#ifndef GPC_DRIVER_CUDA_FNS_H
#define GPC_DRIVER_CUDA_FNS_H

#include "base/status.h"
#include "driver/cuda_abi.h"

struct gpc_cuda_fns {
#define CUDA_FN(name, result, params)  result(*name) params;
#define OPTIONAL(name, result, params) result(*name) params; /* NULL if the driver lacks it */
#include "driver/cuda_fns.def"
};

/* Fills the table by the names of the functions.  GPC_NOT_FOUND: a function that is not OPTIONAL is missing. */
GPC_MUST_CHECK enum gpc_status gpc_cuda_fns_fill(
	struct gpc_cuda_fns *fns, void *(*lookup)(void *arg, const char *name), void *arg);

#endif
