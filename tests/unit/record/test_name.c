/* SPDX-License-Identifier: Apache-2.0 */
#include "record/identity.h"
#include "record/name.h"
#include "unit.h"

static struct gpucache_header somebody(void)
{
	return (struct gpucache_header){
		.pid = 42, .rank = -1, .local_rank = -1, .host = "node7", .exe = "/usr/bin/train me"
	};
}

static const char *expand(const char *pattern, const struct gpucache_header *identity,
	unsigned attempt, char *unknown)
{
	static char buf[512];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_name_expand(&text, pattern, identity, 1700000000, attempt, unknown);
	return buf;
}

static const char *default_name(const struct gpucache_header *identity, unsigned attempt)
{
	static char buf[512];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_name_default(&text, identity, attempt);
	return buf;
}

TEST(every_letter_is_put_in)
{
	struct gpucache_header identity = somebody();
	char unknown;

	identity.rank = 3;
	identity.local_rank = 1;
	strcpy(identity.job, "run/9");
	assert_string_equal(expand("%p-%h-%e-%t-%r-%l-%j-%%", &identity, 0, &unknown),
		"42-node7-train me-1700000000-3-1-run_9-%");
	assert_int_equal(unknown, 0);
}

TEST(what_is_not_known_has_a_stand_in)
{
	struct gpucache_header identity = somebody();
	char unknown;

	identity.exe[0] = '\0';
	assert_string_equal(expand("%r %l %j %e", &identity, 0, &unknown), "p42 p42 nojob unknown");
}

TEST(a_job_called_dot_dot_climbs_no_directory)
{
	struct gpucache_header identity = somebody();
	char unknown;

	strcpy(identity.job, "..");
	assert_string_equal(expand("/r/%j/%h", &identity, 0, &unknown), "/r/_./node7");
}

TEST(a_variable_is_put_in_with_its_slashes)
{
	struct gpucache_header identity = somebody();
	char unknown;

	setenv("GPC_TEST_DIR", "/scratch/x", 1);
	unsetenv("GPC_TEST_NONE");
	assert_string_equal(expand("%q{GPC_TEST_DIR}/%q{GPC_TEST_NONE}f", &identity, 0, &unknown),
		"/scratch/x/f");
	assert_int_equal(unknown, 0);
	assert_string_equal(expand("%q{GPC", &identity, 0, &unknown), "%q{GPC");
	assert_int_equal(unknown, 'q');
	assert_string_equal(expand("%qX", &identity, 0, &unknown), "%qX");
}

TEST(an_unknown_letter_stays_and_is_told)
{
	struct gpucache_header identity = somebody();
	char unknown;

	assert_string_equal(expand("a%zb%yc", &identity, 0, &unknown), "a%zb%yc");
	assert_int_equal(unknown, 'z');
	assert_string_equal(expand("a%", &identity, 0, &unknown), "a%");
	assert_int_equal(unknown, 0);
}

TEST(each_attempt_has_another_name)
{
	struct gpucache_header identity = somebody();
	char unknown;

	assert_string_equal(expand("f", &identity, 0, &unknown), "f");
	assert_string_equal(expand("f", &identity, 1, &unknown), "f.42");
	assert_string_equal(expand("f", &identity, 2, &unknown), "f.42.2");
	assert_string_equal(expand("d/f.gpucache", &identity, 1, &unknown), "d/f.42.gpucache");
	assert_string_equal(expand("d/f.gpucache", &identity, 3, &unknown), "d/f.42.3.gpucache");
	assert_string_equal(expand("f%n", &identity, 0, &unknown), "f0");
	assert_string_equal(expand("f%n", &identity, 7, &unknown), "f7");
}

TEST(the_default_name_says_what_is_known)
{
	struct gpucache_header identity = somebody();

	assert_string_equal(default_name(&identity, 0), "gpucache-train me-42.gpucache");
	identity.rank = 3;
	assert_string_equal(default_name(&identity, 0), "gpucache-train me-r3-42.gpucache");
	strcpy(identity.job, "77");
	assert_string_equal(default_name(&identity, 0), "gpucache-train me-77-r3-42.gpucache");
	assert_string_equal(default_name(&identity, 2), "gpucache-train me-77-r3-42-2.gpucache");
}

TEST(no_part_can_leave_the_directory)
{
	struct gpucache_header identity = somebody();
	char unknown;

	strcpy(identity.job, "../../x\n");
	strcpy(identity.host, "a/b");
	assert_string_equal(expand("%j %h", &identity, 0, &unknown), "_._.._x_ a_b");
}
