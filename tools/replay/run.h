/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs: replays one trace against one policy on a machine of its own (machine.h).
 *
 *      trace --> ALLOC, FREE, FAILURE    the policy     timed; if the simulated clock moves, the host has waited
 *            '-> WORK, ORDER, SYNC       the machine    not timed; the race detector checks who uses which memory
 *
 * Calls of the simulated driver take little time, so the time of a run is the policy's.
 *
 * Threads     One.
 * Failure     GPC_OK means that the trace was replayed, even if a request failed (has_failed) or memory was reused too
 *             early (n_races).  After any other status *ret_run is undefined.
 * Limits      gpc_run_smallest assumes that a trace that fits on a device fits on every larger one.  This is true,
 *             except for a few steps near the smallest device.
 */
#ifndef GPC_REPLAY_RUN_H
#define GPC_REPLAY_RUN_H

#include "tools/replay/policy.h"
#include "tools/replay/trace.h"

#define GPC_MAX_POLICIES 11
/* The driver allocates memory in multiples of 2 MiB. */
#define GPC_RUN_DEVICE_STEP UINT64_C(0x200000)

struct gpc_run_settings {
	struct gpc_policy_settings policy;
	uint64_t device_bytes; /* 0: more than enough */
	bool check_always;     /* runs the policy's check() after every operation */
	bool is_unwatched;     /* neither attaches the race detector nor measures time */
};

struct gpc_run {
	const struct gpc_policy_ops *policy;
	uint64_t device_bytes;
	uint64_t peak_device_bytes; /* gpc_machine_peak_bytes */
	uint64_t peak_live_bytes;
	uint64_t peak_reserved_bytes;
	uint64_t reserved_at_end_bytes;
	uint64_t live_at_end_bytes;
	uint64_t n_operations;
	uint64_t n_allocs;
	uint64_t n_hits;                      /* served without a driver allocation */
	uint64_t n_calls[GPC_SIM_COST_COUNT]; /* of the driver, by kind; refused calls count, too */
	uint64_t n_driver_calls;              /* the sum of n_calls */
	uint64_t driver_ns;                   /* what these calls cost by gpc_sim_published_costs */
	uint64_t n_failures_served;           /* requests that failed in the trace, but not here */
	uint64_t n_failures_again;            /* and here, too */
	uint64_t elapsed_ns;            /* time in the policy; gpc_run: the least of several runs */
	uint64_t smallest_device_bytes; /* 0: not searched */

	/* The next members but peak_pending_bytes are 0 unless the trace has work. */
	bool has_work;
	uint64_t peak_pending_bytes; /* freed, but not reusable yet; set in every run */
	uint64_t n_waits;    /* allocations and frees in which the host waited for the device */
	uint64_t waited_ns;  /* on the simulated clock */
	uint64_t program_ns; /* from the first to the last operation, on the simulated clock */
	uint64_t n_races;
	/* In the first race: the allocation whose kernels could still use the memory that failed_event got. */
	uint64_t race_old_event;

	bool has_failed;
	enum gpc_status failure;
	/* The operation that failed, broke the heap or raced; all 0: the heap was broken only at the end. */
	enum gpc_trace_op_kind failed_kind;
	uint64_t failed_event; /* its number in the trace; the first is 1 */
	uint64_t failed_line;
	uint64_t failed_size;
	const char *broken; /* the first broken invariant; NULL: none */
};

static inline bool gpc_run_is_good(const struct gpc_run *run)
{
	return !run->has_failed && !run->broken && run->n_races == 0;
}

/* Replays a short trace several times, for a better elapsed_ns. */
GPC_MUST_CHECK enum gpc_status gpc_run(const struct gpc_trace *trace,
	const struct gpc_policy_ops *policy, const struct gpc_run_settings *settings,
	struct gpc_run *ret_run);

/* Replays the trace exactly once, so elapsed_ns is a single measurement. */
GPC_MUST_CHECK enum gpc_status gpc_run_once(const struct gpc_trace *trace,
	const struct gpc_policy_ops *policy, const struct gpc_run_settings *settings,
	struct gpc_run *ret_run);

/*
 * Finds the smallest device, in steps of GPC_RUN_DEVICE_STEP, on which no operation fails.  If an operation fails even
 * with plenty of memory, returns its status.  *ret_plenty, unless NULL, is the run with plenty of memory.
 */
GPC_MUST_CHECK enum gpc_status gpc_run_smallest(const struct gpc_trace *trace,
	const struct gpc_policy_ops *policy, const struct gpc_run_settings *settings,
	uint64_t *ret_bytes, struct gpc_run *ret_plenty);

/*
 * The largest of 512, 256, ... 32 MiB, but none above `most`, for which `serves` is true; 0: there is none.  As
 * max_split_size a larger one slows the cache less.
 */
uint64_t gpc_run_find_max_split(
	uint64_t most, bool (*serves)(void *arg, uint64_t max_split_size), void *arg);

#endif
