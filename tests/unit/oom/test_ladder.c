/* SPDX-License-Identifier: Apache-2.0 */
/* A scenario per rung: all rungs below it run in vain, it helps, and no rung above it runs. */
#include "oom/ladder.h"

#include "tests/unit/alloc/stage.h"

enum rung {
	REAP,
	RETURN_ENOUGH,
	WAIT,
	RETURN_ALL,
	HANDLERS,
	OTHERS,
	SPILL,
	N_RUNGS,
};

#define N_ALWAYS HANDLERS /* rungs that run without a handler and without a wait for others */

static struct stage stage;

/* The program's side of a climb. */
static struct {
	struct gpc_pool *pools[2];
	struct gpc_request request;
	gpc_devptr address;
	unsigned n_attempts;
	unsigned n_trims;
	bool is_busy;    /* work runs, so the driver's own pools may keep some */
	bool has_waited; /* for that work */
	unsigned n_handler_calls;
	unsigned others_leave_at; /* the attempt from which there is room; 0: never */
	gpc_devptr handler_frees;
	bool handler_works;
	uint64_t handler_wanted;
} program;

static enum gpc_status attempt(void *arg)
{
	assert_ptr_equal(arg, &program);
	program.n_attempts++;
	if (program.others_leave_at && program.n_attempts == program.others_leave_at)
		stage.budget.limit_bytes = 0;
	return gpc_pool_retry(&stage.pool, &program.request, &program.address);
}

static bool trim_driver(void *arg, bool must_wait)
{
	assert_ptr_equal(arg, &program);
	program.n_trims++;
	program.has_waited |= must_wait;
	return !program.is_busy || must_wait;
}

static bool call_handlers(void *arg, uint64_t wanted, bool *ret_did_free)
{
	assert_ptr_equal(arg, &program);
	program.n_handler_calls++;
	program.handler_wanted = wanted;
	if (program.handler_frees)
		stage_free(&stage, program.handler_frees);
	*ret_did_free = program.handler_works;
	return true;
}

static struct gpc_ladder ladder_for(uint64_t size)
{
	program.request = stage_request(&stage, size);
	program.pools[0] = &stage.pool;
	return (struct gpc_ladder){ .pool = &stage.pool,
		.pools = program.pools,
		.n_pools = 1,
		.wanted = size,
		.attempt = attempt,
		.arg = &program };
}

static int start_with(bool is_one_stream)
{
	struct gpc_pool_params params = stage_params();

	params.is_one_stream = is_one_stream;
	stage_open(&stage, &params);
	stage.budget.limit_bytes = 40 * GPC_MIB;
	memset(&program, 0, sizeof program);
	return 0;
}

static int start(void **state)
{
	return start_with(false);
}

static int start_one_stream(void **state)
{
	return start_with(true);
}

static int stop(void **state)
{
	stage_close(&stage);
	return 0;
}

FIXTURE(start, stop);

static void expect_climb(struct gpc_ladder *ladder, enum gpc_status st, uint32_t helped,
	uint32_t n_tried, unsigned n_attempts)
{
	assert_int_equal(gpc_ladder_climb(ladder, GPC_LIMIT), st);
	assert_int_equal(ladder->helped, helped);
	assert_int_equal(ladder->n_tried, n_tried);
	assert_int_equal(program.n_attempts, n_attempts);
}

TEST(the_wait_for_own_work_has_a_bound_for_all_rungs_together)
{
	struct gpc_ladder ladder = ladder_for(30 * GPC_MIB);
	gpc_devptr address = stage_alloc(&stage, 20 * GPC_MIB);
	uint64_t before = gpc_sim_clock_now(&stage.sim->clock);

	stage_launch(&stage, 0, 5 * MS, address, 512);
	stage_free(&stage, address);
	ladder.sync_ms = 3;
	expect_climb(&ladder, GPC_LIMIT, 0, N_RUNGS, N_ALWAYS);
	assert_int_equal(ladder.sync_left_ms, 0);
	assert_int_equal(gpc_sim_clock_now(&stage.sim->clock), before);
	/* It is over: of the same bound nothing is needed. */
	stage_pass_time(&stage, 5 * MS);
	program.n_attempts = 0;
	expect_climb(&ladder, GPC_OK, 2, 2, 2);
	assert_int_equal(ladder.sync_left_ms, 3);
}

TEST(reaping_helps_if_small_frees_coalesce_into_the_request)
{
	struct gpc_ladder ladder = ladder_for(20 * GPC_MIB);
	gpc_devptr pieces[4];

	stage.budget.limit_bytes = 0; /* while there is plenty they share a segment */
	for (int i = 0; i < 4; i++)
		pieces[i] = stage_alloc(&stage, 5 * GPC_MIB);
	stage.budget.limit_bytes = 40 * GPC_MIB;
	for (int i = 0; i < 4; i++)
		stage_free(&stage, pieces[i]);
	expect_climb(&ladder, GPC_OK, REAP + 1, 1, 1);
	assert_int_equal(ladder.freed[REAP], 20 * GPC_MIB);
	assert_int_equal(program.address, pieces[0]);
}

