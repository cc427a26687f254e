/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs: one trace, one policy, one device.
 *
 * Every run has a simulated device of its own, whose calls cost nothing, so the time of a run is
 * the policy's. What is reserved is what that device has handed out, in its steps of 2 MiB, not
 * what the policy says of itself.
 *
 * Threads     One.
 * Failure     gpc_run: a status means that no run was made.  A request that failed is a result:
 *             has_failed.
 * Limits      gpc_run_smallest takes passing as monotone in the device's size, which is true but
 *             for small steps.
 */
#ifndef GPC_REPLAY_RUN_H
#define GPC_REPLAY_RUN_H

#include "tools/gpumem-replay/policy.h"
#include "tools/gpumem-replay/trace.h"

#define GPC_RUN_DEVICE_STEP UINT64_C(0x200000) /* what the driver gives memory in: 2 MiB */

struct gpc_run_settings {
	struct gpc_policy_settings policy;
	uint64_t device_bytes; /* 0: more than enough */
	bool check_always;     /* the heap checker after every operation */
};

struct gpc_run {
	const struct gpc_policy_ops *policy;
	uint64_t device_bytes;
	uint64_t peak_live_bytes;
	uint64_t peak_reserved_bytes;
	uint64_t reserved_at_end_bytes;
	uint64_t n_operations;
	uint64_t n_allocs;
	uint64_t n_hits; /* served without asking the driver for memory */
	uint64_t n_driver_allocs;
	uint64_t n_driver_frees;
	uint64_t n_driver_calls;    /* all kinds */
	uint64_t n_failures_served; /* failures of the trace that would be served here */
	uint64_t elapsed_ns;
	uint64_t smallest_device_bytes; /* 0: not looked for */

	bool has_failed;
	enum gpc_status failure;
	uint64_t failed_event; /* the first is 1 */
	uint32_t failed_line;
	uint64_t failed_size;
	const char *broken; /* the invariant that did not hold; NULL: all did */
};

GPC_MUST_CHECK enum gpc_status gpc_run(const struct gpc_trace *trace,
	const struct gpc_policy_ops *policy, const struct gpc_run_settings *settings,
	struct gpc_run *ret_run);

/* The smallest device on which no operation fails, in steps of 2 MiB. */
GPC_MUST_CHECK enum gpc_status gpc_run_smallest(const struct gpc_trace *trace,
	const struct gpc_policy_ops *policy, const struct gpc_run_settings *settings,
	uint64_t *ret_bytes);

#endif
