/* SPDX-License-Identifier: Apache-2.0 */
/* A failed request: climbs the ladder.  What no rung serves is counted here, and reported by failure.c. */
#include "runtime/rescue/rescue.h"

#include "base/bytes.h"
#include "base/thread.h"
#include "model/counters.h"
#include "oom/ladder.h"
#include "record/store.h"
#include "runtime/context/contexts.h"
#include "runtime/context/pages.h"
#include "runtime/ledger/pools.h"
#include "runtime/process/api.h"
#include "runtime/process/enter.h"
#include "runtime/process/stacks.h"
#include "runtime/process/state.h"
#include "runtime/rescue/failure.h"
#include "runtime/rescue/spill.h"

#define IDLE_MS 1000 /* bounds the first wait for the driver's pools if oom_sync_ms is 0 */

/*
 * Trims the driver's pools.  They return no memory that was freed in stream order until the host has waited for the
 * device, so wait first.  Work that waits for the host would never end, so without must_wait the context must be seen
 * idle before; a driver that cannot tell is trusted.  False: work runs.
 */
static bool trim_pools(struct gpc_context *context, bool must_wait)
{
	uint64_t sync_ms = gpc_runtime.config.oom_sync_ms;
	uint64_t left_ms = sync_ms ? sync_ms : IDLE_MS;
	bool is_used = gpc_pools_are_used();
	enum gpc_status st = GPC_OK;

	if (is_used && !must_wait)
		st = gpc_pool_wait_idle(&context->pool, &left_ms);
	if (is_used && (!st || (st == GPC_UNSUPPORTED && sync_ms == 0)))
		gpc_pool_wait_out(&context->pool);
	gpc_pools_trim(context->device);
	return st != GPC_DEVICE_NOT_READY;
}

static bool trim_driver(void *arg, bool must_wait)
{
	const struct gpc_rescue *rescue = arg;

	return trim_pools(rescue->context, must_wait);
}

static bool call_handlers(void *arg, uint64_t wanted, bool *ret_did_free)
{
	const struct gpc_rescue *rescue = arg;

	return gpc_runtime_ask_handler(rescue->context->device, wanted, ret_did_free);
}

static enum gpc_status attempt_again(void *arg)
{
	struct gpc_rescue *rescue = arg;
	enum gpc_status st = rescue->attempt(rescue);

	if (st == GPC_DEVICE_NO_MEMORY && rescue->may_spill)
		st = gpc_spill_take(rescue);
	return st;
}

static bool spill(void *arg)
{
	struct gpc_rescue *rescue = arg;

	rescue->may_spill = gpc_spill_is_on();
	return rescue->may_spill;
}

static void count_outcome(
	struct gpc_rescue *rescue, const struct gpc_ladder *ladder, enum gpc_status st)
{
	struct gpc_pool *pool = &rescue->context->pool;
	struct gpucache_event event = {
		.time_ns = rescue->request.now_ns,
		.size = rescue->size,
		.requested = rescue->size,
		.stack = rescue->request.mark,
		.thread = rescue->request.thread,
		.kind = st ? GPUCACHE_EVENT_OOM : GPUCACHE_EVENT_RESCUED,
		.alloc_kind = (uint8_t)rescue->kind,
		.device = (uint16_t)rescue->context->device->ordinal,
		.context = pool->context,
		.detail = ladder->helped,
		.tag = gpc_thread_tag(),
	};

	gpc_lock_take(&pool->lock);
	gpc_counter_add(st ? &pool->counters->n_oom : &pool->counters->n_rescued, 1);
	if (ladder->helped)
		gpc_counter_add(&pool->counters->n_rescued_by[ladder->helped - 1], 1);
	gpc_lock_release(&pool->lock);
	gpc_record_event(&gpc_runtime.record, &event);
}

