/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixture of the allocator's tests: a simulated device with a virtual clock, one context, and a pool over that
 * context. Time passes only if a test says so.
 */
#ifndef GPC_TESTS_UNIT_ALLOC_STAGE_H
#define GPC_TESTS_UNIT_ALLOC_STAGE_H

#include "alloc/pool.h"
#include "alloc/pool_internal.h"
#include "base/metamem.h"
#include "model/counters.h"
#include "sim/gpu/driver_sim.h"
#include "sim/gpu/execution/capture.h"
#include "unit.h"

#define MS UINT64_C(1000000)

struct stage {
	struct gpc_sim_config config;
	struct gpc_sim *sim;
	struct gpc_sim_driver drv;
	struct gpc_heap heap;
	struct gpc_budget budget;
	struct gpc_pool_params params;
	struct gpc_pool pool;
	size_t metamem; /* of the library, before */
};

/* Frees need a fence; misses never wait. */
static inline struct gpc_pool_params stage_params(void)
{
	return (struct gpc_pool_params){ .pending_limit = 1 * GPC_GIB };
}

static inline struct gpc_sim_config stage_config(void)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	config.virtual_clock = true;
	return config;
}

static inline void stage_open_on(struct stage *stage, const struct gpc_sim_config *config,
	const struct gpc_pool_params *params, const struct gpc_observer *observer)
{
	memset(stage, 0, sizeof *stage);
	stage->metamem = gpc_metamem_total();
	stage->config = *config;
	stage->params = *params;
	stage->sim = gpc_sim_create(config);
	at_non_null(stage->sim);
	at_int_equal(gpc_sim_driver_init(&stage->drv, stage->sim, 0, NULL), GPC_OK);
	at_int_equal(gpc_heap_init(&stage->heap, observer), GPC_OK);
	stage->budget.device_bytes = config->memory;
	gpc_pool_init(
		&stage->pool, &stage->heap, &stage->drv.base, &stage->budget, params, 0, 0, NULL);
}

static inline void stage_open(struct stage *stage, const struct gpc_pool_params *params)
{
	struct gpc_sim_config config = stage_config();

	stage_open_on(stage, &config, params, NULL);
}

static inline uint64_t stage_n_allocations(const struct stage *stage)
{
	return gpc_sim_device_n_allocations(&stage->sim->devices[0]);
}

static inline void stage_check(struct stage *stage)
{
	const char *broken = gpc_pool_check(&stage->pool);

	if (broken) {
		print_error("%s\n", broken);
		at_fail();
	}
}

static inline struct gpucache_counters stage_counters(const struct stage *stage)
{
	struct gpucache_counters now = { 0 };

	gpc_counters_add(&now, stage->pool.counters);
	return now;
}

/* Checks the heap, ends everything, and checks that neither device memory nor metadata is left. */
static inline void stage_close(struct stage *stage)
{
	stage_check(stage);
	gpc_pool_fini(&stage->pool);
	gpc_sim_driver_fini(&stage->drv);
	at_int_equal(stage_n_allocations(stage), 0);
	at_int_equal(stage->budget.used_bytes, 0);
	at_int_equal(stage->budget.moving_bytes, 0);
	at_int_equal(stage->heap.blocks.n_live, 0);
	at_int_equal(stage->heap.segments.n_live, 0);
	at_int_equal(stage->heap.grain_maps.n_live, 0);
	at_int_equal(stage->heap.ranges.n_live, 0);
	gpc_heap_fini(&stage->heap);
	at_int_equal(gpc_metamem_total(), stage->metamem);
	gpc_sim_destroy(stage->sim);
}

/* The events of a context end with it.  That of the stage lives on, so a test that forgets its pool ends them. */
static inline void stage_keep_events(const struct stage *stage, gpc_event *ret_events)
{
	for (uint32_t i = 0; i < GPC_MAX_FENCES; i++)
		ret_events[i] = stage->pool.fences.ring[i].events[0];
}

static inline void stage_end_events(struct stage *stage, const gpc_event *events)
{
	for (uint32_t i = 0; i < GPC_MAX_FENCES; i++) {
		if (events[i])
			stage->drv.base.ops->event_destroy(&stage->drv.base, events[i]);
	}
}

static inline void stage_end_idle_event(const struct gpc_pool *pool)
{
	if (pool->barrier.idle_event)
		pool->drv->ops->event_destroy(pool->drv, pool->barrier.idle_event);
}

static inline struct gpc_request stage_request(struct stage *stage, uint64_t size)
{
	return (struct gpc_request){ .size = size,
		.now_ns = stage->drv.base.ops->now_ns(&stage->drv.base),
		.mark = 7,
		.thread = 1 };
}

static inline enum gpc_status stage_try(struct stage *stage, uint64_t size, gpc_devptr *ret_address)
{
	struct gpc_request request = stage_request(stage, size);

	return gpc_pool_alloc(&stage->pool, &request, ret_address);
}

static inline gpc_devptr stage_alloc(struct stage *stage, uint64_t size)
{
	gpc_devptr address = 0;

	at_int_equal(stage_try(stage, size, &address), GPC_OK);
	at_int_equal(address % GPC_GRAIN, 0);
	return address;
}

static inline enum gpc_status stage_try_free(struct stage *stage, gpc_devptr address)
{
	struct gpc_request request = stage_request(stage, 0);

	return gpc_pool_free(&stage->pool, address, &request);
}

static inline void stage_free(struct stage *stage, gpc_devptr address)
{
	at_int_equal(stage_try_free(stage, address), GPC_OK);
}

/* Work on `stream` that uses the whole of a block. */
static inline void stage_launch(struct stage *stage, gpc_stream stream, uint64_t duration_ns,
	gpc_devptr address, uint64_t size)
{
	at_int_equal(
		gpc_sim_driver_launch(&stage->drv, stream, duration_ns, address, size, -1), GPC_OK);
}

static inline void stage_pass_time(struct stage *stage, uint64_t ns)
{
	gpc_sim_clock_wait_until(&stage->sim->clock, gpc_sim_clock_now(&stage->sim->clock) + ns);
	gpc_sim_settle(stage->sim);
}

/* A stream that the pool does not know of, non-blocking. */
static inline struct gpc_sim_stream *stage_stream(struct stage *stage)
{
	struct gpc_sim_stream *stream = NULL;

	at_int_equal(gpc_sim_stream_create(stage->drv.context, CU_STREAM_NON_BLOCKING, 0, &stream),
		CUDA_SUCCESS);
	return stream;
}

static inline gpc_stream stage_handle(const struct gpc_sim_stream *stream)
{
	return (gpc_stream)(uintptr_t)stream;
}

/* The number of driver calls that concern fences, of every kind. */
static inline uint64_t stage_n_fence_calls(const struct stage *stage)
{
	const struct gpc_sim_counters *n = &stage->drv.counters;

	return n->n_event_create + n->n_fence_record + n->n_event_query + n->n_sync;
}

/* Checks in these helpers report the line of the test: unit.h. */
#define stage_open_on(...) AT(stage_open_on(__VA_ARGS__))
#define stage_open(...)    AT(stage_open(__VA_ARGS__))
#define stage_check(...)   AT(stage_check(__VA_ARGS__))
#define stage_close(...)   AT(stage_close(__VA_ARGS__))
#define stage_alloc(...)   AT(stage_alloc(__VA_ARGS__))
#define stage_free(...)    AT(stage_free(__VA_ARGS__))
#define stage_launch(...)  AT(stage_launch(__VA_ARGS__))
#define stage_stream(...)  AT(stage_stream(__VA_ARGS__))

#endif