TEST_WITH(returning_idle_segments_helps_where_no_single_one_is_large_enough, start_one_stream, stop)
{
	struct gpc_ladder ladder = ladder_for(24 * GPC_MIB);
	gpc_devptr a = stage_alloc(&stage, 12 * GPC_MIB);
	gpc_devptr b = stage_alloc(&stage, 12 * GPC_MIB);
	gpc_devptr c = stage_alloc(&stage, 12 * GPC_MIB);

	stage_free(&stage, a);
	stage_free(&stage, b);
	stage_free(&stage, c);
	expect_climb(&ladder, GPC_OK, RETURN_ENOUGH + 1, 2, 2);
	assert_int_equal(ladder.freed[RETURN_ENOUGH], 24 * GPC_MIB);
	assert_int_equal(stage.budget.used_bytes, 36 * GPC_MIB); /* as few as needed: one stays */
}

TEST(waiting_helps_if_a_kernel_still_uses_freed_memory)
{
	struct gpc_ladder ladder = ladder_for(30 * GPC_MIB);
	gpc_devptr a = stage_alloc(&stage, 30 * GPC_MIB);

	stage_launch(&stage, 0, 5 * MS, a, 512);
	stage_free(&stage, a);
	expect_climb(&ladder, GPC_OK, WAIT + 1, 3, 3);
	assert_int_equal(program.address, a);
	assert_int_equal(stage.drv.counters.n_sync, 1);
}

TEST(waiting_helps_if_freed_segments_must_go_back)
{
	struct gpc_ladder ladder = ladder_for(34 * GPC_MIB);
	gpc_devptr a = stage_alloc(&stage, 12 * GPC_MIB);
	gpc_devptr b = stage_alloc(&stage, 24 * GPC_MIB);

	stage_launch(&stage, 0, 5 * MS, a, 512);
	stage_free(&stage, a);
	stage_free(&stage, b);
	expect_climb(&ladder, GPC_OK, WAIT + 1, 3, 3);
	assert_int_equal(ladder.freed[WAIT], 72 * GPC_MIB); /* passed, and gave back */
}

TEST(everything_of_the_other_contexts_is_returned)
{
	struct gpc_pool_params params = stage_params();
	struct gpc_ladder ladder = ladder_for(30 * GPC_MIB);
	struct gpc_request request = stage_request(&stage, 20 * GPC_MIB);
	struct gpc_sim_driver other_drv;
	struct gpc_pool other;
	gpc_devptr address = 0;

	assert_int_equal(gpc_sim_driver_init(&other_drv, stage.sim, 0, NULL), GPC_OK);
	gpc_pool_init(&other, &stage.heap, &other_drv.base, &stage.budget, &params, 0, 1, NULL);
	assert_int_equal(gpc_pool_alloc(&other, &request, &address), GPC_OK);
	assert_int_equal(gpc_sim_driver_launch(&other_drv, 0, 5 * MS, address, 512, -1), GPC_OK);
	assert_int_equal(gpc_pool_free(&other, address, &request), GPC_OK);
	program.pools[1] = &other;
	ladder.n_pools = 2;
	expect_climb(&ladder, GPC_OK, RETURN_ALL + 1, 4, 4);
	assert_int_equal(ladder.freed[RETURN_ALL], 20 * GPC_MIB);
	gpc_pool_fini(&other);
	gpc_sim_driver_fini(&other_drv);
}

TEST(the_drivers_own_pools_are_trimmed_before_the_handlers)
{
	struct gpc_ladder ladder = ladder_for(30 * GPC_MIB);

	(void)stage_alloc(&stage, 20 * GPC_MIB);
	ladder.trim_driver = trim_driver;
	program.others_leave_at = 4;
	expect_climb(&ladder, GPC_OK, RETURN_ALL + 1, 4, 4);
	assert_int_equal(program.n_trims, 1);
	assert_false(program.has_waited);
	assert_int_equal(program.n_handler_calls, 0);
}

TEST(without_a_bound_the_drivers_own_pools_are_trimmed_behind_all_work)
{
	struct gpc_ladder ladder = ladder_for(30 * GPC_MIB);

	(void)stage_alloc(&stage, 20 * GPC_MIB);
	ladder.trim_driver = trim_driver;
	program.is_busy = true;
	ladder.sync_ms = 5;
	expect_climb(&ladder, GPC_LIMIT, 0, N_RUNGS, 4);
	assert_false(program.has_waited);
	ladder.sync_ms = 0;
	program.n_attempts = 0;
	program.others_leave_at = 5;
	expect_climb(&ladder, GPC_OK, RETURN_ALL + 1, 4, 5);
	assert_true(program.has_waited);
	assert_int_equal(program.n_trims, 3);
}

TEST(memory_that_others_free_meanwhile_is_found_after_any_rung)
{
	(void)stage_alloc(&stage, 20 * GPC_MIB);
	for (unsigned rung = REAP; rung < N_ALWAYS; rung++) {
		struct gpc_ladder ladder = ladder_for(30 * GPC_MIB);

		stage.budget.limit_bytes = 40 * GPC_MIB;
		program.n_attempts = 0;
		program.others_leave_at = rung + 1;
		expect_climb(&ladder, GPC_OK, rung + 1, rung + 1, rung + 1);
		assert_int_equal(ladder.freed[rung], 0);
		stage_free(&stage, program.address);
		assert_int_equal(gpc_pool_wait(&stage.pool, 0), 30 * GPC_MIB);
		assert_int_equal(gpc_pool_trim(&stage.pool, UINT64_MAX, true), 30 * GPC_MIB);
	}
}

