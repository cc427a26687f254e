/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs: one trace, one policy, one machine.
 *
 * Every run has its own machine (machine.h).  Driver calls of a simulated one cost nothing, so the time of a run is
 * the policy's alone.
 *
 *      trace --> ALLOC, FREE     the policy          timed; if the simulated clock moved, the host waited
 *            '-> WORK and others the machine         not timed; watched by the race detector
 *
 * Threads     One.
 * Failure     gpc_run: any status but GPC_OK means that there was no run.  A failed request and early reuse are
 *             results: has_failed, n_races.
 * Limits      gpc_run_smallest assumes that success is monotone in the device's size, which holds
 *             except for small steps.
 */
#ifndef GPC_REPLAY_RUN_H
#define GPC_REPLAY_RUN_H

#include "tools/replay/policy.h"
#include "tools/replay/trace.h"

#define GPC_MAX_POLICIES    11
#define GPC_RUN_DEVICE_STEP UINT64_C(0x200000) /* granularity of device memory: 2 MiB */

struct gpc_run_settings {
	struct gpc_policy_settings policy;
	uint64_t device_bytes; /* 0: more than enough */
	bool check_always;     /* the heap checker after every operation */
	bool is_real;          /* on GPU number `gpu` of this machine */
	int gpu;
	bool is_unwatched; /* runs without race detector and without timing */
};

struct gpc_run {
	const struct gpc_policy_ops *policy;
	int gpu; /* of this machine; -1: simulated */
	uint64_t device_bytes;
	uint64_t peak_device_bytes; /* gpc_machine_peak_bytes */
	uint64_t peak_live_bytes;
	uint64_t peak_reserved_bytes;
	uint64_t reserved_at_end_bytes;
	uint64_t live_at_end_bytes;
	uint64_t n_operations;
	uint64_t n_allocs;
	uint64_t n_hits;                      /* served without a driver allocation */
	uint64_t n_calls[GPC_SIM_COST_COUNT]; /* to the driver, by kind, refused ones included */
	uint64_t n_driver_calls;              /* all of them */
	uint64_t driver_ns;                   /* what they would cost, at gpc_sim_published_costs */
	uint64_t n_failures_served;           /* failures of the trace that would be served here */
	uint64_t elapsed_ns;                  /* of a short trace, the least of several runs */
	uint64_t smallest_device_bytes;       /* 0: not searched */

	/* Of traces with work, on the simulated GPU. */
	bool has_work;
	uint64_t peak_pending_bytes; /* freed, not yet reusable */
	uint64_t n_waits;            /* calls in which the host waited for the device */
	uint64_t waited_ns;          /* of the simulated clock, as is program_ns */
	uint64_t program_ns;
	uint64_t n_races;
	/* In the first race, the earlier owner of the memory that failed_event got. */
	uint64_t race_old_event;

	bool has_failed;
	enum gpc_status failure;
	enum gpc_trace_op_kind failed_kind;
	uint64_t failed_event; /* the first is 1 */
	uint64_t failed_line;
	uint64_t failed_size;
	const char *broken; /* the first broken invariant; NULL: none */
};

static inline bool gpc_run_is_good(const struct gpc_run *run)
{
	return !run->has_failed && !run->broken && run->n_races == 0;
}

GPC_MUST_CHECK enum gpc_status gpc_run(const struct gpc_trace *trace,
	const struct gpc_policy_ops *policy, const struct gpc_run_settings *settings,
	struct gpc_run *ret_run);

/* Replays once even a short trace: elapsed_ns is a single measurement. */
GPC_MUST_CHECK enum gpc_status gpc_run_once(const struct gpc_trace *trace,
	const struct gpc_policy_ops *policy, const struct gpc_run_settings *settings,
	struct gpc_run *ret_run);

/*
 * Finds the smallest device, in steps of 2 MiB, on which no operation fails.  *ret_plenty, unless NULL, is the run on
 * more than enough memory.
 */
GPC_MUST_CHECK enum gpc_status gpc_run_smallest(const struct gpc_trace *trace,
	const struct gpc_policy_ops *policy, const struct gpc_run_settings *settings,
	uint64_t *ret_bytes, struct gpc_run *ret_plenty);

#endif
