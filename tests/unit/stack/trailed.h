/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks for each test: WITH_STACKS(test) opens and closes `stacks`. */
#ifndef TESTS_UNIT_STACK_TRAILED_H
#define TESTS_UNIT_STACK_TRAILED_H

#include "unit.h"

#include <dlfcn.h>

#include "stack/capture.h"
#include "stack/sink_box.h"

static struct sink_box box;
static struct gpc_stacks stacks;

static inline int set_up(void **state)
{
	const struct gpc_stacks_params params = {
		.sink = sink_box_sink(&box),
		.lookup_in = dlsym,
		.max_stacks = 20000,
	};

	sink_box_clear(&box);
	return gpc_stacks_init(&stacks, &params);
}

static inline int tear_down(void **state)
{
	gpc_stacks_fini(&stacks);
	return 0;
}

static inline void skip_where_it_is_off(void)
{
	if (!stacks.unwind.walk.table)
		skip();
}

FIXTURE(set_up, tear_down);

#endif
