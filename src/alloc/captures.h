/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures: how many stream captures of the program are open, in the whole process.
 *
 * Recording an event over a context, and synchronising one, make the driver invalidate every capture that is
 * open in it.  So both are done only between gpc_captures_try_hold and gpc_captures_release, which exclude
 * the begin of a capture in another thread.
 *
 * Threads   Any.  The hold is a lock (rank CAPTURE) that is never waited for by an allocation: try_hold gives up.
 *           The begin of a capture waits for a hold to end: microseconds for a record, and for a host wait as
 *           long as the wait.
 */
#ifndef GPC_ALLOC_CAPTURES_H
#define GPC_ALLOC_CAPTURES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"

struct gpc_captures {
	struct gpc_lock lock;
	atomic_uint n_open;
};

static inline void gpc_captures_init(struct gpc_captures *captures)
{
	gpc_lock_init(&captures->lock, GPC_RANK_CAPTURE);
	atomic_init(&captures->n_open, 0);
}

/* Before the driver is told to begin one, and after it failed or ended. */
static inline void gpc_captures_begin(struct gpc_captures *captures)
{
	gpc_lock_take(&captures->lock);
	atomic_fetch_add(&captures->n_open, 1);
	gpc_lock_release(&captures->lock);
}

static inline void gpc_captures_end(struct gpc_captures *captures)
{
	unsigned n = atomic_load(&captures->n_open);

	/* An end without a begin that we saw must not wrap around. */
	while (n > 0 && !atomic_compare_exchange_weak(&captures->n_open, &n, n - 1))
		;
}

static inline bool gpc_captures_is_any_open(const struct gpc_captures *captures)
{
	return atomic_load_explicit(&captures->n_open, memory_order_acquire) > 0;
}

/* True: no capture is open, and none begins until gpc_captures_release. */
static inline bool gpc_captures_try_hold(struct gpc_captures *captures)
{
	if (gpc_captures_is_any_open(captures) || !gpc_lock_try_take(&captures->lock))
		return false;
	if (!gpc_captures_is_any_open(captures))
		return true;
	gpc_lock_release(&captures->lock);
	return false;
}

static inline void gpc_captures_release(struct gpc_captures *captures)
{
	gpc_lock_release(&captures->lock);
}

#endif
