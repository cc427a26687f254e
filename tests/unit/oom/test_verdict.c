/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "oom/verdict.h"
#include "scene.h"

static bool holds(const struct gpucache_oom *oom, enum gpucache_verdict verdict)
{
	return oom->verdict == verdict || (oom->also & (1u << verdict));
}

/*
 * The scenarios: `make` makes the verdict hold by a hair; `miss` takes one byte away, `hide` makes one
 * number unknown, and in both cases the verdict must not hold.
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

static void make_fragmented(struct scene *s)
{
	s->oom.balance.requested = 82 * GPC_GIB;
	s->oom.balance.cached = 8 * GPC_GIB;
	s->oom.balance.cached_largest = 8 * GPC_GIB - 1;
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

static void make_neighbour(struct scene *s)
{
	s->oom.balance.requested = 83 * GPC_GIB;
	s->oom.balance.other_processes = 10 * GPC_GIB;
	s->oom.rounded = 14 * GPC_GIB;
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

static void make_untracked(struct scene *s)
{
	s->oom.balance.process_outside = 15 * GPC_GIB + 1;
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

static void make_growth(struct scene *s)
{
	s->oom.growth_bytes = 1;
	s->facts.growth_windows = 8;
	s->facts.growth_windows_up = 6;
}
static void miss_growth(struct scene *s)
{
	s->facts.growth_windows_up = 5;
	s->oom.growth_bytes = 4 * GPC_GIB - 1;
}
static void hide_growth(struct scene *s)
{
	s->oom.growth_bytes = 0;
}

static void make_spike(struct scene *s)
{
	s->facts.usual_live = 49 * GPC_GIB - 1;
}
static void miss_spike(struct scene *s)
{
	s->facts.usual_live++;
}
static void hide_spike(struct scene *s)
{
	s->facts.usual_live = GPUCACHE_UNKNOWN;
}

static void make_exhausted(struct scene *s)
{
	s->oom.balance.pending = 4 * GPC_GIB - 1;
}
static void miss_exhausted(struct scene *s)
{
	s->oom.balance.pending++;
}

static void make_driver(struct scene *s)
{
	s->facts.free_before = 10 * GPC_GIB;
	s->facts.free_after = 8 * GPC_GIB + 2 * GPC_MIB;
	s->oom.balance.device_free = s->facts.free_after;
}
static void miss_driver(struct scene *s)
{
	s->facts.free_after--;
}
static void hide_driver(struct scene *s)
{
	s->facts.free_before = s->facts.free_after = GPUCACHE_UNKNOWN;
	hide_free(s);
}

static void make_wrong_pool(struct scene *s)
{
	s->oom.balance.cached = 9 * GPC_GIB;
	s->oom.balance.cached_largest = 8 * GPC_GIB;
	s->facts.largest_usable = 1 * GPC_GIB;
	s->facts.largest_other_pool = 8 * GPC_GIB;
}
static void miss_wrong_pool(struct scene *s)
{
	s->facts.largest_other_pool--;
}
static void hide_wrong_pool(struct scene *s)
{
	s->facts.largest_other_pool = GPUCACHE_UNKNOWN;
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
	{ "fragmented", GPUCACHE_VERDICT_FRAGMENTED, GPUCACHE_STRENGTH_CERTAIN, make_fragmented,
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
	{ "growth", GPUCACHE_VERDICT_GROWTH, GPUCACHE_STRENGTH_LIKELY, make_growth, miss_growth,
		hide_growth },
	{ "spike", GPUCACHE_VERDICT_SPIKE, GPUCACHE_STRENGTH_LIKELY, make_spike, miss_spike,
		hide_spike },
	{ "exhausted", GPUCACHE_VERDICT_EXHAUSTED, GPUCACHE_STRENGTH_CERTAIN, make_exhausted,
		miss_exhausted, hide_free },
	{ "driver", GPUCACHE_VERDICT_DRIVER, GPUCACHE_STRENGTH_CERTAIN, make_driver, miss_driver,
		hide_driver },
	{ "wrong pool", GPUCACHE_VERDICT_WRONG_POOL, GPUCACHE_STRENGTH_CERTAIN, make_wrong_pool,
		miss_wrong_pool, hide_wrong_pool },
};

static void every_verdict_is_found_by_its_own_numbers(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_OF(scenarios); i++) {
		struct scene s = scene_of_an_exhausted_gpu();

		scenarios[i].make(&s);
		gpc_verdict_find(&s.oom, &s.facts);
		if (s.oom.verdict != scenarios[i].verdict ||
			s.oom.strength != scenarios[i].strength)
			fail_msg("%s: verdict %u, strength %u", scenarios[i].name, s.oom.verdict,
				s.oom.strength);
		assert_false(s.oom.also & (1u << s.oom.verdict));
	}
}

static void no_verdict_holds_where_one_byte_is_missing(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_OF(scenarios); i++) {
		struct scene s = scene_of_an_exhausted_gpu();

		scenarios[i].make(&s);
		scenarios[i].miss(&s);
		gpc_verdict_find(&s.oom, &s.facts);
		if (holds(&s.oom, scenarios[i].verdict))
			fail_msg("%s holds", scenarios[i].name);
	}
}

static void no_verdict_holds_where_its_number_is_not_known(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_OF(scenarios); i++) {
		struct scene s = scene_of_an_exhausted_gpu();

		scenarios[i].make(&s);
		scenarios[i].hide(&s);
		gpc_verdict_find(&s.oom, &s.facts);
		if (holds(&s.oom, scenarios[i].verdict))
			fail_msg("%s holds", scenarios[i].name);
	}
}

static void every_verdict_of_the_format_has_a_scenario(void **state)
{
	uint32_t seen = 1u << GPUCACHE_VERDICT_NONE;

	(void)state;
	for (size_t i = 0; i < N_OF(scenarios); i++)
		seen |= 1u << scenarios[i].verdict;
	assert_int_equal(seen, (1u << GPUCACHE_VERDICT_COUNT) - 1);
}

static void shortage_is_the_request_minus_the_best_room(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.short_by, 4 * GPC_GIB);

	s.oom.balance.cached_largest = 5 * GPC_GIB;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.short_by, 3 * GPC_GIB);

	/* 90 GiB are taken, so a limit of 91 GiB leaves less room than the device does. */
	s.oom.balance.cached_largest = 0;
	s.oom.limit = 91 * GPC_GIB;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.short_by, 7 * GPC_GIB);

	make_driver(&s);
	s.oom.limit = 0;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.short_by, 0);
}

