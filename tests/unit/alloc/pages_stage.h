/* SPDX-License-Identifier: Apache-2.0 */
/* The stage on a small device with pages, where no driver call waits by itself. */
#ifndef GPC_TESTS_UNIT_ALLOC_PAGES_STAGE_H
#define GPC_TESTS_UNIT_ALLOC_PAGES_STAGE_H

#include "one_stage.h"

#define DEVICE (256 * GPC_MIB)

static inline void open_mode(enum gpc_vmm vmm, bool is_one_stream)
{
	struct gpc_sim_config config = stage_config();
	struct gpc_pool_params params = stage_params();

	config.memory = DEVICE;
	config.context_cost = 0;
	config.free_waits = UINT64_MAX; /* nothing waits by itself */
	params.vmm = vmm;
	params.is_one_stream = is_one_stream;
	stage_open_on(&stage, &config, &params, NULL);
}

#define open_mode(...) AT(open_mode(__VA_ARGS__))

static inline int open_on(void **state)
{
	open_mode(GPC_VMM_ON, true);
	return 0;
}

static inline uint64_t used(void)
{
	return DEVICE - gpc_sim_device_free_bytes(&stage.sim->devices[0]);
}

static inline uint64_t n_pages(void)
{
	return stage.drv.counters.n_page_map;
}

/* Live at both ends, and what is between them is free: [live 3 MiB | free 94 MiB | live 3 MiB]. */
static inline void make_gap(gpc_devptr *ret_first, gpc_devptr *ret_last)
{
	gpc_devptr middle;

	stage_free(&stage, stage_alloc(&stage, 100 * GPC_MIB));
	*ret_first = stage_alloc(&stage, 3 * GPC_MIB);
	middle = stage_alloc(&stage, 94 * GPC_MIB);
	*ret_last = stage_alloc(&stage, 3 * GPC_MIB);
	assert_int_equal(*ret_last, *ret_first + 97 * GPC_MIB);
	stage_free(&stage, middle);
	assert_int_equal(used(), 100 * GPC_MIB);
}

#endif
