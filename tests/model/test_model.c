/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operations against a simple model: a sorted list of the ranges that the program holds.
 *
 * One thread, and then several, use three pools on two simulated devices; two pools share a limit.  A range enters the
 * model after the pool has returned it, and leaves it before the pool gets it back, so an overlap in the model is an
 * overlap in the program.  Threads free their own blocks, and those that others left in `handed_over`.
 *
 * OPS=n sets the number of operations, SEED=n the seed.
 */
#include <pthread.h>

#include "model/counters.h"
#include "oom/ladder.h"
#include "random.h"
#include "sim/gpu/driver_sim.h"
#include "sim/gpu/execution/capture.h"
#include "unit.h"

#define N_POOLS       3
#define MAX_THREADS   4
#define MAX_LIVE      20000
#define MAX_OWN       2000
#define N_HANDED_OVER 64
#define N_STREAMS     3 /* a pool's */
#define CHECK_EVERY   500
#define MS            UINT64_C(1000000)

struct range {
	gpc_devptr address;
	uint64_t size;
	uint32_t pool;
};

/* The model. */
static struct {
	pthread_mutex_t lock;
	struct range live[MAX_LIVE]; /* sorted by address */
	size_t n_live;
	struct range handed_over[N_HANDED_OVER];
} model;

static struct gpc_sim *sim;
static struct gpc_heap heap;
static struct gpc_budget budgets[2];
static struct gpc_sim_driver drivers[N_POOLS];
static struct gpc_pool pools[N_POOLS];
static struct gpc_sim_stream *streams[N_POOLS][N_STREAMS];

struct worker {
	struct random random;
	uint64_t n_ops;
	bool is_alone;
	struct range own[MAX_OWN];
	size_t n_own;
	struct gpc_sim_stream *capture_streams[N_POOLS];
	struct gpc_sim_stream *capturing; /* NULL: no capture of this thread is open */
	struct gpc_request request;
	uint32_t pool;
	gpc_devptr address;
	uint64_t n_failed;
	uint64_t freed_size; /* of the range freed last */
};

static struct worker workers[MAX_THREADS];

/* cmocka's own assertions are for its own thread; this one ends the program from any. */
#define MUST(x)                                                                         \
	do {                                                                            \
		if (!(x)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x); \
			abort();                                                        \
		}                                                                       \
	} while (0)

