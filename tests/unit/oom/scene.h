/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A failed request that every test of src/oom starts from: a GPU of 100 GiB, 8 GiB asked for, 4 GiB
 * short, and nothing but the program's own memory in the way.
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
