/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of traces so short that bytes and driver calls can be counted by hand. */
#include "tests/unit/unit.h"

#include "tools/replay/run.h"

#define MIB     (UINT64_C(1) << 20)
#define MAX_OPS 16
#define A_GPU   (64 * MIB)

static struct gpc_trace_op ops[MAX_OPS];
static struct gpc_trace trace;
static struct gpc_run run;

static int set_up(void **state)
{
	memset(ops, 0, sizeof ops);
	trace = (struct gpc_trace){ .path = "by hand", .ops = ops, .n_streams = 1 };
	return 0;
}

FIXTURE(set_up, NULL);

static struct gpc_trace_op *add(enum gpc_trace_op_kind kind, uint32_t slot, uint64_t size)
{
	struct gpc_trace_op *op = &ops[trace.n_ops++];

	*op = (struct gpc_trace_op){
		.kind = kind, .slot = slot, .size = size, .line = trace.n_ops
	};
	return op;
}

static void takes(uint32_t slot, uint64_t size)
{
	add(GPC_TRACE_ALLOC, slot, size);
	trace.n_slots = slot + 1 > trace.n_slots ? slot + 1 : trace.n_slots;
}

static void gives_back(uint32_t slot)
{
	add(GPC_TRACE_FREE, slot, 0);
}

static void play(const struct gpc_policy_ops *policy, uint64_t device_bytes)
{
	const struct gpc_run_settings settings = { .device_bytes = device_bytes,
		.check_always = true };

	assert_int_equal(gpc_run_once(&trace, policy, &settings, &run), GPC_OK);
	assert_null(run.broken);
}

TEST(the_driver_gives_memory_in_steps_of_2_mib)
{
	takes(0, 3 * MIB);
	takes(1, 5 * MIB);
	gives_back(0);
	play(&gpc_policy_none, A_GPU);
	assert_true(gpc_run_is_good(&run));
	assert_int_equal(run.peak_reserved_bytes, 10 * MIB);
	assert_int_equal(run.reserved_at_end_bytes, 6 * MIB);
	assert_int_equal(run.peak_live_bytes, 8 * MIB);
	assert_int_equal(run.n_allocs, 2);
	assert_int_equal(run.n_hits, 0);
	assert_int_equal(run.n_calls[GPC_SIM_COST_MALLOC], 2);
	assert_int_equal(run.n_calls[GPC_SIM_COST_FREE], 1);
}

TEST(what_is_cached_is_a_hit)
{
	takes(0, 12 * MIB);
	gives_back(0);
	takes(1, 12 * MIB);
	play(&gpc_policy_gpucache, A_GPU);
	assert_int_equal(run.n_hits, 1);
	assert_int_equal(run.n_calls[GPC_SIM_COST_MALLOC], 1);
	assert_int_equal(run.reserved_at_end_bytes, 12 * MIB);
}

TEST(the_first_request_that_fails_is_named)
{
	static const struct gpc_policy_ops *const policies[] = { &gpc_policy_none,
		&gpc_policy_gpucache };

	takes(0, 40 * MIB);
	takes(1, 10 * MIB);
	takes(2, 30 * MIB);
	takes(3, 2 * MIB);
	for (size_t i = 0; i < N_OF(policies); i++) {
		play(policies[i], A_GPU);
		assert_true(run.has_failed && !gpc_run_is_good(&run));
		assert_int_equal(run.failed_kind, GPC_TRACE_ALLOC);
		assert_int_equal(run.failed_event, 3);
		assert_int_equal(run.failed_line, 3);
		assert_int_equal(run.failed_size, 30 * MIB);
		assert_int_equal(run.failure, GPC_DEVICE_NO_MEMORY);
	}
}

TEST(what_others_hold_is_not_there)
{
	takes(0, 32 * MIB);
	trace.fixed_bytes = 32 * MIB;
	play(&gpc_policy_none, A_GPU);
	assert_true(gpc_run_is_good(&run));
	trace.fixed_bytes += 2 * MIB;
	play(&gpc_policy_none, A_GPU);
	assert_true(run.has_failed);
}

TEST(a_limit_binds_the_cache_as_a_smaller_device_would)
{
	struct gpc_run_settings settings = { .device_bytes = A_GPU,
		.policy = { .limit_bytes = 20 * MIB } };

	takes(0, 12 * MIB);
	takes(1, 10 * MIB);
	assert_int_equal(gpc_run_once(&trace, &gpc_policy_gpucache, &settings, &run), GPC_OK);
	assert_int_equal(run.failed_event, 2);
	settings.policy.limit_bytes = 22 * MIB;
	assert_int_equal(gpc_run_once(&trace, &gpc_policy_gpucache, &settings, &run), GPC_OK);
	assert_true(gpc_run_is_good(&run));
}

