/* SPDX-License-Identifier: Apache-2.0 */
/* The order of locks is checked if GPC_CHECK_LEVEL >= 1; otherwise those tests are skipped. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/lock.h"
#include "base/log.h"
#include "unit.h"

/* How a child ends that runs `action`: 0, or the signal. */
static int end_of(void (*action)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		gpc_log_to(-1);
		signal(SIGABRT, SIG_DFL);
		action();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static struct gpc_lock outer = GPC_LOCK_INIT(GPC_RANK_POOL);
static struct gpc_lock inner = GPC_LOCK_INIT(GPC_RANK_RECORD);

static void take_in_order(void)
{
	gpc_lock_take(&outer);
	gpc_lock_take(&inner);
	gpc_lock_release(&inner);
	gpc_lock_release(&outer);
}

static void take_against_order(void)
{
	gpc_lock_take(&inner);
	gpc_lock_take(&outer);
}

static void take_twice(void)
{
	struct gpc_lock same = GPC_LOCK_INIT(GPC_RANK_RECORD);

	gpc_lock_take(&inner);
	gpc_lock_take(&same);
}

static void release_idle_segments(void)
{
	gpc_lock_release(&inner);
}

TEST(locks_are_taken_from_outer_to_inner)
{
	assert_int_equal(end_of(take_in_order), 0);
	take_in_order();
	assert_false(gpc_lock_is_any_held());
}

TEST(a_wrong_order_fails_at_once)
{
	if (GPC_CHECK_LEVEL < 1)
		skip();
	assert_int_equal(end_of(take_against_order), SIGABRT);
	assert_int_equal(end_of(take_twice), SIGABRT);
	assert_int_equal(end_of(release_idle_segments), SIGABRT);
}

TEST(a_held_lock_is_known)
{
	gpc_lock_take(&outer);
	assert_int_equal(gpc_lock_is_any_held(), GPC_CHECK_LEVEL >= 1);
	gpc_lock_release(&outer);
	assert_false(gpc_lock_is_any_held());
}
