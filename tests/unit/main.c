/* SPDX-License-Identifier: Apache-2.0 */
/* What runs the tests of unit.h: main(), unless the test has one of its own, which calls unit_run(). */
#include "unit.h"

/* The linker's: where the section begins and ends.  A program without a TEST does not link. */
extern struct unit_test *__start_unit_tests[], *__stop_unit_tests[];

__attribute__((weak)) struct unit_fixture unit_group;

/* Compilers order a section as they like. */
static int compare_lines(const void *a, const void *b)
{
	return (*(struct unit_test *const *)a)->line - (*(struct unit_test *const *)b)->line;
}

int unit_run(void)
{
	size_t n = (size_t)(__stop_unit_tests - __start_unit_tests);
	struct CMUnitTest *tests = calloc(n, sizeof *tests);
	int n_failed;

	if (!tests)
		abort();
	qsort(__start_unit_tests, n, sizeof(struct unit_test *), compare_lines);
	for (size_t i = 0; i < n; i++) {
		const struct unit_test *test = __start_unit_tests[i];

		tests[i] = (struct CMUnitTest){ test->name, test->run, test->fixture->set_up,
			test->fixture->tear_down, NULL };
	}
	n_failed =
		_cmocka_run_group_tests("tests", tests, n, unit_group.set_up, unit_group.tear_down);
	free(tests);
	return n_failed;
}

__attribute__((weak)) int main(void)
{
	return unit_run();
}
