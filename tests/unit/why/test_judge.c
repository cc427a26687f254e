/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "tests/unit/why/scene.h"

/*
 * The scenarios: after `make` the verdict just holds; after `miss`, which takes one byte away, or `hide`, which makes
 * one number unknown, it must not hold.
 */

static void make_impossible(struct scene *s)
{
	s->oom.rounded = 99 * GPC_GIB + 1;
}
static void miss_impossible(struct scene *s)
{
	s->oom.rounded--;
}
static void hide_impossible(struct scene *s)
{
	s->oom.balance.device_total = GPUCACHE_UNKNOWN;
}

static void make_limit(struct scene *s)
{
	s->oom.balance.requested = 86 * GPC_GIB;
	s->oom.balance.device_free = 8 * GPC_GIB;
	s->oom.limit = 94 * GPC_GIB - 1;
}
static void miss_limit(struct scene *s)
{
	s->oom.limit++;
}
static void hide_limit(struct scene *s)
{
	s->oom.limit = 0;
}

static void miss_fragmented(struct scene *s)
{
	s->oom.balance.cached_largest++;
}
static void hide_fragmented(struct scene *s)
{
	s->oom.balance.cached_largest = GPUCACHE_UNKNOWN;
}

static void make_pending(struct scene *s)
{
	s->oom.balance.requested = 86 * GPC_GIB;
	s->oom.balance.pending = 4 * GPC_GIB;
}
static void miss_pending(struct scene *s)
{
	s->oom.balance.pending--;
}
static void hide_free(struct scene *s)
{
	s->oom.balance.device_free = GPUCACHE_UNKNOWN;
}

static void make_rounding(struct scene *s)
{
	s->oom.balance.requested = 80 * GPC_GIB;
	s->oom.balance.rounding = 8 * GPC_GIB + 1;
}
static void miss_rounding(struct scene *s)
{
	s->oom.balance.rounding--;
}

static void make_rounding_of_the_request(struct scene *s)
{
	s->oom.requested = 4 * GPC_GIB;
}
static void miss_rounding_of_the_request(struct scene *s)
{
	s->oom.requested++;
}

static void miss_neighbour(struct scene *s)
{
	s->oom.balance.other_processes--;
}
static void hide_neighbour(struct scene *s)
{
	s->oom.balance.other_processes = GPUCACHE_UNKNOWN;
	s->oom.balance.unattributed = 10 * GPC_GIB;
}

static void miss_untracked(struct scene *s)
{
	/* Below both bounds: 15 % of the GPU, and the 4 GiB that are missing. */
	s->oom.balance.process_outside = 4 * GPC_GIB - 1;
}
static void hide_untracked(struct scene *s)
{
	s->oom.balance.process_outside = GPUCACHE_UNKNOWN;
}

static void make_steady_growth(struct scene *s)
{
	make_growth(s);
	s->oom.n_free = 9; /* but for a quarter */
}
static void miss_growth(struct scene *s)
{
	s->oom.growth_bytes--; /* without it the request would have failed, too */
}
static void hide_growth(struct scene *s)
{
	s->oom.growth_bytes = GPUCACHE_UNKNOWN;
}

static void miss_growth_of_many_blocks(struct scene *s)
{
	s->oom.growth_blocks = GPC_MANY_BLOCKS - 1;
	s->oom.growth_others = 0;
}

/* A model's weights: nothing was freed yet, and they are of many sizes. */
static void make_growth_of_many_sizes(struct scene *s)
{
	make_growth_of_many_blocks(s);
	s->oom.is_varied = true;
	s->oom.n_free = s->oom.growth_blocks - s->oom.growth_blocks / 4;
}
static void miss_growth_of_many_sizes(struct scene *s)
{
	s->oom.n_free--;
}

/* Few blocks, made anew. */
static void make_renewed_growth(struct scene *s)
{
	make_steady_growth(s);
	s->oom.growth_blocks = 3;
	s->oom.grows_how = GPUCACHE_GROWS_RENEWED;
}
static void miss_renewed_growth(struct scene *s)
{
	s->oom.grows_how = 0;
}

/* What is loaded at the start: nothing was freed yet. */
static void miss_growth_in_a_loop(struct scene *s)
{
	s->oom.n_free--;
}

