/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory is never reused while in flight: the duty of fence.h, tested by random work on random streams.
 *
 * The program knows for every piece of work which bytes it uses and when it will end (simulated streams know at
 * submission).  There are two kinds of violation:
 *
 *   handed out   memory gets a new owner while work of the old one still uses it.  Allowed for memory freed under the
 *                one-stream rule, because all later work, on any stream, is ordered behind that work.
 *   overtaken    work of the new owner starts before work of the old one has ended.
 *
 * Neither may ever happen, and both must happen without the fence.
 *
 * A program that names its streams (stream_order.h) keeps its promises: it uses a block on the stream that it was
 * requested for, or, once that use was recorded, on another stream behind an event.  Memory may then be handed out
 * while earlier work of its own stream uses it, but never overtaken.  Breaking a promise must cause violations.
 *
 * OPS=n sets the number of operations, SEED=n the seed.
 */
#include "alloc/pool.h"
#include "random.h"
#include "sim/gpu/driver_sim.h"
#include "sim/gpu/execution/capture.h"
#include "unit.h"

#define MAX_WORK  8192
#define MAX_LIVE  300
#define N_STREAMS 4
#define MAX_REPLACED \
	100 /* the simulated streams that are no longer named stay, for their work to run */
#define MS UINT64_C(1000000)

struct live {
	gpc_devptr address;
	uint64_t size;
	uint64_t owner;                      /* a number for each life */
	const struct gpc_sim_stream *stream; /* named when it was asked for; NULL: none */
	bool is_shared;                      /* a use by other streams was recorded */
};

struct work {
	gpc_devptr address;
	uint64_t size;
	uint64_t owner;
	uint64_t end_ns;
	const struct gpc_sim_stream *stream;
	bool is_ordered; /* freed while there was one stream, so all later work is behind it */
};

struct scenario {
	const char *name;
	int driver_version;
	bool is_one_stream; /* a second stream, or the peer, appears in the middle */
	bool has_peer, has_captures, is_fence_skipped;
	bool has_names;     /* requests and frees name their streams */
	bool is_use_untold; /* of other streams */
};

struct program {
	const struct scenario *scenario;
	struct random random;
	struct gpc_sim *sim;
	struct gpc_heap heap;
	struct gpc_budget budget;
	struct gpc_sim_driver drv;
	struct gpc_sim_driver peer;
	struct gpc_pool pool;
	struct gpc_sim_stream *streams[N_STREAMS]; /* [0]: the legacy one */
	gpc_stream names[N_STREAMS];               /* what the pool knows them as */
	size_t n_streams;
	struct gpc_sim_stream *capturing;
	bool is_peer_enabled;
	struct live live[MAX_LIVE];
	size_t n_live;
	uint64_t n_owners, n_replaced;
	struct work work[MAX_WORK];
	size_t n_work;
	uint64_t n_handed_out, n_overtaken;
};

static uint64_t now_ns(struct program *program)
{
	return gpc_sim_clock_now(&program->sim->clock);
}

/* Forgets work that has ended. */
static void prune(struct program *program)
{
	size_t n = 0;

	for (size_t i = 0; i < program->n_work; i++) {
		if (program->work[i].end_ns > now_ns(program))
			program->work[n++] = program->work[i];
	}
	program->n_work = n;
}

/*
 * Counts work of owners other than `live` that uses its bytes after `from_ns`; with_ordered: includes work that all new
 * work is ordered behind.
 */
static uint64_t n_in_flight(
	const struct program *program, const struct live *live, uint64_t from_ns, bool with_ordered)
{
	uint64_t n = 0;

	for (size_t i = 0; i < program->n_work; i++) {
		const struct work *work = &program->work[i];

		n += work->owner != live->owner && work->end_ns > from_ns &&
		     (with_ordered || !(work->is_ordered || work->stream == live->stream)) &&
		     work->address < live->address + live->size &&
		     live->address < work->address + work->size;
	}
	return n;
}

static bool is_one_stream_now(const struct program *program)
{
	return program->scenario->is_one_stream && program->n_streams == 1 &&
	       !program->is_peer_enabled;
}

