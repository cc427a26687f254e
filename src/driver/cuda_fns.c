/* SPDX-License-Identifier: Apache-2.0 */
/* One row of cuda_fns.def is one lookup by name. */
#include "driver/cuda_fns.h"

enum gpc_status gpc_cuda_fns_fill(
	struct gpc_cuda_fns *fns, void *(*lookup)(void *arg, const char *name), void *arg)
{
	enum gpc_status st = GPC_OK;

	/* C does not convert a void * to a function pointer, so store through the address; POSIX says that both fit. */
#define CUDA_FN(name, result, params)                      \
	*(void **)(void *)&fns->name = lookup(arg, #name); \
	if (!fns->name)                                    \
		st = GPC_NOT_FOUND;
#define OPTIONAL(name, result, params) *(void **)(void *)&fns->name = lookup(arg, #name);
#include "driver/cuda_fns.def"
	return st;
}
