/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated machine's clock: CLOCK_MONOTONIC, or a virtual clock, which a wait sets to the wait's end at once.
 *
 * Invariants  1 Time never goes back.  2 After gpc_sim_clock_wait_until(t), now >= t.
 * Threads     Any.
 * Failure     None.
 * Limits      A virtual clock advances only in waits and in calls that have a cost.
 */
#ifndef GPC_SIM_CLOCK_H
#define GPC_SIM_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct gpc_sim_clock {
	bool is_virtual;
	_Atomic uint64_t virtual_ns;
};

/* The first time of a virtual clock, in nanoseconds.  It is not 0, so that 0 can mean "long ago". */
#define GPC_SIM_CLOCK_START UINT64_C(1000000)

/* Shorter waits spin.  Longer ones sleep until half of this is left, because Linux ends a sleep some 50 us late. */
#define GPC_SIM_CLOCK_SPIN_NS UINT64_C(80000)

static inline void gpc_sim_clock_init(struct gpc_sim_clock *clock, bool is_virtual)
{
	clock->is_virtual = is_virtual;
	atomic_init(&clock->virtual_ns, GPC_SIM_CLOCK_START);
}

static inline uint64_t gpc_sim_clock_now(struct gpc_sim_clock *clock)
{
	return clock->is_virtual ? atomic_load(&clock->virtual_ns) : gpc_clock_monotonic_ns();
}

static inline uint64_t gpc_sim_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Sets *at to `value` if that is larger. */
static inline void gpc_sim_max(_Atomic uint64_t *at, uint64_t value)
{
	uint64_t seen = atomic_load(at);

	while (seen < value && !atomic_compare_exchange_weak(at, &seen, value))
		;
}

static inline void gpc_sim_clock_wait_until(struct gpc_sim_clock *clock, uint64_t until_ns)
{
	if (clock->is_virtual) {
		gpc_sim_max(&clock->virtual_ns, until_ns);
		return;
	}
	for (uint64_t now = gpc_clock_monotonic_ns(); now < until_ns;
		now = gpc_clock_monotonic_ns()) {
		uint64_t left = until_ns - now;
		if (left > GPC_SIM_CLOCK_SPIN_NS) {
			uint64_t nap = left - GPC_SIM_CLOCK_SPIN_NS / 2;
			struct timespec ts = { .tv_sec = (time_t)(nap / 1000000000),
				.tv_nsec = (long)(nap % 1000000000) };
			clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
		}
	}
}

/* Makes the calling thread spend this time: waits with the real clock, advances a virtual one. */
static inline void gpc_sim_clock_spend(struct gpc_sim_clock *clock, uint64_t cost_ns)
{
	if (cost_ns == 0)
		return;
	if (clock->is_virtual)
		atomic_fetch_add(&clock->virtual_ns, cost_ns);
	else
		gpc_sim_clock_wait_until(clock, gpc_clock_monotonic_ns() + cost_ns);
}

#endif