/* Marks the work of past owners as ordered, when the second stream appears. */
static void mark_ordered_work(struct program *program)
{
	for (size_t i = 0; i < program->n_work; i++) {
		struct work *work = &program->work[i];

		work->is_ordered = true;
		for (size_t k = 0; k < program->n_live; k++)
			work->is_ordered &= program->live[k].owner != work->owner;
	}
}

/* Draws the stream that a request names; N_STREAMS: none.  Most requests name one if the program does at all. */
static size_t random_name(struct program *program)
{
	if (!program->scenario->has_names || random_below(&program->random, 8) == 0)
		return N_STREAMS;
	return random_below(&program->random, program->n_streams);
}

static void do_alloc(struct program *program)
{
	struct gpc_request request = { .size = 512 + random_below(&program->random, 4 * GPC_MIB),
		.now_ns = now_ns(program) };
	struct live live = { .size = request.size, .owner = ++program->n_owners };
	size_t name = random_name(program);

	if (program->n_live == MAX_LIVE)
		return;
	request.is_exact = request.size >= GPC_SEGMENT_ALIGN && name == N_STREAMS &&
			   random_below(&program->random, 2) == 0;
	if (name < N_STREAMS) {
		/* Few sizes, so that what one stream freed often fits. */
		live.size = request.size = (1 + request.size / GPC_MIB) * GPC_MIB;
		request.stream = program->names[name];
		live.stream = program->streams[name];
	}
	assert_int_equal(gpc_pool_alloc(&program->pool, &request, &live.address), GPC_OK);
	if (!is_one_stream_now(program))
		program->n_handed_out += n_in_flight(program, &live, now_ns(program), false) > 0;
	program->live[program->n_live++] = live;
}

static void free_live(struct program *program, size_t at, gpc_stream name)
{
	struct gpc_request request = { .now_ns = now_ns(program), .stream = name };

	assert_int_equal(
		gpc_pool_free(&program->pool, program->live[at].address, &request), GPC_OK);
	program->live[at] = program->live[--program->n_live];
}

static void do_free(struct program *program)
{
	gpc_stream name = 0;
	size_t at;

	if (program->n_live == 0)
		return;
	at = random_below(&program->random, program->n_live);
	for (size_t i = 0; i < program->n_streams; i++) {
		if (program->live[at].stream == program->streams[i])
			name = program->names[i];
	}
	free_live(program, at, name);
}

/* Orders all later work of `stream` behind the present work of `first`. */
static void order_behind(
	struct program *program, struct gpc_sim_stream *stream, const struct gpc_sim_stream *first)
{
	struct gpc_sim_event *event = NULL;

	assert_int_equal(
		gpc_sim_event_create(program->drv.context, CU_EVENT_DISABLE_TIMING, &event),
		CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_record((struct gpc_sim_stream *)(uintptr_t)first, event),
		CUDA_SUCCESS);
	assert_int_equal(gpc_sim_stream_wait(stream, event), CUDA_SUCCESS);
	gpc_sim_event_destroy(event);
}

/* Chooses a stream for work on a block with a named stream, and records the use if needed; NULL: none now. */
static struct gpc_sim_stream *stream_for(struct program *program, struct live *live)
{
	struct gpc_sim_stream *own = (struct gpc_sim_stream *)(uintptr_t)live->stream;
	struct gpc_sim_stream *other =
		program->streams[random_below(&program->random, program->n_streams)];

	if (own == program->capturing || other == program->capturing)
		return NULL;
	if (other == own || random_below(&program->random, 4) > 0)
		return own;
	order_behind(program, other, own);
	if (!program->scenario->is_use_untold && !live->is_shared) {
		assert_int_equal(gpc_pool_record_use(&program->pool, live->address), GPC_OK);
		live->is_shared = true;
	}
	return other;
}

