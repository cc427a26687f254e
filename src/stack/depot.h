/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The depot: every stack once, under a 32-bit id.
 *
 *      slots   open addressing, a power of two >= 2 * max_stacks; 0 is empty
 *              +---------------+----------+
 *              | upper half of | id       |--+
 *              | the hash      | 1, 2 ... |  |
 *              +---------------+----------+  |
 *      record_at[id]  <----------------------+
 *          |
 *          v
 *      arena   [ struct gpucache_stack | frames ][ struct gpucache_stack | frames ] ...
 *
 * The copy in the arena is the record that goes to the recording, byte for byte.
 *
 * Invariants
 *   1 A slot changes once, from 0 to its final value; arena and record_at of a published id never
 *     change.
 *   2 Ids are given out 1, 2, 3 ... without holes; id i is in the recording if and only if i <=
 *     n_ids.
 *   3 At most half of the slots are used, so that every probe ends at an empty slot.
 * Threads     gpc_depot_put and gpc_depot_find: any.  init and fini: one.
 * Ordering    A writer fills arena and record_at, then stores n_ids and the slot, both with
 *             release.  A reader loads the slot (or n_ids) with acquire and only then follows the
 *             id: what it reads was complete before. A reader that misses a slot being published
 *             takes the lock and probes again.
 * Progress    A known stack: wait-free (a bounded probe, a compare).  A new one: blocks on the
 *             lock, for a copy of at most a few hundred words and one append to the sink.
 * Failure     Id 0: no room in slots, arena or sink.  The depot then is closed: it still knows its
 *             stacks, counts the others as dropped, and takes no lock any more.
 * Limits      Stacks are never forgotten.  Two stacks that differ in depth only beyond the
 *             caller's cut are one.
 */
#ifndef GPC_STACK_DEPOT_H
#define GPC_STACK_DEPOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/status.h"
#include "stack/sink.h"

#define GPC_DEPOT_DEFAULT_STACKS 8192u
#define GPC_DEPOT_MAX_STACKS     (1u << 20)

/* What one stack is: native frames, then Python frames, as gpucache_format.h writes them. */
struct gpc_stack_frames {
	const uint64_t *frames;
	uint16_t n_native;
	uint16_t n_python;
	uint32_t flags; /* GPUCACHE_STACK_* */
};

struct gpc_depot {
	/* Fixed after init. */
	struct gpc_stack_sink sink;
	_Atomic uint64_t *slots;
	uint32_t *record_at; /* index into arena of id i */
	uint64_t *arena;
	uint32_t slot_mask;
	uint32_t max_stacks;
	uint32_t arena_words;
	size_t mapped_bytes;

	_Atomic uint32_t n_ids;
	_Atomic bool is_closed;
	_Atomic uint64_t n_dropped; /* calls that got id 0 */

	/* Lock: lock. */
	uint32_t arena_used;

	struct gpc_lock lock;
};

/* Room for max_stacks stacks (1 .. GPC_DEPOT_MAX_STACKS, else cut to that).  GPC_NO_METADATA. */
GPC_MUST_CHECK enum gpc_status gpc_depot_init(
	struct gpc_depot *depot, uint32_t max_stacks, const struct gpc_stack_sink *sink);
void gpc_depot_fini(struct gpc_depot *depot);

/* The id of these frames, or 0.  *ret_is_new: they were not known before this call. */
uint32_t gpc_depot_put(
	struct gpc_depot *depot, const struct gpc_stack_frames *stack, bool *ret_is_new);

/* The frames of id; they stay where they are until fini.  False where there is no such id. */
bool gpc_depot_find(const struct gpc_depot *depot, uint32_t id, struct gpc_stack_frames *ret_stack);

#endif
