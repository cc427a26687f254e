/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranked locks: every mutex of the library, from outer to inner, in one list.
 *
 * A thread may only take a lock of a higher rank than all it holds.  With GPC_CHECK_LEVEL >= 1 a wrong
 * order fails at once, in every run, instead of as a deadlock in one of a million.
 *
 * Threads   Any.  Never taken in a signal handler.
 * Failure   None.
 * Limits    Not recursive.  A fork child must not touch a lock that it inherited: gpc_lock_init again.
 */
#ifndef GPC_BASE_LOCK_H
#define GPC_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/check.h"

/* From outer to inner.  A new lock gets a line here, and a reason for its place. */
enum gpc_lock_rank {
	GPC_RANK_RUNTIME = 1, /* runtime: start, contexts */
	GPC_RANK_TRACK,       /* runtime: allocations outside the cache */
	GPC_RANK_POOL,        /* alloc: one context's blocks, bins, segments, fences */
	GPC_RANK_CAPTURE, /* alloc: no capture begins while an event is recorded over a context */
	GPC_RANK_SEGMENT_MAP, /* alloc: inserting into the address map of segments */
	GPC_RANK_DEPOT,       /* stack: a stack seen for the first time */
	GPC_RANK_RECORD,      /* record: append regions, history, peaks */
	GPC_RANK_METAMEM,     /* base: our own memory */
};

struct gpc_lock {
	pthread_mutex_t mutex;
	enum gpc_lock_rank rank;
};

#define GPC_LOCK_INIT(lock_rank)                                        \
	{                                                               \
		.mutex = PTHREAD_MUTEX_INITIALIZER, .rank = (lock_rank) \
	}

static inline void gpc_lock_init(struct gpc_lock *lock, enum gpc_lock_rank rank)
{
	*lock = (struct gpc_lock)GPC_LOCK_INIT(rank);
}

#if GPC_CHECK_LEVEL >= 1
/* lock.c: the ranks that this thread holds, as bits. */
void gpc_lock_note_taken(enum gpc_lock_rank rank);
void gpc_lock_note_released(enum gpc_lock_rank rank);
bool gpc_lock_is_any_held(void);
#else
#define gpc_lock_note_taken(rank)    ((void)0)
#define gpc_lock_note_released(rank) ((void)0)
#define gpc_lock_is_any_held()       false
#endif

static inline void gpc_lock_take(struct gpc_lock *lock)
{
	gpc_lock_note_taken(lock->rank);
	pthread_mutex_lock(&lock->mutex);
}

/* True where the lock was free and is taken now. */
static inline bool gpc_lock_try_take(struct gpc_lock *lock)
{
	if (pthread_mutex_trylock(&lock->mutex) != 0)
		return false;
	gpc_lock_note_taken(lock->rank);
	return true;
}

static inline void gpc_lock_release(struct gpc_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
	gpc_lock_note_released(lock->rank);
}

#endif