TEST(the_programs_handlers_help)
{
	struct gpc_ladder ladder = ladder_for(30 * GPC_MIB);

	program.handler_frees = stage_alloc(&stage, 20 * GPC_MIB);
	program.handler_works = true;
	ladder.call_handlers = call_handlers;
	expect_climb(&ladder, GPC_OK, HANDLERS + 1, 5, 5);
	assert_int_equal(program.handler_wanted, 30 * GPC_MIB);
}

TEST(a_handler_that_freed_nothing_is_followed_by_an_attempt_too)
{
	struct gpc_ladder ladder = ladder_for(30 * GPC_MIB);

	(void)stage_alloc(&stage, 20 * GPC_MIB);
	ladder.call_handlers = call_handlers;
	program.others_leave_at = HANDLERS + 1;
	expect_climb(&ladder, GPC_OK, HANDLERS + 1, HANDLERS + 1, HANDLERS + 1);
	assert_int_equal(program.n_handler_calls, 1);
}

TEST(waiting_for_other_processes_helps_when_they_leave)
{
	struct gpc_ladder ladder = ladder_for(30 * GPC_MIB);

	(void)stage_alloc(&stage, 20 * GPC_MIB);
	ladder.wait_ms = 1000;
	program.others_leave_at = N_ALWAYS + 3;
	expect_climb(&ladder, GPC_OK, OTHERS + 1, OTHERS + 1, N_ALWAYS + 3);
}

TEST(waiting_for_other_processes_ends)
{
	struct gpc_ladder ladder = ladder_for(30 * GPC_MIB);

	(void)stage_alloc(&stage, 20 * GPC_MIB);
	ladder.wait_ms = 30; /* three steps of 10 ms */
	expect_climb(&ladder, GPC_LIMIT, 0, N_RUNGS, N_ALWAYS + 3);
}

static bool may_spill(void *arg)
{
	assert_ptr_equal(arg, &program);
	program.others_leave_at = program.n_attempts + 1; /* the next attempt is served */
	return true;
}

static bool may_not_spill(void *arg)
{
	assert_ptr_equal(arg, &program);
	return false;
}

TEST(spilling_helps_when_nothing_else_did)
{
	struct gpc_ladder ladder = ladder_for(30 * GPC_MIB);

	(void)stage_alloc(&stage, 20 * GPC_MIB);
	ladder.spill = may_not_spill;
	expect_climb(&ladder, GPC_LIMIT, 0, N_RUNGS, N_ALWAYS);
	ladder.spill = may_spill;
	expect_climb(&ladder, GPC_OK, SPILL + 1, N_RUNGS, 2 * N_ALWAYS + 1);
}

TEST(where_nothing_helps_the_first_failure_is_the_answer)
{
	struct gpc_ladder ladder = ladder_for(30 * GPC_MIB);

	(void)stage_alloc(&stage, 20 * GPC_MIB);
	expect_climb(&ladder, GPC_LIMIT, 0, N_RUNGS, N_ALWAYS);
	for (size_t i = 0; i < N_OF(ladder.freed); i++)
		assert_int_equal(ladder.freed[i], 0);
}

static enum gpc_status attempt_and_break(void *arg)
{
	program.n_attempts++;
	return gpc_status_from_device(CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_WITH(another_error_of_an_attempt_ends_the_climb, start_one_stream, stop)
{
	struct gpc_ladder ladder = ladder_for(24 * GPC_MIB);

	stage_free(&stage, stage_alloc(&stage, 12 * GPC_MIB));
	ladder.attempt = attempt_and_break;
	expect_climb(&ladder, gpc_status_from_device(CUDA_ERROR_ILLEGAL_ADDRESS), 0, REAP + 1, 1);
}

TEST(an_error_that_no_room_can_help_against_is_not_climbed_for)
{
	struct gpc_ladder ladder = ladder_for(24 * GPC_MIB);

	assert_int_equal(gpc_ladder_climb(&ladder, GPC_NO_METADATA), GPC_NO_METADATA);
	assert_int_equal(ladder.n_tried, 0);
	assert_int_equal(program.n_attempts, 0);
	assert_true(gpc_ladder_helps(GPC_DEVICE_NO_MEMORY));
	assert_true(gpc_ladder_helps(GPC_LIMIT));
	assert_false(gpc_ladder_helps(GPC_OK));
}

TEST(a_call_that_is_not_ours_climbs_without_a_pool)
{
	struct gpc_ladder ladder = ladder_for(30 * GPC_MIB);

	stage_free(&stage, stage_alloc(&stage, 20 * GPC_MIB));
	ladder.pool = NULL;
	expect_climb(&ladder, GPC_OK, RETURN_ALL + 1, 4, 1);
}