/* The index at which a range that starts at `address` belongs. */
static size_t place_of_locked(gpc_devptr address)
{
	size_t low = 0;
	size_t high = model.n_live;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (model.live[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void model_insert(const struct range *range)
{
	size_t at;

	MUST(range->address % GPC_GRAIN == 0);
	pthread_mutex_lock(&model.lock);
	at = place_of_locked(range->address);
	MUST(at == 0 || model.live[at - 1].address + model.live[at - 1].size <= range->address);
	MUST(at == model.n_live || range->address + range->size <= model.live[at].address);
	MUST(model.n_live < MAX_LIVE);
	memmove(&model.live[at + 1], &model.live[at], (model.n_live - at) * sizeof *model.live);
	model.live[at] = *range;
	model.n_live++;
	pthread_mutex_unlock(&model.lock);
}

static void model_remove(const struct range *range)
{
	size_t at;

	pthread_mutex_lock(&model.lock);
	at = place_of_locked(range->address);
	MUST(at < model.n_live && model.live[at].address == range->address);
	MUST(model.live[at].size == range->size);
	model.n_live--;
	memmove(&model.live[at], &model.live[at + 1], (model.n_live - at) * sizeof *model.live);
	pthread_mutex_unlock(&model.lock);
}

static void check_all_pools(void)
{
	for (uint32_t i = 0; i < N_POOLS; i++) {
		const char *broken = gpc_pool_check(&pools[i]);

		if (broken)
			fprintf(stderr, "pool %u: %s\n", i, broken);
		MUST(!broken);
	}
}

/* At rest, the counters must match the model, and the budget the segments. */
static void check_the_books(void)
{
	uint64_t reserved[2] = { 0 };

	for (uint32_t i = 0; i < N_POOLS; i++) {
		struct gpucache_counters counters = { 0 };
		uint64_t requested = 0;
		uint64_t n = 0;

		gpc_counters_add(&counters, pools[i].counters);
		for (size_t k = 0; k < model.n_live; k++) {
			requested += model.live[k].pool == i ? model.live[k].size : 0;
			n += model.live[k].pool == i;
		}
		MUST(counters.requested_bytes == requested);
		MUST(counters.n_blocks == n);
		MUST(counters.n_malloc - counters.n_free == n);
		reserved[pools[i].device] += counters.reserved_bytes;
	}
	for (size_t i = 0; i < N_OF(budgets); i++) {
		MUST(budgets[i].used_bytes == reserved[i]);
		MUST(budgets[i].limit_bytes == 0 || reserved[i] <= budgets[i].limit_bytes);
	}
}

static uint64_t now_ns(void)
{
	return gpc_sim_clock_now(&sim->clock);
}

static enum gpc_status attempt(void *arg)
{
	struct worker *worker = arg;

	return gpc_pool_retry(&pools[worker->pool], &worker->request, &worker->address);
}

/* Allocates as the library does: from the pool, then by the ladder over all pools of the device. */
static enum gpc_status alloc(struct worker *worker, uint64_t size)
{
	struct gpc_pool *pool = &pools[worker->pool];
	struct gpc_pool *both[2] = { &pools[0], &pools[1] };
	struct gpc_ladder ladder = { .pool = pool,
		.pools = pool->device == 0 ? both : &pool,
		.n_pools = pool->device == 0 ? 2 : 1,
		.wanted = size,
		.attempt = attempt,
		.arg = worker };
	enum gpc_status st;

	worker->request = (struct gpc_request){ .size = size,
		.now_ns = now_ns(),
		.is_exact = size >= GPC_SEGMENT_ALIGN && random_below(&worker->random, 3) == 0 };
	st = gpc_pool_alloc(pool, &worker->request, &worker->address);
	return gpc_ladder_helps(st) ? gpc_ladder_climb(&ladder, st) : st;
}

static void do_alloc(struct worker *worker)
{
	/* Sometimes the size freed last. */
	bool is_pair = worker->freed_size && random_below(&worker->random, 3) == 0;
	struct range range = { .size = is_pair ? worker->freed_size : random_size(&worker->random),
		.pool = worker->pool };
	enum gpc_status st;

	if (worker->n_own == MAX_OWN)
		return;
	st = alloc(worker, range.size);
	if (st) {
		MUST(st == GPC_LIMIT || st == GPC_DEVICE_NO_MEMORY);
		worker->n_failed++;
		return;
	}
	range.address = worker->address;
	model_insert(&range);
	worker->own[worker->n_own++] = range;
}

static struct range take_own(struct worker *worker)
{
	size_t at = random_below(&worker->random, worker->n_own);
	struct range range = worker->own[at];

	worker->own[at] = worker->own[--worker->n_own];
	return range;
}

static void free_range(struct worker *worker, const struct range *range)
{
	struct gpc_request request = { .now_ns = now_ns() };

	model_remove(range);
	worker->freed_size = range->size;
	MUST(gpc_heap_find_pool(&heap, range->address) == &pools[range->pool]);
	MUST(gpc_pool_free(&pools[range->pool], range->address, &request) == GPC_OK);
	/* With one thread the block cannot have a new owner: the second free must fail. */
	if (worker->is_alone && random_below(&worker->random, 8) == 0)
		MUST(gpc_pool_free(&pools[range->pool], range->address, &request) != GPC_OK);
}

static void do_free(struct worker *worker)
{
	struct range range;

	if (worker->n_own == 0)
		return;
	range = take_own(worker);
	free_range(worker, &range);
}

/* Leaves a block for another thread, and frees what was left there. */
static void do_hand_over(struct worker *worker)
{
	size_t at = random_below(&worker->random, N_HANDED_OVER);
	struct range mine = { 0 };
	struct range theirs;

	if (worker->n_own > 0)
		mine = take_own(worker);
	pthread_mutex_lock(&model.lock);
	theirs = model.handed_over[at];
	model.handed_over[at] = mine;
	pthread_mutex_unlock(&model.lock);
	if (theirs.address)
		free_range(worker, &theirs);
}

static void do_garbage_free(struct worker *worker)
{
	struct gpc_pool *pool = &pools[worker->pool];
	struct gpc_request request = { .now_ns = now_ns() };
	struct range range;
	uint64_t inside;

	/* Addresses that no device of the machine has. */
	MUST(gpc_pool_free(pool, random_below(&worker->random, GPC_MIB), &request) ==
		GPC_NOT_FOUND);
	MUST(gpc_pool_free(pool, ~random_below(&worker->random, GPC_MIB), &request) ==
		GPC_NOT_FOUND);
	if (worker->n_own == 0)
		return;
	range = worker->own[random_below(&worker->random, worker->n_own)];
	inside = 1 + random_below(&worker->random, range.size);
	if (inside < range.size)
		MUST(gpc_pool_free(&pools[range.pool], range.address + inside, &request) ==
			GPC_INVALID);
	if (range.pool != worker->pool)
		MUST(gpc_pool_free(pool, range.address, &request) == GPC_NOT_FOUND);
}

/* Work that reads a block: if the pool returned memory too early, the context would break. */
static void do_launch(struct worker *worker)
{
	struct range range;
	uint64_t which;

	if (worker->n_own == 0)
		return;
	range = worker->own[random_below(&worker->random, worker->n_own)];
	which = random_below(&worker->random, N_STREAMS + 1);
	MUST(gpc_sim_driver_launch(&drivers[range.pool],
		     which < N_STREAMS ? (gpc_stream)(uintptr_t)streams[range.pool][which] : 0,
		     random_below(&worker->random, 3 * MS), range.address, range.size,
		     -1) == GPC_OK);
}

/* The program synchronizes, which a correct program does not do during a capture. */
static void do_sync(struct worker *worker)
{
	struct gpc_pool *pool = &pools[worker->pool];
	struct gpc_pool_sync sync;

	if (!gpc_captures_try_hold(&heap.captures))
		return;
	gpc_captures_release(&heap.captures);
	sync = gpc_pool_begin_sync(pool);
	if (!gpc_captures_try_hold(&heap.captures))
		return;
	MUST(pool->drv->ops->context_sync(pool->drv) == GPC_OK);
	gpc_captures_release(&heap.captures);
	gpc_pool_end_sync(pool, sync, now_ns());
}

/* Nothing that the pools do may invalidate a capture of the program. */
static void do_capture(struct worker *worker)
{
	struct gpc_sim_graph *graph = NULL;

	if (!worker->capturing) {
		gpc_captures_begin(&heap.captures);
		worker->capturing = worker->capture_streams[worker->pool];
		MUST(gpc_sim_capture_begin(worker->capturing, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
			CUDA_SUCCESS);
		return;
	}
	MUST(gpc_sim_capture_end(worker->capturing, &graph) == CUDA_SUCCESS);
	gpc_sim_graph_destroy(graph);
	worker->capturing = NULL;
	gpc_captures_end(&heap.captures);
}

static void do_export(struct worker *worker)
{
	static const uint64_t whole_from[] = { UINT64_MAX, GPC_WHOLE_EXPORTED, GPC_WHOLE_ASKED };
	struct range range;
	gpc_devptr base = 0;

	if (worker->n_own == 0)
		return;
	range = worker->own[random_below(&worker->random, worker->n_own)];
	MUST(gpc_pool_export(&pools[range.pool], range.address, &base) == GPC_OK);
	MUST(base <= range.address);
	/* In a program this never ends; here both states occur. */
	atomic_store(&heap.whole_from, whole_from[random_below(&worker->random, 3)]);
}

static void do_one(struct worker *worker)
{
	struct gpc_pool *pool;
	uint64_t dice = random_below(&worker->random, 1000);

	worker->pool = (uint32_t)random_below(&worker->random, N_POOLS);
	pool = &pools[worker->pool];
	if (dice < 400)
		do_alloc(worker);
	else if (dice < 780)
		do_free(worker);
	else if (dice < 830)
		do_hand_over(worker);
	else if (dice < 850)
		do_garbage_free(worker);
	else if (dice < 920)
		do_launch(worker);
	else if (dice < 950)
		gpc_sim_clock_wait_until(&sim->clock, now_ns() + random_below(&worker->random, MS));
	else if (dice < 955)
		do_sync(worker);
	else if (dice < 957 || (worker->capturing && dice < 999))
		do_capture(worker);
	else if (dice < 970)
		(void)gpc_pool_reap(pool);
	else if (dice < 980)
		(void)gpc_pool_wait(pool, random_below(&worker->random, 2) * 4 * GPC_MIB);
	else if (dice < 995)
		(void)gpc_pool_trim(pool, random_size(&worker->random), true);
	else if (dice < 996)
		do_export(worker);
	else
		MUST(gpc_pool_largest_free(pool) <= GPC_GIB);
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	for (uint64_t i = 0; i < worker->n_ops; i++) {
		do_one(worker);
		if (i % CHECK_EVERY == 0)
			check_all_pools();
		if (i % CHECK_EVERY == 0 && worker->is_alone)
			check_the_books();
	}
	if (worker->capturing)
		do_capture(worker);
	return NULL;
}

static void open_machine(uint32_t n_threads, uint64_t seed, uint64_t n_ops)
{
	static const struct gpc_pool_params params[N_POOLS] = {
		{ .pending_limit = 256 * GPC_MIB, .gc_threshold_ppm = 800000 },
		{ .pending_limit = 64 * GPC_MIB,
			.max_split_size = 32 * GPC_MIB,
			.decay_ns = 50 * MS },
		{ .pending_limit = GPC_GIB, .roundup_divisions = 8, .is_one_stream = true },
	};
	struct gpc_sim_config config = gpc_sim_config_default();

	config.n_devices = 2;
	config.virtual_clock = true;
	config.memory = 3 * GPC_GIB;
	sim = gpc_sim_create(&config);
	MUST(sim && gpc_heap_init(&heap, NULL) == GPC_OK);
	memset(&model, 0, sizeof model);
	memset(budgets, 0, sizeof budgets);
	pthread_mutex_init(&model.lock, NULL);
	budgets[0].limit_bytes = 2 * GPC_GIB;
	for (uint32_t i = 0; i < N_POOLS; i++) {
		unsigned device = i / 2;

		MUST(gpc_sim_driver_init(&drivers[i], sim, device, NULL) == GPC_OK);
		budgets[device].device_bytes = config.memory;
		gpc_pool_init(&pools[i], &heap, &drivers[i].base, &budgets[device], &params[i],
			device, i, NULL);
		for (size_t k = 0; k < N_STREAMS; k++)
			MUST(gpc_sim_stream_create(drivers[i].context,
				     k % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT, 0,
				     &streams[i][k]) == CUDA_SUCCESS);
		gpc_lock_take(&pools[i].lock);
		MUST(gpc_fences_stream_created(
			     &pools[i].fences, (gpc_stream)(uintptr_t)streams[i][0]) == GPC_OK);
		gpc_lock_release(&pools[i].lock);
	}
	for (uint32_t t = 0; t < n_threads; t++) {
		memset(&workers[t], 0, sizeof workers[t]);
		workers[t].random = random_start(seed, t);
		workers[t].n_ops = n_ops / n_threads;
		workers[t].is_alone = n_threads == 1;
		for (uint32_t i = 0; i < N_POOLS; i++)
			MUST(gpc_sim_stream_create(drivers[i].context, CU_STREAM_NON_BLOCKING, 0,
				     &workers[t].capture_streams[i]) == CUDA_SUCCESS);
	}
}

static void free_everything(uint32_t n_threads)
{
	for (uint32_t t = 0; t < n_threads; t++) {
		while (workers[t].n_own > 0)
			do_free(&workers[t]);
	}
	for (size_t i = 0; i < N_HANDED_OVER; i++) {
		if (model.handed_over[i].address)
			free_range(&workers[0], &model.handed_over[i]);
	}
	MUST(model.n_live == 0);
}

/* Frees and trims everything: the device must have no memory of ours. */
static void close_machine(void)
{
	for (uint32_t i = 0; i < N_POOLS; i++) {
		(void)gpc_pool_wait(&pools[i], 0);
		assert_int_equal(pools[i].counters->pending_bytes, 0);
		(void)gpc_pool_trim(&pools[i], UINT64_MAX, true);
		assert_int_equal(pools[i].counters->reserved_bytes, 0);
		assert_null(gpc_pool_check(&pools[i]));
	}
	for (unsigned d = 0; d < 2; d++) {
		assert_int_equal(gpc_sim_device_n_allocations(&sim->devices[d]), 0);
		assert_int_equal(budgets[d].used_bytes, 0);
	}
	for (uint32_t i = 0; i < N_POOLS; i++) {
		assert_int_equal(gpc_sim_context_state(drivers[i].context), CUDA_SUCCESS);
		gpc_pool_fini(&pools[i]);
		gpc_sim_driver_fini(&drivers[i]);
	}
	gpc_heap_fini(&heap);
	gpc_sim_destroy(sim);
}

static void run(uint32_t n_threads, uint64_t n_ops)
{
	pthread_t threads[MAX_THREADS];
	uint64_t n_failed = 0;

	open_machine(n_threads, seed_of_this_run("model"), n_ops);
	for (uint32_t t = 0; t < n_threads; t++)
		MUST(pthread_create(&threads[t], NULL, work, &workers[t]) == 0);
	for (uint32_t t = 0; t < n_threads; t++)
		MUST(pthread_join(threads[t], NULL) == 0);
	check_all_pools();
	check_the_books();
	for (uint32_t t = 0; t < n_threads; t++)
		n_failed += workers[t].n_failed;
	for (uint32_t i = 0; i < N_POOLS; i++)
		printf("model: %u threads, pool %u: %llu mallocs, %llu hits, %llu fences, %llu "
		       "waits\n",
			n_threads, i, (unsigned long long)pools[i].counters->n_malloc,
			(unsigned long long)pools[i].counters->n_hit,
			(unsigned long long)pools[i].counters->n_fence,
			(unsigned long long)pools[i].counters->n_sync);
	printf("model: %llu requests found no room\n", (unsigned long long)n_failed);
	free_everything(n_threads);
	close_machine();
}

TEST(random_operations_of_one_thread_agree_with_the_model)
{
	run(1, number_from_env("OPS", 100000) / 2);
}

TEST(random_operations_of_several_threads_agree_with_the_model)
{
	run(MAX_THREADS, number_from_env("OPS", 100000) / 2);
}
