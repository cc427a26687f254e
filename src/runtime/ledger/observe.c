/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds the recording.  For each change of a block or segment, the heap's observer writes its slot, appends an event,
 * and updates the sums of its call site.  Readings of the device, limited in rate, go into DEVICES and HISTORY.
 */
#include "runtime/ledger/observe.h"

#include "base/clock.h"
#include "model/balance.h"
#include "model/counters.h"
#include "record/store.h"
#include "runtime/context/contexts.h"
#include "runtime/ledger/observe_hot.h"
#include "runtime/ledger/pools.h"
#include "runtime/process/state.h"

/* The least time between two history points; the recording thins them further as the run goes on. */
#define HISTORY_STEP_NS (UINT64_C(10) * 1000000)

/* The least time between two queries of free memory, of all threads together; a query takes 7 to 12 us. */
#define LOOK_STEP_NS (UINT64_C(50) * 1000000)

void gpc_levels_record(struct gpc_device *device, struct gpc_levels levels, uint64_t now_ns)
{
	uint64_t next_ns = atomic_load_explicit(&device->next_history_ns, memory_order_relaxed);
	uint64_t live = gpc_bytes_less(levels.live + levels.direct, levels.idle);
	uint64_t requested;
	uint64_t reserved;

	gpc_window_clock_note(&gpc_runtime.record.site_locks[device->ordinal].clock, live);
	if (now_ns < next_ns && !gpc_record_is_peak(&gpc_runtime.record, device->ordinal, live))
		return;
	requested = gpc_bytes_less(
		GPC_DEVICE_SUM(device, requested_bytes) + levels.direct, levels.idle);
	reserved = GPC_DEVICE_SUM(device, reserved_bytes) + GPC_DEVICE_SUM(device, direct_bytes);
	gpc_record_peak(&gpc_runtime.record, device->ordinal, now_ns, requested, live, reserved);
	if (now_ns < next_ns || !atomic_compare_exchange_strong(&device->next_history_ns, &next_ns,
					now_ns + HISTORY_STEP_NS))
		return;
	gpc_record_history(&gpc_runtime.record, device->ordinal, now_ns, requested, live,
		GPC_DEVICE_SUM(device, pending_bytes), reserved);
}

static void became_arena(const struct gpc_block *block)
{
	const struct gpc_observed observed =
		gpc_observed_block(block, block->requested, block->mark, 0);

	gpc_observe_arena(&observed);
}

static void record_segment(const struct gpc_segment *segment, enum gpucache_event_kind kind,
	uint64_t requested, uint32_t stack, uint64_t now_ns)
{
	const bool is_here = kind == GPUCACHE_EVENT_SEGMENT_MALLOC;
	const struct gpucache_segment record = {
		.state = 1,
		.pool = segment->kind,
		.device = (uint16_t)segment->pool->device,
		.address = segment->address,
		.size = segment->size,
		.time_ns = now_ns,
		.context = segment->pool->context,
		.stack = segment->mark,
	};
	const struct gpc_observed observed = {
		.context = gpc_context_of(segment->pool),
		.kind = GPUCACHE_KIND_DEVICE,
		.address = segment->address,
		.size = segment->size,
		.requested = requested,
		.now_ns = now_ns,
		.who = gpc_record_halves(stack, gpc_thread_id()),
	};

	gpc_record_segment(&gpc_runtime.record, segment->number,
		is_here ? &record : &(struct gpucache_segment){ 0 });
	gpc_observe_event(&observed, kind);
}

static void segment_added(const struct gpc_segment *segment, const struct gpc_request *request)
{
	record_segment(segment, GPUCACHE_EVENT_SEGMENT_MALLOC, request->size, request->mark,
		request->now_ns);
}

static void segment_removed(const struct gpc_segment *segment)
{
	record_segment(
		segment, GPUCACHE_EVENT_SEGMENT_FREE, 0, segment->mark, gpc_clock_monotonic_ns());
}

const struct gpc_observer gpc_runtime_observer = {
	.block_changed = gpc_observe_block_changed,
	.taken = gpc_observe_taken,
	.freed = gpc_observe_freed,
	.became_arena = became_arena,
	.segment_added = segment_added,
	.segment_removed = segment_removed,
};

void gpc_observe_context(const struct gpc_context *context, uint32_t what)
{
	struct gpucache_event event = {
		.time_ns = gpc_clock_monotonic_ns(),
		.address = (uint64_t)(uintptr_t)context->handle,
		.thread = gpc_thread_id(),
		.kind = GPUCACHE_EVENT_CONTEXT,
		.device = (uint16_t)context->device->ordinal,
		.context = context->pool.context,
		.detail = what,
	};

	gpc_record_event(&gpc_runtime.record, &event);
}

void gpc_observe_now(struct gpc_context *context)
{
	gpc_observe_device(context, true);
	atomic_store(&context->device->next_history_ns, 0);
	gpc_levels_note(context->device, gpc_clock_monotonic_ns());
}

void gpc_observe_peak(struct gpc_device *device)
{
	gpc_record_peak_reopen(&gpc_runtime.record, device->ordinal);
	gpc_levels_record(device, gpc_levels_sum(device), gpc_clock_monotonic_ns());
}

void gpc_observe_device(struct gpc_context *context, bool must)
{
	struct gpc_device *device = context->device;
	struct gpc_driver *drv = &context->drv.base;
	uint64_t now_ns = gpc_clock_monotonic_ns();
	uint64_t next_ns = atomic_load_explicit(&device->next_look_ns, memory_order_relaxed);
	uint64_t available = 0;
	uint64_t total = 0;

	if (!must && (now_ns < next_ns || !atomic_compare_exchange_strong(&device->next_look_ns,
						  &next_ns, now_ns + LOOK_STEP_NS)))
		return;
	if (drv->ops->mem_info(drv, &available, &total))
		return;
	gpc_pools_look(device);
	gpc_lock_take(&gpc_runtime.lock);
	device->known.look_ns = now_ns;
	device->known.free_bytes = available;
	device->known.total_bytes = total;
	device->known.ours_bytes =
		GPC_DEVICE_SUM(device, reserved_bytes) + GPC_DEVICE_SUM(device, direct_bytes);
	gpc_record_device(&gpc_runtime.record, device->ordinal, &device->known);
	gpc_lock_release(&gpc_runtime.lock);
}
