/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grace periods: when an object may be reused that threads find without a lock.
 *
 *      thread A   [ enters    finds the object    ...    leaves ]
 *      thread B         unlinks it; n = gpc_grace_begin()              gpc_grace_is_over(n): reuses it
 *
 * A thread keeps such a pointer only while it is inside the library (thread.h).  So one that may use the object entered
 * before the grace period began, and when each of those has left, nobody uses it.  Each thread notes in its stay when it
 * entered: as the number of the last grace period.
 *
 * Invariants  1 A stay belongs to one thread.  That of a thread that has ended is given to another one.
 *             2 An object is unlinked, from wherever a thread that enters could find it, before its grace period begins.
 * Threads     Any.
 * Ordering    A thread stores its stay before it loads any pointer: between the two it would need a fence at each entry.
 *             Instead gpc_grace_is_over makes all threads run one (membarrier).  After that, a stay that it reads as 0
 *             belongs to a thread that finds only what is still linked.  Its acquire pairs with the release of the
 *             leave: what the thread did inside happens before the reuse.
 * Progress    Nothing waits.  A thread that stays inside delays every reuse, but no thread that has ended does.
 * Failure     No grace period ends without membarrier (Linux 4.14), and after GPC_MAX_STAYS threads at a time.
 */
#ifndef GPC_BASE_GRACE_H
#define GPC_BASE_GRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GPC_MAX_STAYS 1024u

struct gpc_stay {
	_Alignas(64) _Atomic uint64_t
		since; /* the last grace period when the thread entered; 0: it is outside */
	_Atomic uint32_t thread; /* 0: of no thread yet */
};

/* The number of the last grace period that has begun; the first one has number 2. */
extern _Atomic uint64_t gpc_grace_last __attribute__((visibility("hidden")));

/* Of a thread that has no stay of its own, because there are too many, or whose outer call has one (thread.h). */
extern struct gpc_stay gpc_stay_of_none __attribute__((visibility("hidden")));

/* Finds a stay for the calling thread. */
struct gpc_stay *gpc_stay_find(uint32_t thread);

static inline void gpc_stay_begin(struct gpc_stay *stay)
{
	uint64_t last = atomic_load_explicit(&gpc_grace_last, memory_order_acquire);

	atomic_store_explicit(&stay->since, last, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void gpc_stay_end(struct gpc_stay *stay)
{
	atomic_store_explicit(&stay->since, 0, memory_order_release);
}

/* Begins a grace period for all that has been unlinked, and returns its number. */
uint64_t gpc_grace_begin(void);

/* True if each thread has left that was inside when grace period `number` began.  False also if that is unknown. */
bool gpc_grace_is_over(uint64_t number);

#endif
