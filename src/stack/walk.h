/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack walks by cached unwind rules.
 *
 * At a given return address the step to the caller's frame is fixed: its offset from the stack or frame pointer, and
 * where the caller's frame pointer was saved, if it was.  libunwind looks that up in the unwind tables, at some 90 ns a
 * walk and 6 ns a frame.  Here each return address is learned once, from libunwind's steps, and a walk through known
 * code is three loads a frame:
 *
 *      rule n   [ return address, 47 bits | successor, 17 bits ]   the rule that followed last time: the next guess
 *               [ its lowest 36 bits      | rule, 28 bits ]        kind, frame size, place of the saved frame pointer
 *      slots    1 + the number of a rule, by the lowest bits of its address: used if the guess was wrong
 *
 * Invariants  1 Both words name the address, so that no reader mixes two rules.  A successor is only a
 *               guess: it is right if the rule of that number has the address that was looked for.
 *             2 Frames that need not follow such a rule have the rule "ask": signal frames, code without tables,
 *               frames that align their stack.  libunwind makes a walk that meets one, or a contradiction to a rule.
 *             3 Reads only stack memory of the calling thread, after it was found readable.
 * Threads     walk and learn: any.  init and fini: one, before and after.
 * Ordering    Words are relaxed: a pair of different addresses counts as unknown, and is looked up anew.  If two
 *             threads learn an address at once, the first rule stays.  The table may be cleared at any time, and is
 *             learned again.
 * Locks       learn: as gpc_unwind_capture.  walk: none.
 * Failure     No frames: the caller asks libunwind.  Always so without memory for the table, and on other processors.
 * Limits      A full table is cleared.  Code in the place of unloaded code is walked by the old rules until
 *             gpc_walk_forget_unloaded or the next unknown address clears the table, and then learned from libunwind,
 *             whose cache may still have the old tables: unwind.c compares with glibc's unwinder.  A function whose
 *             frame ends at neither rsp nor rbp plus a constant is noticed only when its frame has another size.
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
		rules[GPC_WALK_RULES + 1]; /* the last: its successor guesses the first frame */
	_Atomic uint16_t slots[2 * GPC_WALK_RULES];
	_Atomic uint32_t n_rules; /* numbers given out */
};

struct gpc_walk {
	struct gpc_walk_table *table; /* NULL: off */
	struct gpc_walk_steps steps;
	bool (*is_readable)(uintptr_t address);
	_Atomic uint32_t n_learned;  /* calls of gpc_walk_learn */
	_Atomic uint64_t n_unloaded; /* the loader's count of unloaded objects, as last seen */
	_Atomic bool has_forgotten;  /* code has been unloaded since the start */
};

/* Where a walk starts: the registers after a return to ip. */
struct gpc_walk_start {
	uintptr_t ip;
	uintptr_t sp;
	uintptr_t bp;
};

/* Off if a step is missing.  readable: true if the page of that address can be read. */
void gpc_walk_init(struct gpc_walk *walk, const struct gpc_walk_steps *steps,
	bool (*readable)(uintptr_t address));
void gpc_walk_fini(struct gpc_walk *walk);

/*
 * Omits `skip` return addresses, of which start->ip is the first, writes at most max that follow, and returns how many.
 * 0: ask libunwind; *ret_must_learn is then true if an address is unknown, or fits its rule in one of two ways only.
 */
uint32_t gpc_walk_frames(const struct gpc_walk *walk, const struct gpc_walk_start *start,
	uint64_t *frames, uint32_t max, uint32_t skip, bool *ret_must_learn);

/* True if code has been unloaded since init or the last gpc_walk_forget_unloaded. */
bool gpc_walk_is_stale(const struct gpc_walk *walk);

/* Clears the table if code has been unloaded since init or the last call; true if it did. */
bool gpc_walk_forget_unloaded(struct gpc_walk *walk);

/* Leaves the step from this return address to libunwind. */
void gpc_walk_refute(struct gpc_walk *walk, uintptr_t ip);

/* Walks the calling thread's stack by libunwind's steps, and keeps what it saw. */
void gpc_walk_learn(struct gpc_walk *walk);

#endif
