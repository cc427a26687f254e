/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures: how many stream captures of the program are open, in the whole process.
 *
 * Recording an event over a context, synchronising one, and giving memory back make the driver
 * invalidate every capture that is open in it; asking an event does so under a capture of mode
 * GLOBAL.  So all are done only between gpc_captures_try_hold and gpc_captures_release, which
 * exclude the begin of a capture in another thread.
 *
 * Threads   Any.  A hold is a shared lock (rank CAPTURE): any number of threads record and wait at
 *           once, and an allocation never waits for it.  The begin of a capture takes it alone, so
 *           it waits for the holds to end: microseconds for a record, and for a host wait as long
 *           as the wait.
 */
#ifndef GPC_ALLOC_CAPTURES_H
#define GPC_ALLOC_CAPTURES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"

struct gpc_captures {
	pthread_rwlock_t lock;
	atomic_uint n_open;
	atomic_uint n_near; /* about to begin: what must be done before that is under way */
};

static inline void gpc_captures_init(struct gpc_captures *captures)
{
	pthread_rwlock_init(&captures->lock, NULL);
	atomic_init(&captures->n_open, 0);
	atomic_init(&captures->n_near, 0);
}

/* One will begin: from here on to gpc_captures_begin_announced. */
static inline void gpc_captures_announce(struct gpc_captures *captures)
{
	atomic_fetch_add(&captures->n_near, 1);
}

/* Before the driver is told to begin one, and after it failed or ended. */
static inline void gpc_captures_begin(struct gpc_captures *captures)
{
	gpc_lock_note_taken(GPC_RANK_CAPTURE);
	pthread_rwlock_wrlock(&captures->lock);
	atomic_fetch_add(&captures->n_open, 1);
	pthread_rwlock_unlock(&captures->lock);
	gpc_lock_note_released(GPC_RANK_CAPTURE);
}

/* Where gpc_captures_announce came first. */
static inline void gpc_captures_begin_announced(struct gpc_captures *captures)
{
	gpc_captures_begin(captures);
	atomic_fetch_sub(&captures->n_near, 1);
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

static inline bool gpc_captures_is_near(const struct gpc_captures *captures)
{
	return gpc_captures_is_any_open(captures) ||
	       atomic_load_explicit(&captures->n_near, memory_order_acquire) > 0;
}

/* Ends a hold. */
static inline void gpc_captures_release(struct gpc_captures *captures)
{
	pthread_rwlock_unlock(&captures->lock);
	gpc_lock_note_released(GPC_RANK_CAPTURE);
}

/*
 * True: no capture is open, and none begins until gpc_captures_release.  False: one is open, or
 * just begins.
 */
static inline bool gpc_captures_try_hold(struct gpc_captures *captures)
{
	if (gpc_captures_is_any_open(captures) || pthread_rwlock_tryrdlock(&captures->lock) != 0)
		return false;
	gpc_lock_note_taken(GPC_RANK_CAPTURE);
	if (!gpc_captures_is_any_open(captures))
		return true;
	gpc_captures_release(captures);
	return false;
}

#endif
