/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "oom/verdict_view.h"
#include "scene.h"

static struct gpc_verdict_view view_of(const struct scene *s)
{
	struct gpc_verdict_view view;

	gpc_verdict_view(&s->oom, &s->facts, &view);
	return view;
}

static void no_comparison_holds_with_an_unknown_number(void **state)
{
	(void)state;
	assert_false(gpc_is_known(GPUCACHE_UNKNOWN));
	assert_true(gpc_is_at_least(2, 2) && gpc_is_below(1, 2) && gpc_is_known(0));
	assert_false(gpc_is_at_least(1, 2) || gpc_is_below(2, 2));
	assert_false(gpc_is_at_least(GPUCACHE_UNKNOWN, 2) || gpc_is_at_least(2, GPUCACHE_UNKNOWN));
	assert_false(gpc_is_below(GPUCACHE_UNKNOWN, 2) || gpc_is_below(2, GPUCACHE_UNKNOWN));
}

static void the_letters_are_those_of_the_balance(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();
	struct gpc_verdict_view view = view_of(&s);

	(void)state;
	assert_int_equal(view.need, 8 * GPC_GIB);
	assert_int_equal(view.driver, 4 * GPC_GIB);
	assert_int_equal(view.room, 4 * GPC_GIB);
	assert_int_equal(view.shortage, 4 * GPC_GIB);
	assert_int_equal(view.held, 90 * GPC_GIB);
	assert_int_equal(view.sum, 4 * GPC_GIB);
	assert_int_equal(view.others, 3 * GPC_GIB);
	assert_true(view.gone && view.scarce && !view.limited);
}

static void a_limit_leaves_less_room_than_the_driver_has(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();
	struct gpc_verdict_view view;

	(void)state;
	s.oom.limit = 91 * GPC_GIB;
	view = view_of(&s);
	assert_true(view.limited);
	assert_int_equal(view.room, GPC_GIB);
	assert_int_equal(view.shortage, 7 * GPC_GIB);
	/* PyTorch's own limit was asked before anything of ours. */
	s.oom.kind = GPUCACHE_KIND_TENSOR;
	s.oom.balance.cached_largest = 20 * GPC_GIB;
	view = view_of(&s);
	assert_true(view.limited && !view.piece_known);
	assert_int_equal(view.room, 0);
}

static void unknown_in_the_balance_is_unknown_in_the_view(void **state)
{
	struct scene s = scene_of_an_exhausted_gpu();
	struct gpc_verdict_view view;

	(void)state;
	s.oom.balance.device_free = GPUCACHE_UNKNOWN;
	s.oom.balance.cached_largest = GPUCACHE_UNKNOWN;
	view = view_of(&s);
	assert_false(gpc_is_known(view.driver) || gpc_is_known(view.room) || view.piece_known);
	assert_int_equal(view.shortage, 0);
	assert_false(view.gone);
	/* What the driver said after its refusal will do. */
	s.facts.free_after = 2 * GPC_GIB;
	assert_int_equal(view_of(&s).driver, 2 * GPC_GIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_comparison_holds_with_an_unknown_number),
		cmocka_unit_test(the_letters_are_those_of_the_balance),
		cmocka_unit_test(a_limit_leaves_less_room_than_the_driver_has),
		cmocka_unit_test(unknown_in_the_balance_is_unknown_in_the_view),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
