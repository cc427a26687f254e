/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binary heap of effects, ordered by end and submission number.  A call that may observe the device applies all that
 * have ended.  The earliest end is an atomic, so such a call takes no lock while the heap is empty.
 */
#include "sim/gpu/execution/effect.h"

#include <stdlib.h>
#include <string.h>

#include "sim/gpu/execution/stream.h"
#include "sim/gpu/sim.h"

static _Thread_local bool in_host_function;

bool gpc_sim_in_host_function(void)
{
	return in_host_function;
}

void gpc_sim_effects_init(struct gpc_sim_effects *effects)
{
	memset(effects, 0, sizeof *effects);
	atomic_init(&effects->next_end_ns, UINT64_MAX);
	pthread_mutex_init(&effects->lock, NULL);
	pthread_mutex_init(&effects->turn, NULL);
	pthread_cond_init(&effects->changed, NULL);
	atomic_init(&effects->held_ns, UINT64_MAX);
}

/* A thread that waits for `lock` holds `turn`, so a thread that has just released `lock` queues behind it. */
static void take_lock(struct gpc_sim_effects *effects)
{
	pthread_mutex_lock(&effects->turn);
	pthread_mutex_lock(&effects->lock);
	pthread_mutex_unlock(&effects->turn);
}

static void end_caller(struct gpc_sim_effects *effects)
{
	if (!effects->has_caller)
		return;
	take_lock(effects);
	effects->must_stop = true;
	pthread_cond_broadcast(&effects->changed);
	pthread_mutex_unlock(&effects->lock);
	pthread_join(effects->caller, NULL);
}

void gpc_sim_effects_fini(struct gpc_sim_effects *effects)
{
	end_caller(effects);
	for (size_t i = 0; i < effects->n; i++)
		gpc_sim_effect_destroy(effects->heap[i]);
	free(effects->heap);
	pthread_mutex_destroy(&effects->lock);
	pthread_mutex_destroy(&effects->turn);
	pthread_cond_destroy(&effects->changed);
}

struct gpc_sim_effect *gpc_sim_effect_create(enum gpc_sim_effect_kind kind, uint64_t duration_ns)
{
	struct gpc_sim_effect *effect = calloc(1, sizeof *effect);

	if (effect) {
		effect->kind = kind;
		effect->duration_ns = duration_ns;
		effect->rows = 1;
	}
	return effect;
}

static void *copy_of(const void *bytes, size_t size)
{
	void *copy = malloc(size ? size : 1);

	if (copy && size)
		memcpy(copy, bytes, size);
	return copy;
}

struct gpc_sim_effect *gpc_sim_effect_clone(const struct gpc_sim_effect *effect)
{
	struct gpc_sim_effect *clone = copy_of(effect, sizeof *effect);

	if (!clone)
		return NULL;
	clone->next = NULL;
	clone->ranges = NULL;
	clone->staged = NULL;
	clone->known = NULL;
	if (clone->block)
		gpc_sim_graph_block_retain(clone->block);
	if (effect->ranges) {
		clone->ranges = copy_of(effect->ranges, effect->n_ranges * sizeof *effect->ranges);
		if (!clone->ranges)
			goto undo_clone;
	}
	if (effect->staged) {
		clone->staged = copy_of(effect->staged, effect->width * effect->rows);
		if (!clone->staged)
			goto undo_clone;
	}
	return clone;

undo_clone:
	gpc_sim_effect_destroy(clone);
	return NULL;
}

void gpc_sim_effect_destroy(struct gpc_sim_effect *effect)
{
	if (!effect)
		return;
	free(effect->ranges);
	free(effect->staged);
	free(effect->known);
	if (effect->block)
		gpc_sim_graph_block_release(effect->block);
	free(effect);
}

bool gpc_sim_effect_stage(struct gpc_sim *sim, struct gpc_sim_effect *effect)
{
	effect->staged = malloc(effect->width * effect->rows + 1);
	if (!effect->staged)
		return false;
	for (uint64_t row = 0; row < effect->rows; row++)
		memcpy(effect->staged + row * effect->width,
			gpc_sim_bytes(sim, effect->src + row * effect->src_pitch), effect->width);
	return true;
}

static bool is_before(const struct gpc_sim_effect *a, const struct gpc_sim_effect *b)
{
	return a->end_ns != b->end_ns ? a->end_ns < b->end_ns : a->number < b->number;
}

