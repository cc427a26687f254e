/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack walks by cached unwind rules, on x86-64.
 *
 * A return address determines the step to the caller's frame: where the frame ends, as an offset from the stack or the
 * frame pointer, and where the caller's frame pointer was saved, if it was.  libunwind looks this up in the unwind
 * tables, in some 90 ns a walk and 6 ns a frame.  Here each return address gets a rule, which is learned once from
 * libunwind's steps.  A walk through known code is three loads a frame:
 *
 *      rule n   [ return address, 47 bits | successor, 17 bits ]   the number of the rule that followed last time
 *               [ its lowest 36 bits      | rule, 28 bits ]        kind, frame size, place of the saved frame pointer
 *      slots    1 + the number of a rule, hashed by the lowest bits of its address: used if the successor is wrong
 *
 * Invariants  1 Both words have the address, so a reader notices if they belong to two rules.  A successor is only a
 *               guess, which is right if the rule of that number has the address that the walk has reached.
 *             2 Some frames need not follow a rule: signal frames, code without tables, frames that align their stack.
 *               They get a rule of kind "ask".  If a walk meets such a rule, or a frame that contradicts its rule,
 *               libunwind makes the walk.
 *             3 A walk reads only memory of the calling thread's stack, after a check that the memory is readable.
 * Threads     gpc_walk_frames and gpc_walk_learn: any.  init and fini: one, before and after.
 * Ordering    Words are stored relaxed.  If a reader finds two different addresses in a pair, the address counts as
 *             unknown and is looked up again.  If two threads learn an address at once, the first rule stays.  The
 *             table may be cleared at any time, and is then learned again.
 * Locks       gpc_walk_learn: as gpc_unwind_capture.  gpc_walk_frames: none.
 * Failure     No frames: the caller asks libunwind.  Without memory for the table, and on other processors, every walk
 *             fails so.
 * Limits      A full table is cleared.  Code in the place of unloaded code is walked by the old rules, until
 *             gpc_walk_forget.  The new rules are learned from libunwind, whose cache may still have the old tables, so
 *             unwind.c compares them with glibc's unwinder.
 *             A function whose frame ends at no constant offset from rsp or rbp gets a wrong rule, which is noticed
 *             when the function runs with a frame of another size.
 */
#ifndef GPC_STACK_WALK_H
#define GPC_STACK_WALK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The functions of libunwind that learning uses. */
struct gpc_walk_steps {
	int (*get_context)(void *context);
	int (*init_local)(void *cursor, void *context);
	int (*step)(void *cursor);
	int (*get_reg)(void *cursor, int reg, uintptr_t *ret_value);
	int (*get_save_loc)(void *cursor, int reg, void *ret_location);
	int (*get_proc_info)(void *cursor, void *ret_info);
};

/* Large programs have some thousand different return addresses on their stacks. */
#define GPC_WALK_RULES 16384u

struct gpc_walk_rule {
	_Atomic uint64_t place; /* the address and its successor; 0: no rule */
	_Atomic uint64_t word; /* the lowest 36 bits of the address, then the 28 bits of the rule */
};

struct gpc_walk_table {
	/* The last has no address: its successor guesses the rule of a walk's first frame. */
	struct gpc_walk_rule rules[GPC_WALK_RULES + 1];
	_Atomic uint16_t slots[2 * GPC_WALK_RULES];
	_Atomic uint32_t n_rules; /* rules added since the table was cleared */
};

struct gpc_walk {
	struct gpc_walk_table *table; /* NULL: off */
	struct gpc_walk_steps steps;
	bool (*is_readable)(uintptr_t address);
	_Atomic uint32_t n_learned; /* calls of gpc_walk_learn since the last gpc_walk_forget */
	_Atomic uint32_t n_changes; /* grows after a rule changed: a walk may go another way */
	_Atomic bool has_forgotten; /* code has been unloaded since the start */
};

/* Where a walk starts: rip, rsp and rbp after a return to ip. */
struct gpc_walk_start {
	uintptr_t ip;
	uintptr_t sp;
	uintptr_t bp;
};

/* Where the caller of the current function goes on after it.  Frame pointers are always kept (Makefile). */
static inline __attribute__((always_inline)) struct gpc_walk_start gpc_walk_caller(void)
{
	const uintptr_t *here = __builtin_frame_address(0);

	return (struct gpc_walk_start){
		.ip = (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)),
		.sp = (uintptr_t)(here + 2),
		.bp = here[0],
	};
}

/* All words of the stack that a walk by rules depended on, in the order in which it needed them: at most two a frame. */
#define GPC_WALK_TRAIL_WORDS 136u

struct gpc_walk_trail {
	_Atomic uint64_t ip; /* the start */
	_Atomic uint64_t sp;
	_Atomic uint64_t bp; /* what it must be there, if it is needed */
	_Atomic bool needs_bp;
	_Atomic uint32_t n;
	_Atomic uint16_t
		offsets[GPC_WALK_TRAIL_WORDS]; /* in words, from the stack pointer at the start */
	_Atomic uint64_t words[GPC_WALK_TRAIL_WORDS];
};

/* If a step is NULL, there is no table.  readable(address) is true if the page of that address can be read. */
void gpc_walk_init(struct gpc_walk *walk, const struct gpc_walk_steps *steps,
	bool (*readable)(uintptr_t address));
void gpc_walk_fini(struct gpc_walk *walk);

/*
 * Omits `skip` return addresses, of which start->ip is the first, writes at most max that follow, and returns their
 * number.  0: ask libunwind.  If an address is unknown, or if of two ways to find a frame's end only one fits,
 * *ret_must_learn is set: call gpc_walk_learn and walk again.
 */
uint32_t gpc_walk_frames(const struct gpc_walk *walk, const struct gpc_walk_start *start,
	uint64_t *frames, uint32_t max, uint32_t skip, bool *ret_must_learn);

/* As gpc_walk_frames, and writes the words that the walk depended on.  0 also if they are too many, or too far out. */
uint32_t gpc_walk_trace(const struct gpc_walk *walk, const struct gpc_walk_start *start,
	uint64_t *frames, uint32_t max, uint32_t skip, struct gpc_walk_trail *trail);

/*
 * True if a walk from `start` would read the words of the trail, which another thread may be changing: *seq differs
 * from `of` as soon as it does, and then no further word of the stack is read.
 */
bool gpc_walk_follows(const struct gpc_walk_start *start, const struct gpc_walk_trail *trail,
	const _Atomic uint32_t *seq, uint32_t of);

static inline uint32_t gpc_walk_n_changes(const struct gpc_walk *walk)
{
	return atomic_load_explicit(&walk->n_changes, memory_order_acquire);
}

/* Forgets the rules of addresses in [start, end), where code was unloaded. */
void gpc_walk_forget(struct gpc_walk *walk, uintptr_t start, uintptr_t end);

/* From now on libunwind makes each walk that meets this return address. */
void gpc_walk_refute(struct gpc_walk *walk, uintptr_t ip);

/* Walks the calling thread's stack by libunwind's steps, and keeps a rule for each return address. */
void gpc_walk_learn(struct gpc_walk *walk);

#endif
