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
	for (uint32_t d = 0; d < gpc_runtime.n_devices; d++) {
		struct gpc_pool *pools[GPC_MAX_CONTEXTS];
		uint32_t n = gpc_device_pools(&gpc_runtime.devices[d], pools);

		for (uint32_t i = 0; i < n; i++) {
			gpc_pool_raise_barrier(pools[i]);
			gpc_pool_settle_one_stream(pools[i]);
		}
	}
}
