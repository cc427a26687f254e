/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers (alloc/barrier.h) for the hooks: finds the context of a submission or query, and calls its pool.  For a
 * context without a due barrier the cost is a lookup.
 */
#include "runtime/context/barrier.h"

#include "runtime/context/contexts.h"
#include "runtime/context/reach.h"
#include "runtime/process/state.h"

struct gpc_duties gpc_runtime_duties;

void gpc_runtime_submits(CUstream stream)
{
	struct gpc_context *context = gpc_context_of_stream(stream);

	if (context)
		gpc_pool_raise_barrier(&context->pool);
}

/* Errors are left to the driver: every call of a broken context reports them. */
void gpc_runtime_looks(CUstream stream)
{
	struct gpc_context *context = gpc_context_of_stream(stream);

	if (context)
		(void)!gpc_pool_settle(&context->pool);
}

void gpc_barriers_raise_all(void)
{
	struct gpc_pool_walk walk = { 0 };
	struct gpc_pool *pool;

	while ((pool = gpc_pool_next(&walk))) {
		gpc_pool_raise_barrier(pool);
		gpc_pool_settle_one_stream(pool);
	}
}
