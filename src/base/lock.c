/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

/* Tries before the kernel is asked: about the length of one of our critical sections. */
#define SPINS 100

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void gpc_lock_wait(struct gpc_lock *lock)
{
	int saved_errno = errno;

	for (int i = 0; i < SPINS; i++) {
		if (atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
			gpc_lock_grab(lock))
			return;
		relax();
	}
	while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0)
		syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
	errno = saved_errno;
}

void gpc_lock_wake(struct gpc_lock *lock)
{
	int saved_errno = errno;

	syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved_errno;
}

#if GPC_CHECK_LEVEL >= 1

static _Thread_local unsigned held __attribute__((tls_model("initial-exec")));

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
