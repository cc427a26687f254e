/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "model/balance.h"
#include "runtime/context/streams.h"
#include "runtime/ledger/track.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "runtime/rescue/rescue.h"
#include "world.h"

#define LONG_NS (UINT64_C(30) * 1000 * 1000)
#define QUIET   "record:off,stacks:off"

static const CUresult no_memory = CUDA_ERROR_OUT_OF_MEMORY;

static void in_another_context(void)
{
	CUcontext other;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&ptr, 600 * MIB) && !world_free(ptr));
	CHECK(!world.cuCtxCreate_v2(&other, 0, 0));
	CHECK(!world_malloc(&ptr, 600 * MIB));
	CHECK(COUNTER(n_rescued) == 1 && COUNTER(n_oom) == 0);
	CHECK(COUNTER(n_rescued_by[3]) == 1); /* everything cached on the device */
	CHECK(GPC_DEVICE_SUM(&gpc_runtime.devices[0], cached_bytes) == 0);
	CHECK(world_oom(0)->number == 0); /* nothing failed */
}

TEST(what_another_context_caches_makes_room)
{
	world_run("memory:1GiB,context:0", QUIET, in_another_context);
	world_assert_is_silent();
}

static void behind_work(void)
{
	CUdeviceptr ptr;
	CUstream stream;

	world_start();
	stream = world_stream();
	CHECK(!world_malloc(&ptr, 600 * MIB));
	CHECK(!world.gpusim_launch(stream, LONG_NS, 0, NULL));
	CHECK(!world_free(ptr));
	CHECK(COUNTER(pending_bytes) == 600 * MIB);
	CHECK(!world_malloc(&ptr, 700 * MIB));
	CHECK(!world.cuStreamQuery(stream)); /* the ladder waited for it */
	CHECK(COUNTER(pending_bytes) == 0 && COUNTER(n_oom) == 0);
}

TEST(what_is_pending_behind_work_is_waited_for)
{
	world_run("memory:1GiB,context:0,clock:virtual",
		QUIET ",free_order:fence,pending_limit:1GiB", behind_work);
	world_assert_is_silent();
}

static void check_oom(const struct gpucache_oom *oom, uint64_t number, size_t requested)
{
	CHECK(oom->number == number && oom->requested == requested && oom->device == 0);
	CHECK(oom->rounded >= requested && oom->n_rungs > 0);
	CHECK(oom->seq % 2 == 0);
	CHECK(oom->balance.device_total == GPC_GIB);
	CHECK(gpc_balance_difference(&oom->balance) == 0);
	CHECK(gpc_balance_sum(&oom->balance) == GPC_GIB);
}

static void fails_once(void)
{
	CUdeviceptr live;
	CUdeviceptr ptr = 0;

	world_start();
	CHECK(!world_malloc(&live, 500 * MIB));
	CHECK(world_malloc(&ptr, 900 * MIB) == no_memory && ptr == 0);
	CHECK(COUNTER(n_oom) == 1);
	check_oom(world_oom(0), 1, 900 * MIB);
	CHECK(world_oom(0)->balance.requested == 500 * MIB);
	CHECK(!world_oom(0)->reported && !world_oom(0)->recovered);
	CHECK(gpc_runtime.record.header->state & GPUCACHE_STATE_OOM_SEEN);
	CHECK(world_oom(1)->number == 0);
	CHECK(!world_free(live));
	CHECK(!gpc_pool_check(&world_context()->pool));
}

static void fails_once_and_ends(void)
{
	fails_once();
	exit(3);
}

TEST(a_failure_is_recorded_once_and_printed_at_an_end_by_an_error)
{
	world_run_to("memory:1GiB", QUIET, fails_once_and_ends, 3);
	world_assert_says("out of memory on GPU 0: 900.00 MiB asked for, exhausted");
	assert_int_equal(world_count("WHY "), 1);
	world_run("memory:1GiB", QUIET, fails_once);
	assert_int_equal(world_count("gpucache:"), 1); /* the line at the failure */
	assert_int_equal(world_count("WHY "), 0);
	world_run_to("memory:1GiB", QUIET ",oom_report:never", fails_once_and_ends, 3);
	world_assert_is_silent();
}

static void fails_at_once(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(world_malloc(&ptr, 2048 * MIB) == no_memory);
	CHECK(world_oom(0)->reported);
	CHECK(world_malloc(&ptr, 1500 * MIB) == no_memory);
	CHECK(!world_oom(1)->reported); /* not more than one a minute */
	_exit(0);
}

