/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stays are a table that threads enter by their id: those of neighbours lie close, and a place whose thread has
 * ended is taken over.  The kernel is asked for that (tgkill without a signal), because no thread tells us of its end.
 */
#include "base/grace.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

_Atomic uint64_t gpc_grace_last = 1;
struct gpc_stay gpc_stay_of_none;

static struct gpc_stay stays[GPC_MAX_STAYS];
static atomic_bool is_blind; /* a thread had to do without a stay */

static bool is_alive(uint32_t thread)
{
	return thread && syscall(SYS_tgkill, getpid(), thread, 0) == 0;
}

/* A thread of this id that is in the table has ended: the kernel has given its id to the caller. */
struct gpc_stay *gpc_stay_find(uint32_t thread)
{
	for (uint32_t i = 0; i < GPC_MAX_STAYS; i++) {
		struct gpc_stay *stay = &stays[(thread + i) % GPC_MAX_STAYS];
		uint32_t other = atomic_load(&stay->thread);

		if ((other == thread || !is_alive(other)) &&
			atomic_compare_exchange_strong(&stay->thread, &other, thread))
			return stay;
	}
	atomic_store(&is_blind, true);
	return &gpc_stay_of_none;
}

uint64_t gpc_grace_begin(void)
{
	return atomic_fetch_add(&gpc_grace_last, 1) + 1;
}

/* Runs a fence in each thread of the process.  False: this kernel cannot. */
static bool fence_all(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0 ||
	       (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
		       syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
}

bool gpc_grace_is_over(uint64_t number)
{
	if (!fence_all())
		return false;
	for (uint32_t i = 0; i < GPC_MAX_STAYS; i++) {
		uint64_t since = atomic_load_explicit(&stays[i].since, memory_order_acquire);

		if (since && since < number && is_alive(atomic_load(&stays[i].thread)))
			return false;
	}
	return !atomic_load(&is_blind);
}
