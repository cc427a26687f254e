/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An intern table of stacks.  A known stack costs one hash, computed in four independent lanes, and one probe without a
 * lock.
 */
#include "stack/depot.h"

#include <string.h>

#include "base/saturating.h"

/* PyTorch's stacks have 20 to 60 frames, a C program's fewer than 10.  Untouched pages of the arena cost nothing. */
#define FRAMES_PER_STACK 40u
#define HEAD_WORDS       ((uint32_t)(sizeof(struct gpucache_stack) / sizeof(uint64_t)))

/* Odd constants whose bits have no pattern: digits of the golden ratio and of the square root of 3. */
#define MIX_A UINT64_C(0x9e3779b97f4a7c15)
#define MIX_B UINT64_C(0xbb67ae8584caa73b)

static uint32_t n_frames(const struct gpc_raw_stack *stack)
{
	return (uint32_t)stack->n_native + stack->n_python;
}

static inline uint64_t mix(uint64_t lane, uint64_t frame)
{
	lane = (lane ^ frame) * MIX_A;
	return lane ^ lane >> 29;
}

/* In a single lane each multiplication would wait for the one before; the processor overlaps four. */
static uint64_t hash_stack(const struct gpc_raw_stack *stack)
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

struct key {
	const struct gpc_raw_stack *stack;
	uint64_t hash;
};

static inline bool is_same(const struct gpc_intern *intern, uint32_t id, const void *arg)
{
	const struct gpucache_stack *record = gpc_intern_record(intern, id);
	const struct key *key = arg;
	const struct gpc_raw_stack *stack = key->stack;

	return record->hash == key->hash && record->n_native == stack->n_native &&
	       record->n_python == stack->n_python && record->flags == stack->flags &&
	       memcmp(record + 1, stack->frames, n_frames(stack) * sizeof(uint64_t)) == 0;
}

static uint32_t write_record(uint64_t *to, uint64_t room, uint32_t id, const void *arg)
{
	const struct key *key = arg;
	const struct gpc_raw_stack *stack = key->stack;
	struct gpucache_stack head = {
		.size = (HEAD_WORDS + n_frames(stack)) * (uint32_t)sizeof(uint64_t),
		.id = id,
		.hash = key->hash,
		.n_native = stack->n_native,
		.n_python = stack->n_python,
		.flags = stack->flags,
	};

	if (head.size > room)
		return 0;
	memcpy(to, &head, sizeof(head));
	memcpy(to + HEAD_WORDS, stack->frames, n_frames(stack) * sizeof(uint64_t));
	return head.size;
}

uint32_t gpc_depot_known(const struct gpc_depot *depot, const struct gpc_raw_stack *stack)
{
	const struct key key = { stack, hash_stack(stack) };
	uint32_t slot;

	return gpc_intern_probe(&depot->intern, key.hash, is_same, &key, &slot);
}

uint32_t gpc_depot_put(struct gpc_depot *depot, const struct gpc_raw_stack *stack, bool *ret_is_new)
{
	struct key key = { stack, hash_stack(stack) };
	uint32_t id =
		gpc_intern_add(&depot->intern, key.hash, is_same, write_record, &key, ret_is_new);

	if (!id)
		atomic_fetch_add_explicit(&depot->n_dropped, 1, memory_order_relaxed);
	return id;
}

bool gpc_depot_find(const struct gpc_depot *depot, uint32_t id, struct gpc_raw_stack *ret_stack)
{
	const struct gpucache_stack *record;

	if (!gpc_intern_has(&depot->intern, id))
		return false;
	record = gpc_intern_record(&depot->intern, id);
	*ret_stack = (struct gpc_raw_stack){
		.frames = (const uint64_t *)(const void *)(record + 1),
		.n_native = record->n_native,
		.n_python = record->n_python,
		.flags = record->flags,
	};
	return true;
}

enum gpc_status gpc_depot_init(
	struct gpc_depot *depot, uint32_t max_stacks, const struct gpc_stack_sink *sink)
{
	uint32_t n = (uint32_t)gpc_larger(1, gpc_smaller(max_stacks, GPC_DEPOT_MAX_STACKS));

	atomic_init(&depot->n_dropped, 0);
	return gpc_intern_init(&depot->intern, n, n * (HEAD_WORDS + FRAMES_PER_STACK),
		GPUCACHE_REGION_STACKS, sink);
}

void gpc_depot_fini(struct gpc_depot *depot)
{
	gpc_intern_fini(&depot->intern);
}
