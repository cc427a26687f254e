/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/bytes.h"
#include "tools/replay/run.h"
#include "tools/replay/steps.h"
#include "tools/replay/trace_build.h"

static struct gpc_trace_builder *builder;

static void add(
	enum gpc_trace_op_kind kind, uint64_t identity, uint64_t size, enum gpc_trace_way way)
{
	const struct gpc_trace_row row = {
		.kind = kind, .identity = identity, .size = size, .way = way
	};

	gpc_trace_add(builder, &row);
}

static void take(uint64_t identity, uint64_t size)
{
	add(GPC_TRACE_ALLOC, identity, size, GPC_TRACE_CACHED);
}

static void give(uint64_t identity)
{
	add(GPC_TRACE_FREE, identity, 0, GPC_TRACE_CACHED);
}

static struct gpc_trace end(void)
{
	struct gpc_trace trace;

	assert_int_equal(gpc_trace_end(builder, GPC_OK, &trace), GPC_OK);
	return trace;
}

static int begin(void **state)
{
	builder = gpc_trace_begin("", true);
	return builder ? 0 : -1;
}

FIXTURE(begin, NULL);

/* The weights are allocated once, the optimizer's state at the end of the first step; both stay. */
TEST(each_rise_is_a_step_and_the_peak_is_in_the_second)
{
	struct gpc_steps steps;
	struct gpc_trace trace;

	take(1, 2 * GPC_GIB);
	for (uint64_t step = 0; step < 5; step++) {
		for (uint64_t i = 0; i < 8; i++)
			take(10 + i, GPC_GIB);
		for (uint64_t i = 0; i < 8; i++)
			give(10 + i);
		if (step == 0)
			take(2, GPC_GIB);
	}
	give(1);
	give(2);
	trace = end();
	steps = gpc_steps_count(&trace);
	assert_int_equal(steps.n, 5);
	assert_int_equal(steps.n_peak, 2);
	assert_int_equal(steps.growth, 0);
	assert_int_equal(trace.peak_live_bytes, 11 * GPC_GIB);
	gpc_trace_fini(&trace);
}

/* Beside the last step, the 23rd, those before it are low all the time. */
TEST(steps_before_a_spike_count_though_it_dwarfs_them)
{
	struct gpc_trace trace;

	take(1, 256 * GPC_MIB);
	for (uint64_t step = 0; step < 22; step++) {
		take(10, GPC_GIB);
		give(10);
	}
	for (uint64_t i = 0; i < 10; i++)
		take(20 + i, GPC_GIB);
	trace = end();
	assert_int_equal(gpc_steps_count(&trace).n, 1);
	assert_int_equal(gpc_steps_before_spike(&trace), 23);
	gpc_trace_fini(&trace);
}

/* What stays of each of 20 steps, beside 8 GiB that come and go. */
static struct gpc_steps steps_that_keep(uint64_t kept)
{
	struct gpc_steps steps;
	struct gpc_trace trace;

	for (uint64_t step = 0; step < 20; step++) {
		take(1, 8 * GPC_GIB);
		take(10 + step, kept);
		give(1);
	}
	for (uint64_t step = 0; step < 20; step++)
		give(10 + step);
	trace = end();
	steps = gpc_steps_count(&trace);
	gpc_trace_fini(&trace);
	return steps;
}

TEST(floors_that_rise_are_growth_if_they_rise_by_much)
{
	assert_int_equal(steps_that_keep(GPC_MIB).growth, 0);
	assert_int_equal(begin(NULL), 0);
	/* A quarter of a GiB in each of 20 steps, of which a quarter is 4 or 5. */
	assert_in_range(steps_that_keep(GPC_GIB / 4).growth, GPC_GIB, 5 * GPC_GIB / 4);
	assert_int_equal(begin(NULL), 0);
	for (uint64_t i = 0; i < 100; i++)
		take(1000 + i, GPC_GIB);
	assert_int_equal(steps_that_keep(GPC_MIB).growth, 0);
}

TEST(what_hardly_moves_is_one_step_and_nothing_is_none)
{
	struct gpc_steps steps;
	struct gpc_trace trace;

	take(1, 64 * GPC_MIB);
	for (int i = 0; i < 10; i++) {
		take(2, GPC_MIB);
		give(2);
	}
	trace = end();
	steps = gpc_steps_count(&trace);
	assert_int_equal(steps.n, 1);
	gpc_trace_fini(&trace);
	assert_int_equal(begin(NULL), 0);
	trace = end();
	assert_int_equal(gpc_steps_count(&trace).n, 0);
	gpc_trace_fini(&trace);
}

/* Identity 1 is a context, 2 a workspace that cuBLAS takes from the driver, 3 a tensor in a segment of PyTorch. */
TEST(what_goes_past_a_cache_is_taken_off_the_device_and_off_no_sum_but_its_own)
{
	const struct gpc_run_settings settings = { .is_unwatched = true };
	struct gpc_trace trace;
	struct gpc_run run;
	uint64_t smallest = 0;

	add(GPC_TRACE_ALLOC, 1, 100 * GPC_MIB, GPC_TRACE_BESIDE);
	add(GPC_TRACE_ALLOC, 2, 4 * GPC_MIB, GPC_TRACE_DIRECT);
	take(3, 1000);
	trace = end();
	assert_int_equal(trace.peak_live_bytes, 4 * GPC_MIB + 1000);
	assert_int_equal(trace.peak_beside_bytes, 100 * GPC_MIB);
	assert_int_equal(gpc_run_once(&trace, &gpc_policy_pytorch, &settings, &run), GPC_OK);
	assert_int_equal(run.peak_reserved_bytes, (4 + 2) * GPC_MIB);
	assert_int_equal(run.peak_live_bytes, trace.peak_live_bytes);
	assert_int_equal(
		gpc_run_smallest(&trace, &gpc_policy_pytorch, &settings, &smallest, NULL), GPC_OK);
	assert_int_equal(smallest, 106 * GPC_MIB);
	/* gpucache serves both the tensor and the request of cuBLAS. */
	assert_int_equal(gpc_run_once(&trace, &gpc_policy_gpucache, &settings, &run), GPC_OK);
	assert_int_equal(run.n_allocs, 2);
	gpc_trace_fini(&trace);
}
