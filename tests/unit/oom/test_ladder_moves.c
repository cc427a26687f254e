/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that another thread is moving between us and the driver while a request climbs the ladder.
 *
 * The mover is blocked inside a driver call.  poll() is defined here, so the climber's pauses are counted instead of
 * made; at a given pause the driver releases the mover.  So nothing depends on time.
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

#include "driver/driver_pages.h"
#include "oom/ladder.h"
#include "tests/unit/alloc/pages_stage.h"

#define NEVER         0
#define MOVES_MS      1000 /* of ladder.c */
#define WAIT_RUNG     3
#define HANDLERS_RUNG 5
#define N_RUNGS       7
#define HOUR_NS       (3600000 * MS)

static struct {
	sem_t is_inside;
	sem_t may_go;
	pthread_t thread;
	unsigned n_pauses;
	unsigned let_go_at; /* the pause at which the driver lets it go */
	bool is_held;
	bool is_busy; /* at each pause a move ends, and another begins */
	gpc_devptr
		late; /* freed beside work that runs, which the driver takes only when that has ended */
	unsigned work_ends_at; /* the pause at which it ends */
	unsigned taken_at;     /* the pause at which the driver takes it nevertheless */
	const struct gpc_driver_ops *late_ops;
	struct gpc_driver_ops ops;
	struct gpc_page_ops pages;
	const struct gpc_driver_ops *real;
	const struct gpc_page_ops *real_pages;
	uint64_t size; /* of what it allocates */
	enum gpc_status allocated;
} mover;

static _Thread_local bool is_mover;

static void let_go(void)
{
	if (!mover.is_held)
		return;
	mover.is_held = false;
	sem_post(&mover.may_go);
	assert_int_equal(pthread_join(mover.thread, NULL), 0);
}

static void take_late(void)
{
	if (mover.late)
		assert_int_equal(gpc_sim_mem_free_now(stage.sim, mover.late), CUDA_SUCCESS);
	mover.late = 0;
}

static void end_work(void)
{
	stage_pass_time(&stage, HOUR_NS);
	take_late();
}

/* For the climber: its only caller is gpc_pause. */
int poll(struct pollfd *fds, nfds_t n, int ms)
{
	assert_null(fds);
	assert_int_equal(n, 0);
	assert_int_equal(ms, 1);
	if (++mover.n_pauses == mover.let_go_at)
		let_go();
	if (mover.n_pauses == mover.work_ends_at)
		end_work();
	if (mover.n_pauses == mover.taken_at)
		take_late();
	if (mover.is_busy) {
		gpc_pool_begin_move(&stage.pool, 20 * GPC_MIB);
		gpc_pool_end_move(&stage.pool, 20 * GPC_MIB);
	}
	return 0;
}

static void be_held(void)
{
	if (!is_mover)
		return;
	is_mover = false; /* at one call */
	sem_post(&mover.is_inside);
	sem_wait(&mover.may_go);
}

static enum gpc_status held_free(struct gpc_driver *drv, gpc_devptr ptr)
{
	be_held();
	return mover.real->mem_free(drv, ptr);
}

static enum gpc_status held_unmap(struct gpc_driver *drv, gpc_devptr ptr, uint64_t size)
{
	be_held();
	return mover.real_pages->unmap(drv, ptr, size);
}

static enum gpc_status held_alloc(struct gpc_driver *drv, uint64_t size, gpc_devptr *ret_ptr)
{
	enum gpc_status st = mover.real->mem_alloc(drv, size, ret_ptr);

	be_held();
	return st;
}

static void *move(void *action)
{
	void (*const *run)(void) = action;

	is_mover = true;
	(*run)();
	return NULL;
}

/* Runs `action` in another thread until it is held inside the driver. */
static void hold_inside(void (*action)(void), unsigned let_go_at)
{
	static void (*held_action)(void);

	held_action = action;
	mover.n_pauses = 0;
	mover.let_go_at = let_go_at;
	mover.is_held = true;
	assert_int_equal(sem_init(&mover.is_inside, 0, 0), 0);
	assert_int_equal(sem_init(&mover.may_go, 0, 0), 0);
	mover.real = stage.drv.base.ops;
	mover.real_pages = stage.drv.base.pages;
	mover.ops = *mover.real;
	mover.pages = *mover.real_pages;
	mover.ops.mem_free = held_free;
	mover.ops.mem_alloc = held_alloc;
	mover.pages.unmap = held_unmap;
	stage.drv.base.ops = &mover.ops;
	stage.drv.base.pages = &mover.pages;
	assert_int_equal(pthread_create(&mover.thread, NULL, move, &held_action), 0);
	sem_wait(&mover.is_inside);
}

