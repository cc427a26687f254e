/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of one device, shared by its pools.
 *
 *      free at the driver  --charge--> moving --attach-->  cached, live, pending   (a pool's counters)
 *      free at the driver  <-uncharge- moving <-detach---  cached
 *
 * Invariant   At every moment each byte of a segment is in a pool's counters, or moving, or free at the driver.
 * Ordering    Bytes count as moving before they leave a pool's counters, or are charged, until the driver has them and
 *             they are no longer charged, or until they are in a pool's counters.  So a thread that reads the pools
 *             under their locks, then moving_bytes, then the driver's free memory misses no byte on its way to the
 *             driver, but may count such a byte twice.  It may miss a byte on its way to a pool; moved_bytes, read
 *             before and after, shows that.  If it reads moving_bytes as 0, every earlier move has ended, and memory
 *             that such a move returned can be requested.  What a driver takes late that was returned beside running
 *             work is in late_bytes of the pool (pool.h) until the work has ended, or has been waited for.
 * Progress    No move waits for another, and no pool's lock is held during the driver call of a move.  But the driver
 *             may block that call for as long as kernels run, so waits for moves are bounded.
 */
#ifndef GPC_ALLOC_BUDGET_H
#define GPC_ALLOC_BUDGET_H

#include <stdatomic.h>
#include <stdint.h>

struct gpc_budget {
	_Atomic uint64_t limit_bytes; /* 0: none */
	/* charged: segments, from before the driver's call, and the program's device memory that no pool serves */
	_Atomic uint64_t used_bytes;
	_Atomic uint64_t moving_bytes;
	_Atomic uint64_t moved_bytes; /* sum of all moves that have ended */
	uint64_t device_bytes;        /* total of the device; 0: unknown */
	_Atomic uint64_t
		yielding_bytes; /* may be on the device, but give way to device memory: managed memory */
	/* As of the last query of the driver (pool_room.c); 0: never queried. */
	_Atomic uint64_t room_bytes;      /* used_bytes plus what the driver had free */
	_Atomic uint64_t looked_at_bytes; /* used_bytes at that query */
};

#endif