/* Submits work of a random length that uses a random live block. */
static void do_launch(struct program *program)
{
	bool is_peers = program->is_peer_enabled && random_below(&program->random, 3) == 0;
	struct gpc_sim_driver *drv = is_peers ? &program->peer : &program->drv;
	uint64_t duration = random_below(&program->random, 4 * MS);
	struct gpc_sim_stream *stream = is_peers ? &program->peer.context->legacy : NULL;
	struct live *chosen;
	struct live live;
	uint64_t end;

	if (program->n_live == 0 || program->n_work == MAX_WORK)
		return;
	chosen = &program->live[random_below(&program->random, program->n_live)];
	if (chosen->stream) {
		stream = stream_for(program, chosen);
		if (!stream)
			return;
	}
	live = *chosen;
	if (!stream)
		stream = program->streams[random_below(&program->random, program->n_streams)];
	if (stream == program->capturing)
		return;
	assert_int_equal(gpc_sim_driver_launch(drv, (gpc_stream)(uintptr_t)stream, duration,
				 live.address, live.size, -1),
		GPC_OK);
	end = atomic_load(&stream->tail_ns);
	program->n_overtaken += n_in_flight(program, &live, end - duration, true) > 0;
	program->work[program->n_work++] = (struct work){ .address = live.address,
		.size = live.size,
		.owner = live.owner,
		.end_ns = end,
		.stream = stream };
}

static void add_stream(struct program *program)
{
	struct gpc_sim_stream *stream = NULL;

	if (is_one_stream_now(program))
		mark_ordered_work(program);
	assert_int_equal(
		gpc_sim_stream_create(program->drv.context, CU_STREAM_NON_BLOCKING, 0, &stream),
		CUDA_SUCCESS);
	gpc_lock_take(&program->pool.lock);
	assert_int_equal(
		gpc_fences_stream_created(&program->pool.fences, (gpc_stream)(uintptr_t)stream),
		GPC_OK);
	gpc_stream_order_created(&program->pool.order, (gpc_stream)(uintptr_t)stream);
	gpc_lock_release(&program->pool.lock);
	program->names[program->n_streams] = (gpc_stream)(uintptr_t)stream;
	program->streams[program->n_streams++] = stream;
}

/*
 * A stream is destroyed while its work runs, after what was asked for on it was freed without a name; and the driver
 * gives its handle to the next one.
 */
static void replace_stream(struct program *program)
{
	struct gpc_sim_stream *stream = NULL;
	size_t at = random_below(&program->random, program->n_streams);

	if (!program->scenario->has_names || at == 0 ||
		program->streams[at] == program->capturing || program->n_replaced == MAX_REPLACED)
		return;
	program->n_replaced++;
	for (size_t i = program->n_live; i-- > 0;) {
		if (program->live[i].stream == program->streams[at])
			free_live(program, i, 0);
	}
	assert_int_equal(
		gpc_sim_stream_create(program->drv.context, CU_STREAM_NON_BLOCKING, 0, &stream),
		CUDA_SUCCESS);
	gpc_lock_take(&program->pool.lock);
	assert_int_equal(
		gpc_fences_stream_created(&program->pool.fences, (gpc_stream)(uintptr_t)stream),
		GPC_OK);
	gpc_stream_order_destroyed(&program->pool.order, program->names[at]);
	gpc_stream_order_created(&program->pool.order, program->names[at]);
	gpc_lock_release(&program->pool.lock);
	program->streams[at] = stream;
}

/* What the library does at cuCtxEnablePeerAccess: waits on the host, because the peer's work has no order with ours. */
static void enable_peer(struct program *program)
{
	struct gpc_fences *fences = &program->pool.fences;
	struct gpc_driver *drv = &program->drv.base;
	bool must_wait;

	gpc_lock_take(&program->pool.lock);
	must_wait = gpc_fences_peer_comes(fences);
	assert_int_equal(gpc_fences_add_member(fences, &program->peer.base), GPC_OK);
	gpc_lock_release(&program->pool.lock);
	if (must_wait)
		assert_int_equal(drv->ops->context_sync(drv), GPC_OK);
	program->is_peer_enabled = true;
	prune(program);
}

static void do_sync(struct program *program)
{
	struct gpc_driver *drv = &program->drv.base;
	struct gpc_pool_sync sync;

	if (program->capturing)
		return;
	sync = gpc_pool_begin_sync(&program->pool);
	assert_int_equal(drv->ops->context_sync(drv), GPC_OK);
	/* Other threads continue meanwhile; the synchronization does not cover their work. */
	for (uint64_t i = random_below(&program->random, 8); i > 0; i--) {
		do_launch(program);
		do_free(program);
		do_alloc(program);
	}
	gpc_pool_end_sync(&program->pool, sync, now_ns(program));
	prune(program);
}

