/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <stdbool.h>

#include "base/env.h"

#define NAME "GPUCACHE_TEST_OF_ENV"

static bool is_secure;

/* In place of the C library's: in a program with more rights than its caller it gives nothing. */
char *secure_getenv(const char *name)
{
	return is_secure ? NULL : getenv(name);
}

static int tear_down(void **state)
{
	is_secure = false;
	return unsetenv(NAME);
}

FIXTURE(NULL, tear_down);

TEST(a_variable_that_is_set_is_read_as_it_is)
{
	assert_int_equal(setenv(NAME, " a:b,c=d ", 1), 0);
	assert_string_equal(gpc_env_get(NAME), " a:b,c=d ");
	assert_int_equal(setenv(NAME, "0", 1), 0);
	assert_string_equal(gpc_env_get(NAME), "0");
}

TEST(a_variable_that_is_not_set_is_null)
{
	assert_int_equal(unsetenv(NAME), 0);
	assert_null(gpc_env_get(NAME));
}

TEST(an_empty_variable_counts_as_not_set)
{
	assert_int_equal(setenv(NAME, "", 1), 0);
	assert_null(gpc_env_get(NAME));
}

TEST(a_name_is_matched_whole_and_in_its_case)
{
	assert_int_equal(setenv(NAME, "x", 1), 0);
	assert_null(gpc_env_get(NAME "_"));
	assert_null(gpc_env_get("GPUCACHE_TEST_OF_EN"));
	assert_null(gpc_env_get("gpucache_test_of_env"));
	assert_null(gpc_env_get(""));
}

TEST(with_more_rights_than_the_caller_nothing_is_read)
{
	assert_int_equal(setenv(NAME, "x", 1), 0);
	is_secure = true;
	assert_null(gpc_env_get(NAME));
}
