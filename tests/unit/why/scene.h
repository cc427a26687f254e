/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The failed request that all tests of src/why start from: 8 GiB requested on a GPU of 100 GiB, 4 GiB missing, all
 * other memory live in the program.
 */
#ifndef GPC_TESTS_UNIT_WHY_SCENE_H
#define GPC_TESTS_UNIT_WHY_SCENE_H

#include "base/bytes.h"
#include "gpucache_format.h"
#include "why/why.h"

struct scene {
	struct gpucache_oom oom; /* its verdict is set by judge() */
	struct gpc_facts facts;  /* by judge() from `oom` */
	struct gpc_answer answer;
};

static inline struct scene scene_of_an_exhausted_gpu(void)
{
	struct scene scene = {
		.oom = {
			.requested = 8 * GPC_GIB,
			.rounded = 8 * GPC_GIB,
			.stack = 7,
			.kind = GPUCACHE_KIND_DEVICE,
			.balance = {
				.requested = 90 * GPC_GIB,
				.process_outside = 2 * GPC_GIB,
				.other_processes = 3 * GPC_GIB,
				.driver_reserve = 1 * GPC_GIB,
				.device_free = 4 * GPC_GIB,
				.device_total = 100 * GPC_GIB,
			},
			.free_before = GPUCACHE_UNKNOWN,
			.free_after = GPUCACHE_UNKNOWN,
			.piece = GPUCACHE_UNKNOWN,
			.other_piece = GPUCACHE_UNKNOWN,
			.largest_pending = GPUCACHE_UNKNOWN,
			.plain_live = GPUCACHE_UNKNOWN,
			.page_waste = GPUCACHE_UNKNOWN,
			.usual_live = GPUCACHE_UNKNOWN,
			.setup = GPUCACHE_OOM_CACHING,
		},
	};

	return scene;
}

/* As the library does. */
static inline void judge(struct scene *s)
{
	s->facts = gpc_facts_unknown();
	gpc_facts_from_oom(&s->facts, &s->oom);
	s->facts.conf = "";
	s->answer = gpc_why_then(&s->facts);
	s->oom.verdict = (uint8_t)s->answer.cause;
	s->oom.strength = (uint8_t)s->answer.strength;
	s->oom.also = s->answer.also;
	s->oom.short_by = s->facts.short_by == GPUCACHE_UNKNOWN ? 0 : s->facts.short_by;
}

static inline void make_fragmented(struct scene *s)
{
	s->oom.balance.requested = 82 * GPC_GIB;
	s->oom.balance.cached = 8 * GPC_GIB;
	s->oom.balance.cached_largest = 8 * GPC_GIB - 1;
}

static inline void make_neighbour(struct scene *s)
{
	s->oom.balance.requested = 83 * GPC_GIB;
	s->oom.balance.other_processes = 10 * GPC_GIB;
	s->oom.rounded = 14 * GPC_GIB;
}

static inline void make_untracked(struct scene *s)
{
	s->oom.balance.process_outside = 15 * GPC_GIB + 1;
}

static inline void make_spike(struct scene *s)
{
	s->oom.usual_live = 49 * GPC_GIB - 1;
}

static inline void make_driver(struct scene *s)
{
	s->oom.free_before = 10 * GPC_GIB;
	s->oom.free_after = 8 * GPC_GIB + 2 * GPC_MIB;
	s->oom.balance.device_free = s->oom.free_after;
}

/* One site keeps 4 GiB in a dozen blocks, and others half as much. */
static inline void make_growth(struct scene *s)
{
	s->oom.growth_bytes = s->oom.growth_total = s->oom.growth_held = 4 * GPC_GIB;
	s->oom.growth_stack = s->oom.stack;
	s->oom.growth_blocks = s->oom.n_free = 12;
	s->oom.growth_others = 2 * GPC_GIB;
}

static inline void make_growth_of_many_blocks(struct scene *s)
{
	make_growth(s);
	s->oom.growth_blocks = GPC_LOADED_BLOCKS;
	s->oom.n_free = 0;
}

/* True if the cause was at least possible. */
static inline bool holds(const struct scene *s, enum gpucache_verdict verdict)
{
	return s->answer.possible >> verdict & 1;
}

#endif
