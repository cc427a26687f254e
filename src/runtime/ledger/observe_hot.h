/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is recorded of each allocation and free, inline, for the observer of the pools and for the hits of
 * runtime/memory.c.
 *
 * Threads   As observe.h.
 * Failure   As observe.h.
 */
#ifndef GPC_RUNTIME_LEDGER_OBSERVE_HOT_H
#define GPC_RUNTIME_LEDGER_OBSERVE_HOT_H

#include "alloc/pool_hit.h"
#include "base/bytes.h"
#include "base/thread.h"
#include "model/balance.h"
#include "record/store.h"
#include "runtime/ledger/observe.h"
#include "runtime/ledger/tensors.h"
#include "runtime/process/state.h"
#include "stats/counters.h"

GPC_HOT void gpc_observe_block_changed(const struct gpc_block *block, uint64_t now_ns)
{
	const struct gpc_pool *pool = block->segment->pool;
	const bool is_live = block->state == GPC_BLOCK_LIVE;
	struct gpc_record_slot slot = gpc_record_open_block(&gpc_runtime.record, block->number,
		block->state, GPUCACHE_KIND_DEVICE, (uint16_t)pool->device);

	if (!slot.word)
		return;
	gpc_record_put(slot, 1, block->address);
	gpc_record_put(slot, 2, block->size);
	gpc_record_put(slot, 3, block->requested);
	gpc_record_put(slot, 4, now_ns);
	gpc_record_put(slot, 5, block->mark | (is_live ? (uint64_t)gpc_thread_id() << 32 : 0));
	gpc_record_put(slot, 6, block->segment->number | (uint64_t)pool->context << 32);
	gpc_record_put(slot, 7,
		(block->is_arena ? (uint64_t)GPUCACHE_BLOCK_ARENA << 32 : 0) |
			(is_live ? gpc_thread_tag() | (uint64_t)gpc_thread_stream()
							      << (32 + GPUCACHE_BLOCK_STREAM_SHIFT)
				 : 0));
	gpc_record_close_block(&gpc_runtime.record, slot);
}

GPC_HOT void gpc_observe_event(enum gpucache_event_kind what, const struct gpc_context *context,
	enum gpucache_kind kind, uint64_t address, uint64_t size, uint64_t requested,
	uint32_t stack, uint64_t now_ns)
{
	struct gpc_record_slot slot = gpc_record_open_event(&gpc_runtime.record);

	if (!slot.word)
		return;
	gpc_record_put(slot, 1, now_ns);
	gpc_record_put(slot, 2, address);
	gpc_record_put(slot, 3, size);
	gpc_record_put(slot, 4, requested);
	gpc_record_put(slot, 5, stack | (uint64_t)gpc_thread_id() << 32);
	gpc_record_put(slot, 6,
		(uint64_t)what | (uint64_t)kind << 8 | (uint64_t)context->pool.device << 16 |
			(uint64_t)context->pool.context << 32);
	gpc_record_put(slot, 7, gpc_thread_stream() | (uint64_t)gpc_thread_tag() << 32);
	gpc_record_close_event(&gpc_runtime.record, slot);
}

/* Sums over all contexts of a device, in one pass, because every allocation reads them. */
struct gpc_levels {
	uint64_t live;
	uint64_t in_use; /* direct memory, without idle bytes of the driver's pools */
};

GPC_HOT struct gpc_levels gpc_levels_sum(const struct gpc_device *device)
{
	uint32_t n = atomic_load_explicit(&device->n_contexts, memory_order_acquire);
	struct gpc_levels levels = { 0 };
	uint64_t direct = 0;
	uint64_t idle = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct gpc_context *context = device->contexts[i];
		const struct gpucache_counters *counters = context ? context->pool.counters : NULL;

		if (!counters)
			continue;
		levels.live += gpc_counter_get(&counters->live_bytes);
		direct += gpc_counter_get(&counters->direct_bytes);
		idle += gpc_counter_get(&counters->kind_bytes[GPUCACHE_KIND_POOL]);
	}
	levels.in_use = gpc_bytes_less(direct, idle);
	return levels;
}

