/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The evidence about a failed request: what its device holds, who holds it, what grows, who else is there.
 *
 * Programs that probe, and loops that catch the error, fail thousands of times.  The evidence is the same as long as
 * nothing was allocated, freed or returned meanwhile, so it is gathered once for a state of the device; further failures
 * are only judged by it.
 *
 * Threads   Any; the caller holds no lock, and has much stack (base/own_stack.h).
 * Failure   What cannot be found out is unknown, or 0.  NVML is not asked if nothing is printed (oom_report:never).
 */
#ifndef GPC_RUNTIME_RESCUE_GATHER_H
#define GPC_RUNTIME_RESCUE_GATHER_H

#include "oom/ladder.h"
#include "runtime/rescue/rescue.h"

/* The state of a device, as far as evidence depends on it.  Without padding, for memcmp. */
struct gpc_moment {
	const struct gpc_context *context;
	uint64_t available; /* by the driver; the last query is at most 50 ms old */
	uint64_t n_mallocs;
	uint64_t n_frees;
	uint64_t n_driver_mallocs;
	uint64_t n_driver_frees;
	uint64_t direct_bytes;
	uint64_t host_bytes;
	uint64_t pending_bytes;
	uint64_t n_tensors; /* PyTorch's allocations and frees */
	uint64_t is_capturing;
};

struct gpc_gathered {
	struct gpc_moment moment;
	struct gpc_growth_request growth_with; /* with which growth was looked for */
	struct gpucache_oom oom;               /* all but its request, number and verdict */
};

/*
 * `gathered` holds what was found at the last failure on the device, or zeros.  True: it still holds, and was kept.
 */
bool gpc_gather(struct gpc_context *context, struct gpc_gathered *gathered);

/* PyTorch tells that the request failed: adds what it knows to gathered->oom, and judges it again. */
void gpc_gather_torch(struct gpc_gathered *gathered, struct gpc_device *device,
	const struct gpucache_oom_torch *torch);

/* Adds the request to gathered->oom, and judges it. */
void gpc_gather_request(
	struct gpc_gathered *gathered, struct gpc_rescue *rescue, const struct gpc_ladder *ladder);

#endif
