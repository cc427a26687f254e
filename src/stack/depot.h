/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The depot stores every stack once, under a 32-bit id, in an intern table (intern.h) of the records of STACKS.
 *
 * Threads     gpc_depot_known, gpc_depot_put and gpc_depot_find: any.  init and fini: one.
 * Failure     Id 0: no room.  The depot still finds the stacks that it holds, and counts all others as dropped.
 * Limits      Stacks that differ only in frames that the caller cut off have one id.
 */
#ifndef GPC_STACK_DEPOT_H
#define GPC_STACK_DEPOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "stack/intern.h"

#define GPC_DEPOT_MAX_STACKS (1u << 20)

/* A stack: frames[] has the native frames, then the Python frames, encoded as in gpucache_format.h. */
struct gpc_raw_stack {
	const uint64_t *frames;
	uint16_t n_native;
	uint16_t n_python;
	uint32_t flags; /* GPUCACHE_STACK_* */
};

struct gpc_depot {
	struct gpc_intern intern;
	_Atomic uint64_t n_dropped; /* calls of gpc_depot_put that got id 0 */
};

/* Makes room for max_stacks stacks, clamped to 1 .. GPC_DEPOT_MAX_STACKS.  Fails with GPC_NO_METADATA. */
GPC_MUST_CHECK enum gpc_status gpc_depot_init(
	struct gpc_depot *depot, uint32_t max_stacks, const struct gpc_stack_sink *sink);
void gpc_depot_fini(struct gpc_depot *depot);

/* Returns the id of a stack that the depot holds, else 0. */
uint32_t gpc_depot_known(const struct gpc_depot *depot, const struct gpc_raw_stack *stack);

/* As known, but adds a new stack, and says so in *ret_is_new.  0: no room. */
uint32_t gpc_depot_put(
	struct gpc_depot *depot, const struct gpc_raw_stack *stack, bool *ret_is_new);

/* Reads the stack of an id, whose frames stay in place until fini.  False: there is none. */
bool gpc_depot_find(const struct gpc_depot *depot, uint32_t id, struct gpc_raw_stack *ret_stack);

#endif
