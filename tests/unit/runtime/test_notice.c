/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/process/enter.h"
#include "runtime/process/exit.h"
#include "runtime/process/state.h"
#include "runtime/rescue/notice.h"
#include "world.h"

static void publish(const char *text, uint64_t time_ns, bool is_caught)
{
	static struct gpc_notice notice;

	notice = (struct gpc_notice){ .time_ns = time_ns, .is_caught = is_caught };
	notice.len = gpc_format(notice.text, sizeof notice.text, "%s\n", text);
	gpc_lock_take(&gpc_runtime.lock);
	gpc_notice_publish(&gpc_runtime.devices[0], &notice);
	gpc_lock_release(&gpc_runtime.lock);
}

static void withdraw(void)
{
	gpc_lock_take(&gpc_runtime.lock);
	gpc_notice_publish(&gpc_runtime.devices[0], NULL);
	gpc_lock_release(&gpc_runtime.lock);
}

static void publishes_three(void)
{
	world_start();
	publish("first", 0, false);
	publish("second", 0, false);
	publish("third", 0, false);
	gpc_notice_say();
	publish("fourth", 0, false); /* too late */
	gpc_notice_say();
}

static void withdraws(void)
{
	world_start();
	publish("first", 0, false);
	withdraw();
	gpc_notice_say();
}

TEST(the_last_text_is_printed_once)
{
	world_run(NULL, "stacks:off", publishes_three);
	assert_string_equal(world_text, "third\n");
	world_run(NULL, "stacks:off", withdraws);
	world_assert_is_silent();
}

static void caught_long_ago(void)
{
	world_start();
	publish("long ago", gpc_clock_monotonic_ns() - GPC_SURVIVED_NS - 1, true);
	gpc_notice_say();
}

static void caught_now(void)
{
	world_start();
	publish("now", gpc_clock_monotonic_ns(), true);
	gpc_notice_say();
}

TEST(a_program_that_went_on_has_survived_after_a_minute)
{
	world_run(NULL, "stacks:off", caught_long_ago);
	world_assert_is_silent();
	world_run(NULL, "stacks:off", caught_now);
	assert_string_equal(world_text, "now\n");
}

static void goes_on(uint64_t age_ns)
{
	CUdeviceptr ptr;

	world_start();
	publish("failed", gpc_clock_monotonic_ns() - age_ns, false);
	CHECK(!world_malloc(&ptr, MIB));
	CHECK(!world_malloc(&ptr, MIB));
	gpc_notice_say();
}

static void goes_on_for_long(void)
{
	goes_on(GPC_SURVIVED_NS + 1);
}

static void goes_on_for_a_while(void)
{
	goes_on(0);
}

TEST(a_program_that_went_on_for_long_may_end_for_another_reason)
{
	world_run(NULL, "stacks:off", goes_on_for_long);
	world_assert_says(
		"this request failed 1 min before the end; 2 requests have succeeded since");
	world_assert_says("\nfailed\n");
	world_run(NULL, "stacks:off", goes_on_for_a_while);
	assert_string_equal(world_text, "failed\n");
}

static void ends_by(int status)
{
	world_start();
	publish("the end", 0, false);
	gpc_runtime_is_ending(status);
	exit(0);
}

static void ends_well(void)
{
	ends_by(0);
}

static void ends_badly(void)
{
	ends_by(3);
}

/* The parent sees 0. */
static void ends_with_256(void)
{
	ends_by(256);
}

TEST(only_an_error_is_an_end_that_is_told)
{
	world_run(NULL, "stacks:off", ends_well);
	world_assert_is_silent();
	world_run(NULL, "stacks:off", ends_with_256);
	world_assert_is_silent();
	world_run(NULL, "stacks:off", ends_badly);
	assert_string_equal(world_text, "the end\n");
}

static void without_a_start(void)
{
	gpc_runtime_is_ending(3);
}

TEST(a_process_without_cuda_has_nothing_to_tell)
{
	world_run(NULL, NULL, without_a_start);
	world_assert_is_silent();
}

static _Thread_local bool is_speaker;
static pthread_t speaker;
static sem_t has_begun;
static sem_t may_go_on;
static bool is_interrupted;

/* The first thing that a thread does that prints. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	if (is_speaker) {
		is_speaker = false;
		if (is_interrupted)
			gpc_notice_say(); /* as from a handler of a signal */
		sem_post(&has_begun);
		sem_wait(&may_go_on);
	}
	return syscall(SYS_rt_sigprocmask, how, set, old, 8) ? errno : 0;
}

/* Its only caller is gpc_pause, at the end of the process. */
int poll(struct pollfd *fds, nfds_t n, int ms)
{
	CHECK(n == 0 && ms == 1);
	sem_post(&may_go_on);
	CHECK(!pthread_join(speaker, NULL));
	return 0;
}

static void *speak(void *arg)
{
	is_speaker = true;
	gpc_notice_say();
	return arg;
}

static void ends_in_two_threads(void)
{
	world_start();
	sem_init(&has_begun, 0, 0);
	sem_init(&may_go_on, 0, 0);
	publish("once", 0, false);
	CHECK(!pthread_create(&speaker, NULL, speak, NULL));
	sem_wait(&has_begun);
	gpc_notice_say();
	_exit(0); /* which would have cut the other thread short */
}

static void ends_in_a_handler_too(void)
{
	is_interrupted = true;
	ends_in_two_threads();
}

TEST(an_end_waits_until_the_text_of_another_one_is_printed)
{
	world_run(NULL, "stacks:off", ends_in_two_threads);
	assert_string_equal(world_text, "once\n");
	world_run(NULL, "stacks:off", ends_in_a_handler_too);
	assert_string_equal(world_text, "once\n");
}
