/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trails: captures, each kept with all that it read.
 *
 * What a capture finds depends on nothing but the registers it starts with, the words of the stack that hold return
 * addresses and saved frame pointers, the list of Python's frames, and the rules of walking.  A trail has these words and
 * the id of the stack.  A capture that would read the same words finds the same stack, so it compares instead of walking:
 *
 *      walk    ip -> rule -> end of the frame -> ip -> rule -> ...     each load waits for the one before
 *      trail   sp + 40 == a?   sp + 120 == b?   sp + 168 == c? ...     all loads at once; a wrong one ends it
 *
 * A comparison is exact: it reads a word only where all words before are as they were, and these say that the walk would
 * read that word next.  So a trail needs no check afterwards, and reads no memory that a walk would not read.
 *
 * A program in a loop captures the same stacks in the same order.  So each trail keeps which one followed it last, in the
 * same thread, and that one is compared first.
 *
 * Invariants  1 A trail's words are those of a walk that found the frames of its stack, by the rules of its epoch.
 *             2 `seq` of a trail is odd while it is written, and grows with each writing.
 *             3 What is not in the words is in the epoch (rules, and objects in the places of others), or never changes (a
 *               stack of an id, the code object of a fingerprint).  Where neither holds there is no trail.
 * Threads     Any.  Trails of different threads differ in their stack pointer.
 * Ordering    All of a trail is stored with release after seq became odd, and loaded with acquire before seq is loaded
 *             again: if seq has changed, the comparison does not count.  Nor does half a trail make it read anything: seq
 *             is loaded again before each word of the stack is read, because what lies where another trail would read may
 *             be unmapped; and frames of Python are read at addresses that Python's own list has.
 *             The epoch grows after a rule has changed, and is read before a capture starts.
 * Progress    find: wait-free.  keep: gives up if another thread keeps a trail.
 * Failure     Without memory there are no trails, and each capture walks.
 * Limits      GPC_TRAILS trails of GPC_WALK_TRAIL_WORDS words and GPC_PYTHON_TRAIL_LINKS frames of Python; the oldest is
 *             replaced.  3 KiB each, 6 MiB in all, of which only pages in use take memory.
 */
#ifndef GPC_STACK_TRAILS_H
#define GPC_STACK_TRAILS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "stack/depot.h"
#include "stack/python.h"
#include "stack/walk.h"

#define GPC_TRAILS       2048u
#define GPC_TRAILS_DEPTH 64u

struct gpc_trail {
	_Atomic uint32_t seq; /* 0: never written */
	_Atomic uint32_t id;  /* of the stack */
	_Atomic uint32_t skip;
	_Atomic uint64_t epoch;
	_Atomic uint16_t next;      /* 1 + the number of another trail with the same hash */
	_Atomic uint16_t successor; /* the trail that followed this one */
	struct gpc_walk_trail walk;
	struct gpc_python_trail python;
};

struct gpc_trails {
	struct gpc_trail *trails;           /* NULL: off */
	_Atomic uint16_t heads[GPC_TRAILS]; /* 1 + the number of the newest trail with the hash */

	/* Lock: lock. */
	uint32_t n_kept;
	struct gpc_lock lock;
};

/* Where a capture starts, and what the trails of its thread are looked up by. */
struct gpc_trail_start {
	struct gpc_walk_start walk;
	struct gpc_python_top python;
	uint64_t epoch; /* changes whenever the same words may mean another stack */
	uint32_t skip;  /* frames that the stack omits */
};

/* Without memory: off. */
void gpc_trails_init(struct gpc_trails *trails);
void gpc_trails_fini(struct gpc_trails *trails);

/* Returns the id of the stack if the calling thread is on a trail, else 0. */
uint32_t gpc_trails_find(const struct gpc_trails *trails, const struct gpc_python *python,
	const struct gpc_trail_start *start);

/*
 * Keeps the trail of the calling thread, whose stack from `start` on, of at most `depth` <= GPC_TRAILS_DEPTH frames of each
 * kind, is `stack`, which has this id.  Keeps nothing if its own walk finds other native frames: that of the
 * capture may have been made by other rules, or by libunwind.
 */
void gpc_trails_keep(struct gpc_trails *trails, const struct gpc_walk *walk,
	const struct gpc_python *python, const struct gpc_trail_start *start, uint32_t id,
	const struct gpc_raw_stack *stack, uint32_t depth);

#endif
