/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/gpumem-replay/run.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "sim/driver_sim.h"
#include "sim/sim.h"

/*
 * A device that no policy fills: several times what is live at the peak, and room for a few
 * segments.
 */
#define PLENTY_FACTOR 4
#define PLENTY_MORE   GPC_GIB

struct machine {
	struct gpc_sim *sim;
	struct gpc_sim_driver driver;
	const struct gpc_policy_ops *policy;
	void *self;
	uint64_t *addresses; /* by slot */
	uint64_t live_bytes;
	uint64_t *sizes; /* by slot */
};

static enum gpc_status open_machine(struct machine *machine, const struct gpc_trace *trace,
	const struct gpc_policy_ops *policy, const struct gpc_run_settings *settings,
	uint64_t device_bytes)
{
	struct gpc_sim_config config = gpc_sim_config_default();
	struct gpc_policy_params params = {
		.device_bytes = device_bytes,
		.n_streams = trace->n_streams,
		.settings = settings->policy,
	};
	enum gpc_status st;

	config.memory = device_bytes;
	config.context_cost = 0;
	config.virtual_clock = true;
	*machine = (struct machine){ .policy = policy };
	machine->addresses = calloc(trace->n_slots + 1, sizeof *machine->addresses);
	machine->sizes = calloc(trace->n_slots + 1, sizeof *machine->sizes);
	machine->sim = gpc_sim_create(&config);
	st = machine->addresses && machine->sizes && machine->sim
		     ? gpc_sim_driver_init(&machine->driver, machine->sim, 0, NULL)
		     : GPC_NO_METADATA;
	if (st)
		goto undo_sim;
	params.driver = &machine->driver.base;
	st = policy->create(&params, &machine->self);
	if (!st)
		return GPC_OK;
	gpc_sim_driver_fini(&machine->driver);
undo_sim:
	if (machine->sim)
		gpc_sim_destroy(machine->sim);
	free(machine->sizes);
	free(machine->addresses);
	return st;
}

static void close_machine(struct machine *machine)
{
	machine->policy->destroy(machine->self);
	gpc_sim_driver_fini(&machine->driver);
	gpc_sim_destroy(machine->sim);
	free(machine->sizes);
	free(machine->addresses);
}

static enum gpc_status do_alloc(
	struct machine *machine, const struct gpc_trace_op *op, struct gpc_run *run)
{
	uint64_t n_before = machine->driver.counters.n_mem_alloc;
	uint64_t reserved;
	uint64_t address = 0;
	enum gpc_status st;

	st = machine->policy->alloc(machine->self, op->size, op->stream, op->time_ns, &address);
	run->n_allocs++;
	if (machine->driver.counters.n_mem_alloc == n_before) {
		run->n_hits += !st;
	} else {
		reserved = gpc_sim_device_used_bytes(&machine->sim->devices[0]);
		if (reserved > run->peak_reserved_bytes)
			run->peak_reserved_bytes = reserved;
	}
	if (st)
		return st;
	if (machine->live_bytes + op->size > run->peak_live_bytes)
		run->peak_live_bytes = machine->live_bytes + op->size;
	if (op->kind == GPC_TRACE_FAILURE) {
		run->n_failures_served++;
		return machine->policy->free(machine->self, address, op->time_ns);
	}
	machine->live_bytes += op->size;
	machine->addresses[op->slot] = address;
	machine->sizes[op->slot] = op->size;
	return GPC_OK;
}

static enum gpc_status do_op(
	struct machine *machine, const struct gpc_trace_op *op, struct gpc_run *run)
{
	enum gpc_status st;

	if (op->kind == GPC_TRACE_FREE) {
		machine->live_bytes -= machine->sizes[op->slot];
		return machine->policy->free(
			machine->self, machine->addresses[op->slot], op->time_ns);
	}
	st = do_alloc(machine, op, run);
	/* What failed when the trace was taken may fail again. */
	if (op->kind == GPC_TRACE_FAILURE && st == GPC_DEVICE_NO_MEMORY)
		st = GPC_OK;
	return st;
}

static void replay(struct machine *machine, const struct gpc_trace *trace, bool check_always,
	struct gpc_run *run)
{
	uint64_t start = gpc_clock_monotonic_ns();

	for (uint64_t i = 0; i < trace->n_ops && !run->has_failed && !run->broken; i++) {
		const struct gpc_trace_op *op = &trace->ops[i];
		enum gpc_status st = do_op(machine, op, run);

		run->n_operations++;
		if (check_always)
			run->broken = machine->policy->check(machine->self);
		if (!st && !run->broken)
			continue;
		run->has_failed = st != GPC_OK;
		run->failure = st;
		run->failed_event = i + 1;
		run->failed_line = op->line;
		run->failed_size = op->size;
	}
	run->elapsed_ns = gpc_clock_monotonic_ns() - start;
	if (!run->broken)
		run->broken = machine->policy->check(machine->self);
}

static void count_calls(struct machine *machine, struct gpc_run *run)
{
	const struct gpc_sim_counters *counters = &machine->driver.counters;

	run->n_driver_allocs = counters->n_mem_alloc;
	run->n_driver_frees = counters->n_mem_free;
	run->n_driver_calls = counters->n_mem_alloc + counters->n_mem_free + counters->n_mem_info +
			      counters->n_event_create + counters->n_event_destroy +
			      counters->n_fence_record + counters->n_event_query +
			      counters->n_sync + counters->n_stream_wait;
	run->reserved_at_end_bytes = gpc_sim_device_used_bytes(&machine->sim->devices[0]);
}

enum gpc_status gpc_run(const struct gpc_trace *trace, const struct gpc_policy_ops *policy,
	const struct gpc_run_settings *settings, struct gpc_run *ret_run)
{
	uint64_t plenty =
		gpc_round_up(PLENTY_FACTOR * trace->peak_live_bytes, GPC_GIB) + PLENTY_MORE;
	struct gpc_run run = {
		.policy = policy,
		.device_bytes = settings->device_bytes ? settings->device_bytes : plenty,
	};
	struct machine machine;
	enum gpc_status st = open_machine(&machine, trace, policy, settings, run.device_bytes);

	if (st)
		return st;
	replay(&machine, trace, settings->check_always, &run);
	count_calls(&machine, &run);
	close_machine(&machine);
	*ret_run = run;
	return GPC_OK;
}

enum gpc_status gpc_run_smallest(const struct gpc_trace *trace, const struct gpc_policy_ops *policy,
	const struct gpc_run_settings *settings, uint64_t *ret_bytes)
{
	struct gpc_run_settings at = *settings;
	uint64_t fails = 0; /* in steps */
	uint64_t passes;
	struct gpc_run run;
	enum gpc_status st;

	at.device_bytes = 0;
	at.check_always = false;
	st = gpc_run(trace, policy, &at, &run);
	if (st || run.has_failed)
		return st ? st : run.failure;
	passes = run.device_bytes / GPC_RUN_DEVICE_STEP;
	while (passes - fails > 1) {
		uint64_t middle = fails + (passes - fails) / 2;

		at.device_bytes = middle * GPC_RUN_DEVICE_STEP;
		st = gpc_run(trace, policy, &at, &run);
		if (st)
			return st;
		if (run.has_failed)
			fails = middle;
		else
			passes = middle;
	}
	*ret_bytes = passes * GPC_RUN_DEVICE_STEP;
	return GPC_OK;
}
