/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "world.h"

static const struct gpc_runtime_loader *no_loader(void)
{
	return NULL;
}

static void without_a_driver(void)
{
	CHECK(!gpc_runtime_enter(no_loader));
	CHECK(atomic_load(&gpc_runtime.state) == GPC_STATE_ARMED);
	world_start();
	CHECK(world.n_loader == 1);
}

TEST(no_driver_yet_is_asked_for_again)
{
	world_run(NULL, "record:off", without_a_driver);
}

static void before_cuinit(void)
{
	CHECK(!world_enter());
	CHECK(atomic_load(&gpc_runtime.state) == GPC_STATE_ARMED);
	CHECK(!gpc_runtime.record.base);
	world_start();
	CHECK(gpc_runtime.n_devices == 1);
}

TEST(a_call_before_cuinit_does_not_start_us_without_devices)
{
	world_run(NULL, "record:off", before_cuinit);
}

static void inside(void)
{
	world_start();
	CHECK(world_enter());
	CHECK(!world_enter());
	gpc_runtime_leave();
	CHECK(world_enter());
	gpc_runtime_leave();
}

TEST(a_call_from_inside_passes)
{
	world_run(NULL, "record:off", inside);
}

static void saw_late(void)
{
	world_init();
	CHECK(world_enter());
	gpc_runtime_leave();
	gpc_runtime_saw_start();
	CHECK(!gpc_runtime.saw_start);
	CHECK(!world_context()->pool.fences.is_one_stream);
}

TEST(a_start_that_was_not_seen_keeps_the_fences_on)
{
	world_run(NULL, "record:off", saw_late);
}

/* A slow loader, while another thread enters. */
static void *come_by(void *arg)
{
	CHECK(!world_enter());
	return NULL;
}

static const struct gpc_runtime_loader *slow_loader(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, come_by, NULL));
	CHECK(!pthread_join(thread, NULL));
	return world_loader();
}

static void missed(void)
{
	world_init();
	gpc_runtime_saw_start();
	CHECK(gpc_runtime_enter(slow_loader));
	gpc_runtime_leave();
	CHECK(atomic_load(&gpc_runtime.has_missed));
	CHECK(!world_context()->pool.fences.is_one_stream);
}

TEST(what_passed_during_the_start_keeps_the_fences_on)
{
	world_run(NULL, "record:off", missed);
}

static void forked(void)
{
	char path[GPC_RECORD_MAX_PATH];
	uint64_t n_events;
	CUdeviceptr ptr;
	int status;
	pid_t pid;

	world_start();
	CHECK(!world_malloc(&ptr, 1000));
	n_events = atomic_load(&gpc_runtime.record.next_event);
	memcpy(path, gpc_runtime.record.path, sizeof path);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(!world_enter());
		CHECK(atomic_load(&gpc_runtime.state) == GPC_STATE_PASS);
		CHECK(world_malloc(&ptr, 1000) == CUDA_ERROR_NOT_INITIALIZED);
		CHECK(world_free(ptr) == CUDA_ERROR_NOT_INITIALIZED);
		exit(0); /* the parent's exit handler is inherited */
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(access(path, F_OK) == 0);
	CHECK(atomic_load(&gpc_runtime.record.next_event) == n_events);
	CHECK(!(gpc_runtime.record.header->state & GPUCACHE_STATE_CLEAN_EXIT));
	CHECK(!world_free(ptr));
	CHECK(atomic_load(&gpc_runtime.record.next_event) == n_events + 1);
}

TEST(a_forked_child_passes_and_leaves_the_recording_alone)
{
	world_run(NULL, NULL, forked);
	world_assert_is_silent();
}

static void forked_before(void)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		world_start();
		CHECK(atomic_load(&gpc_runtime.state) == GPC_STATE_RUNNING);
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(atomic_load(&gpc_runtime.state) == GPC_STATE_ARMED);
}

TEST(a_child_of_a_process_without_cuda_starts_itself)
{
	world_run(NULL, NULL, forked_before);
}

#define N_THREADS 4
#define N_ROUNDS  300

static void *use(void *arg)
{
	CUdeviceptr ptr[4];
	unsigned seed = (unsigned)(uintptr_t)arg;

	CHECK(!world.cuCtxSetCurrent(world.context));
	for (int i = 0; i < N_ROUNDS; i++) {
		for (int k = 0; k < 4; k++)
			CHECK(!world_malloc(
				&ptr[k], (seed = seed * 1103515245 + 12345) % (3 * MIB) + 1));
		if (i % 50 == 0)
			CHECK(!world_sync());
		for (int k = 0; k < 4; k++)
			CHECK(!world_free(ptr[k]));
	}
	return NULL;
}

static void many_threads(void)
{
	pthread_t threads[N_THREADS];

	world_start();
	CHECK(world_stream());
	for (int i = 0; i < N_THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, use, (void *)(uintptr_t)(i + 1)));
	for (int i = 0; i < N_THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!world_sync());
	CHECK(COUNTER(live_bytes) == 0 && COUNTER(n_malloc) == N_THREADS * N_ROUNDS * 4);
	CHECK(!gpc_pool_check(&world_context()->pool));
}

TEST(threads_share_a_context)
{
	world_run(NULL, NULL, many_threads);
	world_assert_is_silent();
}