static void end_hold(void)
{
	let_go();
	if (!mover.real)
		return;
	stage.drv.base.ops = mover.real;
	stage.drv.base.pages = mover.real_pages;
	mover.real = NULL;
}

static struct gpc_request request;
static gpc_devptr address;

static enum gpc_status attempt(void *arg)
{
	return gpc_pool_retry(arg, &request, &address);
}

static enum gpc_status climb_in(struct gpc_pool *pool, struct gpc_ladder *ladder, uint64_t size)
{
	struct gpc_pool *const pools[] = { pool };
	enum gpc_status st;

	request = stage_request(&stage, size);
	st = gpc_pool_alloc(pool, &request, &address);
	ladder->pool = pool;
	ladder->arg = pool;
	ladder->pools = pools;
	ladder->n_pools = 1;
	ladder->wanted = size;
	ladder->attempt = attempt;
	return gpc_ladder_climb(ladder, st);
}

static enum gpc_status climb(struct gpc_ladder *ladder, uint64_t size)
{
	return climb_in(&stage.pool, ladder, size);
}

static void expect_served_in(struct gpc_pool *pool, uint64_t size)
{
	struct gpc_ladder ladder = { 0 };

	assert_int_equal(climb_in(pool, &ladder, size), GPC_OK);
	assert_int_equal(ladder.helped, WAIT_RUNG);
	assert_int_equal(mover.n_pauses, 2);
	assert_int_equal(ladder.moves_left_ms, MOVES_MS - 2);
	assert_int_equal(stage.budget.moving_bytes, 0);
	end_hold();
}

static void expect_served(uint64_t size)
{
	expect_served_in(&stage.pool, size);
}

static void open_device(enum gpc_vmm vmm)
{
	open_mode(vmm, true);
}

/* ---- ways back to the driver ---- */

static void trim(void)
{
	(void)gpc_pool_trim(&stage.pool, UINT64_MAX, true);
}

static void let_decay(void)
{
	stage.pool.params.decay_ns = 1;
	gpc_pool_return_due(&stage.pool, stage_request(&stage, 1).now_ns + GPC_GIB);
	stage.pool.params.decay_ns = 0;
}

static void collect_garbage(void)
{
	stage.pool.params.gc_threshold_ppm = 1;
	gpc_pool_collect_garbage(&stage.pool);
	stage.pool.params.gc_threshold_ppm = 0;
}

static void return_exported(void)
{
	gpc_pool_return_exported(&stage.pool, true);
}

static void die(void)
{
	gpc_pool_forget(&stage.pool);
}

TEST(memory_being_returned_by_another_thread_is_waited_for)
{
	void (*const ways[])(void) = { trim, let_decay, collect_garbage, return_exported };

	for (int mode = 0; mode < 2; mode++) {
		for (size_t i = 0; i < N_OF(ways); i++) {
			gpc_devptr block;
			gpc_devptr base;

			open_device(mode ? GPC_VMM_ON : GPC_VMM_OFF);
			block = stage_alloc(&stage, 200 * GPC_MIB);
			stage_free(&stage, block);
			if (ways[i] == return_exported)
				assert_int_equal(
					gpc_pool_export(&stage.pool, block, &base), GPC_OK);
			hold_inside(ways[i], 2);
			assert_int_equal(stage.budget.moving_bytes, 200 * GPC_MIB);
			assert_int_equal(gpc_pool_idle(&stage.pool), 0);
			expect_served(100 * GPC_MIB);
			close_stage(state);
		}
	}
	open_device(GPC_VMM_OFF); /* for the teardown */
}

TEST(memory_still_counted_by_the_limit_is_waited_for)
{
	open_device(GPC_VMM_OFF);
	stage.budget.limit_bytes = 200 * GPC_MIB;
	stage_free(&stage, stage_alloc(&stage, 150 * GPC_MIB));
	hold_inside(trim, 2);
	expect_served(60 * GPC_MIB);
}

TEST(pages_between_live_blocks_are_waited_for)
{
	gpc_devptr first;
	gpc_devptr last;

	open_device(GPC_VMM_ON);
	make_gap(&first, &last);
	hold_inside(trim, 2);
	assert_true(stage.budget.moving_bytes >= 90 * GPC_MIB);
	expect_served(200 * GPC_MIB);
}