TEST(failures_of_the_trace_that_would_be_served_are_counted)
{
	takes(0, 32 * MIB);
	add(GPC_TRACE_FAILURE, 0, 32 * MIB);
	add(GPC_TRACE_FAILURE, 0, 34 * MIB);
	trace.n_failures = 2;
	play(&gpc_policy_none, A_GPU);
	assert_true(gpc_run_is_good(&run));
	assert_int_equal(run.n_failures_served, 1);
	assert_int_equal(run.n_failures_again, 1);
	/* The request that succeeded was freed at once. */
	assert_int_equal(run.reserved_at_end_bytes, 32 * MIB);
}

TEST(a_cache_that_is_emptied_goes_back_to_the_driver)
{
	takes(0, 12 * MIB);
	takes(1, 14 * MIB);
	gives_back(0);
	add(GPC_TRACE_EMPTY_CACHE, 0, 1);
	play(&gpc_policy_gpucache, A_GPU);
	assert_int_equal(run.reserved_at_end_bytes, 14 * MIB);
}

/* Returns the smallest device. */
static uint64_t runs_on_the_smallest(const struct gpc_policy_ops *policy)
{
	const struct gpc_run_settings settings = { 0 };
	uint64_t bytes;

	assert_int_equal(gpc_run_smallest(&trace, policy, &settings, &bytes, &run), GPC_OK);
	assert_true(gpc_run_is_good(&run));
	assert_true(run.peak_reserved_bytes <= run.device_bytes);
	play(policy, bytes);
	assert_true(gpc_run_is_good(&run));
	play(policy, bytes - GPC_RUN_DEVICE_STEP);
	assert_true(run.has_failed);
	return bytes;
}

TEST(the_smallest_device_is_enough_and_a_step_less_is_not)
{
	static const struct gpc_policy_ops *const policies[] = { &gpc_policy_none,
		&gpc_policy_gpucache, &gpc_policy_pytorch, &gpc_policy_pytorch_expandable };

	takes(0, 21 * MIB);
	gives_back(0);
	takes(1, 30 * MIB);
	takes(2, 7 * MIB);
	trace.fixed_bytes = 6 * MIB;
	for (size_t i = 0; i < N_OF(policies); i++)
		assert_true(runs_on_the_smallest(policies[i]) >= 43 * MIB);
}

/*
 * PyTorch prefers the block with less memory after it, unmapped memory included.  On a large device, the free 10 MiB at
 * the end of the range are followed by more than 200 MiB, so the request of 4 MiB goes into the freed 200.  On a small
 * device it goes into the 10, and the last request needs another handle of 20 MiB.
 */
TEST(a_choice_that_depends_on_the_devices_size_is_made_on_the_smallest)
{
	takes(0, 200 * MIB);
	takes(1, 10 * MIB);
	gives_back(0);
	takes(2, 4 * MIB);
	takes(3, 196 * MIB);
	takes(4, 10 * MIB);
	assert_int_equal(runs_on_the_smallest(&gpc_policy_pytorch_expandable), 240 * MIB);
}

/*
 * Of free blocks of one size PyTorch takes that of the segment that it asked for first, wherever the driver put it.  The
 * last segment lies below the others here, in the gap that the first has left.
 */
TEST(of_equal_blocks_pytorch_takes_that_of_the_oldest_segment)
{
	takes(0, 20 * MIB);
	takes(1, 40 * MIB);
	gives_back(1);
	takes(1, 20 * MIB);
	takes(2, 20 * MIB);
	gives_back(0);
	add(GPC_TRACE_EMPTY_CACHE, 0, 1);
	takes(0, 20 * MIB);
	gives_back(0);
	gives_back(2);
	takes(2, 20 * MIB);
	add(GPC_TRACE_EMPTY_CACHE, 0, 1);
	play(&gpc_policy_pytorch, A_GPU);
	assert_int_equal(run.reserved_at_end_bytes, 40 * MIB);
}

TEST(memory_that_is_given_out_too_early_is_a_race)
{
	struct gpc_policy_ops unsafe = gpc_policy_gpucache;

	takes(0, 12 * MIB);
	*add(GPC_TRACE_WORK, 0, 0) = (struct gpc_trace_op){
		.kind = GPC_TRACE_WORK, .slot = 0, .duration_ns = 1000000, .line = 2
	};
	gives_back(0);
	takes(1, 12 * MIB);
	*add(GPC_TRACE_WORK, 1, 0) = (struct gpc_trace_op){
		.kind = GPC_TRACE_WORK, .slot = 1, .stream = 1, .duration_ns = 1000000, .line = 5
	};
	trace.n_streams = 2;
	trace.n_work = 2;
	/* Without fences: what they prevent. */
	unsafe.is_late = false;
	unsafe.submits = NULL;
	unsafe.variant = GPC_POLICY_UNSAFE;
	play(&unsafe, A_GPU);
	assert_int_equal(run.n_races, 1);
	assert_false(gpc_run_is_good(&run));
	play(&gpc_policy_gpucache, A_GPU);
	assert_int_equal(run.n_races, 0);
}
