/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "unit.h"

static void *other_thread(void *arg)
{
	uint32_t *ret_id = arg;

	*ret_id = gpc_thread_id();
	if (*ret_id != (uint32_t)syscall(SYS_gettid) || !gpc_thread_enter())
		*ret_id = 0;
	return NULL;
}

TEST(no_process_is_ours_before_the_adoption)
{
	assert_false(gpc_process_is_ours());
	assert_true(gpc_process_adopt());
	assert_true(gpc_process_is_ours());
	assert_true(gpc_process_adopt());
	assert_true(gpc_process_is_ours());
}

TEST(each_thread_has_its_number_and_its_guard)
{
	pthread_t thread;
	uint32_t id;

	assert_true(gpc_thread_enter());
	assert_false(gpc_thread_enter());
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &id), 0);
	pthread_join(thread, NULL);
	assert_true(id != 0);
	assert_true(id != gpc_thread_id());
	assert_int_equal(gpc_thread_id(), getpid());
	gpc_thread_leave();
	assert_true(gpc_thread_enter());
	gpc_thread_leave();
}

static int exit_code(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* 0: as it should be in a child. */
static int check_child(void)
{
	if (gpc_process_is_ours())
		return 1;
	if (!gpc_process_adopt() || !gpc_process_is_ours())
		return 2;
	return gpc_thread_id() == (uint32_t)getpid() ? 0 : 3;
}

TEST(a_fork_child_is_not_ours_until_it_is_adopted)
{
	pid_t pid;

	assert_true(gpc_process_adopt());
	assert_int_equal(gpc_thread_id(), getpid());
	pid = fork();
	if (pid == 0)
		_exit(check_child());
	assert_int_equal(exit_code(pid), 0);
	assert_true(gpc_process_is_ours());
}

TEST(a_child_of_a_raw_clone_is_not_ours_either)
{
	pid_t pid;

	assert_true(gpc_process_adopt());
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(gpc_process_is_ours() ? 1 : 0);
	assert_int_equal(exit_code(pid), 0);
	assert_true(gpc_process_is_ours());
}

TEST(a_child_of_vfork_or_fork_is_not_exactly_ours)
{
	pid_t pid;

	assert_true(gpc_process_adopt());
	assert_true(gpc_process_is_exactly_ours());
	pid = vfork();
	if (pid == 0)
		_exit(gpc_process_is_exactly_ours() ? 1 : 0);
	assert_int_equal(exit_code(pid), 0);
	pid = fork();
	if (pid == 0)
		_exit(gpc_process_is_exactly_ours() ? 1 : 0);
	assert_int_equal(exit_code(pid), 0);
}
