/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases: a thread takes back the block that it freed last without the lock of the pool.
 *
 * A loop that frees a block and asks for the same size again, in several threads at once, would
 * pass the pool's lock and counters between the processors for nothing: each of them wants the
 * block that it has just had.  So the block freed last is lent to its thread, and may go to and fro
 * between FREE and LIVE under a lock of its own, which nobody else wants:
 *
 *      thread 1   [lease 1] ---> block, FREE <-> LIVE          free, malloc: the lease's lock only
 *      thread 2   [lease 2] ---> block, FREE <-> LIVE
 *      any        pool, bins, fences, all other blocks          the pool's lock
 *                 takes a block off its lease                   both
 *
 * Invariants
 *   L1  A block is on at most one lease; on which, block->lease says.  Both change only under the
 *       pool's lock.
 *   L2  A block on a lease says LIVE, and the lease, in a copy of it, what it really is: LIVE or
 *       FREE.  It is never exported; who and where it is are the same in both.
 *   L3  The counters go by what the block says; where the copy is FREE, the lane of the lease takes
 *       it back out (gpucache_format.h).  So counters and lanes together are exact, and the
 *       counters alone are a bound, which no hit here moves: who raises it to a new peak of the
 *       pool ends the leases, and what the pools of a device reach together the observer looks at.
 *   L4  A copy becomes FREE only where the fences say at that moment that a free is safe (fence.h,
 *       one stream), exactly as under the pool's lock.
 * Threads     The copy: the lease's lock (rank LEASE).  The block: the pool's, as any other; so two
 *             threads share no cache line.  Threads whose numbers are equal modulo GPC_N_LEASES
 *             share a lease; who finds its lock taken goes the long way, and does not wait.
 * Ordering    The rule of one stream may end while a thread frees here.  What it read as safe is
 *             taken back first, and the event that new streams wait for is recorded after that: so
 *             the thread's work was submitted before the event, which covers it.
 * Progress    A hit takes one free lock and never waits.  Who takes a block off a lease waits for
 *             a moment between two hits of its thread.
 * Limits      A lease serves the size that it was made with, and LEASE_NS; then one hit goes the
 *             long way, by which histories and leases are renewed.
 */
#ifndef GPC_ALLOC_LEASE_H
#define GPC_ALLOC_LEASE_H

#include <stdatomic.h>

#include "alloc/block.h"
#include "base/lock.h"
#include "base/numbers.h"

#define GPC_N_LEASES GPUCACHE_N_LANES /* of a pool */

struct gpc_lease {
	_Alignas(64) struct gpc_lock lock;
	_Atomic(struct gpc_block *) block; /* NULL: none; a look without a lock is a hint */
	uint64_t until_ns;
	uint64_t freed_ns;    /* while the copy is FREE: since when */
	struct gpc_block now; /* the copy */
	/* The observer's, all 0 at first: for what happens to this block. */
	struct gpc_numbers numbers;
};

/* The block on it: exact under the lease's lock or the pool's. */
static inline struct gpc_block *gpc_lease_block(const struct gpc_lease *lease)
{
	return atomic_load_explicit(&lease->block, memory_order_relaxed);
}

#endif
