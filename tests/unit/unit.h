/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka needs four headers before its own, and include sorting would move them: this is the one place. */
#ifndef GPC_TESTS_UNIT_UNIT_H
#define GPC_TESTS_UNIT_UNIT_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
/* clang-format on */

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/*
 * A test file has no main() and no table:
 *
 *	FIXTURE(set_up, tear_down);
 *
 *	TEST(what_holds)
 *	{
 *		assert_true(holds(*state));
 *	}
 *
 * TEST defines the function, whose parameter is `state`, and puts it into a section that main.c runs in the order of the
 * lines.  FIXTURE says what runs before and after each TEST of the file, TEST_WITH what does for this test, and GROUP what
 * does once for all; NULL is nothing.  A test that is written as a plain static function is unused, and does not compile.
 */
struct unit_fixture {
	CMFixtureFunction set_up;
	CMFixtureFunction tear_down;
};

struct unit_test {
	const char *name;
	CMUnitTestFunction run;
	const struct unit_fixture *fixture;
	int line;
};

extern struct unit_fixture unit_group; /* empty, unless GROUP defines it */
int unit_run(void);

/* A tentative definition: empty, unless FIXTURE completes it. */
__attribute__((unused)) static struct unit_fixture unit_fixture;

#define FIXTURE(set_up, tear_down) static struct unit_fixture unit_fixture = { set_up, tear_down }
#define GROUP(set_up, tear_down)   struct unit_fixture unit_group = { set_up, tear_down }

#define TEST(name) UNIT_TEST(name, &unit_fixture)
#define TEST_WITH(name, set_up, tear_down) \
	UNIT_TEST(name, (&(struct unit_fixture){ set_up, tear_down }))

#define UNIT_TEST(name, fixture)                                                            \
	static void name(void **state);                                                     \
	__attribute__((used, section("unit_tests"))) static struct unit_test *unit_##name = \
		&(struct unit_test){ #name, name, fixture, __LINE__ };                      \
	static void name(void **state)

/*
 * A check in a helper reports the line of the test that called it.  The helper uses the macros below, and after all
 * helpers the header defines for each
 *
 *	#define helper(...) AT(helper(__VA_ARGS__))
 *
 * One helper calls another of an earlier header as (helper)(...), so that the test's line stays.
 */
struct unit_place {
	const char *file;
	int line;
};

__attribute__((weak)) _Thread_local struct unit_place unit_at = { "?", 0 };

static inline void unit_stand_at(const char *file, int line)
{
	unit_at = (struct unit_place){ file, line };
}

#define AT(call) (unit_stand_at(__FILE__, __LINE__), call)

#define at_fail()      _fail(unit_at.file, unit_at.line)
#define at_true(c)     _assert_true(!!(c), #c, unit_at.file, unit_at.line)
#define at_non_null(c) at_true((c) != NULL)
#define at_null(c)     at_true((c) == NULL)
#define at_int_equal(a, b)                                                                    \
	_assert_int_equal(cast_to_largest_integral_type(a), cast_to_largest_integral_type(b), \
		unit_at.file, unit_at.line)
#define at_string_equal(a, b) _assert_string_equal((a), (b), unit_at.file, unit_at.line)

#endif
