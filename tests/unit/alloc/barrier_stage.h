/* SPDX-License-Identifier: Apache-2.0 */
/* The stage with barriers and two non-blocking streams.  The clock is virtual: a wait on the host moves it. */
#ifndef GPC_TESTS_UNIT_ALLOC_BARRIER_STAGE_H
#define GPC_TESTS_UNIT_ALLOC_BARRIER_STAGE_H

#include "one_stage.h"

#define LONG_NS (1000 * MS)

static struct gpc_sim_stream *a, *b; /* non-blocking */

static inline int open_on(int driver_version, bool is_one_stream)
{
	struct gpc_pool_params params = stage_params();
	struct gpc_sim_config config = stage_config();

	params.has_barriers = true;
	params.is_one_stream = is_one_stream;
	config.driver_version = driver_version;
	stage_open_on(&stage, &config, &params, NULL);
	a = stage_stream(&stage);
	b = stage_stream(&stage);
	return 0;
}

static inline int open_with_barriers(void **state)
{
	return open_on(13000, false);
}

static inline int open_old(void **state)
{
	return open_on(12040, false);
}

static inline int open_one(void **state)
{
	return open_on(13000, true);
}

static inline uint64_t now(void)
{
	return gpc_sim_clock_now(&stage.sim->clock);
}

static inline bool runs(struct gpc_sim_stream *stream)
{
	return gpc_sim_stream_query(stream) == CUDA_ERROR_NOT_READY;
}

static inline unsigned n_due(void)
{
	return stage.heap.duties->n_due;
}

static inline unsigned n_unsettled(void)
{
	return stage.heap.duties->n_unsettled;
}

/* What a hook does. */
static inline void submit(struct gpc_sim_stream *stream, uint64_t ns, gpc_devptr ptr)
{
	if (n_due() > 0)
		gpc_pool_raise_barrier(&stage.pool);
	stage_launch(&stage, stage_handle(stream), ns, ptr, ptr ? 4096 : 0);
}

#endif