static void do_capture(struct program *program)
{
	struct gpc_sim_graph *graph = NULL;

	if (!program->scenario->has_captures || program->n_streams < 2)
		return;
	if (!program->capturing) {
		gpc_captures_begin(&program->heap.captures);
		program->capturing = program->streams[program->n_streams - 1];
		assert_int_equal(
			gpc_sim_capture_begin(program->capturing, CU_STREAM_CAPTURE_MODE_GLOBAL),
			CUDA_SUCCESS);
		return;
	}
	assert_int_equal(gpc_sim_capture_end(program->capturing, &graph), CUDA_SUCCESS);
	gpc_sim_graph_destroy(graph);
	program->capturing = NULL;
	gpc_captures_end(&program->heap.captures);
}

static void do_one(struct program *program)
{
	uint64_t dice = random_below(&program->random, 1000);

	if (dice < 300)
		do_alloc(program);
	else if (dice < 600)
		do_free(program);
	else if (dice < 800)
		do_launch(program);
	else if (dice < 950)
		gpc_sim_clock_wait_until(&program->sim->clock,
			now_ns(program) + random_below(&program->random, 2 * MS));
	else if (dice < 960)
		do_sync(program);
	else if (dice < 970)
		do_capture(program);
	else if (dice < 980)
		(void)gpc_pool_reap(&program->pool);
	else if (dice < 985)
		(void)gpc_pool_wait(&program->pool, random_below(&program->random, 2) * GPC_MIB);
	else if (dice < 990)
		(void)gpc_pool_trim(&program->pool, GPC_MIB, true);
	else if (dice < 992)
		replace_stream(program);
	prune(program);
}

static void open_program(struct program *program, const struct scenario *scenario, uint64_t seed)
{
	struct gpc_pool_params params = { .pending_limit = 64 * GPC_MIB,
		.is_one_stream = scenario->is_one_stream,
		.is_fence_skipped = scenario->is_fence_skipped };
	struct gpc_sim_config config = gpc_sim_config_default();

	memset(program, 0, sizeof *program);
	program->scenario = scenario;
	program->random = random_start(seed, 0);
	config.virtual_clock = true;
	config.driver_version = scenario->driver_version;
	program->sim = gpc_sim_create(&config);
	assert_non_null(program->sim);
	/* Without fences a kernel's memory could go back beside it, and the fault would hide the race: returns wait. */
	if (scenario->is_fence_skipped)
		assert_true(gpc_sim_fault_add(
			&program->sim->faults, "cuStreamCreate", 1, UINT32_MAX, 801));
	assert_int_equal(gpc_sim_driver_init(&program->drv, program->sim, 0, NULL), GPC_OK);
	assert_int_equal(gpc_sim_driver_init(&program->peer, program->sim, 0, NULL), GPC_OK);
	assert_int_equal(gpc_heap_init(&program->heap, NULL), GPC_OK);
	gpc_pool_init(&program->pool, &program->heap, &program->drv.base, &program->budget, &params,
		0, 0, NULL);
	program->names[0] = GPC_ORDERED_LEGACY;
	program->streams[program->n_streams++] = &program->drv.context->legacy;
	while (!scenario->is_one_stream && program->n_streams < N_STREAMS)
		add_stream(program);
	if (scenario->has_peer && !scenario->is_one_stream)
		enable_peer(program);
}

static void close_program(struct program *program)
{
	if (program->capturing)
		do_capture(program);
	assert_null(gpc_pool_check(&program->pool));
	while (program->n_live > 0)
		do_free(program);
	(void)gpc_pool_wait(&program->pool, 0);
	(void)gpc_pool_trim(&program->pool, UINT64_MAX, true);
	assert_int_equal(gpc_sim_device_n_allocations(&program->sim->devices[0]), 0);
	/* Nothing was given back while work still read it. */
	assert_int_equal(gpc_sim_context_state(program->drv.context), CUDA_SUCCESS);
	gpc_pool_fini(&program->pool);
	gpc_sim_driver_fini(&program->peer);
	gpc_sim_driver_fini(&program->drv);
	gpc_heap_fini(&program->heap);
	gpc_sim_destroy(program->sim);
}

