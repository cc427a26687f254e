/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An intern table: four-lane multiplicative hash, open addressing, frames appended to an arena, the slot published
 * last.  A known stack costs one hash and one probe without a lock.
 */
#include "stack/depot.h"

#include <string.h>

#include "base/metamem.h"

/*
 * A stack of PyTorch has 20 to 60 frames, one of a C program fewer than 10.  Pages that are never
 * reached cost nothing, so this is a bound and not a price.
 */
#define FRAMES_PER_STACK 40u
#define HEAD_WORDS       ((uint32_t)(sizeof(struct gpucache_stack) / sizeof(uint64_t)))

/*
 * Odd constants without structure: fractional digits of the golden ratio and of the square root
 * of 3.
 */
#define MIX_A UINT64_C(0x9e3779b97f4a7c15)
#define MIX_B UINT64_C(0xbb67ae8584caa73b)

static uint32_t n_frames(const struct gpc_stack_frames *stack)
{
	return (uint32_t)stack->n_native + stack->n_python;
}

static inline uint64_t mix(uint64_t lane, uint64_t frame)
{
	lane = (lane ^ frame) * MIX_A;
	return lane ^ lane >> 29;
}

/* Four independent lanes: the multiplications of one would wait for each other. */
static uint64_t hash_stack(const struct gpc_stack_frames *stack)
{
	const uint64_t *frames = stack->frames;
	uint32_t n = n_frames(stack);
	uint64_t a =
		(uint64_t)stack->n_native << 48 | (uint64_t)stack->n_python << 32 | stack->flags;
	uint64_t b = MIX_A, c = MIX_B, d = MIX_A ^ MIX_B;
	uint32_t i;

	for (i = 0; i + 3 < n; i += 4) {
		a = mix(a, frames[i]);
		b = mix(b, frames[i + 1]);
		c = mix(c, frames[i + 2]);
		d = mix(d, frames[i + 3]);
	}
	for (; i < n; i++)
		a = mix(a, frames[i]);
	a = mix(mix(mix(a, b), c), d) * MIX_B;
	return a ^ a >> 32;
}

static const struct gpucache_stack *record_of(const struct gpc_depot *depot, uint32_t id)
{
	return (const struct gpucache_stack *)(const void *)(depot->arena + depot->record_at[id]);
}

static const uint64_t *frames_of(const struct gpc_depot *depot, uint32_t id)
{
	return depot->arena + depot->record_at[id] + HEAD_WORDS;
}

static bool is_same(const struct gpc_depot *depot, uint32_t id, uint64_t hash,
	const struct gpc_stack_frames *stack)
{
	const struct gpucache_stack *record = record_of(depot, id);

	return record->hash == hash && record->n_native == stack->n_native &&
	       record->n_python == stack->n_python && record->flags == stack->flags &&
	       memcmp(frames_of(depot, id), stack->frames, n_frames(stack) * sizeof(uint64_t)) == 0;
}

/* The id of a known stack, or 0 and the empty slot where the probe ended. */
static uint32_t probe(const struct gpc_depot *depot, uint64_t hash,
	const struct gpc_stack_frames *stack, uint32_t *ret_slot)
{
	uint32_t at = (uint32_t)hash & depot->slot_mask;
	uint64_t slot;

	for (;; at = (at + 1) & depot->slot_mask) {
		slot = atomic_load_explicit(&depot->slots[at], memory_order_acquire);
		if (!slot)
			break;
		if (slot >> 32 == hash >> 32 && is_same(depot, (uint32_t)slot, hash, stack))
			return (uint32_t)slot;
	}
	*ret_slot = at;
	return 0;
}

/* The new id, or 0 where there is no room; the depot is as before then. */
static uint32_t add_locked(
	struct gpc_depot *depot, uint64_t hash, const struct gpc_stack_frames *stack, uint32_t slot)
{
	uint32_t id = atomic_load_explicit(&depot->n_ids, memory_order_relaxed) + 1;
	uint32_t words = HEAD_WORDS + n_frames(stack);
	struct gpucache_stack head = {
		.size = words * (uint32_t)sizeof(uint64_t),
		.id = id,
		.hash = hash,
		.n_native = stack->n_native,
		.n_python = stack->n_python,
		.flags = stack->flags,
	};
	uint64_t *record = depot->arena + depot->arena_used;

