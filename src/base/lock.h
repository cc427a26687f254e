/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranked locks: every mutex of the library in one list, from outer to inner.
 *
 * A thread may only take a lock of a higher rank than all it holds.  With GPC_CHECK_LEVEL >= 1 a wrong
 * order fails in every run, instead of deadlocking in one run of a million.
 *
 * The lock is one word: 0 free, 1 taken.  Uncontended take and release are one inlined instruction
 * each.  A thread that finds it taken spins for about the length of a critical section, then backs off
 * for 25 us, longer each time, and retries.  No thread has to be woken, and under contention one thread
 * does some hundred operations with everything in its cache while the others back off, instead of
 * bouncing cache lines: more than twice the throughput for 4 threads on 2 cores.  A futex mutex has
 * the same throughput, but must exchange the word at each release, which makes a pair of malloc and
 * free 11 % slower.
 *
 * Ordering  Taking acquires, releasing releases.
 * Progress  Blocking, not fair; a thread that dies with a lock leaves it taken, as with any mutex.
 * Threads   Any.  Never taken in a signal handler.
 * Failure   None.
 * Limits    Not recursive.  A fork child must not take an inherited lock without gpc_lock_init.
 */
#ifndef GPC_BASE_LOCK_H
#define GPC_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

/* From outer to inner. */
enum gpc_lock_rank {
	GPC_RANK_PRIMARY = 1,  /* runtime: retains and releases of a device's primary context */
	GPC_RANK_RUNTIME,      /* runtime: start, contexts */
	GPC_RANK_IPC,          /* runtime: exported blocks, opened memory of other processes */
	GPC_RANK_PHYSICAL,     /* runtime: references to physical memory */
	GPC_RANK_DRIVER_POOLS, /* runtime: known pools of the driver; they are queried under it */
	GPC_RANK_TRACK,        /* runtime: allocations outside the cache */
	GPC_RANK_TENSORS,      /* runtime: PyTorch's tensors on one device */
	GPC_RANK_POOL,         /* alloc: one context's blocks, bins, segments, fences */
	GPC_RANK_CAPTURE, /* alloc: no capture begins while an event is recorded over a context */
	GPC_RANK_SEGMENT_MAP, /* alloc: changes of the segment map */
	GPC_RANK_DEPOT,       /* stack: a stack seen for the first time */
	GPC_RANK_MODULES,     /* stack: loaded and unloaded objects */
	GPC_RANK_TRAILS,      /* stack: a trail being written */
	GPC_RANK_RECORD,      /* record: append regions, history, peaks */
	GPC_RANK_SITES,       /* record: the sums of one device's sites */
	GPC_RANK_EVENTS,      /* record: the ring of events */
	GPC_RANK_METAMEM,     /* base: the items of one slab */
};

struct gpc_lock {
	_Atomic uint32_t word;
	enum gpc_lock_rank rank;
};

#define GPC_LOCK_INIT(lock_rank)    \
	{                           \
		.rank = (lock_rank) \
	}

static inline void gpc_lock_init(struct gpc_lock *lock, enum gpc_lock_rank rank)
{
	atomic_init(&lock->word, 0);
	lock->rank = rank;
}

#if GPC_CHECK_LEVEL >= 1
/* lock.c notes the ranks that this thread holds, and checks their order. */
void gpc_lock_note_taken(enum gpc_lock_rank rank);
void gpc_lock_note_released(enum gpc_lock_rank rank);
bool gpc_lock_is_any_held(void);
#else
#define gpc_lock_note_taken(rank)    ((void)0)
#define gpc_lock_note_released(rank) ((void)0)
#define gpc_lock_is_any_held()       false
#endif

/* Slow path of gpc_lock_take. */
void gpc_lock_wait(struct gpc_lock *lock);

static inline bool gpc_lock_grab(struct gpc_lock *lock)
{
	uint32_t unlocked = 0;

	return atomic_compare_exchange_strong_explicit(
		&lock->word, &unlocked, 1, memory_order_acquire, memory_order_relaxed);
}

static inline void gpc_lock_take(struct gpc_lock *lock)
{
	gpc_lock_note_taken(lock->rank);
	if (__builtin_expect(!gpc_lock_grab(lock), 0))
		gpc_lock_wait(lock);
}

/* Takes the lock if it is free. */
static inline bool gpc_lock_try(struct gpc_lock *lock)
{
	if (!gpc_lock_grab(lock))
		return false;
	gpc_lock_note_taken(lock->rank);
	return true;
}

static inline void gpc_lock_release(struct gpc_lock *lock)
{
	atomic_store_explicit(&lock->word, 0, memory_order_release);
	gpc_lock_note_released(lock->rank);
}

#endif