static void a_limit_is_only_possible_where_the_device_had_no_room_either(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.limit = 90 * GPC_GIB;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_true(holds(&s.oom, GPUCACHE_VERDICT_LIMIT));

	s.oom.balance.device_free = GPUCACHE_UNKNOWN;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_LIMIT);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);
}

static void free_and_cached_memory_together_are_likely_fragmented(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.balance.cached = 4 * GPC_GIB;
	s.oom.balance.cached_largest = 1 * GPC_GIB;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_FRAGMENTED);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);
	s.oom.balance.cached--;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_false(holds(&s.oom, GPUCACHE_VERDICT_FRAGMENTED));
}

/* The case of pytorch #71616: much is reserved and not allocated, but it is not fragmentation. */
static void memory_that_waits_for_the_device_is_not_called_fragmented(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.balance.requested = 70 * GPC_GIB;
	s.oom.balance.pending = 20 * GPC_GIB;
	s.facts.largest_pending = 8 * GPC_GIB;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_PENDING);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_CERTAIN);
	assert_int_equal(s.oom.also, 0);
}

static void one_pending_block_that_fits_is_told_beside_fragmentation(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	make_fragmented(&s);
	s.oom.balance.pending = 8 * GPC_GIB;
	s.facts.largest_pending = 8 * GPC_GIB;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_FRAGMENTED);
	assert_int_equal(s.oom.also, 1u << GPUCACHE_VERDICT_PENDING);
	s.facts.largest_pending--;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.also, 0);
}

static void small_neighbours_are_possible_and_do_not_hide_the_cause(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.rounded = s.oom.requested = 5 * GPC_GIB;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_true(holds(&s.oom, GPUCACHE_VERDICT_NEIGHBOUR));
}

static void exhaustion_is_weaker_the_less_is_known_of_others(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.balance.other_processes = GPUCACHE_UNKNOWN;
	s.oom.balance.unattributed = 5 * GPC_GIB;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_CERTAIN);

	s.oom.balance.unattributed = 5 * GPC_GIB + 1;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);

	s.oom.balance.requested = 50 * GPC_GIB - 1;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_POSSIBLE);
}

