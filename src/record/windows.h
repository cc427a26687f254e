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
 * Threads   The caller holds the lock of the site's device; any thread may note what is live on the device.
 * Failure   None.
 * Limits    Lives in the process, not in the recording: what follows from it stands in OOMS.
 */
#ifndef GPC_RECORD_WINDOWS_H
#define GPC_RECORD_WINDOWS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/saturating.h"

#define GPC_WINDOWS 32u /* a power of two */

/* One per device. */
struct gpc_window_clock {
	uint32_t now;   /* how often windows were united << 8 | the running window */
	uint64_t total; /* bytes that were ever allocated */
	uint64_t next;  /* the total that begins the next window */
	uint64_t step;  /* bytes in a window */
	uint64_t count; /* of allocations */
	uint64_t freed; /* of frees */
	_Alignas(64) _Atomic uint64_t high; /* the most that was live in the running window */
	uint64_t highs[GPC_WINDOWS];        /* and in those before it */
	uint64_t freed_at[GPC_WINDOWS];     /* the frees up to the end of each of these */
};

/* One per site, zeroed: it held nothing in the windows before its first change. */
struct gpc_windows {
	_Alignas(64) uint32_t clock; /* when `low` and `high` were noted */
	uint32_t shrank;             /* the clock when it freed last */
	uint64_t freed;              /* the device's frees up to then */
	uint64_t began;              /* and up to its first allocation */
	uint64_t born;               /* the clock's count before that */
	uint64_t live;
	uint64_t low; /* the least and the most that was live in that window */
	uint64_t high;
	uint64_t smallest; /* request of the whole run; 0: none */
	uint64_t largest;
	uint64_t last;              /* the clock's count when the site grew last */
	uint64_t lows[GPC_WINDOWS]; /* of the windows before it */
	uint64_t highs[GPC_WINDOWS];
};

void gpc_window_clock_init(struct gpc_window_clock *clock);

/* Slow path of gpc_windows_add. */
void gpc_window_clock_turn(struct gpc_window_clock *clock);

/* Call after each allocation on the device, if `live` bytes are live there. */
static inline void gpc_window_clock_note(struct gpc_window_clock *clock, uint64_t live)
{
	if (live > atomic_load_explicit(&clock->high, memory_order_relaxed))
		atomic_store_explicit(&clock->high, live, memory_order_relaxed);
}

/*
 * The windows [0 .. end) in which the run was as usual: not the last ones, nor those since anything was freed, which are
 * of one step.  0: there are too few.
 */
uint32_t gpc_window_clock_usual_end(const struct gpc_window_clock *clock);

/*
 * The most that was live on the device in a usual window of the run; UINT64_MAX if there is none, because what is live
 * kept rising until the last windows.
 */
uint64_t gpc_window_clock_usual(const struct gpc_window_clock *clock);

/* The least that the site held from the middle of the usual windows on: what stays from step to step. */
uint64_t gpc_windows_base(const struct gpc_windows *windows, uint32_t usual_end);

/* The most that the site held in the windows before the one in which it freed last. */
uint64_t gpc_windows_most_before(const struct gpc_windows *windows);

/* Slow path of gpc_windows_reach. */
void gpc_windows_pass(struct gpc_windows *windows, uint32_t now);

/* Notes the windows that have passed since the site's last change. */
static inline void gpc_windows_reach(
	struct gpc_windows *windows, const struct gpc_window_clock *clock)
{
	if (__builtin_expect(windows->clock != clock->now, 0))
		gpc_windows_pass(windows, clock->now);
}

/* The site allocates. */
static inline void gpc_windows_add(
	struct gpc_windows *windows, struct gpc_window_clock *clock, uint64_t bytes)
{
	gpc_windows_reach(windows, clock);
	windows->live += bytes;
	if (windows->live > windows->high)
		windows->high = windows->live;
	if (bytes > windows->largest) {
		if (windows->largest == 0) {
			windows->began = clock->freed;
			windows->born = clock->count;
		}
		windows->largest = bytes;
	}
	if (bytes - 1 < windows->smallest - 1) /* 0 is the largest: none yet */
		windows->smallest = bytes;
	windows->last = ++clock->count;
	clock->total += bytes;
	if (__builtin_expect(clock->total >= clock->next, 0))
		gpc_window_clock_turn(clock);
}

/* The site frees. */
static inline void gpc_windows_remove(
	struct gpc_windows *windows, struct gpc_window_clock *clock, uint64_t bytes)
{
	gpc_windows_reach(windows, clock);
	windows->shrank = windows->clock;
	windows->freed = ++clock->freed;
	windows->live = gpc_bytes_less(windows->live, bytes);
	if (windows->live < windows->low)
		windows->low = windows->live;
}

#endif
