/* SPDX-License-Identifier: Apache-2.0 */
/* Creates green contexts.  stream.c has the code for what they do differently from ordinary contexts. */
#include <stdlib.h>

#include "sim/gpu/execution/stream.h"

CUresult gpc_sim_context_create_green(
	struct gpc_sim_context *primary, struct gpc_sim_context **ret_context)
{
	struct gpc_sim_context *context = calloc(1, sizeof *context);

	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gpc_sim_context_init(context, primary->sim, primary->device);
	context->number = primary->number;
	context->primary = primary;
	*ret_context = context;
	return CUDA_SUCCESS;
}