static void heap_swap(struct gpc_sim_effects *effects, size_t a, size_t b)
{
	struct gpc_sim_effect *tmp = effects->heap[a];

	effects->heap[a] = effects->heap[b];
	effects->heap[b] = tmp;
}

static void note_next_locked(struct gpc_sim_effects *effects)
{
	atomic_store(&effects->next_end_ns, effects->n ? effects->heap[0]->end_ns : UINT64_MAX);
}

bool gpc_sim_effect_submit(struct gpc_sim *sim, struct gpc_sim_effect *effect)
{
	struct gpc_sim_effects *effects = &sim->effects;
	bool has_room = true;

	take_lock(effects);
	if (effects->n == effects->room) {
		size_t room = effects->room ? effects->room * 2 : 64;
		struct gpc_sim_effect **heap = realloc(effects->heap, room * sizeof *heap);
		has_room = heap != NULL;
		if (has_room) {
			effects->heap = heap;
			effects->room = room;
		}
	}
	if (has_room) {
		effect->number = ++effects->n_submitted;
		size_t i = effects->n++;
		effects->heap[i] = effect;
		for (; i > 0 && is_before(effects->heap[i], effects->heap[(i - 1) / 2]);
			i = (i - 1) / 2)
			heap_swap(effects, i, (i - 1) / 2);
		note_next_locked(effects);
	}
	pthread_mutex_unlock(&effects->lock);
	return has_room;
}

static struct gpc_sim_effect *pop_locked(struct gpc_sim_effects *effects)
{
	struct gpc_sim_effect *first = effects->heap[0];
	size_t n = --effects->n;

	effects->heap[0] = effects->heap[n];
	for (size_t i = 0;;) {
		size_t least = i;
		for (size_t k = 2 * i + 1; k <= 2 * i + 2; k++)
			if (k < n && is_before(effects->heap[k], effects->heap[least]))
				least = k;
		if (least == i)
			break;
		heap_swap(effects, i, least);
		i = least;
	}
	return first;
}

static void apply_copy(struct gpc_sim *sim, const struct gpc_sim_effect *effect)
{
	for (uint64_t row = 0; row < effect->rows; row++) {
		const char *src =
			effect->staged ? effect->staged + row * effect->width
				       : gpc_sim_bytes(sim, effect->src + row * effect->src_pitch);
		gpc_sim_data_copy(sim, gpc_sim_bytes(sim, effect->dst + row * effect->dst_pitch),
			src, effect->width);
	}
}

static void apply_fill(struct gpc_sim *sim, const struct gpc_sim_effect *effect)
{
	for (uint64_t row = 0; row < effect->rows; row++) {
		char *dst = gpc_sim_bytes(sim, effect->dst + row * effect->dst_pitch);
		if (effect->value == 0) {
			gpc_sim_data_zero(sim, dst, effect->width);
			continue;
		}
		if (effect->value_size == 1) {
			memset(dst, (int)(effect->value & 0xff), effect->width);
			continue;
		}
		for (uint64_t i = 0; i + effect->value_size <= effect->width;
			i += effect->value_size)
			memcpy(dst + i, &effect->value, effect->value_size);
	}
}

static void apply_kernel(struct gpc_sim *sim, const struct gpc_sim_effect *effect)
{
	for (unsigned i = 0; i < effect->n_ranges; i++) {
		const struct gpc_sim_range *range = &effect->ranges[i];
		if (!gpc_sim_may_touch(sim, (int)effect->context->device->ordinal, range->ptr,
			    range->size, range->fill >= 0)) {
			gpc_sim_context_fault(effect->context, CUDA_ERROR_ILLEGAL_ADDRESS);
			return;
		}
		if (range->fill >= 0)
			memset(gpc_sim_bytes(sim, range->ptr), range->fill & 0xff, range->size);
	}
}

void gpc_sim_effect_copy_now(struct gpc_sim *sim, uint64_t dst, uint64_t src, uint64_t size)
{
	take_lock(&sim->effects);
	gpc_sim_data_copy(sim, gpc_sim_bytes(sim, dst), gpc_sim_bytes(sim, src), size);
	pthread_mutex_unlock(&sim->effects.lock);
}

static void call_host(const struct gpc_sim_effect *effect)
{
	in_host_function = true;
	effect->host(effect->arg);
	in_host_function = false;
}