/*
 * True if the request exceeds all that could become free.  How much the driver's pools could return is unknown.  If
 * there are such pools, all memory counts that is not live in our pools.  False for requests that the driver serves,
 * because their size may be unknown.  Sets free_before.
 */
static bool is_out_of_reach(
	struct gpc_rescue *rescue, struct gpc_pool *const *pools, uint32_t n_pools)
{
	struct gpc_driver *drv = &rescue->context->drv.base;
	const struct gpc_device *device = rescue->context->device;
	uint64_t available;
	uint64_t idle = 0;
	uint64_t total;

	/* First idle, then moving, then free bytes: memory on its way back may count twice, but is not missed. */
	for (uint32_t i = 0; i < n_pools; i++)
		idle += gpc_pool_idle(pools[i]);
	idle += atomic_load(&device->budget.moving_bytes);
	idle += atomic_load(&device->budget.yielding_bytes);
	rescue->free_before = GPUCACHE_UNKNOWN;
	if (rescue->kind != GPUCACHE_KIND_DEVICE || drv->ops->mem_info(drv, &available, &total))
		return false;
	rescue->free_before = available;
	return rescue->rounded >
	       (gpc_pools_are_used() ? gpc_bytes_less(total, GPC_DEVICE_SUM(device, live_bytes))
				     : gpc_bytes_add(available, idle));
}

enum gpc_status gpc_rescue_run(struct gpc_rescue *rescue, enum gpc_status st)
{
	struct gpc_pool *pools[GPC_MAX_CONTEXTS];
	struct gpc_ladder ladder = {
		.pool = &rescue->context->pool,
		.pools = pools,
		.n_pools = gpc_device_pools(rescue->context->device, pools),
		.wanted = rescue->rounded,
		.wait_ms = gpc_runtime.config.oom_wait_ms,
		.sync_ms = gpc_runtime.config.oom_sync_ms,
		.attempt = attempt_again,
		.trim_driver = trim_driver,
		.call_handlers = call_handlers,
		.spill = spill,
		.arg = rescue,
	};

	ladder.is_out_of_reach = is_out_of_reach(rescue, pools, ladder.n_pools);
	gpc_pages_look_around();
	st = gpc_ladder_climb(&ladder, st);
	if (st && !gpc_ladder_helps(st))
		return st;
	count_outcome(rescue, &ladder, st);
	if (st) {
		gpc_spill_refused(rescue);
		gpc_failure_report(rescue, &ladder);
	}
	return st;
}

void gpc_rescue_refused(
	struct gpc_context *context, enum gpucache_kind kind, uint64_t size, enum gpc_status st)
{
	const struct gpc_ladder ladder = { 0 };
	/* All ones mean unknown. */
	uint64_t known = gpc_smaller(size, GPUCACHE_UNKNOWN - 1);
	struct gpc_rescue rescue = {
		.context = context,
		.kind = kind,
		.size = known,
		.rounded = known,
		.free_before = GPUCACHE_UNKNOWN,
		.request = gpc_runtime_request(known),
	};

	if (!context)
		return;
	count_outcome(&rescue, &ladder, st);
	gpc_failure_report(&rescue, &ladder);
}

bool gpc_runtime_make_room(void)
{
	struct gpc_context *context = gpc_context_current();
	struct gpc_pool *pools[GPC_MAX_CONTEXTS];
	uint32_t n = context ? gpc_device_pools(context->device, pools) : 0;
	uint64_t sync_ms = gpc_runtime.config.oom_sync_ms;
	uint64_t left_ms = sync_ms;

	for (uint32_t i = 0; i < n; i++) {
		(void)gpc_pool_wait(pools[i], 0);
		(void)gpc_pool_trim(pools[i], UINT64_MAX, true);
		if (gpc_pool_wait_late(pools[i], &left_ms) && !sync_ms)
			gpc_pool_wait_out(pools[i]);
	}
	if (context)
		(void)trim_pools(context, sync_ms == 0);
	return context != NULL;
}