	if (id > depot->max_stacks || words > depot->arena_words - depot->arena_used)
		return 0;
	memcpy(record, &head, sizeof(head));
	memcpy(record + HEAD_WORDS, stack->frames, n_frames(stack) * sizeof(uint64_t));
	if (!gpc_stack_sink_append(&depot->sink, GPUCACHE_REGION_STACKS, record, head.size))
		return 0;
	depot->record_at[id] = depot->arena_used;
	depot->arena_used += words;
	atomic_store_explicit(&depot->n_ids, id, memory_order_release);
	atomic_store_explicit(&depot->slots[slot], hash >> 32 << 32 | id, memory_order_release);
	return id;
}

static uint32_t put_new(struct gpc_depot *depot, uint64_t hash,
	const struct gpc_stack_frames *stack, bool *ret_is_new)
{
	bool is_new = false;
	uint32_t slot;
	uint32_t id;

	if (atomic_load_explicit(&depot->is_closed, memory_order_relaxed))
		return 0;
	gpc_lock_take(&depot->lock);
	id = probe(depot, hash, stack, &slot);
	if (!id) {
		id = add_locked(depot, hash, stack, slot);
		is_new = id != 0;
		if (!id)
			atomic_store_explicit(&depot->is_closed, true, memory_order_relaxed);
	}
	gpc_lock_release(&depot->lock);
	*ret_is_new = is_new;
	return id;
}

uint32_t gpc_depot_put(
	struct gpc_depot *depot, const struct gpc_stack_frames *stack, bool *ret_is_new)
{
	uint64_t hash = hash_stack(stack);
	uint32_t slot;
	uint32_t id;

	*ret_is_new = false;
	id = probe(depot, hash, stack, &slot);
	if (!id)
		id = put_new(depot, hash, stack, ret_is_new);
	if (!id)
		atomic_fetch_add_explicit(&depot->n_dropped, 1, memory_order_relaxed);
	return id;
}

bool gpc_depot_find(const struct gpc_depot *depot, uint32_t id, struct gpc_stack_frames *ret_stack)
{
	const struct gpucache_stack *record;

	if (!id || id > atomic_load_explicit(&depot->n_ids, memory_order_acquire))
		return false;
	record = record_of(depot, id);
	*ret_stack = (struct gpc_stack_frames){
		.frames = frames_of(depot, id),
		.n_native = record->n_native,
		.n_python = record->n_python,
		.flags = record->flags,
	};
	return true;
}

static uint32_t clamp_stacks(uint32_t max_stacks)
{
	if (max_stacks < 1)
		return 1;
	return max_stacks < GPC_DEPOT_MAX_STACKS ? max_stacks : GPC_DEPOT_MAX_STACKS;
}

enum gpc_status gpc_depot_init(
	struct gpc_depot *depot, uint32_t max_stacks, const struct gpc_stack_sink *sink)
{
	uint32_t n = clamp_stacks(max_stacks);
	uint32_t n_slots = 4;
	size_t arena_words = (size_t)n * (HEAD_WORDS + FRAMES_PER_STACK);
	size_t slots_bytes, index_bytes, total;
	char *base;

	while (n_slots < 2 * n)
		n_slots *= 2;
	slots_bytes = n_slots * sizeof(uint64_t);
	/* Ids start at 1; an even number of entries keeps the arena aligned. */
	index_bytes = ((size_t)n + 2) / 2 * 2 * sizeof(uint32_t);
	total = slots_bytes + index_bytes + arena_words * sizeof(uint64_t);
	base = gpc_metamem_map(total);
	if (!base)
		return GPC_NO_METADATA;
	*depot = (struct gpc_depot){
		.sink = *sink,
		.slots = (_Atomic uint64_t *)(void *)base,
		.record_at = (uint32_t *)(void *)(base + slots_bytes),
		.arena = (uint64_t *)(void *)(base + slots_bytes + index_bytes),
		.slot_mask = n_slots - 1,
		.max_stacks = n,
		.arena_words = (uint32_t)arena_words,
		.mapped_bytes = total,
	};
	gpc_lock_init(&depot->lock, GPC_RANK_DEPOT);
	return GPC_OK;
}

void gpc_depot_fini(struct gpc_depot *depot)
{
	if (!depot->slots)
		return;
	gpc_metamem_unmap(depot->slots, depot->mapped_bytes);
	depot->slots = NULL;
}