TEST(oom_report_always_prints_at_once)
{
	world_run("memory:1GiB", QUIET ",oom_report:always", fails_at_once);
	world_assert_says("2.00 GiB was asked for");
}

static void fails_without_an_environment(void)
{
	static char *closed[] = { (char *)8, NULL }; /* reading it crashes */
	char **before = environ;
	CUdeviceptr ptr;

	world_start();
	environ = closed;
	CHECK(world_malloc(&ptr, 2048 * MIB) == no_memory);
	environ = before;
}

/* Another thread may be in setenv, which moves the environment. */
TEST(a_failure_does_not_look_into_the_environment)
{
	world_run("memory:1GiB", QUIET ",oom_report:always", fails_without_an_environment);
	world_assert_says("2.00 GiB was asked for");
}

static enum gpc_status is_full(struct gpc_rescue *rescue)
{
	return GPC_DEVICE_NO_MEMORY;
}

/* Two threads fail in the other order than they requested. */
static void fails_in_another_order(void)
{
	struct gpc_rescue rescue = { .size = MIB, .rounded = MIB, .attempt = is_full };

	world_start();
	CHECK(world_enter());
	rescue.context = world_context();
	rescue.request.now_ns = 2000;
	CHECK(gpc_rescue_run(&rescue, GPC_DEVICE_NO_MEMORY));
	CHECK(world_oom(0)->reported);
	rescue.request.now_ns = 1000;
	CHECK(gpc_rescue_run(&rescue, GPC_DEVICE_NO_MEMORY));
	CHECK(!world_oom(1)->reported);
	_exit(0);
}

TEST(not_more_than_one_report_a_minute_in_whatever_order_they_come)
{
	world_run("memory:1GiB", QUIET ",oom_report:always", fails_in_another_order);
}

/* Another thread allocates right after each of three queries of free memory. */
static const struct gpc_driver_ops *real_ops;
static bool is_looked_at;
static unsigned n_taken;

static enum gpc_status take_behind_info(
	struct gpc_driver *drv, uint64_t *ret_free, uint64_t *ret_total)
{
	const struct gpc_request request = { .size = 100 * MIB };
	enum gpc_status st = real_ops->mem_info(drv, ret_free, ret_total);
	gpc_devptr address;

	if (is_looked_at && n_taken < 3) {
		n_taken++;
		is_looked_at = false; /* not by what it calls itself */
		CHECK(!gpc_pool_alloc(&world_context()->pool, &request, &address));
		is_looked_at = true;
	}
	return st;
}

static enum gpc_status is_full_and_looked_at(struct gpc_rescue *rescue)
{
	is_looked_at = true;
	return is_full(rescue);
}

static void fails_while_memory_moves(void)
{
	struct gpc_rescue rescue = {
		.size = MIB, .rounded = MIB, .attempt = is_full_and_looked_at
	};
	const struct gpucache_balance *sheet;
	struct gpc_driver_ops ops;

	world_start();
	CHECK(world_enter());
	sheet = &world_oom(0)->balance;
	rescue.context = world_context();
	real_ops = rescue.context->drv.base.ops;
	ops = *real_ops;
	ops.mem_info = take_behind_info;
	rescue.context->drv.base.ops = &ops;
	CHECK(gpc_rescue_run(&rescue, GPC_DEVICE_NO_MEMORY));
	rescue.context->drv.base.ops = real_ops;
	CHECK(n_taken == 3);
	CHECK(sheet->requested == 300 * MIB && sheet->device_free == 724 * MIB);
	CHECK(sheet->process_outside == 0 || sheet->process_outside == GPUCACHE_UNKNOWN);
	_exit(0);
}

TEST(a_sheet_is_of_one_moment)
{
	world_run("memory:1GiB,context:0", QUIET, fails_while_memory_moves);
}

static void fails_twice(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(world_malloc(&ptr, 2048 * MIB) == no_memory);
	CHECK(world_malloc(&ptr, 2048 * MIB) == no_memory);
	CHECK(!world_oom(0)->reported && !world_oom(1)->reported);
	exit(3);
}

static void fails_twice_at_once(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(world_malloc(&ptr, 2048 * MIB) == no_memory && world_oom(0)->reported);
	CHECK(world_malloc(&ptr, 2048 * MIB) == no_memory && !world_oom(1)->reported);
	exit(3);
}

