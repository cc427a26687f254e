/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "gpucache_format.h"
#include "model/verdict.h"

static void every_verdict_has_its_own_word_and_a_meaning(void **state)
{
	(void)state;
	for (unsigned v = 0; v < GPUCACHE_VERDICT_COUNT; v++) {
		assert_true(strlen(gpc_verdict_word(v)) > 0);
		assert_true(strlen(gpc_verdict_meaning(v)) > 20);
		for (unsigned w = 0; w < v; w++)
			assert_string_not_equal(gpc_verdict_word(v), gpc_verdict_word(w));
	}
	assert_string_equal(gpc_verdict_word(GPUCACHE_VERDICT_FRAGMENTED), "fragmented");
	assert_string_equal(gpc_verdict_word(GPUCACHE_VERDICT_WRONG_POOL), "wrong pool");
}

static void numbers_of_a_later_version_are_unknown(void **state)
{
	(void)state;
	assert_string_equal(gpc_verdict_word(GPUCACHE_VERDICT_COUNT), "unknown");
	assert_string_equal(gpc_verdict_word(255), "unknown");
	assert_string_equal(gpc_verdict_meaning(255), gpc_verdict_meaning(GPUCACHE_VERDICT_NONE));
	assert_string_equal(gpc_strength_word(GPUCACHE_STRENGTH_CERTAIN + 1), "unknown");
	assert_string_equal(gpc_strength_word(GPUCACHE_STRENGTH_CERTAIN), "certain");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_verdict_has_its_own_word_and_a_meaning),
		cmocka_unit_test(numbers_of_a_later_version_are_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
