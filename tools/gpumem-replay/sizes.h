/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes: a policy on devices from barely large enough to more than enough.  A policy trades driver calls for room, so
 * neither figure means much without the other.
 *
 * Threads     One.
 * Failure     gpc_sizes_run: as gpc_run.  A size on which a request fails is a result.
 */
#ifndef GPC_REPLAY_SIZES_H
#define GPC_REPLAY_SIZES_H

#include "tools/replay/run.h"

#define GPC_N_SIZES 6

/* Thousandths of the peak live bytes, on top of the memory held all the time; 0: more than enough. */
extern const uint64_t gpc_sizes[GPC_N_SIZES];

struct gpc_sizes {
	struct gpc_run runs[GPC_N_SIZES];
	uint64_t smallest_device_bytes;
};

GPC_MUST_CHECK enum gpc_status gpc_sizes_run(const struct gpc_trace *trace,
	const struct gpc_policy_ops *policy, const struct gpc_run_settings *settings,
	struct gpc_sizes *ret_sizes);

#endif