TEST(a_repeated_failure_is_printed_once)
{
	world_run_to("memory:1GiB", QUIET, fails_twice, 3);
	assert_int_equal(world_count("WHY "), 1);
	assert_int_equal(world_count("asked for, impossible"), 1); /* the line at the first one */
	world_run_to("memory:1GiB", QUIET ",oom_report:always", fails_twice_at_once, 3);
	assert_int_equal(world_count("WHY "), 1);
}

static void recovers(void)
{
	CUdeviceptr live;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&live, 600 * MIB));
	CHECK(world_malloc(&ptr, 700 * MIB) == no_memory);
	CHECK(world_malloc(&ptr, 490 * MIB) == no_memory);
	CHECK(world_malloc(&ptr, 500 * MIB) == no_memory);
	CHECK(!world_malloc(&ptr, MIB) && !world_free(ptr));
	CHECK(!world_oom(2)->recovered); /* a smaller one says nothing */
	CHECK(!world_free(live));
	CHECK(!world_malloc(&ptr, 500 * MIB));
	CHECK(world_oom(2)->recovered && world_oom(1)->recovered && !world_oom(0)->recovered);
	CHECK(gpc_runtime.devices[0].failed_size == 0);
	exit(3);
}

TEST(a_failure_that_the_program_recovered_from_is_not_printed)
{
	world_run_to("memory:1GiB", QUIET, recovers, 3);
	assert_int_equal(world_count("gpucache:"), 1); /* the line at the failure */
	assert_int_equal(world_count("WHY "), 0);
}

static void *host;

static CUresult make_host(struct gpc_passed_call *call)
{
	CUresult result = world.cuMemHostAlloc(&host, call->size, 0);

	call->ret_address = (uintptr_t)host;
	call->ret_size = call->size;
	return result;
}

static void falls_back(void)
{
	struct gpc_passed_call call = {
		.make = make_host, .kind = GPUCACHE_KIND_HOST, .size = 2048 * MIB
	};
	CUdeviceptr ptr;

	world_start();
	CHECK(world_malloc(&ptr, 2048 * MIB) == no_memory);
	CHECK(world_enter());
	CHECK(!gpc_runtime_passed_malloc(&call));
	gpc_runtime_leave();
	CHECK(!world_oom(0)->recovered);
}

TEST(host_memory_is_no_recovery)
{
	world_run("memory:1GiB", QUIET ",oom_report:never", falls_back);
}

static CUresult refuse_host(struct gpc_passed_call *call)
{
	return no_memory;
}

static void fails_on_the_host(void)
{
	struct gpc_passed_call call = {
		.make = refuse_host, .kind = GPUCACHE_KIND_HOST, .size = 16 * MIB
	};
	CUdeviceptr ptr;

	world_start();
	CHECK(world_enter());
	CHECK(gpc_runtime_passed_malloc(&call) == no_memory);
	gpc_runtime_leave();
	CHECK(!world_malloc(&ptr, 32 * MIB));
	CHECK(!world_oom(0)->recovered);
	call.make = make_host;
	CHECK(world_enter());
	CHECK(!gpc_runtime_passed_malloc(&call));
	gpc_runtime_leave();
	CHECK(world_oom(0)->recovered);
}

TEST(device_memory_is_no_recovery_of_the_hosts)
{
	world_run("memory:1GiB", QUIET ",oom_report:never", fails_on_the_host);
}

static void limited(void)
{
	CUdeviceptr first;
	CUdeviceptr ptr;

	world_start();
	CHECK(!world_malloc(&first, 80 * MIB));
	CHECK(world_malloc(&ptr, 80 * MIB) == no_memory);
	CHECK(world_oom(0)->limit == 128 * MIB);
	CHECK(!world_free(first));
	CHECK(!world_malloc(&ptr, 100 * MIB));
	CHECK(COUNTER(reserved_bytes) <= 128 * MIB && COUNTER(peak_reserved_bytes) <= 128 * MIB);
}

TEST(the_limit_is_honoured)
{
	world_run("memory:1GiB", QUIET ",limit:128MiB", limited);
	assert_int_equal(world_count("WHY "), 0);
	world_run("memory:1GiB", QUIET ",per_process_memory_fraction:0.125", limited);
}

static void wraps(void)
{
	CUdeviceptr ptr;

	world_start();
	for (unsigned i = 0; i < GPUCACHE_MAX_OOMS + 2; i++)
		CHECK(world_malloc(&ptr, 1100 * MIB + i * MIB) == no_memory);
	CHECK(COUNTER(n_oom) == GPUCACHE_MAX_OOMS + 2);
	CHECK(world_oom(1)->number == GPUCACHE_MAX_OOMS + 2);
}

