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
#include "model/counters.h"
#include "record/store.h"
#include "runtime/ledger/observe.h"
#include "runtime/ledger/tensors.h"
#include "runtime/process/state.h"

/* An allocation, as its block and its events tell it: of a pool, of PyTorch (a tensor), or of the driver. */
struct gpc_observed {
	struct gpc_context *context; /* in whose counters it counts */
	enum gpucache_kind kind;
	uint32_t number;  /* of its slot in BLOCKS */
	uint32_t segment; /* GPUCACHE_NO_SEGMENT: none */
	bool is_arena;
	bool is_sampled; /* if stacks are sampled, so is this one */
	uint64_t address;
	uint64_t size;
	uint64_t requested;
	uint64_t now_ns;
	uint64_t who; /* stack of the request | thread that allocates or frees it now << 32 */
};

GPC_HOT void gpc_observe_block(const struct gpc_observed *observed, enum gpucache_block_state state)
{
	const struct gpc_pool *pool = &observed->context->pool;
	const bool is_live = state == GPUCACHE_BLOCK_LIVE;
	struct gpc_record_slot slot = gpc_record_open_block(&gpc_runtime.record, observed->number,
		(uint32_t)pool->place | (uint32_t)observed->kind << 8 | (uint32_t)state);

	if (!slot.is_open)
		return;
	gpc_record_put(slot, 1, observed->address);
	gpc_record_put(slot, 2, observed->size);
	gpc_record_put(slot, 3, state != GPUCACHE_BLOCK_UNUSED ? observed->requested : 0);
	gpc_record_put(slot, 4, observed->now_ns);
	gpc_record_put(slot, 5, observed->who);
	gpc_record_put(slot, 6, gpc_record_halves(observed->segment, pool->context));
	gpc_record_put(slot, 7,
		(observed->is_arena ? (uint64_t)GPUCACHE_BLOCK_ARENA << 32 : 0) |
			(is_live ? gpc_thread_tag() | (uint64_t)gpc_thread_stream()
							      << (32 + GPUCACHE_BLOCK_STREAM_SHIFT)
				 : 0));
	gpc_record_close_block(&gpc_runtime.record, slot);
}

/* The same for a live block that is free now: what the words say of its place stays. */
GPC_HOT void gpc_observe_free_block(const struct gpc_observed *observed)
{
	struct gpc_record_slot slot = gpc_record_open_block(&gpc_runtime.record, observed->number,
		(uint32_t)observed->context->pool.place | (uint32_t)observed->kind << 8 |
			GPUCACHE_BLOCK_FREE);

	if (!slot.is_open)
		return;
	gpc_record_put(slot, 3, 0);
	gpc_record_put(slot, 4, observed->now_ns);
	gpc_record_put(slot, 5, 0);
	gpc_record_put(slot, 7, 0);
	gpc_record_close_block(&gpc_runtime.record, slot);
}

GPC_HOT void gpc_observe_event(const struct gpc_observed *observed, enum gpucache_event_kind kind)
{
	struct gpc_record_slot slot = gpc_record_open_event(&gpc_runtime.record);

	if (!slot.is_open)
		return;
	gpc_record_put(slot, 1, observed->now_ns);
	gpc_record_put(slot, 2, observed->address);
	gpc_record_put(slot, 3, observed->size);
	gpc_record_put(slot, 4, observed->requested);
	gpc_record_put(slot, 5, observed->who);
	gpc_record_put(slot, 6,
		observed->context->pool.place | (uint64_t)observed->kind << 8 | (uint64_t)kind);
	gpc_record_put(slot, 7, gpc_record_halves(gpc_thread_stream(), gpc_thread_tag()));
	gpc_record_close_event(&gpc_runtime.record, slot);
}

/* What a device's contexts hold together, in one pass, because every allocation reads it. */
struct gpc_levels {
	uint64_t live;   /* in the cache */
	uint64_t direct; /* from the driver, without idle bytes of its pools */
	uint64_t idle;   /* in PyTorch's cache: in no tensor */
};

GPC_HOT struct gpc_levels gpc_levels_sum(const struct gpc_device *device)
{
	uint32_t n = atomic_load_explicit(&device->n_contexts, memory_order_acquire);
	struct gpc_levels levels = { .idle = gpc_tensors_idle_bytes(device) };
	uint64_t pools = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct gpc_context *context = device->contexts[i];
		const struct gpucache_counters *counters = context ? context->pool.counters : NULL;

		if (!counters)
			continue;
		levels.live += gpc_counter_get(&counters->live_bytes);
		levels.direct += gpc_counter_get(&counters->direct_bytes);
		pools += gpc_counter_get(&counters->kind_bytes[GPUCACHE_KIND_POOL]);
	}
	levels.direct = gpc_bytes_less(levels.direct, pools);
	return levels;
}

/* The most that was live in the running window of the device (record/windows.h). */
GPC_HOT uint64_t gpc_levels_high(const struct gpc_device *device)
{
	return atomic_load_explicit(
		&gpc_runtime.record.site_locks[device->ordinal].clock.high, memory_order_relaxed);
}

