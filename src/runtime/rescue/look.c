/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeats the reading if the device's budget changed during it.  Threads that return and take memory all the time may
 * change it during every reading, so the number of readings is bounded.  Bytes may also stay on the move, because the
 * driver blocks the thread that moves them.  They are no reason for another reading, which would find the same.
 */
#include "runtime/rescue/look.h"

#include <string.h>
#include <unistd.h>

#include "base/own_stack.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"

#define LOOKS 16

/* Bounds the sum of all waits for bytes on the move; the ladder has waited before, and longer. */
#define MOVES_MS 20

static struct gpc_neighbours_query query_of(const struct gpc_device *device)
{
	return (struct gpc_neighbours_query){
		.uuid = device->known.uuid,
		.pci_bus_id = device->known.pci_bus_id,
		/* Without a UUID the number must do, which is wrong if CUDA_VISIBLE_DEVICES hides devices. */
		.index = device->known.uuid[0] ? -1 : (int)device->ordinal,
		.own_pid = (uint32_t)getpid(),
		.proc = "/proc",
	};
}

/*
 * NVML is loaded at the first need, without a lock of ours: a thread that holds the loader's lock may wait for that
 * lock.  Of two threads that fail at once, the second does not wait, and gets only unknown numbers.
 */
static bool ask_neighbours(const struct gpc_device *device, struct gpc_neighbours *ret_neighbours)
{
	static atomic_flag is_busy = ATOMIC_FLAG_INIT;
	const struct gpc_nvml_loader loader = {
		.open = gpc_runtime.loader->open,
		.lookup_in = gpc_runtime.loader->lookup_in,
	};
	const struct gpc_neighbours_query query = query_of(device);
	struct gpc_nvml *nvml = &gpc_runtime.nvml;

	if (atomic_flag_test_and_set(&is_busy)) {
		gpc_neighbours_ask(NULL, &query, ret_neighbours);
		return false;
	}
	if (!gpc_runtime.nvml_was_tried) {
		gpc_runtime.nvml_was_tried = true;
		if (gpc_nvml_init(nvml, &loader))
			nvml->ready = false;
	}
	gpc_neighbours_ask(nvml, &query, ret_neighbours);
	atomic_flag_clear(&is_busy);
	return true;
}

/* Finds another GPU of the process that is idle.  Only after ask_neighbours() was true: then nvml was tried. */
static void ask_idle(const struct gpc_device *device, struct gpc_look *look)
{
	for (uint32_t i = 0; i < gpc_runtime.n_devices; i++) {
		const struct gpc_neighbours_query query = query_of(&gpc_runtime.devices[i]);
		uint64_t available =
			i == device->ordinal
				? 0
				: gpc_nvml_idle(&gpc_runtime.nvml, &query,
					  atomic_load(&gpc_runtime.devices[i].budget.used_bytes));

		if (available <= look->idle_free)
			continue;
		look->idle_gpu = i + 1;
		look->idle_free = available;
	}
}

struct question {
	const struct gpc_device *device;
	struct gpc_neighbours *answer;
	bool is_answered;
};

static void ask(void *arg)
{
	struct question *question = arg;

	question->is_answered = ask_neighbours(question->device, question->answer);
}

bool gpc_runtime_ask_neighbours(
	const struct gpc_device *device, struct gpc_neighbours *ret_neighbours)
{
	struct question question = { .device = device, .answer = ret_neighbours };

	gpc_own_stack_run(ask, &question);
	return question.is_answered;
}

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
	return (config->cache != GPC_CACHE_OFF ? GPUCACHE_OOM_CACHING : 0) |
	       (config->per_process_memory_fraction < 1000000 ? GPUCACHE_OOM_FRACTION : 0) |
	       (config->roundup_power2_divisions ? GPUCACHE_OOM_ROUNDUP : 0) |
	       (gpc_runtime.torch_rounds_up ? GPUCACHE_OOM_TORCH_ROUNDUP : 0) |
	       (config->oom_wait_ms ? GPUCACHE_OOM_WAIT : 0) |
	       (gpc_runtime.is_eager ? GPUCACHE_OOM_EAGER : 0) |
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
	look->returnable_bytes = gpc_counter_get(&pool->idle_segment_bytes);
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

	look->idle_gpu = 0;
	look->idle_free = 0;
	if (gpc_runtime.config.oom_report == GPC_OOM_REPORT_NEVER)
		gpc_neighbours_ask(NULL, NULL, &look->neighbours);
	else if (gpc_runtime_ask_neighbours(context->device, &look->neighbours))
		ask_idle(context->device, look);
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