TEST(more_failures_than_the_recording_holds_do_no_harm)
{
	world_run("memory:1GiB", QUIET ",oom_report:never", wraps);
}

/* An int that overflowed, times the size of an element. */
static const uint64_t overflown[] = { UINT64_MAX, UINT64_MAX - 7 * MIB, UINT64_C(1) << 63,
	(UINT64_C(1) << 60) + 1 };

static void overflows(void)
{
	CUdeviceptr ptr = 0;

	world_start();
	for (unsigned i = 0; i < N_OF(overflown); i++) {
		CHECK(world_malloc(&ptr, overflown[i]) == no_memory && ptr == 0);
		CHECK(world_oom(i)->requested + 1 >= overflown[i]);
		CHECK(world_oom(i)->verdict == GPUCACHE_VERDICT_IMPOSSIBLE);
		CHECK(world_oom(i)->strength == GPUCACHE_STRENGTH_CERTAIN);
	}
	CHECK(COUNTER(n_oom) == N_OF(overflown));
	CHECK(gpc_runtime.record.oom_number == N_OF(overflown));
	CHECK(!world_malloc(&ptr, MIB));
}

static void overflows_elsewhere(void)
{
	struct gpc_passed_call call = { .make = refuse_host };

	world_start();
	CHECK(world_enter());
	for (unsigned i = 0; i < N_OF(overflown); i++) {
		call.kind = i % 2 ? GPUCACHE_KIND_MANAGED : GPUCACHE_KIND_HOST;
		call.size = overflown[i];
		CHECK(gpc_runtime_passed_malloc(&call) == no_memory);
	}
	gpc_runtime_leave();
	CHECK(COUNTER(n_oom) == N_OF(overflown));
}

TEST(a_size_that_overflowed_is_recorded_as_impossible)
{
	world_run("memory:1GiB", "stacks:off", overflows);
	world_run("memory:1GiB", "stacks:off,cache:off,limit:100MiB", overflows);
	world_run("memory:1GiB", "stacks:off,limit:100MiB", overflows_elsewhere);
}

static void during_a_capture(void)
{
	CUdeviceptr ptr;
	CUgraph graph;
	CUstream stream;

	world_start();
	stream = world_stream();
	CHECK(!world_malloc(&ptr, 600 * MIB) && !world_free(ptr));
	CHECK(world_enter());
	gpc_runtime_capture_begins(stream);
	gpc_runtime_leave();
	CHECK(!world.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(!world_malloc(&ptr, 900 * MIB));
	CHECK(!world.cuStreamEndCapture(stream, &graph)); /* the climb did not break it */
	CHECK(world_enter());
	gpc_runtime_capture_ended(stream);
	gpc_runtime_leave();
}

static void refused(void)
{
	CUdeviceptr ptr;

	world_start();
	CHECK(world_malloc(&ptr, 30 * MIB) == no_memory);
	CHECK(!(world_oom(0)->setup & GPUCACHE_OOM_EAGER));
	CHECK(world_oom(0)->verdict == GPUCACHE_VERDICT_DRIVER);
	CHECK(world_oom(0)->strength == GPUCACHE_STRENGTH_CERTAIN);
	CHECK(world_oom(0)->free_before == 1024 * MIB && world_oom(0)->free_after == 1024 * MIB);
}

static void loads_all_modules(void)
{
	CUdeviceptr ptr;

	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	world_start();
	unsetenv("CUDA_MODULE_LOADING"); /* as it was when the driver read it */
	CHECK(world_malloc(&ptr, 2048 * MIB) == no_memory);
	CHECK(world_oom(0)->setup & GPUCACHE_OOM_EAGER);
}

TEST(eager_loading_is_known_at_a_failure)
{
	world_run("memory:1GiB,context:0", "stacks:off", loads_all_modules);
}

TEST(a_refusal_is_told_with_a_reading_before_and_one_after_it)
{
	world_run("memory:1GiB,context:0,fail:cuMemAlloc_v2/1/2/1000",
		"stacks:off,oom_report:always", refused);
	world_assert_says("refused 30.00 MiB with 1.00 GiB free before and 1.00 GiB free");
}

TEST(a_climb_during_a_capture_serves_and_does_not_break_it)
{
	world_run("memory:1GiB,context:0", QUIET, during_a_capture);
}
