/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of several threads: whose later success recovers which failure, and which one is printed at exit. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"
#include "runtime/context/contexts.h"
#include "runtime/process/state.h"
#include "runtime/rescue/rescue.h"
#include "world.h"

#define QUIET "record:off,stacks:off"

static enum gpc_status is_full(struct gpc_rescue *rescue)
{
	(void)rescue;
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

/* The second thread gets its memory later, the first does not. */
static void one_of_two_threads_recovers(void)
{
	struct gpc_device *device = enter_on_a_device();

	fails_in(1, 700 * MIB);
	fails_in(2, 3 * MIB);
	fails_in(3, 3 * MIB + 512);
	gpc_rescue_succeeded(device, GPUCACHE_KIND_DEVICE, 4 * MIB);
	CHECK(!world_oom(0)->recovered && world_oom(2)->recovered);
	CHECK(device->failed_size == 700 * MIB);
	gpc_rescue_succeeded(device, GPUCACHE_KIND_DEVICE, 4 * MIB);
	CHECK(!world_oom(0)->recovered && !world_oom(0)->reported);
	gpc_rescue_at_exit();
}

static void both_of_two_threads_recover(void)
{
	struct gpc_device *device = enter_on_a_device();

	fails_in(1, 700 * MIB);
	fails_in(2, 3 * MIB);
	gpc_rescue_succeeded(device, GPUCACHE_KIND_DEVICE, 800 * MIB);
	CHECK(world_oom(0)->recovered && world_oom(1)->recovered);
	CHECK(device->failed_size == 0);
	gpc_rescue_at_exit();
}

/* A thread that requests less each time has recovered once a request succeeds. */
static void a_thread_is_content_with_less(void)
{
	struct gpc_device *device = enter_on_a_device();

	fails_in(1, 700 * MIB);
	fails_in(1, 3 * MIB);
	gpc_rescue_succeeded(device, GPUCACHE_KIND_DEVICE, 3 * MIB);
	CHECK(device->failed_size == 0);
	gpc_rescue_at_exit();
}

/* What is pinned says nothing of the GPU's memory, of which the first of three threads had too little. */
static void recovers_in_other_memory(void)
{
	struct gpc_device *device = enter_on_a_device();

	fails_in(1, 700 * MIB);
	fails_in(2, 3 * MIB);
	fails_as(GPUCACHE_KIND_HOST, 3, 4 * MIB);
	gpc_rescue_succeeded(device, GPUCACHE_KIND_HOST, 800 * MIB);
	CHECK(world_oom(2)->recovered && !world_oom(0)->recovered);
	CHECK(device->failed_size == 700 * MIB);
	gpc_rescue_at_exit();
	CHECK(world_oom(0)->reported);
}

static sem_t has_failed;
static sem_t is_over;

static void *fail_and_stay(void *arg)
{
	fails_in(gpc_thread_id(), 3 * MIB);
	sem_post(&has_failed);
	sem_wait(&is_over);
	return arg;
}

/* While the failed thread lives, another thread's success does not recover its failure. */
static void another_thread_succeeds(void)
{
	struct gpc_device *device;
	pthread_t thread;

	world_start();
	CHECK(world_enter());
	device = world_context()->device;
	sem_init(&has_failed, 0, 0);
	sem_init(&is_over, 0, 0);
	CHECK(!pthread_create(&thread, NULL, fail_and_stay, NULL));
	sem_wait(&has_failed);
	gpc_rescue_succeeded(device, GPUCACHE_KIND_DEVICE, 4 * MIB);
	CHECK(device->failed_size == 3 * MIB && !world_oom(0)->recovered);
	fails_in(gpc_thread_id(), 4 * MIB);
	gpc_rescue_succeeded(device, GPUCACHE_KIND_DEVICE, 4 * MIB);
	CHECK(world_oom(1)->recovered && !world_oom(0)->recovered);
	sem_post(&is_over);
	CHECK(!pthread_join(thread, NULL));
	/* A join returns a moment before the kernel forgets the thread. */
	while (syscall(SYS_tgkill, getpid(), world_oom(0)->thread, 0) == 0)
		sched_yield();
	gpc_rescue_succeeded(device, GPUCACHE_KIND_DEVICE, 4 * MIB);
	CHECK(device->failed_size == 0 && world_oom(0)->recovered);
}

/* The smaller request failed twice and was printed; the program ends because of the larger one. */
static void ends_by_the_larger_of_two(void)
{
	(void)enter_on_a_device();
	fails_in(1, 700 * MIB);
	fails_in(2, 3 * MIB);
	fails_in(3, 3 * MIB);
	CHECK(world_oom(2)->reported && !world_oom(0)->reported);
	gpc_rescue_at_exit();
}

static void ends_by_what_was_printed(void)
{
	(void)enter_on_a_device();
	fails_in(1, 3 * MIB);
	fails_in(2, 3 * MIB);
	CHECK(world_oom(1)->reported);
	gpc_rescue_at_exit();
	CHECK(!world_oom(0)->reported);
}

/* A failure recovers while that of another, living thread was printed. */
static void recovers_beside_a_living_thread(void)
{
	struct gpc_device *device;
	pthread_t thread;

	device = enter_on_a_device();
	sem_init(&has_failed, 0, 0);
	sem_init(&is_over, 0, 0);
	fails_in(1, 3 * MIB);
	fails_in(gpc_thread_id(), 700 * MIB);
	CHECK(!pthread_create(&thread, NULL, fail_and_stay, NULL));
	sem_wait(&has_failed);
	gpc_rescue_succeeded(device, GPUCACHE_KIND_DEVICE, 700 * MIB);
	CHECK(world_oom(1)->recovered && !world_oom(2)->recovered);
	gpc_rescue_at_exit();
	CHECK(!world_oom(1)->reported && world_oom(2)->reported);
	sem_post(&is_over);
	CHECK(!pthread_join(thread, NULL));
}

static void the_end_prints_the_failure_that_nothing_has_told(void **state)
{
	(void)state;
	world_run("memory:1GiB", QUIET, ends_by_the_larger_of_two);
	world_assert_says("700.00 MiB");
	world_run("memory:1GiB", QUIET, ends_by_what_was_printed);
	world_run("memory:1GiB", QUIET, recovers_beside_a_living_thread);
}

static _Thread_local bool is_printer;
static pthread_t printer;
static sem_t is_printing;
static sem_t may_print;

/* The first thing that a printing thread does. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	if (is_printer) {
		is_printer = false;
		sem_post(&is_printing);
		sem_wait(&may_print);
	}
	return syscall(SYS_rt_sigprocmask, how, set, old, 8) ? errno : 0;
}

/* Its only caller is gpc_pause, at the end of the process. */
int poll(struct pollfd *fds, nfds_t n, int ms)
{
	(void)fds;
	CHECK(n == 0 && ms == 1);
	sem_post(&may_print);
	CHECK(!pthread_join(printer, NULL));
	return 0;
}

static void *fail_and_print(void *arg)
{
	is_printer = true;
	fails_in(2, 3 * MIB);
	return arg;
}

static void ends_while_a_thread_prints(void)
{
	(void)enter_on_a_device();
	sem_init(&is_printing, 0, 0);
	sem_init(&may_print, 0, 0);
	fails_in(1, 3 * MIB);
	CHECK(!pthread_create(&printer, NULL, fail_and_print, NULL));
	sem_wait(&is_printing);
	gpc_rescue_at_exit();
	_exit(0);
}

static void the_end_waits_for_a_thread_that_prints(void **state)
{
	(void)state;
	world_run("memory:1GiB", QUIET, ends_while_a_thread_prints);
	world_assert_says("3.00 MiB");
}

static void a_thread_that_recovers_says_nothing_of_another(void **state)
{
	(void)state;
	world_run("memory:1GiB", QUIET, one_of_two_threads_recovers);
	world_assert_says("700.00 MiB");
	world_run("memory:1GiB", QUIET, recovers_in_other_memory);
	world_assert_says("700.00 MiB");
	world_run("memory:1GiB", QUIET, both_of_two_threads_recover);
	world_assert_is_silent();
	world_run("memory:1GiB", QUIET, a_thread_is_content_with_less);
	world_assert_is_silent();
	world_run("memory:1GiB", QUIET, another_thread_succeeds);
	world_assert_is_silent();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_recovers_says_nothing_of_another),
		cmocka_unit_test(the_end_prints_the_failure_that_nothing_has_told),
		cmocka_unit_test(the_end_waits_for_a_thread_that_prints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
