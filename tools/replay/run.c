/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The player walks through the operations of the trace and calls the policy or the machine.  The smallest device is
 * found by bisection over its size.
 */
#include "tools/replay/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "format/memory.h"

/* More memory than any policy needs: several times the peak of live bytes, and room for a few segments. */
#define PLENTY_FACTOR 4
#define PLENTY_MORE   GPC_GIB
#define PLENTY_MOST   (UINT64_MAX / 2)

/*
 * gpc_run() replays a trace of at most FEW_OPERATIONS N_TIMES and reports the shortest time.  Such a replay takes
 * milliseconds, and another process may hold the processor for as long.
 */
#define FEW_OPERATIONS 100000
#define N_TIMES        5

const struct gpc_policy_ops gpc_policy_none = { .name = "none",
	.help = "no cache, the driver for everything" };

/* Memory that the trace allocated. */
struct life {
	uint64_t address;
	const struct gpc_trace_op *op; /* the allocation */
};

struct player {
	const struct gpc_trace *trace;
	const struct gpc_policy_ops *policy;
	void *self;
	struct gpc_machine machine;
	struct life *lives; /* by slot */
	struct gpc_run *run;
	uint64_t live_bytes;
	uint64_t beside_bytes;
	uint64_t not_ours_ns; /* time that play() spent outside the policy */
	bool is_timed;
};

static enum gpc_status open_player(
	struct player *player, const struct gpc_run_settings *settings, uint64_t device_bytes)
{
	const struct gpc_trace *trace = player->trace;
	const struct gpc_machine_config config = {
		.device_bytes = device_bytes,
		.fixed_bytes = trace->fixed_bytes,
		.n_streams = trace->n_streams,
		.has_work = trace->n_work > 0 && !settings->is_unwatched,
		.is_late = player->policy->is_late,
	};
	enum gpc_status st = gpc_machine_open(&player->machine, &config);

	if (st)
		return st;
	player->lives = gpc_new(trace->n_slots, sizeof *player->lives);
	if (player->policy->create)
		st = player->policy->create(
			player->policy, &player->machine, &settings->policy, &player->self);
	if (!st)
		return GPC_OK;
	free(player->lives);
	gpc_machine_close(&player->machine);
	return st;
}

static void close_player(struct player *player)
{
	if (player->policy->destroy)
		player->policy->destroy(player->self);
	gpc_machine_close(&player->machine);
	free(player->lives);
}

/* Nanoseconds on the simulated clock; always 0 if the trace has no work. */
static uint64_t simulated_now(struct player *player)
{
	if (!player->run->has_work)
		return 0;
	return gpc_sim_clock_now(&player->machine.sim->clock);
}

static void note_wait(struct player *player, uint64_t before_ns)
{
	uint64_t waited_ns = simulated_now(player) - before_ns;

	player->run->n_waits += waited_ns > 0;
	player->run->waited_ns = gpc_bytes_add(player->run->waited_ns, waited_ns);
}

static uint64_t host_now(const struct player *player)
{
	return player->is_timed ? gpc_clock_monotonic_ns() : 0;
}

static void note_reserved(struct player *player)
{
	uint64_t start = host_now(player);
	uint64_t reserved =
		gpc_bytes_less(gpc_machine_reserved_bytes(&player->machine), player->beside_bytes);

	if (reserved > player->run->peak_reserved_bytes)
		player->run->peak_reserved_bytes = reserved;
	player->not_ours_ns += host_now(player) - start;
}

/*
 * True if the request goes to the driver instead of the policy.  A library's own request to the driver (DIRECT) never
 * reaches PyTorch's cache, but gpucache intercepts it.
 */
static bool is_past(const struct player *player, const struct gpc_trace_op *op)
{
	return !player->policy->alloc || op->way == GPC_TRACE_BESIDE ||
	       (op->way == GPC_TRACE_DIRECT && player->policy->is_model);
}

static enum gpc_status call_free(struct player *player, const struct life *life, uint64_t now_ns)
{
	uint64_t before_ns = simulated_now(player);
	struct gpc_driver *driver = player->machine.driver;
	enum gpc_status st;

	if (is_past(player, life->op))
		st = driver->ops->mem_free(driver, life->address);
	else
		st = player->policy->free(player->self, life->address, life->op->stream, now_ns);
	note_wait(player, before_ns);
	return st;
}

