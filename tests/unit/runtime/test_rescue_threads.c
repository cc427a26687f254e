/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of several threads: whose later success recovers which failure, and which one is printed at exit. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"
#include "runtime/context/contexts.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "runtime/rescue/notice.h"
#include "runtime/rescue/rescue.h"
#include "world.h"

#define QUIET "record:off,stacks:off"

static enum gpc_status is_full(struct gpc_rescue *rescue)
{
	return GPC_DEVICE_NO_MEMORY;
}

static void fails_as(enum gpucache_kind kind, uint32_t thread, uint64_t size)
{
	struct gpc_rescue rescue = { .context = gpc_runtime.devices[0].contexts[0],
		.kind = kind,
		.size = size,
		.rounded = size,
		.attempt = is_full };

	rescue.request.thread = thread;
	rescue.request.now_ns = 1000;
	CHECK(gpc_rescue_run(&rescue, GPC_DEVICE_NO_MEMORY));
}

static void fails_in(uint32_t thread, uint64_t size)
{
	fails_as(GPUCACHE_KIND_DEVICE, thread, size);
}

static struct gpc_device *enter_on_a_device(void)
{
	world_start();
	CHECK(world_enter());
	return world_context()->device;
}

/* One thread gets its memory later, the other does not. */
static void one_of_two_threads_recovers(void)
{
	struct gpc_device *device = enter_on_a_device();

	fails_in(1, 700 * MIB);
	fails_in(gpc_thread_id(), 3 * MIB);
	gpc_rescue_succeeded(device, GPUCACHE_KIND_DEVICE, 4 * MIB);
	CHECK(!world_oom(0)->recovered && world_oom(1)->recovered);
	CHECK(device->failed_size == 700 * MIB);
	/* This one did not fail at that. */
	gpc_rescue_succeeded(device, GPUCACHE_KIND_DEVICE, 800 * MIB);
	CHECK(!world_oom(0)->recovered && !world_oom(0)->reported);
	gpc_notice_say();
	CHECK(world_oom(0)->reported && !world_oom(1)->reported);
}

/* A thread that requests less each time has recovered once a request succeeds. */
static void a_thread_is_content_with_less(void)
{
	struct gpc_device *device = enter_on_a_device();

	fails_in(gpc_thread_id(), 700 * MIB);
	fails_in(gpc_thread_id(), 3 * MIB);
	gpc_rescue_succeeded(device, GPUCACHE_KIND_DEVICE, 3 * MIB);
	CHECK(device->failed_size == 0);
	gpc_notice_say();
}

/* What is pinned says nothing of the GPU's memory, of which the first of three threads had too little. */
static void recovers_in_other_memory(void)
{
	struct gpc_device *device = enter_on_a_device();

	fails_in(1, 700 * MIB);
	fails_in(2, 3 * MIB);
	fails_as(GPUCACHE_KIND_HOST, gpc_thread_id(), 4 * MIB);
	gpc_rescue_succeeded(device, GPUCACHE_KIND_HOST, 800 * MIB);
	CHECK(world_oom(2)->recovered && !world_oom(0)->recovered);
	CHECK(device->failed_size == 700 * MIB);
	gpc_notice_say();
	CHECK(world_oom(0)->reported);
}

static void *fail_alone(void *arg)
{
	fails_in(gpc_thread_id(), 3 * MIB);
	return arg;
}

/* A worker fails and ends; the others go on with requests of that size, and the program ends by an error. */
static void a_worker_fails(void)
{
	struct gpc_device *device = enter_on_a_device();
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, fail_alone, NULL) && !pthread_join(thread, NULL));
	gpc_rescue_succeeded(device, GPUCACHE_KIND_DEVICE, 4 * MIB);
	CHECK(device->failed_size == 3 * MIB && !world_oom(0)->recovered);
	fails_in(gpc_thread_id(), 4 * MIB);
	gpc_rescue_succeeded(device, GPUCACHE_KIND_DEVICE, 4 * MIB);
	CHECK(world_oom(1)->recovered && !world_oom(0)->recovered);
	gpc_notice_say();
	CHECK(world_oom(0)->reported && !world_oom(1)->reported);
}

/* The smaller one was printed when it happened; the program ends because of the larger one. */
static void ends_by_the_larger_of_two(void)
{
	(void)enter_on_a_device();
	fails_in(1, 3 * MIB);
	fails_in(2, 700 * MIB);
	CHECK(world_oom(0)->reported && !world_oom(1)->reported);
	gpc_notice_say();
	CHECK(world_oom(1)->reported);
}

static void ends_by_what_was_printed(void)
{
	(void)enter_on_a_device();
	fails_in(1, 3 * MIB);
	fails_in(2, 3 * MIB);
	CHECK(world_oom(0)->reported);
	gpc_notice_say();
	CHECK(!world_oom(1)->reported);
}

static void fail_alike(void)
{
	(void)enter_on_a_device();
	for (uint32_t thread = 1; thread < 9; thread++)
		fails_in(thread, 3 * MIB);
	gpc_notice_say();
	gpc_notice_say();
}

TEST(a_thread_that_recovers_says_nothing_of_another)
{
	world_run("memory:1GiB", QUIET, one_of_two_threads_recovers);
	world_assert_says("700.00 MiB asked for");
	assert_int_equal(world_count("WHY "), 1);
	world_run("memory:1GiB", QUIET, recovers_in_other_memory);
	world_assert_says("700.00 MiB asked for");
	assert_int_equal(world_count("WHY "), 1);
	world_run("memory:1GiB", QUIET, a_thread_is_content_with_less);
	assert_int_equal(world_count("WHY "), 0);
}

TEST(the_end_prints_the_failure_that_nothing_has_told)
{
	world_run("memory:1GiB", QUIET ",oom_report:always", ends_by_the_larger_of_two);
	world_assert_says("700.00 MiB");
	assert_int_equal(world_count("WHY "), 2);
	world_run("memory:1GiB", QUIET ",oom_report:always", ends_by_what_was_printed);
	assert_int_equal(world_count("WHY "), 1);
	world_run("memory:1GiB", QUIET, a_worker_fails);
	assert_int_equal(world_count("WHY "), 1);
	world_run("memory:1GiB", QUIET, fail_alike);
	assert_int_equal(world_count("WHY "), 1);
}

static _Thread_local bool is_failing;
static pthread_t failing;
static sem_t has_begun;
static sem_t may_go_on;

/* The first thing that a thread does that has failed. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	if (is_failing) {
		is_failing = false;
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
	CHECK(!pthread_join(failing, NULL));
	return 0;
}

static void *fail_slowly(void *arg)
{
	is_failing = true;
	fails_in(2, 3 * MIB);
	return arg;
}

static void ends_while_a_thread_fails(void)
{
	(void)enter_on_a_device();
	gpc_runtime_leave();
	sem_init(&has_begun, 0, 0);
	sem_init(&may_go_on, 0, 0);
	CHECK(!pthread_create(&failing, NULL, fail_slowly, NULL));
	sem_wait(&has_begun);
	gpc_notice_say();
	_exit(0);
}

TEST(the_end_waits_for_a_thread_that_fails)
{
	world_run("memory:1GiB", QUIET, ends_while_a_thread_fails);
	assert_int_equal(world_count("WHY "), 1);
}
