/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of the first one is enough: the same line makes the others. */
#include "runtime/rescue/refused.h"

#include "runtime/context/contexts.h"
#include "runtime/process/stacks.h"
#include "runtime/process/state.h"

void gpc_refused_free(CUresult error)
{
	struct gpc_context *context;

	if (error != CUDA_ERROR_INVALID_VALUE)
		return;
	context = gpc_context_current();
	if (context && atomic_fetch_add(&context->device->n_refused_frees, 1) == 0)
		atomic_store(&context->device->refused_free_stack, gpc_runtime_request(0).mark);
}
