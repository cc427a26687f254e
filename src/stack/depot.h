/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The depot: every stack once, under a 32-bit id.  An intern table (intern.h) of the records of STACKS.
 *
 * Threads     gpc_depot_put and gpc_depot_find: any.  init and fini: one.
 * Failure     Id 0: no room.  The depot still finds its stacks, and counts others as dropped.
 * Limits      Stacks that differ only beyond the caller's maximum depth are one.
 */
#ifndef GPC_STACK_DEPOT_H
#define GPC_STACK_DEPOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "stack/intern.h"

#define GPC_DEPOT_MAX_STACKS (1u << 20)

/* A stack: native frames, then Python frames, as in gpucache_format.h. */
struct gpc_stack_frames {
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

/* Returns the id of these frames; 0: they are new. */
uint32_t gpc_depot_known(const struct gpc_depot *depot, const struct gpc_stack_frames *stack);

/* Returns the id of these frames, adding them if they are new; 0 without room.  *ret_is_new: whether it added them. */
uint32_t gpc_depot_put(
	struct gpc_depot *depot, const struct gpc_stack_frames *stack, bool *ret_is_new);

/* Returns the frames of id, which stay in place until fini; false: there is none. */
bool gpc_depot_find(const struct gpc_depot *depot, uint32_t id, struct gpc_stack_frames *ret_stack);

#endif
