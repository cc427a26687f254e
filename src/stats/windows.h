/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each site held over the run: the least and the most in each of some equal windows, counted in bytes that were
 * allocated: so many small allocations of other threads do not hide a few large ones.
 *
 *	leak   0 1 2 3 4 5 6 7     the least of each window: it rises
 *	batch  0 0 0 0 0 0 0 0     a sawtooth goes down in each window
 *	cache  5 8 8 8 8 8 8 8     filled once
 *
 * A device's clock has the number of the running window.  A site notes the windows that have passed when it changes
 * next, so a window costs nothing to the sites that do not change in it.  When all GPC_WINDOWS are used, they are
 * united in pairs, and become twice as long: so GPC_WINDOWS / 2 or more always span the run.
 *
 * Exact for any number of blocks, because nothing is stored per block.
 *
 * Threads   A clock: any; one thread turns it, the others go on.  Windows: the caller holds the lock of the site.
 * Failure   None.
 * Limits    Lives in the process, not in the recording: what follows from it stands in OOMS.
 */
#ifndef GPC_STATS_WINDOWS_H
#define GPC_STATS_WINDOWS_H

#include <stdatomic.h>
#include <stdint.h>

#define GPC_WINDOWS 32u /* a power of two */

/* One per device. */
struct gpc_window_clock {
	_Atomic uint32_t now; /* how often windows were united << 8 | the running window */
	_Atomic uint64_t
		total; /* bytes that were ever allocated; approximate, if threads allocate at once */
	_Atomic uint64_t next;  /* the total that begins the next window */
	_Atomic uint64_t count; /* of allocations, as approximate */
	_Atomic uint64_t high;  /* the most that was live on the device in the running window */
	uint64_t step;          /* bytes in a window */
	uint64_t highs[GPC_WINDOWS];
	atomic_flag is_busy;
};

/* One per site, zeroed: it held nothing in the windows before its first change. */
struct gpc_windows {
	_Alignas(64) uint32_t clock; /* when `low` and `high` were noted */
	uint64_t low;                /* the least and the most in that window */
	uint64_t high;
	uint64_t smallest; /* request of the whole run; 0: none */
	uint64_t largest;
	uint64_t last;              /* the clock's count when the site grew last */
	uint64_t lows[GPC_WINDOWS]; /* of the windows before it */
	uint64_t highs[GPC_WINDOWS];
};

void gpc_window_clock_init(struct gpc_window_clock *clock);

/* Slow path of gpc_window_clock_note. */
void gpc_window_clock_turn(struct gpc_window_clock *clock, uint64_t total);

/* Call after each allocation of `request` bytes on the device: `live` bytes are live. */
static inline void gpc_window_clock_note(
	struct gpc_window_clock *clock, uint64_t request, uint64_t live)
{
	uint64_t total = atomic_load_explicit(&clock->total, memory_order_relaxed) + request;

	atomic_store_explicit(&clock->total, total, memory_order_relaxed);
	atomic_store_explicit(&clock->count,
		atomic_load_explicit(&clock->count, memory_order_relaxed) + 1,
		memory_order_relaxed);
	if (live > atomic_load_explicit(&clock->high, memory_order_relaxed))
		atomic_store_explicit(&clock->high, live, memory_order_relaxed);
	if (__builtin_expect(total >= atomic_load_explicit(&clock->next, memory_order_relaxed), 0))
		gpc_window_clock_turn(clock, total);
}

/*
 * The most that was live on the device in a usual window of the run; UINT64_MAX if there is none, because what is live
 * kept rising until the last windows.
 */
uint64_t gpc_window_clock_usual(const struct gpc_window_clock *clock);

/* Slow path of the functions below: windows have passed, in which the site held `live` bytes. */
void gpc_windows_pass(struct gpc_windows *windows, uint32_t now, uint64_t live);

/* Call before each change of a site that holds `live` bytes. */
static inline void gpc_windows_begin(
	struct gpc_windows *windows, const struct gpc_window_clock *clock, uint64_t live)
{
	uint32_t now = atomic_load_explicit(&clock->now, memory_order_relaxed);

	if (__builtin_expect(windows->clock != now, 0))
		gpc_windows_pass(windows, now, live);
}

/* Call after it. */
static inline void gpc_windows_grown(struct gpc_windows *windows,
	const struct gpc_window_clock *clock, uint64_t live, uint64_t request)
{
	windows->last = atomic_load_explicit(&clock->count, memory_order_relaxed);
	if (live > windows->high)
		windows->high = live;
	if (request > windows->largest)
		windows->largest = request;
	if (request - 1 < windows->smallest - 1) /* 0 is the largest: none yet */
		windows->smallest = request;
}

static inline void gpc_windows_shrunk(struct gpc_windows *windows, uint64_t live)
{
	if (live < windows->low)
		windows->low = live;
}

#endif
