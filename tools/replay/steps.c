/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through the operations: to find the floor between the rises, to count the rises, and to find the floors of quarters. */
#include "tools/replay/steps.h"

#include <stdlib.h>

#include "format/memory.h"

/* Live bytes that vary by less than 1/16 of the peak are one step. */
#define LEAST_PART 16

/* A quarter that rises by less than 1/64 of the peak does not. */
#define GROWTH_PART 64

struct walk {
	const struct gpc_trace *trace;
	uint64_t *sizes; /* of each slot */
	uint64_t live;
	uint64_t op; /* the index of the next operation */
};

/* Applies one operation; false at the end. */
static bool next(struct walk *walk)
{
	const struct gpc_trace_op *op;

	if (walk->op == walk->trace->n_ops)
		return false;
	op = &walk->trace->ops[walk->op++];
	if (op->kind == GPC_TRACE_ALLOC && op->way != GPC_TRACE_BESIDE) {
		walk->sizes[op->slot] = op->size;
		walk->live += op->size;
	} else if (op->kind == GPC_TRACE_FREE) {
		walk->live -= walk->sizes[op->slot];
	}
	return true;
}

/*
 * Returns the least live bytes between the first and the last moment at 3/4 of the peak or above.  The low bytes before
 * the first step and after the last one do not count.
 */
static uint64_t find_floor(struct walk walk, uint64_t peak)
{
	uint64_t floor = peak;
	uint64_t least = peak; /* since the last high moment */
	bool has_risen = false;

	while (next(&walk)) {
		if (has_risen && walk.live < least)
			least = walk.live;
		if (walk.live >= peak / 4 * 3) {
			has_risen = true;
			floor = least < floor ? least : floor;
		}
	}
	return floor;
}

static void count(struct walk walk, uint64_t peak, uint64_t floor, struct gpc_steps *steps)
{
	const uint64_t quarter = (peak - floor) / 4;
	const bool is_flat = peak - floor < peak / LEAST_PART;
	bool is_low = true;
	uint64_t most = 0;

	while (next(&walk)) {
		if (is_low && walk.live > peak - quarter) {
			is_low = false;
			steps->n += !is_flat || steps->n == 0;
		} else if (!is_low && walk.live < floor + quarter) {
			is_low = true;
		}
		if (walk.live > most) {
			most = walk.live;
			steps->peak_op = walk.op - 1;
			steps->n_peak = steps->n;
		}
	}
}

static uint64_t find_growth(struct walk walk, uint64_t peak)
{
	uint64_t floors[4] = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	uint64_t growth;
	uint64_t begin;
	uint64_t end = 0;

	for (struct walk ahead = walk; next(&ahead);)
		end = ahead.live >= peak / LEAST_PART * (LEAST_PART - 1) ? ahead.op : end;
	while (walk.live < peak / 2 && next(&walk))
		;
	begin = walk.op;
	while (walk.op < end && next(&walk)) {
		uint64_t *floor = &floors[(walk.op - 1 - begin) * 4 / (end - begin)];

		*floor = walk.live < *floor ? walk.live : *floor;
	}
	if (floors[1] >= floors[2] || floors[2] >= floors[3] || floors[3] == UINT64_MAX)
		return 0;
	growth = gpc_smaller(floors[2] - floors[1], floors[3] - floors[2]);
	return growth >= peak / GROWTH_PART ? growth : 0;
}

struct gpc_steps gpc_steps_count(const struct gpc_trace *trace)
{
	struct walk walk = { .trace = trace, .sizes = gpc_new(trace->n_slots, sizeof(uint64_t)) };
	struct gpc_steps steps = { 0 };

	if (trace->peak_live_bytes) {
		count(walk, trace->peak_live_bytes, find_floor(walk, trace->peak_live_bytes),
			&steps);
		steps.growth = find_growth(walk, trace->peak_live_bytes);
	}
	free(walk.sizes);
	return steps;
}

uint64_t gpc_steps_before_spike(const struct gpc_trace *trace)
{
	struct walk walk = { .trace = trace, .sizes = gpc_new(trace->n_slots, sizeof(uint64_t)) };
	struct gpc_trace before = *trace;
	uint64_t most = gpc_steps_count(trace).n;
	uint64_t counted = 0; /* the live bytes at the last count */

	for (before.peak_live_bytes = 0; next(&walk);
		before.peak_live_bytes = gpc_larger(before.peak_live_bytes, walk.live)) {
		if (walk.live <= counted + counted / 4)
			continue;
		counted = walk.live;
		before.n_ops = walk.op - 1;
		most = gpc_larger(most, gpc_steps_count(&before).n);
	}
	free(walk.sizes);
	return most;
}
