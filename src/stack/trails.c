/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trail that followed last is compared first, then the newest ones with the same stack pointer and the same
 * instruction of Python.  If a comparison fails, it does so at the first word that differs.
 */
#include "stack/trails.h"

#include "base/metamem.h"
#include "stack/trail.h"

/* Trails of one hash that a search compares.  In a backward pass many stacks differ only far out. */
#define MOST_TRIES   4
#define MOST_OF_HASH 64

static _Thread_local uint16_t last;

static uint64_t hash_start(const struct gpc_trail_start *start)
{
	uint64_t hash = start->walk.sp * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ hash >> 29 ^ start->python.instruction) * UINT64_C(0xbb67ae8584caa73b);
	hash = (hash ^ hash >> 29 ^ start->walk.ip) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

/* The id of the trail's stack if the calling thread is on it, else 0. */
static inline uint32_t compare(const struct gpc_trail *trail, const struct gpc_python *python,
	const struct gpc_trail_start *start)
{
	uint32_t seq = trail_load(&trail->seq);
	uint32_t id = trail_load(&trail->id);

	if (seq % 2 || !id || trail_load(&trail->epoch) != start->epoch ||
		trail_load(&trail->skip) != start->skip ||
		!gpc_walk_follows(&start->walk, &trail->walk, &trail->seq, seq) ||
		!gpc_python_follows(python, &start->python, &trail->python))
		return 0;
	return atomic_load_explicit(&trail->seq, memory_order_relaxed) == seq ? id : 0;
}

static inline void go_on(const struct gpc_trails *trails, uint32_t number)
{
	_Atomic uint16_t *successor = &trails->trails[last].successor;

	/* Mostly right already: no store, so that threads do not take the line from each other. */
	if (atomic_load_explicit(successor, memory_order_relaxed) != number)
		atomic_store_explicit(successor, (uint16_t)number, memory_order_relaxed);
	last = (uint16_t)number;
}

uint32_t gpc_trails_find(const struct gpc_trails *trails, const struct gpc_python *python,
	const struct gpc_trail_start *start)
{
	uint32_t number;
	uint32_t id;

	if (!trails->trails)
		return 0;
	number = atomic_load_explicit(&trails->trails[last].successor, memory_order_relaxed);
	id = compare(&trails->trails[number], python, start);
	if (id) {
		last = (uint16_t)number;
		return id;
	}
	number = atomic_load_explicit(
		&trails->heads[hash_start(start) % GPC_TRAILS], memory_order_relaxed);
	for (int i = 0; i < MOST_TRIES && number; i++) {
		const struct gpc_trail *trail = &trails->trails[number - 1];

		id = compare(trail, python, start);
		if (id) {
			go_on(trails, number - 1);
			return id;
		}
		number = atomic_load_explicit(&trail->next, memory_order_relaxed);
	}
	return 0;
}

/* True if the stack has a trail, which a search gave up before.  From now on it is found as a successor. */
static bool find_further_locked(struct gpc_trails *trails, const struct gpc_python *python,
	const struct gpc_trail_start *start, uint32_t number, uint32_t id)
{
	for (int i = 0; i < MOST_OF_HASH && number; i++) {
		const struct gpc_trail *trail = &trails->trails[number - 1];

		if (atomic_load_explicit(&trail->id, memory_order_relaxed) == id &&
			compare(trail, python, start)) {
			go_on(trails, number - 1);
			return true;
		}
		number = atomic_load_explicit(&trail->next, memory_order_relaxed);
	}
	return false;
}

/* True if the walk that it writes down finds the native frames of the stack. */
static bool trace_native(struct gpc_walk_trail *trail, const struct gpc_walk *walk,
	const struct gpc_trail_start *start, const struct gpc_raw_stack *stack, uint32_t depth)
{
	uint64_t frames[GPC_TRAILS_DEPTH + 1];
	uint32_t n = gpc_walk_trace(walk, &start->walk, frames, depth + 1, start->skip, trail);

	if ((n < depth ? n : depth) != stack->n_native)
		return false;
	for (uint32_t i = 0; i < stack->n_native; i++)
		if (GPUCACHE_FRAME_ADDRESS(stack->frames[i]) != frames[i])
			return false;
	return n > 0;
}

void gpc_trails_keep(struct gpc_trails *trails, const struct gpc_walk *walk,
	const struct gpc_python *python, const struct gpc_trail_start *start, uint32_t id,
	const struct gpc_raw_stack *stack, uint32_t depth)
{
	_Atomic uint16_t *head = &trails->heads[hash_start(start) % GPC_TRAILS];
	uint32_t newest = atomic_load_explicit(head, memory_order_relaxed);
	struct gpc_trail *trail;
	uint32_t number, seq;

	if (!trails->trails || !gpc_lock_try(&trails->lock))
		return;
	if (find_further_locked(trails, python, start, newest, id))
		goto release;
	number = trails->n_kept % GPC_TRAILS;
	trail = &trails->trails[number];
	seq = atomic_load_explicit(&trail->seq, memory_order_relaxed);
	atomic_store_explicit(&trail->seq, seq + 1, memory_order_relaxed);
	trail_store(&trail->id, 0);
	if (trace_native(&trail->walk, walk, start, stack, depth) &&
		gpc_python_trace(python, &start->python, depth, &trail->python)) {
		trail_store(&trail->id, id);
		trail_store(&trail->skip, start->skip);
		trail_store(&trail->epoch, start->epoch);
		atomic_store_explicit(&trail->next, (uint16_t)newest, memory_order_relaxed);
		atomic_store_explicit(head, (uint16_t)(number + 1), memory_order_relaxed);
		trails->n_kept++;
		go_on(trails, number);
	}
	trail_store(&trail->seq, seq + 2);
release:
	gpc_lock_release(&trails->lock);
}

void gpc_trails_init(struct gpc_trails *trails)
{
	*trails = (struct gpc_trails){ .trails = gpc_metamem_map(
					       GPC_TRAILS * sizeof(struct gpc_trail)) };
	gpc_lock_init(&trails->lock, GPC_RANK_TRAILS);
}

void gpc_trails_fini(struct gpc_trails *trails)
{
	gpc_metamem_unmap(trails->trails, GPC_TRAILS * sizeof(struct gpc_trail));
	trails->trails = NULL;
}
