/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the policies that use this library's allocator. */
#ifndef GPC_REPLAY_POLICY_GPUCACHE_H
#define GPC_REPLAY_POLICY_GPUCACHE_H

#include "alloc/pool.h"
#include "tools/replay/policy.h"

struct gpucache {
	struct gpc_heap heap;
	struct gpc_budget budget;
	struct gpc_pool pool;
	const struct gpc_machine *machine;
	bool is_told_streams;
	bool is_host_order; /* the host waits in each free */
};

#endif
