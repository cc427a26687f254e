/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers: the order that cudaFree gives, kept on the device instead of by stopping the host.
 *
 * Plain cudaFree waits for the device.  So whatever was submitted before it is over before anything that
 * is submitted after it, on whichever stream, and programs rely on that.  A context can be told the
 * same: at the first submission after one or more frees, before that goes to the driver, ONE event is
 * recorded that stands for all work of the context so far, and all its later work waits for that event.
 *
 *      host     launch K   free p   malloc -> p   launch L                  host never waits
 *                                                 |  barrier is due: record E, wait E, then L
 *      device   [ K uses p ..................... ]E[ L uses p ]
 *
 * So a block that cudaFree gave back is FREE at once, for everybody: its new owner can only use it by a
 * submission that comes after the free, and that raises the barrier first.  Nothing is pending, and a
 * malloc never waits.  A run of frees and mallocs without a submission costs nothing, and one with it two
 * calls of the driver.
 *
 * Who may come between is looked at one by one:
 *
 *   threads        A submission that may use the block happens after the malloc, and that after the free,
 *                  which counted the barrier as due under the pool's lock: so it is seen.  Two threads that
 *                  see it both raise one; each goes to the driver only behind its own, or behind one that
 *                  is complete.  Frees are numbered, and a barrier covers those that it found when it began.
 *   legacy stream  Alone it is in order by itself (fence.h, "One stream"), and nothing is due.
 *   per-thread, non-blocking and later streams, synchronous copies: cuda.h says all work of the context;
 *                  tests/gpu/order.c asks each of them.
 *   green contexts The event of a primary context stands for them, and they wait with it (cuda.h, 12.5).
 *   captures       Both calls break them.  Before a capture begins all that is loose is put in order; while
 *                  one is open nothing is FREE at once, and the barrier stays due until it is over.
 *   peers          Work of another context is behind no barrier of ours: with members a block waits for
 *                  its fence, and the barrier is still raised, for the order.
 *   others         Another process, a network card, the host: they wait for no event, so the host does
 *                  before they are given memory (gpc_pool_settle), and an exported block waits for its fence.
 *   the driver     Memory goes back to it only when the event of a barrier behind its last free has
 *                  passed: that cuMemFree itself waits is nowhere promised.
 *   old drivers    Without both calls (before CUDA 12.5) the host waits in cudaFree, as the driver does.
 *
 * What only looks (a query, a wait for a stream or an event) or frees host memory finds in a plain
 * process that all before the free is over.  So there the host waits for the event.
 *
 * Invariants
 *   B1  A block that is FREE and was not known to be done when it was freed is loose: its free is numbered
 *       above `raised`, or its work and any later work are kept apart by the device.
 *   B2  passed <= raised <= n_frees.
 *   B3  No capture begins while a block is loose.
 * Threads     The pool's lock, but for gpc_duties, which anybody may read.
 * Ordering    A duty is taken off, with release, after the driver was told; who reads 0, with acquire,
 *             comes behind that.
 * Progress    No lock is held over a call of the driver that may block: a record may, where a stream's
 *             queue is full.
 * Failure     Where an event cannot be recorded or waited for, the host waits for the context at once.
 * Limits      Streams do not overlap around a free, as with the plain driver.  In a plain process only the
 *             thread that frees waits; here the next work of every thread of the context does.  A kernel that
 *             spins until another thread submits work to the same context, while a third one frees, never
 *             ends: free_order:host or fence.  Where the context has only the legacy stream, a query behind a
 *             free does not wait, nor does one behind the frees of that time later.  What the host reads without any call, after cudaFree and nothing else, is not
 *             waited for: free_order:host.
 */
#ifndef GPC_ALLOC_BARRIER_H
#define GPC_ALLOC_BARRIER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"

/* Of all pools of a heap: what a hook looks at before each submission, and before each query. */
struct gpc_duties {
	_Atomic uint32_t n_due;       /* pools whose next submission raises a barrier */
	_Atomic uint32_t n_unsettled; /* pools of whose last free the host does not know the end */
};

struct gpc_barrier {
	/* Lock: the pool's. */
	uint64_t n_frees;  /* blocks that were FREE at once, or whose free owes the order */
	uint64_t raised;   /* up to this one they are behind a barrier */
	uint64_t recorded; /* up to this one the event, or the mark, covers them */
	uint64_t passed;   /* up to this one all work before them is known to be over */
	gpc_event event;   /* of the last barrier; 0: none yet */
	gpc_event
		mark; /* of the legacy stream alone: the end of what the one-stream rule left loose */
	bool is_marked;             /* `recorded` is the mark's, not the event's */
	bool is_due;                /* counted in n_due */
	bool is_unsettled;          /* counted in n_unsettled */
	atomic_bool is_unsupported; /* the driver refused; from then on it is asked no more */
};

#endif
