/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack walks by cached unwind rules.
 *
 * At a given return address the step to the caller's frame is fixed: its offset from the stack or the frame pointer, and
 * where the caller's frame pointer was saved, if it was.  libunwind looks that up in the unwind tables, at some 90 ns a
 * walk and 6 ns a frame.  Here each return address is learned once, from libunwind's steps, and a walk through known
 * code is three loads a frame:
 *
 *      rule n   [ return address, 47 bits | successor, 17 bits ]   the rule that followed last time: the next guess
 *               [ its lowest 36 bits      | rule, 28 bits ]        kind, size of the frame, place of the saved frame pointer
 *      slots    1 + the number of a rule, by the lowest bits of its address: where the guess was wrong
 *
 * Invariants  1 Both words name the address, so that no reader mixes two rules.  A successor is a number of the table,
 *               no more: whether it is the right one, its address says.
 *             2 What may not follow these rules has the rule "ask": signal frames, code without tables, frames that
 *               align their stack.  libunwind makes a walk that meets one, or a value that contradicts its rule.
 *             3 Reads only stack memory of the calling thread, after it was found readable.
 * Threads     walk and learn: any.  init and fini: one, before and after.
 * Ordering    Words are relaxed: a pair that does not fit is unknown, and the guess that led there is made anew.  If two
 *             threads learn an address at once, the first rule stays.  The table may be cleared at any time, and is
 *             learned again.
 * Locks       learn: as gpc_unwind_capture.  walk: none.
 * Failure     No frames: ask libunwind.  Always so without memory for the table, and off x86-64.
 * Limits      A full table is cleared.  Code in the place of unloaded code is walked by the old rules until
 *             gpc_walk_forget_unloaded or the next unknown address clears the table, and then learned from libunwind,
 *             whose own cache may be of the old code: unwind.c compares.  A function whose frame ends at neither rsp nor
 *             rbp plus a constant is noticed only when its frame has another size.
 */
#ifndef GPC_STACK_WALK_H
#define GPC_STACK_WALK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* libunwind's steps, as far as they are used. */
struct gpc_walk_steps {
	int (*get_context)(void *context);
	int (*init_local)(void *cursor, void *context);
	int (*step)(void *cursor);
	int (*get_reg)(void *cursor, int reg, uintptr_t *ret_value);
	int (*get_save_loc)(void *cursor, int reg, void *ret_location);
	int (*get_proc_info)(void *cursor, void *ret_info);
};

/* Large programs have some thousand addresses on their stacks. */
#define GPC_WALK_RULES 16384u

struct gpc_walk_rule {
	_Atomic uint64_t place; /* the address and its successor; 0: none */
	_Atomic uint64_t word;  /* the rule, below as many bits of the address as fit */
};

struct gpc_walk_table {
	struct gpc_walk_rule
		rules[GPC_WALK_RULES + 1]; /* the last: of no address, before the first frame */
	_Atomic uint16_t slots[2 * GPC_WALK_RULES];
	_Atomic uint32_t n_rules; /* numbers given out */
};

struct gpc_walk {
	struct gpc_walk_table *table; /* NULL: off */
	struct gpc_walk_steps steps;
	bool (*is_readable)(uintptr_t address);
	_Atomic uint32_t n_learned; /* walks step by step, ever */
	_Atomic uint64_t
		n_unloaded;         /* what the loader had unloaded when the table was last empty */
	_Atomic bool has_forgotten; /* code has been unloaded since the start */
};

/* A place to walk from: what is in the registers behind a return. */
struct gpc_walk_start {
	uintptr_t ip;
	uintptr_t sp;
	uintptr_t bp;
};

/* Off where a step is missing; `readable` says so of the page that an address is in. */
void gpc_walk_init(struct gpc_walk *walk, const struct gpc_walk_steps *steps,
	bool (*readable)(uintptr_t address));
void gpc_walk_fini(struct gpc_walk *walk);

/*
 * Writes at most max return addresses, the first of them start->ip after `skip` others, and returns how many; 0: libunwind
 * is to be asked, and *ret_must_learn where an address is unknown.
 */
uint32_t gpc_walk_frames(const struct gpc_walk *walk, const struct gpc_walk_start *start,
	uint64_t *frames, uint32_t max, uint32_t skip, bool *ret_must_learn);

/* True if code has been unloaded since the table was last empty. */
bool gpc_walk_is_stale(const struct gpc_walk *walk);

/* Clears the table where code has been unloaded since the last time, and returns whether it has. */
bool gpc_walk_forget_unloaded(struct gpc_walk *walk);

/* Leaves the step from this return address to libunwind. */
void gpc_walk_refute(struct gpc_walk *walk, uintptr_t ip);

/* Walks the calling thread's stack by libunwind's steps, and keeps what it saw. */
void gpc_walk_learn(struct gpc_walk *walk);

#endif
