/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers: the ordering of cudaFree, enforced on the device instead of by blocking the host.
 *
 * Plain cudaFree waits for the device, so work submitted before it completes before any work submitted
 * after it starts, on any stream, and programs rely on that.  A barrier enforces the same order: just
 * before the first submission after one or more frees, ONE event is recorded that captures all work of
 * the context so far, and all later work of the context is made to wait for it.
 *
 *      host     launch K   free p   malloc -> p   launch L                  host never waits
 *                                                 |  barrier is due: record E, wait E, then L
 *      device   [ K uses p ..................... ]E[ L uses p ]
 *
 * A block freed by cudaFree is therefore FREE at once, for any request: its new owner can use it only
 * through a submission after the free, which raises the barrier first.  Nothing is pending, and a malloc
 * does not wait (exceptions below).  A run of frees and mallocs costs no driver call until the next
 * submission, which makes two.
 *
 * Why that is safe, case by case:
 *
 *   threads        A submission that may use the block happens after the malloc, which happens after the
 *                  free, which made the barrier due under the pool's lock: so the submitter sees that a barrier is
 *                  due.  Of two submitters that see it, each raises a barrier of its own, unless the other's is
 *                  already complete.  Frees are numbered, and a barrier covers those numbered before it began.
 *   legacy stream  Used alone, it orders all work (fence.h, "One stream"), and no barrier is due.
 *   other streams  Per-thread, non-blocking and later-created streams, and synchronous copies: covered, since the
 *                  event captures "all the activities of the context" (cuda.h); tests/gpu/order.c verifies each.
 *   green contexts The primary context's event captures their work, and they wait for it (cuda.h, 12.5).
 *   captures       To record or wait for an event of the whole context invalidates the captures open in it.
 *                  So every due barrier is raised before a capture begins; while a capture is open, no block is
 *                  FREE at once, and a barrier stays due.
 *   peers          A barrier does not order the work of another context.  If the pool's fences cover other
 *                  contexts (members, fence.h), a block waits for its fence, and the barrier is raised, too,
 *                  for the order that programs rely on.
 *   others         Another process, a network card or the host waits for no event.  So the host waits
 *                  (gpc_pool_settle) before they get memory, and exported blocks wait for fences.
 *   the driver     No documentation promises that cuMemFree waits, so memory is returned to the driver only
 *                  after the barrier that covers its last free has passed.
 *   old drivers    Drivers before CUDA 12.5 have no cuCtxRecordEvent and cuCtxWaitEvent, so the host waits in
 *                  cudaFree.
 *
 * Under the one-stream rule no barrier is due for order.  But a free that leaves a segment idle makes one due, unless the
 * driver has eight times as much memory free as is idle here: its event, on the legacy stream, lets that segment go back
 * before work submitted later has ended.
 *
 * After plain cudaFree, calls that only observe (a query, a wait for a stream or an event) or free host
 * memory find all earlier work complete.  So before such a call the host waits for the barrier's event.
 *
 * Invariants
 *   B1  A block is loose if it became FREE before its work was known to be complete.  Either its free is
 *       numbered above `raised`, or the device orders that work before all later work.
 *   B2  passed <= raised <= n_frees.
 *   B3  Every due barrier is raised before a capture begins.
 * Threads     The pool's lock, except gpc_duties, which any thread may read.
 * Ordering    A duty is cleared, with release, after the driver calls; a thread that reads 0, with acquire,
 *             submits after them.
 * Progress    A record may block if a stream's queue is full, so the pool's lock is not held over the driver
 *             calls; only the hold on captures is.
 * Failure     If the event cannot be recorded, or the device cannot be made to wait for it, the host waits for
 *             the context at once.  If that fails, too, the barrier stays due, unless the error is sticky: in a
 *             broken context no work runs any more.
 * Limits      As with the plain driver, streams do not overlap around a free.  With the plain driver only the
 *             freeing thread waits; here the next work of every thread of the context does.  So a kernel that
 *             spins until another thread submits work to the same context, while a third one frees, never
 *             ends: use free_order:host or fence.  A query does not wait for frees made while the context had
 *             only the legacy stream.  A host that reads memory right after cudaFree, without any other call,
 *             needs free_order:host.
 */
#ifndef GPC_ALLOC_BARRIER_H
#define GPC_ALLOC_BARRIER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"

/* Two counts over the pools of a heap; hooks read them before each submission and each query. */
struct gpc_duties {
	_Atomic uint32_t n_due; /* pools in whose context the next submission raises a barrier */
	_Atomic uint32_t n_unsettled; /* pools whose work before the last free may still run */
};

struct gpc_barrier {
	/* Lock: the pool's. */
	uint64_t n_frees;  /* frees whose order must be kept; the first one has number 1 */
	uint64_t raised;   /* frees up to this one are behind a barrier */
	uint64_t recorded; /* frees up to this one are covered by the last event recorded */
	uint64_t passed;   /* all work before frees up to this one is known to be complete */
	gpc_event event;   /* of the last barrier; 0: none yet */
	/* recorded on the legacy stream, behind the work of all blocks that the one-stream rule left loose; 0: none */
	gpc_event legacy_event;
	gpc_event
		idle_event; /* recorded and queried at once, to learn whether work runs; 0: none yet */
	bool is_on_legacy;          /* that event is legacy_event */
	bool is_due;                /* counted in n_due */
	bool is_unsettled;          /* counted in n_unsettled */
	atomic_bool is_unsupported; /* the driver refused a barrier once, and is not asked again */
};

#endif
