/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The failed request that all tests of src/oom start from: 8 GiB requested on a GPU of 100 GiB, 4 GiB missing, all
 * other memory live in the program.
 */
#ifndef GPC_TESTS_UNIT_OOM_SCENE_H
#define GPC_TESTS_UNIT_OOM_SCENE_H

#include "base/bytes.h"
#include "gpucache_format.h"
#include "oom/verdict.h"

struct scene {
	struct gpucache_oom oom;
	struct gpc_verdict_facts facts;
};

static inline struct scene scene_of_an_exhausted_gpu(void)
{
	struct scene scene = {
		.oom = {
			.requested = 8 * GPC_GIB,
			.rounded = 8 * GPC_GIB,
			.stack = 7,
			.kind = GPUCACHE_KIND_DEVICE,
			.balance = {
				.requested = 90 * GPC_GIB,
				.process_outside = 2 * GPC_GIB,
				.other_processes = 3 * GPC_GIB,
				.driver_reserve = 1 * GPC_GIB,
				.device_free = 4 * GPC_GIB,
				.device_total = 100 * GPC_GIB,
			},
		},
		.facts = gpc_verdict_facts_unknown(),
	};

	return scene;
}

#endif
