/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One fixed scenario that uses all of the allocator, for tests that make its calls fail.  After a run the heap must be
 * sound, all metadata returned, and the program must have seen only success or the driver's own code.
 *
 *	open_run(...) -> play() -> end_run(...) -> close_machine()
 */
#ifndef GPC_TESTS_FAULT_SCENARIO_H
#define GPC_TESTS_FAULT_SCENARIO_H

#include "oom/ladder.h"
#include "sim/gpu/driver_sim.h"
#include "unit.h"

#define N_SMALL 5000 /* enough for the address map and the slab of blocks to grow */
#define N_LARGE 20
#define MS      UINT64_C(1000000)

static struct {
	struct gpc_sim *sim;
	struct gpc_sim_driver drv;
	struct gpc_heap heap;
	struct gpc_budget budget;
	struct gpc_pool pool;
	gpc_devptr small[N_SMALL];
	gpc_devptr large[N_LARGE];
	struct gpc_request request;
	gpc_devptr address;
	/* The status of a failed request, besides GPC_LIMIT. */
	enum gpc_status allowed;
	enum gpc_status also_allowed;
	uint64_t n_failed;
} run;

static uint64_t now_ns(void)
{
	return run.drv.base.ops->now_ns(&run.drv.base);
}

static enum gpc_status attempt(void *arg)
{
	return gpc_pool_retry(&run.pool, &run.request, &run.address);
}

/* Allocates as a program does; 0 on failure. */
static gpc_devptr alloc(uint64_t size)
{
	struct gpc_pool *pools[] = { &run.pool };
	struct gpc_ladder ladder = {
		.pool = &run.pool, .pools = pools, .n_pools = 1, .wanted = size, .attempt = attempt
	};
	enum gpc_status st;

	run.request = (struct gpc_request){ .size = size, .now_ns = now_ns() };
	st = gpc_pool_alloc(&run.pool, &run.request, &run.address);
	if (gpc_ladder_helps(st))
		st = gpc_ladder_climb(&ladder, st);
	if (!st)
		return run.address;
	if (st != run.allowed && st != run.also_allowed && st != GPC_LIMIT)
		fail_msg("the program was told: %s (%#x)", gpc_status_text(st), (unsigned)st);
	run.n_failed++;
	return 0;
}

static void release(gpc_devptr *address)
{
	struct gpc_request request = { .now_ns = now_ns() };

	if (*address)
		assert_int_equal(gpc_pool_free(&run.pool, *address, &request), GPC_OK);
	*address = 0;
}

static void launch(gpc_stream stream, gpc_devptr address)
{
	if (address)
		assert_int_equal(
			gpc_sim_driver_launch(&run.drv, stream, 2 * MS, address, 512, -1), GPC_OK);
}

/* Creates a stream; if no fence can be recorded for it, waits on the host, as the library does. */
static gpc_stream make_stream(void)
{
	struct gpc_sim_stream *stream = NULL;
	gpc_stream handle;
	enum gpc_status st;

	assert_int_equal(gpc_sim_stream_create(run.drv.context, CU_STREAM_NON_BLOCKING, 0, &stream),
		CUDA_SUCCESS);
	handle = (gpc_stream)(uintptr_t)stream;
	gpc_lock_take(&run.pool.lock);
	st = gpc_fences_stream_created(&run.pool.fences, handle);
	gpc_lock_release(&run.pool.lock);
	if (st)
		(void)!run.drv.base.ops->context_sync(&run.drv.base);
	return handle;
}

static void one_stream_part(void)
{
	for (size_t i = 0; i < N_SMALL; i++)
		run.small[i] = alloc(512);
	for (size_t i = 0; i < N_SMALL; i += 2)
		release(&run.small[i]);
	for (size_t i = 0; i < N_LARGE; i++)
		run.large[i] = alloc((1 + i) * GPC_MIB);
	for (size_t i = 0; i < N_LARGE; i += 2) {
		launch(0, run.large[i]);
		release(&run.large[i]);
	}
}