static enum gpc_status call_alloc(
	struct player *player, const struct gpc_trace_op *op, uint64_t *ret_address)
{
	struct gpc_run *run = player->run;
	struct gpc_driver *driver = player->machine.driver;
	uint64_t n_before = player->machine.counting.n_calls[GPC_SIM_COST_MALLOC];
	uint64_t before_ns = simulated_now(player);
	enum gpc_status st;

	if (is_past(player, op))
		st = driver->ops->mem_alloc(driver, op->size, ret_address);
	else
		st = player->policy->alloc(
			player->self, op->size, op->stream, op->time_ns, ret_address);
	note_wait(player, before_ns);
	if (op->way == GPC_TRACE_BESIDE)
		return st;
	run->n_allocs++;
	if (player->machine.counting.n_calls[GPC_SIM_COST_MALLOC] != n_before)
		note_reserved(player);
	else
		run->n_hits += !st;
	return st;
}

/* The sum that the memory of this allocation counts in. */
static uint64_t *sum_of(struct player *player, const struct gpc_trace_op *op)
{
	return op->way == GPC_TRACE_BESIDE ? &player->beside_bytes : &player->live_bytes;
}

static enum gpc_status do_alloc(struct player *player, const struct gpc_trace_op *op)
{
	struct gpc_run *run = player->run;
	struct life life = { .op = op };
	enum gpc_status st = call_alloc(player, op, &life.address);
	uint64_t *sum = sum_of(player, op);
	uint64_t bytes = gpc_bytes_add(*sum, op->size);

	if (st)
		return st;
	if (sum == &player->live_bytes && bytes > run->peak_live_bytes)
		run->peak_live_bytes = bytes;
	if (op->kind == GPC_TRACE_FAILURE) {
		run->n_failures_served++;
		run->n_failures_again--;
		return call_free(player, &life, op->time_ns);
	}
	*sum = bytes;
	player->lives[op->slot] = life;
	return GPC_OK;
}

static enum gpc_status do_work(struct player *player, const struct gpc_trace_op *op)
{
	const struct life *life = &player->lives[op->slot];
	enum gpc_status st = GPC_OK;

	if (player->policy->use && op->stream != life->op->stream)
		st = player->policy->use(player->self, life->address, op->stream);
	if (player->policy->submits)
		player->policy->submits(player->self);
	return st ? st
		  : gpc_machine_work(&player->machine, op->stream, op->duration_ns, life->address,
			    life->op->size);
}

static enum gpc_status do_sync(struct player *player, const struct gpc_trace_op *op)
{
	/* Bypasses the counting driver, because the program makes this call. */
	struct gpc_driver *driver = player->machine.counting.inner;

	if (player->policy->sync)
		return player->policy->sync(player->self, driver, op->time_ns);
	return driver->ops->context_sync(driver);
}

/* What only a trace with work needs: the time between operations, the race detector, and the work itself. */
static enum gpc_status do_around(struct player *player, const struct gpc_trace_op *op)
{
	uint64_t number = (uint64_t)(op - player->trace->ops);
	uint64_t start = host_now(player);
	enum gpc_status st = GPC_OK;

	if (number > 0)
		gpc_machine_pass_time(&player->machine, op->time_ns - op[-1].time_ns);
	if (op->kind == GPC_TRACE_FREE)
		gpc_machine_disown(&player->machine, player->lives[op->slot].address);
	if (op->kind == GPC_TRACE_WORK)
		st = do_work(player, op);
	if (op->kind == GPC_TRACE_ORDER)
		st = gpc_machine_order(&player->machine, op->stream, op->other);
	if (op->kind == GPC_TRACE_SYNC)
		st = do_sync(player, op);
	player->not_ours_ns += host_now(player) - start;
	return st;
}

static void own(struct player *player, const struct gpc_trace_op *op)
{
	uint64_t start = host_now(player);

	gpc_machine_own(&player->machine, player->lives[op->slot].address, op->size,
		(uint64_t)(op - player->trace->ops) + 1, player->policy->is_stream_ordered,
		op->stream);
	player->not_ours_ns += host_now(player) - start;
}

static enum gpc_status do_op(struct player *player, const struct gpc_trace_op *op)
{
	bool has_work = player->trace->n_work > 0;
	enum gpc_status st = has_work ? do_around(player, op) : GPC_OK;
	const struct life *life = &player->lives[op->slot];
	uint64_t *sum;

