/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An intern table stores each record once, under a 32-bit id.  There is one of stacks (depot.h) and one of code objects
 * (codes.h).  Tags (tags.h) are not in one: add takes a lock, which in a fork child may be held by a thread that does
 * not exist there, and the child still adds tags.
 *
 *      slots   open addressing, a power of two >= 2 * max; 0 is empty
 *              +---------------+----------+
 *              | upper half of | id       |--+
 *              | the hash      | 1, 2 ... |  |
 *              +---------------+----------+  |
 *      record_at[id]  <----------------------+
 *          |
 *          v
 *      arena   [ record ][ record ] ...          as in the recording, byte for byte
 *
 * Invariants  1 A slot changes once, from 0 to its final value.  The record of a published id never changes.
 *             2 Ids are 1, 2, 3 ... without gaps, up to n_ids.  A record is in the sink before its id is published.
 *             3 At most half of the slots are used, so every probe ends at an empty slot.
 * Threads     probe, add, has and record: any.  init and fini: one.
 * Ordering    add fills arena and record_at, then stores n_ids and the slot, both with release.  probe loads the
 *             slot, and has loads n_ids, with acquire before the record is read.  If probe misses a record that
 *             another thread is adding, add finds it by a second probe under the lock.
 * Progress    probe: wait-free and bounded.  add: waits for the lock, which is held for one write and one append.
 * Failure     Id 0: no room in slots, arena or sink.  The table is then closed: it finds its records, accepts no new
 *             ones, and takes no lock.
 * Limits      Records are never removed.
 */
#ifndef GPC_STACK_INTERN_H
#define GPC_STACK_INTERN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/status.h"
#include "stack/sink.h"

struct gpc_intern {
	/* Fixed after init. */
	struct gpc_stack_sink sink;
	enum gpucache_region_kind region;
	_Atomic uint64_t *slots;
	uint32_t *record_at; /* [id]: the word of arena where the record begins */
	uint64_t *arena;
	uint32_t slot_mask;
	uint32_t max;
	uint32_t arena_words;
	size_t mapped_bytes;

	_Atomic uint32_t n_ids;
	_Atomic bool is_closed;

	/* Lock: lock. */
	uint32_t arena_used;

	struct gpc_lock lock;
};

/*
 * Callbacks.  `is` returns true if record `id` matches `key`.  `write` writes the record of `key`, which gets number
 * `id`, into `room` bytes at `to`.  It returns the record's size, a multiple of 8, or 0 if the record does not fit.
 */
typedef bool gpc_intern_is(const struct gpc_intern *intern, uint32_t id, const void *key);
typedef uint32_t gpc_intern_write(uint64_t *to, uint64_t room, uint32_t id, const void *key);

GPC_MUST_CHECK enum gpc_status gpc_intern_init(struct gpc_intern *intern, uint32_t max,
	uint32_t arena_words, enum gpucache_region_kind region, const struct gpc_stack_sink *sink);
void gpc_intern_fini(struct gpc_intern *intern);

/* Returns the id of a record, or 0 with the empty slot that ended the probe.  Inlined, so that `is` is, too. */
static inline __attribute__((always_inline)) uint32_t gpc_intern_probe(
	const struct gpc_intern *intern, uint64_t hash, gpc_intern_is *is, const void *key,
	uint32_t *ret_slot)
{
	uint32_t at = (uint32_t)hash & intern->slot_mask;
	uint64_t slot;

	for (;; at = (at + 1) & intern->slot_mask) {
		slot = atomic_load_explicit(&intern->slots[at], memory_order_acquire);
		if (!slot)
			break;
		if (slot >> 32 == hash >> 32 && is(intern, (uint32_t)slot, key))
			return (uint32_t)slot;
	}
	*ret_slot = at;
	return 0;
}

/* As probe, but adds an unknown record, and says so in *ret_is_new.  0: no room. */
uint32_t gpc_intern_add(struct gpc_intern *intern, uint64_t hash, gpc_intern_is *is,
	gpc_intern_write *write, const void *key, bool *ret_is_new);

/* True once a record found no room: add then adds nothing, and only finds known records. */
static inline bool gpc_intern_is_closed(const struct gpc_intern *intern)
{
	return atomic_load_explicit(&intern->is_closed, memory_order_relaxed);
}

static inline bool gpc_intern_has(const struct gpc_intern *intern, uint32_t id)
{
	return id && id <= atomic_load_explicit(&intern->n_ids, memory_order_acquire);
}

/* The record of an id for which gpc_intern_has is true.  It stays in place until fini. */
static inline const void *gpc_intern_record(const struct gpc_intern *intern, uint32_t id)
{
	return intern->arena + intern->record_at[id];
}

#endif
