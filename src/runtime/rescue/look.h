/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a device after a failed request: free memory by the driver, our accounting, other processes by NVML.
 *
 * These are queried one after another, while other threads move memory between our pools and the driver.  Numbers of
 * different moments do not add up: bytes are missing, or counted twice.  So each reading first waits a moment for bytes
 * on the move (alloc/budget.h), and is repeated if any moved during it.
 *
 * Threads   Any; the caller holds no lock.
 * Failure   Unknown numbers are GPUCACHE_UNKNOWN.  If bytes moved during all LOOKS readings (look.c), the last one
 *           counts.
 */
#ifndef GPC_RUNTIME_RESCUE_LOOK_H
#define GPC_RUNTIME_RESCUE_LOOK_H

#include "oom/balance.h"
#include "oom/neighbours.h"
#include "runtime/context/contexts.h"

struct gpc_look {
	struct gpc_neighbours neighbours;
	uint32_t idle_gpu; /* 1 + a device that no other process uses; 0: none, or unknown */
	uint64_t idle_free;
	struct gpc_device_look device;
	struct gpucache_balance balance;
	uint64_t kind_bytes[GPUCACHE_MAX_KINDS];
	uint64_t piece;            /* the largest cached piece for a request of this context */
	uint64_t other_piece;      /* and in the pools of the others */
	uint64_t returnable_bytes; /* of its segments without a live block */
	uint64_t largest_pending;  /* block of this context */
	uint32_t setup;            /* GPUCACHE_OOM_* */
};

/* Asks NVML, which the first call loads.  False, with all numbers unknown, if another thread is asking it. */
bool gpc_runtime_ask_neighbours(
	const struct gpc_device *device, struct gpc_neighbours *ret_neighbours);

void gpc_look_take(struct gpc_context *context, struct gpc_look *ret_look);

#endif
