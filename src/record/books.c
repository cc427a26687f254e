/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the records of COUNTERS, DEVICES and SEGMENTS. */
#include <string.h>

#include "model/counters.h"
#include "record/store.h"

void gpc_record_segment(
	struct gpc_record *rec, uint32_t number, const struct gpucache_segment *segment)
{
	if (!rec->base)
		return;
	if (number >= rec->n_segments) {
		if (segment->state)
			__atomic_fetch_add(&rec->header->dropped_segments, 1, __ATOMIC_RELAXED);
		return;
	}
	gpc_lock_take(&rec->lock);
	gpc_record_store(&rec->segments[number], segment, sizeof *segment);
	gpc_record_mark_page(rec, &rec->segments[number]);
	gpc_lock_release(&rec->lock);
}

void gpc_record_block_is_new(struct gpc_record *rec, uint32_t number)
{
	uint32_t end = atomic_load_explicit(&rec->block_end, memory_order_relaxed);

	while (end <= number && !atomic_compare_exchange_weak_explicit(&rec->block_end, &end,
					number + 1, memory_order_release, memory_order_relaxed))
		;
	gpc_record_mark_page(rec, &rec->blocks[number]);
}

void gpc_record_device(
	struct gpc_record *rec, uint32_t ordinal, const struct gpucache_device *device)
{
	struct gpucache_device copy = *device;
	struct gpucache_device *devices;

	if (!rec->base || ordinal >= rec->n_devices)
		return;
	devices = (void *)(rec->base + rec->regions[GPUCACHE_REGION_DEVICES]->offset);
	copy.ordinal = (int32_t)ordinal;
	gpc_lock_take(&rec->lock);
	gpc_record_store(&devices[ordinal], &copy, sizeof copy);
	gpc_record_mark(rec, &devices[ordinal], sizeof copy);
	gpc_lock_release(&rec->lock);
}

/* Finds an unused slot, else a retired one, of the same device if there is one; n_counters: all are in use. */
static uint32_t find_slot_locked(const struct gpc_record *rec, uint32_t device)
{
	uint32_t best = rec->n_counters;

	for (uint32_t i = 0; i < rec->n_counters; i++) {
		if (rec->counters[i].context == 0)
			return i;
		if (!(rec->retired >> i & 1))
			continue;
		if (best == rec->n_counters || (rec->counters[best].device != (int32_t)device &&
						       rec->counters[i].device == (int32_t)device))
			best = i;
	}
	return best;
}

struct gpucache_counters *gpc_record_counters_take(struct gpc_record *rec, uint64_t context,
	uint32_t generation, uint32_t device, uint32_t *ret_index)
{
	struct gpucache_counters *counters = NULL;
	uint32_t slot;

	*ret_index = GPC_RECORD_NO_COUNTERS;
	if (!rec->base || context == 0)
		return NULL;
	gpc_lock_take(&rec->lock);
	slot = find_slot_locked(rec, device);
	if (slot < rec->n_counters) {
		counters = &rec->counters[slot];
		rec->retired &= ~(UINT64_C(1) << slot);
		__atomic_store_n(&counters->generation, generation, __ATOMIC_RELAXED);
		__atomic_store_n(&counters->device, (int32_t)device, __ATOMIC_RELAXED);
		/* Stored last, because a reader takes a record with a context as complete. */
		__atomic_store_n(&counters->context, context, __ATOMIC_RELEASE);
		gpc_record_mark_page(rec, counters);
		*ret_index = slot;
	}
	gpc_lock_release(&rec->lock);
	return counters;
}

void gpc_record_counters_retire(struct gpc_record *rec, uint32_t index)
{
	struct gpucache_counters *counters;

	if (!rec->base || index >= rec->n_counters)
		return;
	counters = &rec->counters[index];
	gpc_lock_take(&rec->lock);
	gpc_counters_clear(counters, GPC_WHEN_HEAP);
	gpc_counters_clear(counters, GPC_WHEN_BESIDE);
	rec->retired |= UINT64_C(1) << index;
	gpc_lock_release(&rec->lock);
}