	if (st)
		return st;
	switch (op->kind) {
	case GPC_TRACE_FREE:
		sum = sum_of(player, life->op);
		*sum = gpc_bytes_less(*sum, life->op->size);
		return call_free(player, life, op->time_ns);
	case GPC_TRACE_ALLOC:
		st = do_alloc(player, op);
		if (!st && has_work)
			own(player, op);
		return st;
	case GPC_TRACE_FAILURE:
		/* The request failed when the trace was taken, so a second failure does not end the run. */
		st = do_alloc(player, op);
		return st == GPC_DEVICE_NO_MEMORY ? GPC_OK : st;
	case GPC_TRACE_EMPTY_CACHE:
		if (player->policy->empty_cache)
			player->policy->empty_cache(player->self);
		return GPC_OK;
	case GPC_TRACE_WORK:
	case GPC_TRACE_ORDER:
	case GPC_TRACE_SYNC: /* done by do_around() */
		break;
	}
	return GPC_OK;
}

static const char *check(struct player *player)
{
	return player->policy->check ? player->policy->check(player->self) : NULL;
}

static void play(struct player *player, bool check_always)
{
	const struct gpc_trace *trace = player->trace;
	struct gpc_run *run = player->run;
	uint64_t simulated_start = simulated_now(player);
	uint64_t start = host_now(player);

	for (uint64_t i = 0; i < trace->n_ops && !run->has_failed && !run->broken; i++) {
		const struct gpc_trace_op *op = &trace->ops[i];
		enum gpc_status st = do_op(player, op);

		run->n_operations += op->kind <= GPC_TRACE_FAILURE;
		if (check_always)
			run->broken = check(player);
		if (!st && !run->broken)
			continue;
		run->has_failed = st != GPC_OK;
		run->failure = st;
		run->failed_kind = op->kind;
		run->failed_event = i + 1;
		run->failed_line = op->line;
		run->failed_size = op->size;
	}
	run->elapsed_ns = host_now(player) - start - player->not_ours_ns;
	run->program_ns = simulated_now(player) - simulated_start;
	if (!run->broken)
		run->broken = check(player);
}

static void note_end(struct player *player)
{
	const struct gpc_policy_ops *policy = player->policy;
	struct gpc_run *run = player->run;
	uint64_t race_event = 0;

	memcpy(run->n_calls, player->machine.counting.n_calls, sizeof run->n_calls);
	for (int kind = 0; kind < GPC_SIM_COST_COUNT; kind++) {
		run->n_driver_calls = gpc_bytes_add(run->n_driver_calls, run->n_calls[kind]);
		run->driver_ns = gpc_bytes_add(run->driver_ns,
			gpc_bytes_times(run->n_calls[kind], gpc_sim_published_costs[kind]));
	}
	run->live_at_end_bytes = player->live_bytes;
	run->peak_device_bytes = gpc_machine_peak_bytes(&player->machine);
	run->reserved_at_end_bytes = gpc_machine_reserved_bytes(&player->machine);
	run->peak_pending_bytes = policy->peak_pending ? policy->peak_pending(player->self) : 0;
	if (!gpc_machine_find_race(
		    &player->machine, &run->n_races, &run->race_old_event, &race_event) ||
		run->has_failed || run->broken)
		return;
	run->failed_event = race_event;
	run->failed_line = player->trace->ops[race_event - 1].line;
	run->failed_size = player->trace->ops[race_event - 1].size;
}

enum gpc_status gpc_run_once(const struct gpc_trace *trace, const struct gpc_policy_ops *policy,
	const struct gpc_run_settings *settings, struct gpc_run *ret_run)
{
	uint64_t wanted = gpc_bytes_add(
		gpc_bytes_times(PLENTY_FACTOR, trace->peak_live_bytes), trace->fixed_bytes);
	uint64_t plenty =
		gpc_round_up(wanted < PLENTY_MOST ? wanted : PLENTY_MOST, GPC_GIB) + PLENTY_MORE;
	struct gpc_run run = {
		.policy = policy,
		.n_failures_again = trace->n_failures,
		.has_work = trace->n_work > 0,
	};
	struct player player = {
		.trace = trace, .policy = policy, .run = &run, .is_timed = !settings->is_unwatched
	};
	enum gpc_status st = open_player(
		&player, settings, settings->device_bytes ? settings->device_bytes : plenty);

	if (st)
		return st;
	run.device_bytes = player.machine.device_bytes;
	play(&player, settings->check_always);
	note_end(&player);
	close_player(&player);
	*ret_run = run;
	return GPC_OK;
}

