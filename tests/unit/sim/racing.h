/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests with a race detector: two streams beside each other. */
#ifndef GPC_TESTS_UNIT_SIM_RACING_H
#define GPC_TESTS_UNIT_SIM_RACING_H

#include "tests/unit/sim/machine.h"

static struct gpc_sim_stream *one;
static struct gpc_sim_stream *two;

static inline int set_up_streams(uint64_t memory)
{
	if (set_up_machine(memory, true))
		return -1;
	one = stream_create(CU_STREAM_NON_BLOCKING);
	two = stream_create(CU_STREAM_NON_BLOCKING);
	return 0;
}

#endif