TEST(pages_of_a_context_that_dies_are_waited_for)
{
	struct gpc_pool other;

	open_device(GPC_VMM_ON);
	(void)stage_alloc(&stage, 200 * GPC_MIB);
	gpc_pool_init(
		&other, &stage.heap, &stage.drv.base, &stage.budget, &stage.params, 0, 1, NULL);
	hold_inside(die, 2);
	assert_int_equal(stage.budget.moving_bytes, 200 * GPC_MIB);
	expect_served_in(&other, 100 * GPC_MIB);
	stage_end_idle_event(&other);
	gpc_pool_forget(&other);
}

/* ---- ways here ---- */

static void allocate(void)
{
	struct gpc_request own = stage_request(&stage, mover.size);
	gpc_devptr block;

	mover.allocated = gpc_pool_alloc(&stage.pool, &own, &block);
}

TEST(the_rest_of_a_segment_that_is_just_made_is_waited_for)
{
	open_device(GPC_VMM_OFF);
	(void)stage_alloc(&stage, DEVICE - 2 * GPC_MIB);
	mover.size = 512;
	hold_inside(allocate, 2);
	assert_int_equal(stage.budget.moving_bytes, 2 * GPC_MIB);
	expect_served(4096);
	assert_int_equal(mover.allocated, GPC_OK);
}

TEST(memory_the_driver_refuses_to_another_thread_is_waited_for)
{
	open_device(GPC_VMM_OFF);
	stage.budget.limit_bytes = 300 * GPC_MIB;
	mover.size = 260 * GPC_MIB; /* more than the device has */
	hold_inside(allocate, 2);
	assert_int_equal(stage.budget.used_bytes, 260 * GPC_MIB);
	expect_served(100 * GPC_MIB);
	assert_int_equal(mover.allocated, GPC_DEVICE_NO_MEMORY);
}

/* ---- bounds ---- */

TEST(the_wait_for_moves_is_bounded)
{
	static const uint64_t bounds[] = { 0, 5 };

	open_device(GPC_VMM_OFF);
	stage_free(&stage, stage_alloc(&stage, 200 * GPC_MIB));
	for (size_t i = 0; i < N_OF(bounds); i++) {
		struct gpc_ladder ladder = { .sync_ms = bounds[i] };

		if (i == 0)
			hold_inside(trim, NEVER);
		mover.n_pauses = 0;
		assert_int_equal(climb(&ladder, 100 * GPC_MIB), GPC_DEVICE_NO_MEMORY);
		assert_int_equal(ladder.n_tried, N_RUNGS);
		assert_int_equal(ladder.moves_left_ms, 0);
		assert_int_equal(mover.n_pauses, bounds[i] ? bounds[i] : MOVES_MS);
	}
	end_hold();
}

/* Other threads grow and shrink all the time: a rung waits for what moved when it began, not for a quiet moment. */
TEST(what_begins_to_move_later_is_not_waited_for)
{
	struct gpc_ladder ladder = { 0 };

	open_device(GPC_VMM_OFF);
	(void)stage_alloc(&stage, 200 * GPC_MIB);
	mover.n_pauses = 0;
	mover.is_busy = true;
	gpc_pool_begin_move(&stage.pool, 20 * GPC_MIB);
	assert_int_equal(climb(&ladder, 100 * GPC_MIB), GPC_DEVICE_NO_MEMORY);
	gpc_pool_end_move(&stage.pool, 20 * GPC_MIB);
	mover.is_busy = false;
	assert_int_equal(mover.n_pauses, 2); /* of two rungs one each */
}

TEST(where_nothing_moves_there_is_no_pause)
{
	struct gpc_ladder ladder = { 0 };

	open_device(GPC_VMM_OFF);
	(void)stage_alloc(&stage, 200 * GPC_MIB);
	mover.n_pauses = 0;
	assert_int_equal(climb(&ladder, 100 * GPC_MIB), GPC_DEVICE_NO_MEMORY);
	assert_int_equal(mover.n_pauses, 0);
	assert_int_equal(ladder.moves_left_ms, MOVES_MS);
}

static enum gpc_status free_late(struct gpc_driver *drv, gpc_devptr ptr)
{
	mover.late = ptr;
	return GPC_OK;
}

static enum gpc_status end_work_in_sync(struct gpc_driver *drv)
{
	enum gpc_status st = mover.late_ops->context_sync(drv);

	take_late();
	return st;
}

