/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture that is on no trail lets the native walk and the Python walk fill one local array of frames, and has the
 * depot intern the array.  Only a stack that is new to the depot costs a look for new modules.
 */
#include "stack/capture.h"

#include <string.h>

#include "base/check.h"
#include "base/lock.h"

/* Returns n, or `limit` with GPUCACHE_STACK_CUT set in *flags. */
static uint32_t cut(uint32_t n, uint32_t limit, uint32_t *flags)
{
	if (n <= limit)
		return n;
	*flags |= GPUCACHE_STACK_CUT;
	return limit;
}

/* True if something was unloaded, by whose rules the caller may have walked. */
static bool forget_unloaded(void *self)
{
	struct gpc_modules *modules = self;
	uint32_t n_turns = gpc_modules_n_turns(modules);

	gpc_modules_look(modules);
	return gpc_modules_n_turns(modules) != n_turns;
}

/* Returns the id of the stack from `start` on.  *ret_is_known: it was seen before, and all that is in it is known. */
static __attribute__((noinline)) uint32_t take_walk(struct gpc_stacks *stacks,
	const struct gpc_walk_start *start, uint32_t skip, bool *ret_is_known)
{
	uint64_t frames[2 * GPC_STACKS_DEPTH + 1];
	struct gpc_raw_stack stack;
	bool is_new = false;
	uint32_t n_turns;
	bool is_sure;
	bool is_any;
	uint32_t n;
	uint32_t id;

	do {
		n_turns = gpc_modules_n_turns(&stacks->modules);
		stack = (struct gpc_raw_stack){ .frames = frames };
		/* One frame more than is stored, to know whether the stack is deeper. */
		n = gpc_unwind_capture_from(
			&stacks->unwind, start, frames, GPC_STACKS_DEPTH + 1, skip);
		stack.n_native = (uint16_t)cut(n, GPC_STACKS_DEPTH, &stack.flags);
		is_sure = gpc_modules_mark(&stacks->modules, frames, stack.n_native);
		stack.n_python = (uint16_t)gpc_python_capture(
			&stacks->python, frames + stack.n_native, GPC_STACKS_DEPTH, &stack.flags);
		is_any = stack.n_native || stack.n_python;
		id = is_any ? gpc_depot_known(&stacks->depot, &stack) : 0;
		if (!is_any || id || gpc_intern_is_closed(&stacks->depot.intern))
			break;
		gpc_modules_look(&stacks->modules);
		/* Rules of unloaded code may have misled this walk, and a generation may have changed: walk again. */
	} while (gpc_modules_n_turns(&stacks->modules) != n_turns);
	if (stack.flags & GPUCACHE_STACK_NO_PYTHON)
		atomic_fetch_add_explicit(&stacks->n_no_python, 1, memory_order_relaxed);
	*ret_is_known = id && is_sure && !(stack.flags & GPUCACHE_STACK_NO_PYTHON);
	if (!is_any || id)
		return id;
	return gpc_depot_put(&stacks->depot, &stack, &is_new);
}

/* Changes whenever the words of a trail may mean another stack than before. */
static uint64_t epoch_of(const struct gpc_stacks *stacks)
{
	return (uint64_t)gpc_modules_n_turns(&stacks->modules) << 32 |
	       gpc_walk_n_changes(&stacks->unwind.walk);
}

/* True if what a capture started with is still so: Python may have been found since, or be about to end. */
static bool is_still(struct gpc_stacks *stacks, const struct gpc_trail_start *start)
{
	struct gpc_python_top top;

	return epoch_of(stacks) == start->epoch && gpc_python_find_top(&stacks->python, &top) &&
	       top.thread == start->python.thread && top.frame == start->python.frame;
}

/* For the debug variants: true if a walk finds stack `id`, too, or something has changed since. */
static __attribute__((unused)) bool is_as_walk_says(
	struct gpc_stacks *stacks, const struct gpc_trail_start *start, uint32_t id)
{
	bool is_known;

	return take_walk(stacks, &start->walk, start->skip, &is_known) == id ||
	       !is_still(stacks, start);
}

/* A stack that was never seen before may never be seen again, so the trail of a known one is kept. */
static __attribute__((noinline)) void keep_trail(
	struct gpc_stacks *stacks, const struct gpc_trail_start *start, uint32_t id)
{
	struct gpc_raw_stack stack;

	if (is_still(stacks, start) && gpc_depot_find(&stacks->depot, id, &stack))
		gpc_trails_keep(&stacks->trails, &stacks->unwind.walk, &stacks->python, start, id,
			&stack, GPC_STACKS_DEPTH);
}

__attribute__((noinline)) uint32_t gpc_stack_capture(struct gpc_stacks *stacks, uint32_t skip)
{
	struct gpc_trail_start start = { .walk = gpc_walk_caller(), .skip = skip };
	bool may_follow;
	bool is_known;
	uint32_t id;

	gpc_modules_watch(&stacks->modules);
	start.epoch = epoch_of(stacks);
	may_follow = gpc_python_find_top(&stacks->python, &start.python);
	id = may_follow ? gpc_trails_find(&stacks->trails, &stacks->python, &start) : 0;
	if (id) {
		GPC_CHECK(is_as_walk_says(stacks, &start, id));
		return id;
	}
	id = take_walk(stacks, &start.walk, skip, &is_known);
	if (may_follow && is_known)
		keep_trail(stacks, &start, id);
	return id;
}

uint64_t gpc_stacks_dropped(const struct gpc_stacks *stacks)
{
	return atomic_load_explicit(&stacks->depot.n_dropped, memory_order_relaxed);
}

uint64_t gpc_stacks_dropped_python(const struct gpc_stacks *stacks)
{
	return atomic_load_explicit(&stacks->n_no_python, memory_order_relaxed);
}

enum gpc_status gpc_stacks_init(struct gpc_stacks *stacks, const struct gpc_stacks_params *params)
{
	enum gpc_status st;

	*stacks = (struct gpc_stacks){ 0 };
	st = gpc_depot_init(&stacks->depot, params->max_stacks, &params->sink);
	if (st != GPC_OK)
		return st;
	st = gpc_codes_init(&stacks->codes, &params->sink);
	if (st != GPC_OK)
		goto undo_depot;
	st = gpc_modules_init(&stacks->modules, &params->sink, &stacks->unwind.walk);
	if (st != GPC_OK)
		goto undo_codes;
	gpc_unwind_init(&stacks->unwind, params->lookup_in);
	stacks->unwind.forget_unloaded = forget_unloaded;
	stacks->unwind.self = &stacks->modules;
	gpc_trails_init(&stacks->trails);
	gpc_python_init(&stacks->python, params->with_python, &stacks->codes, params->lookup_in);
	return GPC_OK;

undo_codes:
	gpc_codes_fini(&stacks->codes);
undo_depot:
	gpc_depot_fini(&stacks->depot);
	return st;
}

void gpc_stacks_fini(struct gpc_stacks *stacks)
{
	gpc_trails_fini(&stacks->trails);
	gpc_unwind_fini(&stacks->unwind);
	gpc_modules_fini(&stacks->modules);
	gpc_codes_fini(&stacks->codes);
	gpc_depot_fini(&stacks->depot);
}