/* One program from its first to its last operation. */
static void play(struct program *program, uint64_t n_ops)
{
	for (uint64_t i = 0; i < n_ops; i++) {
		do_one(program);
		/* A program of one stream gets its others in the middle of its work. */
		if (i > n_ops / 2 && i % 25 == 0 && program->n_streams < N_STREAMS &&
			!program->scenario->has_peer)
			add_stream(program);
		if (i == n_ops / 2 && program->scenario->has_peer && !program->is_peer_enabled)
			enable_peer(program);
		if (i % 1000 == 0)
			assert_null(gpc_pool_check(&program->pool));
	}
}

/* The number of violations in a whole run. */
static uint64_t run(const struct scenario *scenario)
{
	static struct program program;
	/* Many short programs, because each has only one end of the one-stream rule. */
	uint64_t n_programs = scenario->is_one_stream ? 50 : 1;
	uint64_t n_ops = number_from_env("OPS", 100000) / 5 / n_programs;
	uint64_t seed = seed_of_this_run(scenario->name);
	uint64_t n_malloc = 0;
	uint64_t n_hit = 0;
	uint64_t n_handed_out = 0;
	uint64_t n_overtaken = 0;

	for (uint64_t i = 0; i < n_programs; i++) {
		open_program(&program, scenario, seed + i);
		play(&program, n_ops);
		n_malloc += program.pool.counters->n_malloc;
		n_hit += program.pool.counters->n_hit;
		n_handed_out += program.n_handed_out;
		n_overtaken += program.n_overtaken;
		close_program(&program);
	}
	printf("%s: %llu allocations, %llu from the cache; handed out in flight: %llu, overtaken: "
	       "%llu\n",
		scenario->name, (unsigned long long)n_malloc, (unsigned long long)n_hit,
		(unsigned long long)n_handed_out, (unsigned long long)n_overtaken);
	assert_true(n_hit > n_malloc / 4);
	return n_handed_out + n_overtaken;
}

/* One scenario in which there must be no violation. */
#define CLEAN(test, ...)                                          \
	TEST(test)                                                \
	{                                                         \
		const struct scenario scenario = { __VA_ARGS__ }; \
                                                                  \
		assert_int_equal(run(&scenario), 0);              \
	}

CLEAN(with_many_streams_nothing_in_flight_is_reused, .name = "many streams",
	.driver_version = 13000)
CLEAN(with_an_old_driver_nothing_in_flight_is_reused, .name = "driver 12.4",
	.driver_version = 12040)
CLEAN(with_captures_nothing_in_flight_is_reused, .name = "captures", .driver_version = 13000,
	.has_captures = true)
CLEAN(with_peers_nothing_in_flight_is_reused, .name = "peers", .driver_version = 13000,
	.has_peer = true)
CLEAN(when_one_stream_becomes_many_nothing_in_flight_is_overtaken, .name = "one stream, then many",
	.driver_version = 13000, .is_one_stream = true)
CLEAN(when_a_peer_comes_to_one_stream_nothing_in_flight_is_overtaken,
	.name = "one stream, then a peer", .driver_version = 13000, .is_one_stream = true,
	.has_peer = true)
CLEAN(with_named_streams_nothing_in_flight_is_overtaken, .name = "named streams",
	.driver_version = 13000, .has_names = true)
CLEAN(with_named_streams_and_captures_nothing_in_flight_is_overtaken,
	.name = "named streams, captures", .driver_version = 13000, .has_names = true,
	.has_captures = true)
CLEAN(when_one_stream_becomes_many_named_ones_nothing_in_flight_is_overtaken,
	.name = "one stream, then many named", .driver_version = 13000, .is_one_stream = true,
	.has_names = true)

TEST(without_a_record_of_a_second_streams_use_the_race_is_seen)
{
	const struct scenario scenario = { .name = "use not recorded",
		.driver_version = 13000,
		.has_names = true,
		.is_use_untold = true };

	assert_true(run(&scenario) > 0);
}

TEST(without_the_fence_the_race_is_seen)
{
	const struct scenario scenario = {
		.name = "fence left out", .driver_version = 13000, .is_fence_skipped = true
	};

	assert_true(run(&scenario) > 0);
}
