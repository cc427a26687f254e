/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeats the reading if the device's budget changed during it.  Threads that return and take memory all the time may
 * change it during every reading, so the number of readings is bounded.  Bytes may also stay on the move, because the
 * driver blocks the thread that moves them.  They are no reason for another reading, which would find the same.
 */
#include "runtime/rescue/look.h"

#include <string.h>

#include "runtime/process/state.h"
#include "runtime/rescue/rescue.h"

#define LOOKS 16

/* Bounds the sum of all waits for bytes on the move; the ladder has waited before, and longer. */
#define MOVES_MS 20

static void ask_driver(struct gpc_context *context, struct gpc_device_look *ret_look)
{
	struct gpc_driver *drv = &context->drv.base;

	*ret_look = (struct gpc_device_look){
		.device = (int32_t)context->device->ordinal,
		.device_free = GPUCACHE_UNKNOWN,
		.device_total = GPUCACHE_UNKNOWN,
	};
	(void)!drv->ops->mem_info(drv, &ret_look->device_free, &ret_look->device_total);
}

static uint32_t setup_of(const struct gpc_config *config)
{
	return (config->cache ? GPUCACHE_OOM_CACHING : 0) |
	       (config->per_process_memory_fraction < 1000000 ? GPUCACHE_OOM_FRACTION : 0) |
	       (config->roundup_power2_divisions ? GPUCACHE_OOM_ROUNDUP : 0) |
	       (config->oom_wait_ms ? GPUCACHE_OOM_WAIT : 0) |
	       (gpc_captures_is_any_open(&gpc_runtime.heap.captures) ? GPUCACHE_OOM_CAPTURING : 0);
}

static void look_at_pools(struct gpc_context *context, struct gpc_look *look)
{
	struct gpc_pool *pools[GPC_MAX_CONTEXTS];
	uint32_t n = gpc_device_pools(context->device, pools);
	struct gpc_pool *pool = &context->pool;

	look->piece = gpc_pool_largest_free(pool);
	look->other_piece = 0;
	for (uint32_t i = 0; i < n; i++)
		if (pools[i] != pool)
			look->other_piece =
				gpc_larger(look->other_piece, gpc_pool_largest_free(pools[i]));
	look->device.cached_largest = gpc_larger(look->piece, look->other_piece);
	gpc_lock_take(&pool->lock);
	look->largest_pending = gpc_fences_largest(&pool->fences);
	gpc_lock_release(&pool->lock);
}

static void look_once(struct gpc_context *context, struct gpc_look *look)
{
	const struct gpc_record *record = &gpc_runtime.record;
	const struct gpucache_counters *counters =
		record->counters ? record->counters : context->pool.counters;
	size_t n_counters = record->counters ? record->n_counters : 1;

	(void)gpc_runtime_ask_neighbours(context->device, &look->neighbours);
	ask_driver(context, &look->device);
	look_at_pools(context, look);
	gpc_balance_fill(counters, n_counters, &look->device, &look->neighbours, &look->balance,
		look->kind_bytes);
	look->setup = setup_of(&gpc_runtime.config);
}

struct movement {
	uint64_t used;
	uint64_t moving;
	uint64_t moved;
};

static struct movement movement_of(const struct gpc_budget *budget)
{
	return (struct movement){
		.used = atomic_load(&budget->used_bytes),
		.moving = atomic_load(&budget->moving_bytes),
		.moved = atomic_load(&budget->moved_bytes),
	};
}

void gpc_look_take(struct gpc_context *context, struct gpc_look *ret_look)
{
	const struct gpc_budget *budget = &context->device->budget;
	uint64_t left_ms = MOVES_MS;

	for (int i = 0; i < LOOKS; i++) {
		struct movement before;
		struct movement after;

		gpc_pool_wait_for_moves(&context->pool, &left_ms);
		before = movement_of(budget);
		look_once(context, ret_look);
		after = movement_of(budget);
		if (memcmp(&before, &after, sizeof before) == 0)
			return;
	}
}
