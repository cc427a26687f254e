/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "unit.h"

/* Fails two checks; 0 if that left us broken after one line. */
static int fail_twice(void)
{
	char buf[2048];
	int ends[2];
	ssize_t n;

	if (gpc_is_broken() || pipe(ends) != 0)
		return 1;
	signal(SIGABRT, SIG_DFL);
	gpc_log_to(ends[1]);
	GPC_ASSERT(1 + 1 == 3);
	GPC_ASSERT(1 + 1 == 4);
	n = read(ends[0], buf, sizeof buf - 1);
	buf[n > 0 ? n : 0] = '\0';
	if (!strstr(buf, "1 + 1 == 3") || strstr(buf, "1 + 1 == 4"))
		return 2;
	return gpc_is_broken() ? 0 : 3;
}

TEST(a_failed_check_ends_us_in_debug_and_breaks_us_in_release)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fail_twice());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (GPC_CHECK_LEVEL >= 1) {
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGABRT);
	} else {
		assert_int_equal(status, 0);
	}
}

TEST(a_check_that_holds_changes_nothing)
{
	GPC_ASSERT(sizeof(char) == 1);
	GPC_CHECK(2 > 1);
	assert_false(gpc_is_broken());
}