static void many_streams_part(void)
{
	gpc_stream stream = make_stream();

	(void)make_stream();
	for (size_t i = 0; i < N_LARGE; i++) {
		if (!run.large[i])
			run.large[i] = alloc((1 + i) * GPC_MIB);
		launch(i % 3 ? stream : 0, run.large[i]);
		release(&run.large[i]);
	}
	for (size_t i = 1; i < N_SMALL; i += 2) {
		if (i % 100 == 1)
			launch(stream, run.small[i]);
		release(&run.small[i]);
	}
	(void)gpc_pool_reap(&run.pool);
	run.large[0] = alloc(8 * GPC_MIB);
	gpc_captures_begin(&run.heap.captures);
	release(&run.large[0]);
	run.large[0] = alloc(8 * GPC_MIB);
	gpc_captures_end(&run.heap.captures);
}

/* Exceeds the limit, unless the ladder returns all cached memory and waits for all pending memory. */
static void ladder_part(void)
{
	struct gpc_driver *drv = &run.drv.base;
	gpc_devptr base = 0;
	struct gpc_pool_sync sync;

	for (int i = 0; i < 2; i++) {
		run.large[1] = alloc(150 * GPC_MIB);
		launch(0, run.large[1]);
		release(&run.large[1]);
		if (i == 0) /* wait for one event; in the second turn the ladder waits for all */
			(void)gpc_pool_wait(&run.pool, 150 * GPC_MIB);
	}
	run.large[2] = alloc(180 * GPC_MIB);
	if (run.large[2])
		assert_int_equal(gpc_pool_export(&run.pool, run.large[2], &base), GPC_OK);
	release(&run.large[0]);
	sync = gpc_pool_begin_sync(&run.pool);
	if (!drv->ops->context_sync(drv))
		gpc_pool_end_sync(&run.pool, sync, now_ns());
	release(&run.large[2]);
	(void)gpc_pool_wait(&run.pool, 0);
	(void)gpc_pool_trim(&run.pool, 4 * GPC_MIB, true);
	run.large[3] = alloc(3 * GPC_MIB);
}

/* Opens the machine; false if there is no metadata for a heap. */
static bool open_run(int driver_version, enum gpc_vmm vmm)
{
	const struct gpc_pool_params params = { .pending_limit = 64 * GPC_MIB,
		.gc_threshold_ppm = 900000,
		.decay_ns = 500 * MS,
		.vmm = vmm,
		.is_one_stream = true };
	struct gpc_sim_config config = gpc_sim_config_default();

	memset(&run, 0, sizeof run);
	config.virtual_clock = true;
	config.driver_version = driver_version;
	config.memory = 2 * GPC_GIB;
	run.sim = gpc_sim_create(&config);
	assert_non_null(run.sim);
	assert_int_equal(gpc_sim_driver_init(&run.drv, run.sim, 0, NULL), GPC_OK);
	run.budget.limit_bytes = 300 * GPC_MIB;
	if (gpc_heap_init(&run.heap, NULL))
		return false;
	gpc_pool_init(&run.pool, &run.heap, &run.drv.base, &run.budget, &params, 0, 0, NULL);
	return true;
}

static void play(void)
{
	one_stream_part();
	many_streams_part();
	ladder_part();
}

static void check_heap(void)
{
	const char *broken = gpc_pool_check(&run.pool);

	if (broken)
		fail_msg("%s", broken);
}

static void release_all(void)
{
	for (size_t i = 0; i < N_SMALL; i++)
		release(&run.small[i]);
	for (size_t i = 0; i < N_LARGE; i++)
		release(&run.large[i]);
	check_heap();
}

static void close_machine(void)
{
	assert_int_equal(gpc_sim_context_state(run.drv.context), CUDA_SUCCESS);
	gpc_sim_driver_fini(&run.drv);
	gpc_sim_destroy(run.sim);
}

#endif
