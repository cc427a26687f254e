/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One mapping holds slots, record_at and arena; untouched pages cost nothing.  An insertion probes again under the
 * lock, writes the record, passes it to the sink, and publishes id and slot last.
 */
#include "stack/intern.h"

#include "base/metamem.h"

enum gpc_status gpc_intern_init(struct gpc_intern *intern, uint32_t max, uint32_t arena_words,
	enum gpucache_region_kind region, const struct gpc_stack_sink *sink)
{
	uint32_t n_slots = 4;
	size_t slots_bytes, index_bytes, total;
	char *base;

	while (n_slots < 2 * max)
		n_slots *= 2;
	slots_bytes = n_slots * sizeof(uint64_t);
	/* Entries 0 .. max, rounded up to an even number: the arena behind them needs 8-byte alignment. */
	index_bytes = ((size_t)max + 2) / 2 * 2 * sizeof(uint32_t);
	total = slots_bytes + index_bytes + arena_words * sizeof(uint64_t);
	base = gpc_metamem_map(total);
	if (!base)
		return GPC_NO_METADATA;
	*intern = (struct gpc_intern){
		.sink = *sink,
		.region = region,
		.slots = (_Atomic uint64_t *)(void *)base,
		.record_at = (uint32_t *)(void *)(base + slots_bytes),
		.arena = (uint64_t *)(void *)(base + slots_bytes + index_bytes),
		.slot_mask = n_slots - 1,
		.max = max,
		.arena_words = arena_words,
		.mapped_bytes = total,
	};
	gpc_lock_init(&intern->lock, GPC_RANK_DEPOT);
	return GPC_OK;
}

void gpc_intern_fini(struct gpc_intern *intern)
{
	if (!intern->slots)
		return;
	gpc_metamem_unmap(intern->slots, intern->mapped_bytes);
	intern->slots = NULL;
}

/* Returns the new id, or 0 if there is no room, with the table unchanged. */
static uint32_t add_locked(struct gpc_intern *intern, uint64_t hash, gpc_intern_write *write,
	const void *key, uint32_t slot)
{
	uint32_t id = atomic_load_explicit(&intern->n_ids, memory_order_relaxed) + 1;
	uint64_t room = (uint64_t)(intern->arena_words - intern->arena_used) * sizeof(uint64_t);
	uint64_t *record = intern->arena + intern->arena_used;
	uint32_t size = id > intern->max ? 0 : write(record, room, id, key);

	if (!size || !intern->sink.append(intern->sink.self, intern->region, record, size))
		return 0;
	intern->record_at[id] = intern->arena_used;
	intern->arena_used += size / (uint32_t)sizeof(uint64_t);
	atomic_store_explicit(&intern->n_ids, id, memory_order_release);
	atomic_store_explicit(&intern->slots[slot], hash >> 32 << 32 | id, memory_order_release);
	return id;
}

uint32_t gpc_intern_add(struct gpc_intern *intern, uint64_t hash, gpc_intern_is *is,
	gpc_intern_write *write, const void *key, bool *ret_is_new)
{
	uint32_t slot = 0;
	uint32_t id;

	*ret_is_new = false;
	if (gpc_intern_is_closed(intern))
		return gpc_intern_probe(intern, hash, is, key, &slot);
	gpc_lock_take(&intern->lock);
	id = gpc_intern_probe(intern, hash, is, key, &slot);
	if (!id) {
		id = add_locked(intern, hash, write, key, slot);
		*ret_is_new = id != 0;
		if (!id)
			atomic_store_explicit(&intern->is_closed, true, memory_order_relaxed);
	}
	gpc_lock_release(&intern->lock);
	return id;
}
