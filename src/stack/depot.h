/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The depot: every stack once, under a 32-bit id.  An intern table (intern.h) of the records that go to STACKS.
 *
 * Threads     gpc_depot_put and gpc_depot_find: any.  init and fini: one.
 * Failure     Id 0: no room.  The depot then still knows its stacks, and counts the others as dropped.
 * Limits      Two stacks that differ in depth only beyond the caller's cut are one.
 */
#ifndef GPC_STACK_DEPOT_H
#define GPC_STACK_DEPOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "stack/intern.h"

#define GPC_DEPOT_DEFAULT_STACKS 8192u
#define GPC_DEPOT_MAX_STACKS     (1u << 20)

/* What one stack is: native frames, then Python frames, as gpucache_format.h writes them. */
struct gpc_stack_frames {
	const uint64_t *frames;
	uint16_t n_native;
	uint16_t n_python;
	uint32_t flags; /* GPUCACHE_STACK_* */
};

struct gpc_depot {
	struct gpc_intern intern;
	_Atomic uint64_t n_dropped; /* calls that got id 0 */
};

/* Room for max_stacks stacks (1 .. GPC_DEPOT_MAX_STACKS, else cut to that).  GPC_NO_METADATA. */
GPC_MUST_CHECK enum gpc_status gpc_depot_init(
	struct gpc_depot *depot, uint32_t max_stacks, const struct gpc_stack_sink *sink);
void gpc_depot_fini(struct gpc_depot *depot);

/* The id of these frames, or 0.  *ret_is_new: they were not known before this call. */
uint32_t gpc_depot_put(
	struct gpc_depot *depot, const struct gpc_stack_frames *stack, bool *ret_is_new);

/* The frames of id; they stay where they are until fini.  False where there is no such id. */
bool gpc_depot_find(const struct gpc_depot *depot, uint32_t id, struct gpc_stack_frames *ret_stack);

#endif