static void make_contexts(struct scene *s)
{
	s->oom.balance.requested = 80 * GPC_GIB;
	s->oom.balance.direct = 10 * GPC_GIB;
	s->oom.kind_bytes[GPUCACHE_KIND_CONTEXT] = 10 * GPC_GIB;
	s->oom.n_contexts = 5;
	s->oom.rounded = 12 * GPC_GIB;
}
static void miss_contexts(struct scene *s)
{
	s->oom.rounded++;
}
static void hide_contexts(struct scene *s)
{
	s->oom.n_contexts = 0;
}

static void make_managed(struct scene *s)
{
	s->oom.balance.requested = 80 * GPC_GIB;
	s->oom.balance.direct = s->oom.kind_bytes[GPUCACHE_KIND_MANAGED] = 10 * GPC_GIB;
	s->oom.rounded = 14 * GPC_GIB;
}
static void miss_managed(struct scene *s)
{
	s->oom.rounded++;
}
static void hide_managed(struct scene *s)
{
	s->oom.kind_bytes[GPUCACHE_KIND_MANAGED] = 0;
}

static void make_pinned(struct scene *s)
{
	s->oom.kind = GPUCACHE_KIND_HOST;
}
static void miss_pinned(struct scene *s)
{
	s->oom.kind = GPUCACHE_KIND_DEVICE;
}

static void make_taken(struct scene *s)
{
	s->oom.taken_bytes = s->oom.requested;
	s->oom.taken_stack = s->oom.stack + 1;
}
static void miss_taken(struct scene *s)
{
	s->oom.taken_stack = s->oom.stack;
}
static void hide_taken(struct scene *s)
{
	s->oom.taken_bytes = 0;
}

static void miss_spike(struct scene *s)
{
	s->oom.usual_live++;
}
static void hide_spike(struct scene *s)
{
	s->oom.usual_live = GPUCACHE_UNKNOWN;
}

static void make_exhausted(struct scene *s)
{
	s->oom.balance.pending = 4 * GPC_GIB - 1;
}
/* Room for an eighth of what is live, which a real placement wastes. */
static void miss_exhausted(struct scene *s)
{
	s->oom.balance.pending = 4 * GPC_GIB + s->oom.balance.requested / 8;
}

static void miss_driver(struct scene *s)
{
	s->oom.free_after--;
}
static void hide_driver(struct scene *s)
{
	s->oom.free_before = s->oom.free_after = GPUCACHE_UNKNOWN;
	hide_free(s);
}

static void make_wrong_pool(struct scene *s)
{
	s->oom.balance.cached = 9 * GPC_GIB;
	s->oom.balance.cached_largest = 8 * GPC_GIB;
	s->oom.piece = 1 * GPC_GIB;
	s->oom.other_piece = 8 * GPC_GIB;
}
static void miss_wrong_pool(struct scene *s)
{
	s->oom.other_piece--;
}
static void hide_wrong_pool(struct scene *s)
{
	s->oom.other_piece = GPUCACHE_UNKNOWN;
}