enum gpc_status gpc_run(const struct gpc_trace *trace, const struct gpc_policy_ops *policy,
	const struct gpc_run_settings *settings, struct gpc_run *ret_run)
{
	enum gpc_status st = gpc_run_once(trace, policy, settings, ret_run);
	struct gpc_run again;

	if (st || settings->check_always || trace->n_ops > FEW_OPERATIONS)
		return st;
	for (int i = 1; i < N_TIMES; i++)
		if (!gpc_run_once(trace, policy, settings, &again) &&
			again.elapsed_ns < ret_run->elapsed_ns)
			ret_run->elapsed_ns = again.elapsed_ns;
	return GPC_OK;
}

struct search {
	const struct gpc_trace *trace;
	const struct gpc_policy_ops *policy;
	struct gpc_run_settings settings;
	uint64_t enough; /* the trace passes on every device of this many steps or more */
};

/* A number of steps that is enough, as the run with plenty of memory proves. */
static uint64_t find_enough(const struct gpc_run *plenty)
{
	/* A policy that knows neither the size nor the free memory acts alike on all devices that refuse no call. */
	bool knows = plenty->policy->is_of_size || plenty->n_calls[GPC_SIM_COST_INFO] > 0;
	uint64_t bytes = knows ? plenty->device_bytes : plenty->peak_device_bytes;

	return gpc_round_up(bytes, GPC_RUN_DEVICE_STEP) / GPC_RUN_DEVICE_STEP;
}

static enum gpc_status try_device(struct search *search, uint64_t steps, bool *ret_passes)
{
	struct gpc_run run;
	enum gpc_status st;

	*ret_passes = steps >= search->enough;
	if (*ret_passes)
		return GPC_OK;
	search->settings.device_bytes = steps * GPC_RUN_DEVICE_STEP;
	st = gpc_run_once(search->trace, search->policy, &search->settings, &run);
	*ret_passes = !st && !run.has_failed;
	return st;
}

/*
 * Finds the fewest steps on which the trace passes, above `fails` and up to `passes`.  First tries `fails` + 1, + 2,
 * + 4 and so on, because the answer is usually just above the peak of live bytes, where the search begins.
 */
static enum gpc_status bisect(
	struct search *search, uint64_t fails, uint64_t passes, uint64_t *ret_steps)
{
	enum gpc_status st = GPC_OK;
	bool does_pass = false;

	for (uint64_t more = 1; !st && !does_pass && more < passes - fails; more *= 2) {
		uint64_t steps = fails + more;

		st = try_device(search, steps, &does_pass);
		*(does_pass ? &passes : &fails) = steps;
	}
	while (!st && passes - fails > 1) {
		uint64_t middle = fails + (passes - fails) / 2;

		st = try_device(search, middle, &does_pass);
		*(does_pass ? &passes : &fails) = middle;
	}
	*ret_steps = passes;
	return st;
}

enum gpc_status gpc_run_smallest(const struct gpc_trace *trace, const struct gpc_policy_ops *policy,
	const struct gpc_run_settings *settings, uint64_t *ret_bytes, struct gpc_run *ret_plenty)
{
	uint64_t least = gpc_bytes_add(trace->peak_all_bytes, trace->fixed_bytes);
	uint64_t fails = least ? (least - 1) / GPC_RUN_DEVICE_STEP : 0;
	struct search search = { .trace = trace, .policy = policy, .settings = *settings };
	struct gpc_run plenty;
	enum gpc_status st;
	uint64_t steps;

	search.settings.device_bytes = 0;
	search.settings.check_always = false;
	search.settings.is_unwatched = true;
	st = gpc_run_once(trace, policy, &search.settings, &plenty);
	if (st || plenty.has_failed)
		return st ? st : plenty.failure;
	search.enough = find_enough(&plenty);
	/* Without a cache there is nothing to return, so the peak of the run with plenty of memory is the answer. */
	if (!policy->empty_cache && plenty.n_failures_served == 0)
		steps = search.enough > fails ? search.enough : fails + 1;
	else
		st = bisect(&search, fails, plenty.device_bytes / GPC_RUN_DEVICE_STEP, &steps);
	if (st)
		return st;
	*ret_bytes = steps * GPC_RUN_DEVICE_STEP;
	if (ret_plenty)
		*ret_plenty = plenty;
	return GPC_OK;
}

uint64_t gpc_run_find_max_split(
	uint64_t most, bool (*serves)(void *arg, uint64_t max_split_size), void *arg)
{
	for (uint64_t size = 512 * GPC_MIB; size >= 32 * GPC_MIB; size /= 2)
		if (size <= most && serves(arg, size))
			return size;
	return 0;
}
