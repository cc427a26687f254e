/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/process/enter.h"
#include "runtime/process/exit.h"
#include "world.h"

/* Runs `body` in a child of this child, and reads the state that its recording ended with. */
static uint32_t state_left_by(void (*body)(void))
{
	struct gpucache_header header;
	int status;
	int fd;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		body();
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	fd = open(getenv("GPUCACHE_OUTPUT"), O_RDONLY);
	CHECK(fd >= 0 && read(fd, &header, sizeof header) == sizeof header);
	close(fd);
	return header.state;
}

static void by_exit(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 512));
	exit(0);
}

static void by_system_call(void)
{
	world_start();
	_exit(0);
}

static void by_quick_exit(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 512));
	quick_exit(0);
}

/* A child of vfork shares our memory but is another process. */
static void by_system_call_after_a_child(void)
{
	pid_t child;

	world_start();
	child = vfork();
	if (child == 0) {
		gpc_runtime_at_exit_without_handlers();
		_exit(0);
	}
	CHECK(waitpid(child, NULL, 0) == child);
	_exit(0);
}

static void ends(void)
{
	CHECK(state_left_by(by_exit) & GPUCACHE_STATE_CLEAN_EXIT);
	unlink(getenv("GPUCACHE_OUTPUT"));
	CHECK(state_left_by(by_system_call) == GPUCACHE_STATE_OPENED);
	unlink(getenv("GPUCACHE_OUTPUT"));
	CHECK(state_left_by(by_quick_exit) == (GPUCACHE_STATE_OPENED | GPUCACHE_STATE_EXITED));
	unlink(getenv("GPUCACHE_OUTPUT"));
	CHECK(state_left_by(by_system_call_after_a_child) == GPUCACHE_STATE_OPENED);
}

TEST(only_an_exit_that_we_see_is_clean)
{
	world_run(NULL, "stacks:off", ends);
	world_assert_is_silent();
}

static CUdeviceptr live;

/* Runs after our handler and before the driver's: the driver still answers. */
static void between(void)
{
	CUdeviceptr ptr;

	CHECK(!world_malloc(&ptr, 512) && !world_free(ptr));
}

/* Runs after the driver's own handler: a static destructor of the program. */
static void after_the_driver(void)
{
	CUdeviceptr ptr;

	CHECK(world_free(live) == CUDA_ERROR_DEINITIALIZED);
	CHECK(world_free(12345) == CUDA_ERROR_DEINITIALIZED);
	CHECK(world_malloc(&ptr, 512) == CUDA_ERROR_DEINITIALIZED);
	CHECK(world_info(NULL, NULL) == CUDA_ERROR_DEINITIALIZED);
}

static void frees_late(void)
{
	CHECK(!atexit(after_the_driver));
	world_init();
	CHECK(!atexit(between));
	gpc_runtime_saw_start();
	CHECK(world_enter());
	gpc_runtime_leave();
	CHECK(!world_malloc(&live, 512));
}

TEST(after_the_end_a_free_gets_what_the_driver_says)
{
	world_run(NULL, "stacks:off", frees_late);
	world_assert_is_silent();
}

static void leaks(void)
{
	CUdeviceptr ptr;

	CHECK(!atexit(gpc_runtime_at_last)); /* before the start, so after our own handler */
	world_start();
	CHECK(!world_malloc(&ptr, 3 * MIB));
	CHECK(!world_malloc(&live, MIB) && !world_free(live));
}

TEST(leaks_are_printed_where_that_was_asked_for)
{
	world_run(NULL, "stacks:off,leak_report:on", leaks);
	world_assert_says("GPU 0: 3.00 MiB not freed");
	world_run(NULL, "leak_report:on", leaks);
	world_assert_says("     3.00 MiB         1 "); /* by call site */
	world_run(NULL, "stacks:off", leaks);
	world_assert_is_silent();
}

static void from_inside(void)
{
	world_start();
	CHECK(world_enter());
	exit(0); /* as a signal handler of the program might */
}

TEST(an_exit_from_inside_does_not_hang)
{
	world_run(NULL, "stacks:off,leak_report:on", from_inside);
}