/* Slow path of gpc_levels_note. */
void gpc_levels_record(struct gpc_device *device, struct gpc_levels levels, uint64_t now_ns);

/*
 * Call after each allocation.  Windows, peaks and history are of a device, so they are of sums over its contexts.  What
 * is no more than the running window has seen is no peak either.
 */
GPC_HOT void gpc_levels_note(struct gpc_device *device, uint64_t now_ns)
{
	struct gpc_levels levels = gpc_levels_sum(device);

	if (__builtin_expect(
		    now_ns >= atomic_load_explicit(
				      &device->next_history_ns, memory_order_relaxed) ||
			    levels.live + levels.direct > levels.idle + gpc_levels_high(device),
		    0))
		gpc_levels_record(device, levels, now_ns);
}

/* What it counts for in its site. */
GPC_HOT struct gpc_share gpc_observe_share_of(const struct gpc_observed *observed)
{
	bool is_sampled = observed->is_sampled && gpc_runtime.config.stacks == GPC_STACKS_SAMPLED;

	return gpc_share_of(is_sampled ? GPC_SAMPLE_BYTES : 0, (uint32_t)observed->who,
		observed->address, observed->requested);
}

GPC_HOT bool gpc_observe_is_held(const struct gpc_observed *observed)
{
	return gpucache_is_held(GPUCACHE_BLOCK_LIVE, observed->kind, 0);
}

/* True if a site holds the allocation: what the driver takes for itself is no site's. */
GPC_HOT bool gpc_observe_has_site(const struct gpc_observed *observed)
{
	return (uint32_t)observed->who && gpc_observe_is_held(observed) &&
	       !gpc_kind_is_implicit(observed->kind);
}

/* One allocation or free, beside its block. */
GPC_HOT void gpc_observe_malloc(const struct gpc_observed *observed)
{
	struct gpc_device *device = observed->context->device;

	gpc_observe_event(observed, GPUCACHE_EVENT_MALLOC);
	if (gpc_observe_has_site(observed))
		gpc_record_site_add(&gpc_runtime.record, device->ordinal, (uint32_t)observed->who,
			gpc_observe_share_of(observed), observed->now_ns);
	if (gpc_observe_is_held(observed))
		gpc_levels_note(device, observed->now_ns);
}

/* The site of a freed block gives its bytes back. */
GPC_HOT void gpc_observe_site_left(const struct gpc_observed *observed)
{
	if (gpc_observe_has_site(observed))
		gpc_record_site_remove(&gpc_runtime.record, observed->context->device->ordinal,
			(uint32_t)observed->who, gpc_observe_share_of(observed));
}

/* From now on the tensors in the block hold its bytes. */
static inline void gpc_observe_arena(const struct gpc_observed *observed)
{
	gpc_observe_site_left(observed);
	if (gpc_observe_has_site(observed))
		gpc_record_site_mark(&gpc_runtime.record, observed->context->device->ordinal,
			(uint32_t)observed->who, GPUCACHE_SITE_ARENA);
}

GPC_HOT void gpc_observe_free(const struct gpc_observed *observed)
{
	gpc_observe_event(observed, GPUCACHE_EVENT_FREE);
	gpc_observe_site_left(observed);
}

/* A pool's block; for `who`, a request of `requested` bytes. */
GPC_HOT struct gpc_observed gpc_observed_block(
	const struct gpc_block *block, uint64_t requested, uint64_t who, uint64_t now_ns)
{
	return (struct gpc_observed){
		.context = gpc_context_of(block->segment->pool),
		.kind = GPUCACHE_KIND_DEVICE,
		.number = block->number,
		.segment = block->segment->number,
		.is_sampled = true,
		.address = block->address,
		.size = block->size,
		.requested = requested,
		.now_ns = now_ns,
		.who = who,
	};
}

GPC_HOT void gpc_observe_block_changed(const struct gpc_block *block, uint64_t now_ns)
{
	uint32_t thread = block->state == GPC_BLOCK_LIVE ? gpc_thread_id() : 0;
	struct gpc_observed observed = gpc_observed_block(
		block, block->requested, gpc_record_halves(block->mark, thread), now_ns);

	observed.is_arena = block->is_arena;
	gpc_observe_block(&observed, (enum gpucache_block_state)block->state);
}

GPC_HOT void gpc_observe_taken(const struct gpc_block *block, const struct gpc_request *request)
{
	const struct gpc_observed observed = gpc_observed_block(block, request->size,
		gpc_record_halves(request->mark, request->thread), request->now_ns);

	gpc_observe_block(&observed, GPUCACHE_BLOCK_LIVE);
	gpc_observe_malloc(&observed);
}

GPC_HOT void gpc_observe_freed(
	const struct gpc_block *block, const struct gpc_request *request, bool is_parked)
{
	const struct gpc_observed observed = gpc_observed_block(block, block->requested,
		gpc_record_halves(block->mark, request->thread), request->now_ns);

	gpc_observe_free(&observed);
	if (is_parked)
		gpc_observe_free_block(&observed);
}

#endif
