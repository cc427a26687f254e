/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow path of the lock.  A waiting thread tries ten times, which takes longer than one critical section; then
 * it sleeps, at first for 25 us, later for up to 200 us.  The lock is deliberately unfair: under contention one thread
 * keeps the cache lines while the others sleep.  A bit mask per thread has the ranks that the thread holds, so checking
 * the lock order is one test per lock.
 */
#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

/* A thread tries this often before it backs off: longer than one of our critical sections, 60 ns. */
#define SPINS 10

/* The first back-off is as long as some hundred critical sections; each further one is twice as long as before. */
#define FIRST_BACKOFF_NS 25000
#define LAST_BACKOFF_NS  200000

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Sleeps for `ns` nanoseconds: waits for a futex that no thread wakes. */
static void step_back(long ns)
{
	static uint32_t nobody;
	const struct timespec timeout = { .tv_nsec = ns };

	syscall(SYS_futex, &nobody, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL, 0);
}

void gpc_lock_wait(struct gpc_lock *lock)
{
	int saved_errno = errno;
	long backoff_ns = FIRST_BACKOFF_NS;

	for (;;) {
		for (int i = 0; i < SPINS; i++) {
			if (atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
				gpc_lock_grab(lock)) {
				errno = saved_errno;
				return;
			}
			relax();
		}
		step_back(backoff_ns);
		if (backoff_ns < LAST_BACKOFF_NS)
			backoff_ns *= 2;
	}
}

#if GPC_CHECK_LEVEL >= 1

static _Thread_local unsigned held;

void gpc_lock_note_taken(enum gpc_lock_rank rank)
{
	GPC_ASSERT(held >> rank == 0);
	held |= 1u << rank;
}

void gpc_lock_note_released(enum gpc_lock_rank rank)
{
	GPC_ASSERT(held & (1u << rank));
	held &= ~(1u << rank);
}

bool gpc_lock_is_any_held(void)
{
	return held != 0;
}

#endif
