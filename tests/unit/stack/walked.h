/* SPDX-License-Identifier: Apache-2.0 */
/* A walk for each test: WITH_WALK(test) opens and closes `unwind`. */
#ifndef TESTS_UNIT_STACK_WALKED_H
#define TESTS_UNIT_STACK_WALKED_H

#include "unit.h"

#include <dlfcn.h>

#include "stack/unwind.h"

#define MAX 64

static struct gpc_unwind unwind;

static const void *volatile keep;

static inline uint32_t n_learned(void)
{
	return atomic_load(&unwind.walk.n_learned);
}

static inline int open_walk(void **state)
{
	gpc_unwind_init(&unwind, dlsym);
	return 0;
}

static inline int close_walk(void **state)
{
	gpc_unwind_fini(&unwind);
	return 0;
}

static inline void skip_where_it_is_off(void)
{
	if (!unwind.walk.table)
		skip();
}

static inline int capture_only(void)
{
	uint64_t frames[MAX];
	uint32_t n = gpc_unwind_capture(&unwind, frames, MAX, 0);

	keep = frames;
	return (int)n;
}

static inline void guess(struct gpc_walk_rule *rule, uint32_t successor)
{
	uint64_t address = atomic_load(&rule->place) & ((UINT64_C(1) << 47) - 1);

	atomic_store(&rule->place, address | (uint64_t)successor << 47);
}

#endif
