/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults on demand: the n-th call of a named entry point fails with a code of the driver.
 *
 * Entries have the names that libcuda exports ("cuMemAlloc_v2").  A rule without a suffix matches every version, and
 * the variants for per-thread streams; "*" matches every entry.  Each rule counts the calls that it matches.
 *
 * Threads   Any.
 * Failure   gpc_sim_fault_add: false if there are GPC_SIM_MAX_FAULTS rules already.
 */
#ifndef GPC_SIM_FAULT_H
#define GPC_SIM_FAULT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "driver/cuda_abi.h"
#include "sim/gpu/config.h"

struct gpc_sim_faults {
	_Atomic unsigned n_rules; /* read without the lock */

	/* Lock: lock. */
	struct gpc_sim_fault_rule rules[GPC_SIM_MAX_FAULTS];
	uint64_t n_seen[GPC_SIM_MAX_FAULTS];

	pthread_mutex_t lock;
};

void gpc_sim_faults_init(struct gpc_sim_faults *faults, const struct gpc_sim_config *config);
bool gpc_sim_fault_add(
	struct gpc_sim_faults *faults, const char *entry, uint64_t nth, uint64_t count, int code);
void gpc_sim_fault_clear(struct gpc_sim_faults *faults);

/* Counts a call of `entry`.  Returns the error with which it must fail, or CUDA_SUCCESS. */
CUresult gpc_sim_fault_check(struct gpc_sim_faults *faults, const char *entry);

#endif