static void be_late(void)
{
	open_device(GPC_VMM_OFF);
	mover.late_ops = stage.drv.base.ops;
	mover.ops = *mover.late_ops;
	mover.ops.mem_free_beside = free_late;
	mover.ops.context_sync = end_work_in_sync;
	stage.drv.base.ops = &mover.ops;
	mover.n_pauses = 0;
	mover.work_ends_at = mover.taken_at = NEVER;
}

/* Fills the device with what goes back only when the work has ended. */
static void return_late(void)
{
	be_late();
	stage_free(&stage, stage_alloc(&stage, 200 * GPC_MIB));
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	stage_launch(&stage, 0, HOUR_NS, 0, 0);
}

static bool is_work_over(void)
{
	uint64_t left_ms = 0;

	return gpc_pool_wait_idle(&stage.pool, &left_ms) == GPC_OK;
}

TEST(a_driver_that_frees_beside_work_only_when_that_ends_is_waited_for)
{
	struct gpc_ladder ladder = { 0 };

	return_late();
	mover.work_ends_at = 2;
	assert_int_equal(climb(&ladder, 240 * GPC_MIB), GPC_OK);
	assert_int_equal(mover.n_pauses, 2);
}

TEST(without_a_bound_that_wait_lasts_until_the_work_is_over)
{
	struct gpc_ladder ladder = { 0 };

	return_late();
	assert_int_equal(climb(&ladder, 240 * GPC_MIB), GPC_OK);
	assert_int_equal(ladder.helped, WAIT_RUNG + 1);
	assert_int_equal(mover.n_pauses, MOVES_MS);
	assert_true(is_work_over());
}

TEST(what_the_driver_takes_beside_work_after_all_lets_that_run_on)
{
	struct gpc_ladder ladder = { 0 };

	return_late();
	mover.taken_at = 2;
	assert_int_equal(climb(&ladder, 240 * GPC_MIB), GPC_OK);
	assert_false(is_work_over());
	end_work();
}

static gpc_devptr handlers_block;

static bool free_in_handler(void *arg, uint64_t wanted, bool *ret_did_free)
{
	stage_free(&stage, handlers_block);
	assert_int_equal(gpc_pool_settle(&stage.pool), GPC_OK);
	stage_launch(&stage, 0, HOUR_NS, 0, 0);
	*ret_did_free = true;
	return true;
}

TEST(what_a_handler_frees_is_waited_for_as_long)
{
	struct gpc_ladder ladder = { .call_handlers = free_in_handler };

	be_late();
	handlers_block = stage_alloc(&stage, 200 * GPC_MIB);
	assert_int_equal(climb(&ladder, 240 * GPC_MIB), GPC_OK);
	assert_int_equal(ladder.helped, HANDLERS_RUNG);
}

TEST(that_wait_is_bounded_and_made_once)
{
	struct gpc_ladder ladder = { .sync_ms = 5 };

	return_late();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(climb(&ladder, 240 * GPC_MIB), GPC_DEVICE_NO_MEMORY);
		assert_int_equal(mover.n_pauses, 5);
	}
	assert_false(is_work_over());
	end_work();
}

/* Another thread that asks in vain takes nothing of the limit, not even for a moment. */
#define N_ASKED 100000

static atomic_uint n_asked;

static void *ask_in_vain(void *n_served_out)
{
	unsigned *n_served = n_served_out;
	gpc_devptr block;

	while (atomic_load(&n_asked) < N_ASKED) {
		if (stage_try(&stage, 80 * GPC_MIB, &block) != GPC_LIMIT)
			++*n_served;
		atomic_fetch_add(&n_asked, 1);
	}
	return NULL;
}

TEST(a_request_beyond_the_limit_refuses_no_other)
{
	unsigned n_refused = 0;
	unsigned n_served = 0;
	pthread_t thread;

	open_device(GPC_VMM_OFF);
	stage.budget.limit_bytes = 64 * GPC_MIB;
	assert_int_equal(pthread_create(&thread, NULL, ask_in_vain, &n_served), 0);
	while (atomic_load(&n_asked) < N_ASKED) {
		gpc_devptr block = 0;

		n_refused += stage_try(&stage, 40 * GPC_MIB, &block) != GPC_OK;
		if (block)
			stage_free(&stage, block);
		(void)gpc_pool_trim(&stage.pool, UINT64_MAX, true);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(n_served, 0);
	assert_int_equal(n_refused, 0);
}

static int end_test(void **state)
{
	end_hold();
	return close_stage(state);
}

FIXTURE(NULL, end_test);