static void apply(struct gpc_sim *sim, struct gpc_sim_effect *effect)
{
	struct gpc_sim_device *device = NULL;

	switch (effect->kind) {
	case GPC_SIM_EFFECT_NONE:
	case GPC_SIM_EFFECT_GRAPH_ALLOC:
	case GPC_SIM_EFFECT_GRAPH_FREE:
		break;
	case GPC_SIM_EFFECT_COPY:
		apply_copy(sim, effect);
		break;
	case GPC_SIM_EFFECT_FILL:
		apply_fill(sim, effect);
		break;
	case GPC_SIM_EFFECT_KERNEL:
		apply_kernel(sim, effect);
		break;
	case GPC_SIM_EFFECT_FREE:
		device = gpc_sim_device_of(sim, effect->dst);
		if (device)
			(void)gpc_sim_device_free(device, effect->dst);
		break;
	case GPC_SIM_EFFECT_POOL_FREE:
		gpc_sim_mempool_finish(sim, effect->dst);
		gpc_sim_race_learn(sim, effect->known, true);
		effect->known = NULL;
		break;
	case GPC_SIM_EFFECT_HOST: /* hand_over_locked() could not create its thread */
		call_host(effect);
		break;
	}
}

static void *run_host_functions(void *arg);

/* Hands the effect to the thread that calls host functions; false if that thread cannot be created. */
static bool hand_over_locked(struct gpc_sim *sim, struct gpc_sim_effect *effect)
{
	struct gpc_sim_effects *effects = &sim->effects;

	if (!effects->has_caller)
		effects->has_caller =
			pthread_create(&effects->caller, NULL, run_host_functions, sim) == 0;
	if (!effects->has_caller)
		return false;
	effects->running = effect;
	atomic_store(&effects->held_ns, effect->end_ns);
	pthread_cond_broadcast(&effects->changed);
	return true;
}

static void settle_locked(struct gpc_sim *sim)
{
	struct gpc_sim_effects *effects = &sim->effects;
	uint64_t now = gpc_sim_clock_now(&sim->clock);

	while (!effects->running && effects->n && effects->heap[0]->end_ns <= now) {
		struct gpc_sim_effect *effect = pop_locked(effects);

		if (effect->kind == GPC_SIM_EFFECT_HOST && hand_over_locked(sim, effect))
			break;
		apply(sim, effect);
		gpc_sim_effect_destroy(effect);
	}
	/* Stored last: a thread that reads UINT64_MAX ("empty") concludes that all effects are applied. */
	note_next_locked(effects);
}

static void *run_host_functions(void *arg)
{
	struct gpc_sim *sim = arg;
	struct gpc_sim_effects *effects = &sim->effects;

	take_lock(effects);
	while (!effects->must_stop) {
		struct gpc_sim_effect *effect = effects->running;

		if (!effect) {
			pthread_cond_wait(&effects->changed, &effects->lock);
			continue;
		}
		pthread_mutex_unlock(&effects->lock);
		call_host(effect);
		take_lock(effects);
		gpc_sim_effect_destroy(effect);
		effects->running = NULL;
		settle_locked(sim);
		/* Stored last, because gpc_sim_await() then returns.  settle_locked() may have started another function. */
		if (!effects->running)
			atomic_store(&effects->held_ns, UINT64_MAX);
		pthread_cond_broadcast(&effects->changed);
	}
	pthread_mutex_unlock(&effects->lock);
	return NULL;
}

void gpc_sim_settle(struct gpc_sim *sim)
{
	struct gpc_sim_effects *effects = &sim->effects;

	if (in_host_function || atomic_load(&effects->next_end_ns) == UINT64_MAX)
		return;
	take_lock(effects);
	settle_locked(sim);
	pthread_mutex_unlock(&effects->lock);
}

void gpc_sim_await(struct gpc_sim *sim, uint64_t until_ns)
{
	struct gpc_sim_effects *effects = &sim->effects;

	gpc_sim_clock_wait_until(&sim->clock, until_ns);
	gpc_sim_settle(sim);
	if (in_host_function || atomic_load(&effects->held_ns) > until_ns)
		return;
	take_lock(effects);
	while (atomic_load(&effects->held_ns) <= until_ns)
		pthread_cond_wait(&effects->changed, &effects->lock);
	pthread_mutex_unlock(&effects->lock);
}

bool gpc_sim_is_over(struct gpc_sim *sim, uint64_t end_ns)
{
	return end_ns <= gpc_sim_clock_now(&sim->clock) &&
	       end_ns < atomic_load(&sim->effects.held_ns);
}