static void neighbours_that_could_not_have_helped_leave_it_likely_exhausted(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.balance.other_processes = 6 * GPC_GIB;
	s.oom.rounded = 10 * GPC_GIB + 1;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);
	s.oom.rounded--;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_NEIGHBOUR);
	assert_false(holds(&s.oom, GPUCACHE_VERDICT_EXHAUSTED));
}

static void weaker_evidence_stays_possible(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.growth_bytes = 4 * GPC_GIB;
	s.oom.balance.process_outside = 4 * GPC_GIB;
	s.facts.usual_request = 4 * GPC_GIB - 1;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_EXHAUSTED);
	assert_int_equal(s.oom.also, 1u << GPUCACHE_VERDICT_GROWTH |
					     1u << GPUCACHE_VERDICT_UNTRACKED |
					     1u << GPUCACHE_VERDICT_SPIKE);
	s.oom.growth_bytes--;
	s.oom.balance.process_outside--;
	s.facts.usual_request++;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.also, 0);
}

static void a_refusal_with_one_look_at_the_driver_is_likely(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.balance.device_free = 8 * GPC_GIB + 2 * GPC_MIB;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_DRIVER);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_LIKELY);
}

static void an_impossible_request_is_not_also_everything_else(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	make_growth(&s);
	make_spike(&s);
	make_untracked(&s);
	s.oom.balance.rounding = 20 * GPC_GIB;
	s.oom.rounded = s.oom.requested = 200 * GPC_GIB;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_IMPOSSIBLE);
	assert_int_equal(s.oom.also, 0);
}

static void the_largest_size_of_all_is_a_size_and_not_unknown(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.requested = UINT64_MAX;
	s.oom.rounded = 0; /* rounding up overflowed */
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_IMPOSSIBLE);
	assert_true(s.oom.short_by == UINT64_MAX - 1 - 4 * GPC_GIB);
}

static void pinned_host_memory_is_not_judged_by_the_device(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	s.oom.kind = GPUCACHE_KIND_HOST;
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_NONE);
	assert_int_equal(s.oom.strength, GPUCACHE_STRENGTH_NONE);
	assert_int_equal(s.oom.also, 0);
}

static void numbers_of_which_none_is_known_give_no_verdict(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();

	(void)state;
	memset(&s.oom.balance, 0xff, sizeof s.oom.balance);
	gpc_verdict_find(&s.oom, &s.facts);
	assert_int_equal(s.oom.verdict, GPUCACHE_VERDICT_NONE);
	assert_int_equal(s.oom.also, 0);
	assert_int_equal(s.oom.short_by, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_verdict_is_found_by_its_own_numbers),
		cmocka_unit_test(no_verdict_holds_where_one_byte_is_missing),
		cmocka_unit_test(no_verdict_holds_where_its_number_is_not_known),
		cmocka_unit_test(every_verdict_of_the_format_has_a_scenario),
		cmocka_unit_test(shortage_is_the_request_minus_the_best_room),
		cmocka_unit_test(a_limit_is_only_possible_where_the_device_had_no_room_either),
		cmocka_unit_test(free_and_cached_memory_together_are_likely_fragmented),
		cmocka_unit_test(memory_that_waits_for_the_device_is_not_called_fragmented),
		cmocka_unit_test(one_pending_block_that_fits_is_told_beside_fragmentation),
		cmocka_unit_test(small_neighbours_are_possible_and_do_not_hide_the_cause),
		cmocka_unit_test(exhaustion_is_weaker_the_less_is_known_of_others),
		cmocka_unit_test(neighbours_that_could_not_have_helped_leave_it_likely_exhausted),
		cmocka_unit_test(weaker_evidence_stays_possible),
		cmocka_unit_test(a_refusal_with_one_look_at_the_driver_is_likely),
		cmocka_unit_test(an_impossible_request_is_not_also_everything_else),
		cmocka_unit_test(the_largest_size_of_all_is_a_size_and_not_unknown),
		cmocka_unit_test(pinned_host_memory_is_not_judged_by_the_device),
		cmocka_unit_test(numbers_of_which_none_is_known_give_no_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
