/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures: how many stream captures are open in the process.
 *
 * Recording an event over a context and synchronizing a context invalidate every capture that is open in that
 * context.  So we do these only between gpc_captures_try_hold and gpc_captures_release, which keep another thread from
 * beginning a capture; and likewise what nobody has asked a driver about: unmapping pages, and cuMemFreeAsync on our
 * own stream.  Two waits cannot be put off, and are made even without a hold: gpc_pool_wait_for_one_stream and the wait
 * at the end of a context.
 *
 * To query an event and to free memory that is idle is allowed to a thread whose mode is RELAXED, as it is in all our
 * calls (driver_cuda.c): a capture of any mode survives it (docs/inside/DRIVER.md).
 *
 * Threads   Any.  A hold is a shared lock (rank CAPTURE), which an allocation only tries: any number
 *           of threads may record and wait concurrently.  Beginning a capture takes the lock exclusively, and so
 *           waits for the holders: microseconds while one records, longer while one waits for the device.
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
	atomic_uint n_near; /* announced, but not begun yet */
};

static inline void gpc_captures_init(struct gpc_captures *captures)
{
	pthread_rwlock_init(&captures->lock, NULL);
	atomic_init(&captures->n_open, 0);
	atomic_init(&captures->n_near, 0);
}

/*
 * Announces a capture, which gpc_captures_begin_announced then begins.  From now on no barrier makes a block FREE at
 * once, because none can be raised during the capture.
 */
static inline void gpc_captures_announce(struct gpc_captures *captures)
{
	atomic_fetch_add(&captures->n_near, 1);
}

/* Call before the driver begins a capture, and gpc_captures_end after the begin failed or the capture ended. */
static inline void gpc_captures_begin(struct gpc_captures *captures)
{
	gpc_lock_note_taken(GPC_RANK_CAPTURE);
	pthread_rwlock_wrlock(&captures->lock);
	atomic_fetch_add(&captures->n_open, 1);
	pthread_rwlock_unlock(&captures->lock);
	gpc_lock_note_released(GPC_RANK_CAPTURE);
}

/* As gpc_captures_begin, after gpc_captures_announce. */
static inline void gpc_captures_begin_announced(struct gpc_captures *captures)
{
	gpc_captures_begin(captures);
	atomic_fetch_sub(&captures->n_near, 1);
}

static inline void gpc_captures_end(struct gpc_captures *captures)
{
	unsigned n = atomic_load(&captures->n_open);

	/* If the begin of this capture was missed, n_open may be 0 and must not wrap around. */
	while (n > 0 && !atomic_compare_exchange_weak(&captures->n_open, &n, n - 1))
		;
}

static inline bool gpc_captures_is_any_open(const struct gpc_captures *captures)
{
	return atomic_load_explicit(&captures->n_open, memory_order_acquire) > 0;
}

/* True if a capture is open or announced. */
static inline bool gpc_captures_is_near(const struct gpc_captures *captures)
{
	return gpc_captures_is_any_open(captures) ||
	       atomic_load_explicit(&captures->n_near, memory_order_acquire) > 0;
}

/* Ends the hold that gpc_captures_try_hold began. */
static inline void gpc_captures_release(struct gpc_captures *captures)
{
	pthread_rwlock_unlock(&captures->lock);
	gpc_lock_note_released(GPC_RANK_CAPTURE);
}

/* Returns true if no capture is open; then no capture begins until gpc_captures_release. */
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