/* Slow path of gpc_levels_note: records a new peak, or a point of the history. */
void gpc_levels_record(
	struct gpc_device *device, const struct gpc_levels *levels, uint64_t idle, uint64_t now_ns);

/*
 * Call after each allocation.  Peaks and history are kept per device, so they are sums over its contexts.  Most
 * allocations are neither a peak nor due for a point of the history.
 */
GPC_HOT void gpc_levels_note(struct gpc_device *device, uint64_t now_ns)
{
	struct gpc_levels levels = gpc_levels_sum(device);
	uint64_t idle = gpc_tensors_idle_bytes(device);

	if (__builtin_expect(now_ns >= atomic_load_explicit(
					       &device->next_history_ns, memory_order_relaxed) ||
				     gpc_record_is_peak(&gpc_runtime.record, device->ordinal,
					     gpc_bytes_less(levels.live + levels.in_use, idle)),
		    0))
		gpc_levels_record(device, &levels, idle, now_ns);
	gpc_window_clock_note(&gpc_runtime.record.site_locks[device->ordinal].clock,
		gpc_bytes_less(levels.live + levels.in_use, idle));
}

GPC_HOT struct gpc_share gpc_observe_share_for(uint32_t stack, uint64_t address, uint64_t requested)
{
	bool is_sampled = gpc_runtime.config.stacks == GPC_STACKS_SAMPLED;

	return gpc_share_of(is_sampled ? GPC_SAMPLE_BYTES : 0, stack, address, requested);
}

GPC_HOT struct gpc_share gpc_observe_share_of(const struct gpc_block *block)
{
	return gpc_observe_share_for(block->mark, block->address, block->requested);
}

/* One allocation or free, with its site's sums. */
GPC_HOT void gpc_observe_malloc(struct gpc_context *context, enum gpucache_kind kind,
	uint64_t address, uint64_t size, const struct gpc_request *request, struct gpc_share share)
{
	gpc_observe_event(GPUCACHE_EVENT_MALLOC, context, kind, address, size, request->size,
		request->mark, request->now_ns);
	if (!gpucache_kind_is_of_device(kind))
		return;
	if (!gpc_kind_is_implicit(kind))
		gpc_record_site_add(&gpc_runtime.record, context->device->ordinal, request->mark,
			share, request->now_ns);
	gpc_levels_note(context->device, request->now_ns);
}

GPC_HOT void gpc_observe_free(struct gpc_context *context, enum gpucache_kind kind,
	uint64_t address, uint64_t size, uint64_t requested, uint32_t stack, uint64_t now_ns,
	struct gpc_share share)
{
	gpc_observe_event(
		GPUCACHE_EVENT_FREE, context, kind, address, size, requested, stack, now_ns);
	if (gpucache_kind_is_of_device(kind) && !gpc_kind_is_implicit(kind))
		gpc_record_site_remove(&gpc_runtime.record, context->device->ordinal, stack, share);
}

GPC_HOT void gpc_observe_taken(const struct gpc_block *block, const struct gpc_request *request)
{
	struct gpc_context *context = gpc_context_of(block->segment->pool);

	gpc_observe_block_changed(block, request->now_ns);
	gpc_observe_malloc(context, GPUCACHE_KIND_DEVICE, block->address, block->size, request,
		gpc_observe_share_of(block));
}

GPC_HOT void gpc_observe_freed(const struct gpc_block *block, const struct gpc_request *request)
{
	struct gpc_context *context = gpc_context_of(block->segment->pool);

	gpc_observe_free(context, GPUCACHE_KIND_DEVICE, block->address, block->size,
		block->requested, block->mark, request->now_ns, gpc_observe_share_of(block));
}

#endif