static const struct {
	const char *name;
	enum gpucache_verdict verdict;
	enum gpucache_strength strength;
	void (*make)(struct scene *scene);
	void (*miss)(struct scene *scene);
	void (*hide)(struct scene *scene);
} scenarios[] = {
	{ "impossible", GPUCACHE_VERDICT_IMPOSSIBLE, GPUCACHE_STRENGTH_CERTAIN, make_impossible,
		miss_impossible, hide_impossible },
	{ "limit", GPUCACHE_VERDICT_LIMIT, GPUCACHE_STRENGTH_CERTAIN, make_limit, miss_limit,
		hide_limit },
	{ "fragmented", GPUCACHE_VERDICT_FRAGMENTED, GPUCACHE_STRENGTH_LIKELY, make_fragmented,
		miss_fragmented, hide_fragmented },
	{ "pending", GPUCACHE_VERDICT_PENDING, GPUCACHE_STRENGTH_LIKELY, make_pending, miss_pending,
		hide_free },
	{ "rounding", GPUCACHE_VERDICT_ROUNDING, GPUCACHE_STRENGTH_LIKELY, make_rounding,
		miss_rounding, hide_free },
	{ "rounding of the request", GPUCACHE_VERDICT_ROUNDING, GPUCACHE_STRENGTH_LIKELY,
		make_rounding_of_the_request, miss_rounding_of_the_request, hide_free },
	{ "neighbour", GPUCACHE_VERDICT_NEIGHBOUR, GPUCACHE_STRENGTH_CERTAIN, make_neighbour,
		miss_neighbour, hide_neighbour },
	{ "untracked", GPUCACHE_VERDICT_UNTRACKED, GPUCACHE_STRENGTH_LIKELY, make_untracked,
		miss_untracked, hide_untracked },
	{ "growth", GPUCACHE_VERDICT_GROWTH, GPUCACHE_STRENGTH_LIKELY, make_steady_growth,
		miss_growth, hide_growth },
	{ "growth of many blocks", GPUCACHE_VERDICT_GROWTH, GPUCACHE_STRENGTH_LIKELY,
		make_growth_of_many_blocks, miss_growth_of_many_blocks, hide_growth },
	{ "growth of many sizes", GPUCACHE_VERDICT_GROWTH, GPUCACHE_STRENGTH_LIKELY,
		make_growth_of_many_sizes, miss_growth_of_many_sizes, hide_growth },
	{ "growth by renewal", GPUCACHE_VERDICT_GROWTH, GPUCACHE_STRENGTH_LIKELY,
		make_renewed_growth, miss_renewed_growth, hide_growth },
	{ "growth in a loop", GPUCACHE_VERDICT_GROWTH, GPUCACHE_STRENGTH_LIKELY, make_steady_growth,
		miss_growth_in_a_loop, hide_growth },
	{ "contexts", GPUCACHE_VERDICT_CONTEXTS, GPUCACHE_STRENGTH_LIKELY, make_contexts,
		miss_contexts, hide_contexts },
	{ "managed", GPUCACHE_VERDICT_MANAGED, GPUCACHE_STRENGTH_LIKELY, make_managed, miss_managed,
		hide_managed },
	{ "pinned", GPUCACHE_VERDICT_PINNED, GPUCACHE_STRENGTH_LIKELY, make_pinned, miss_pinned,
		miss_pinned },
	{ "taken for a pool", GPUCACHE_VERDICT_PREALLOCATED, GPUCACHE_STRENGTH_LIKELY, make_taken,
		miss_taken, hide_taken },
	{ "spike", GPUCACHE_VERDICT_SPIKE, GPUCACHE_STRENGTH_LIKELY, make_spike, miss_spike,
		hide_spike },
	{ "exhausted", GPUCACHE_VERDICT_EXHAUSTED, GPUCACHE_STRENGTH_CERTAIN, make_exhausted,
		miss_exhausted, hide_free },
	{ "driver", GPUCACHE_VERDICT_DRIVER, GPUCACHE_STRENGTH_CERTAIN, make_driver, miss_driver,
		hide_driver },
	{ "wrong pool", GPUCACHE_VERDICT_WRONG_POOL, GPUCACHE_STRENGTH_CERTAIN, make_wrong_pool,
		miss_wrong_pool, hide_wrong_pool },
};

TEST(every_verdict_is_found_by_its_own_numbers)
{
	for (size_t i = 0; i < N_OF(scenarios); i++) {
		struct scene s = scene_of_an_exhausted_gpu();

		scenarios[i].make(&s);
		judge(&s);
		if (s.oom.verdict != scenarios[i].verdict ||
			s.oom.strength != scenarios[i].strength)
			fail_msg("%s: verdict %u, strength %u", scenarios[i].name, s.oom.verdict,
				s.oom.strength);
		assert_false(s.oom.also & (1u << s.oom.verdict));
	}
}

TEST(no_verdict_holds_where_one_byte_is_missing)
{
	for (size_t i = 0; i < N_OF(scenarios); i++) {
		struct scene s = scene_of_an_exhausted_gpu();

		scenarios[i].make(&s);
		scenarios[i].miss(&s);
		judge(&s);
		if (holds(&s, scenarios[i].verdict))
			fail_msg("%s holds", scenarios[i].name);
	}
}

TEST(no_verdict_holds_where_its_number_is_not_known)
{
	for (size_t i = 0; i < N_OF(scenarios); i++) {
		struct scene s = scene_of_an_exhausted_gpu();

		scenarios[i].make(&s);
		scenarios[i].hide(&s);
		judge(&s);
		if (holds(&s, scenarios[i].verdict))
			fail_msg("%s holds", scenarios[i].name);
	}
}

TEST(every_verdict_of_the_format_has_a_scenario)
{
	uint32_t seen = 1u << GPUCACHE_VERDICT_NONE;

	for (size_t i = 0; i < N_OF(scenarios); i++)
		seen |= 1u << scenarios[i].verdict;
	assert_int_equal(seen, (1u << GPUCACHE_VERDICT_COUNT) - 1);
}
