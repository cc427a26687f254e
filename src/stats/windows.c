/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows are united by the least of two lows and the most of two highs.  A clock that unites begins the window in the
 * middle; a site that missed it first fills the windows up to the end with what it held, so both stay in step.
 */
#include "stats/windows.h"

#include "base/saturating.h"

#define HALF (GPC_WINDOWS / 2)

/* The last windows may already belong to what is unusual. */
#define LATEST 3u

/* What was live in the middle of the run is at least 3/4 of the most, or the run has only risen. */
static int is_steady(uint64_t middle, uint64_t most)
{
	return middle >= most / 4 * 3;
}

void gpc_window_clock_init(struct gpc_window_clock *clock)
{
	*clock = (struct gpc_window_clock){ .step = 1, .is_busy = ATOMIC_FLAG_INIT };
	atomic_store(&clock->next, 1);
}

void gpc_window_clock_turn(struct gpc_window_clock *clock, uint64_t total)
{
	uint32_t now;
	uint32_t window;

	if (atomic_flag_test_and_set_explicit(&clock->is_busy, memory_order_acquire))
		return;
	now = atomic_load(&clock->now);
	window = now & 0xff;
	if (total >= atomic_load(&clock->next)) {
		__atomic_store_n(&clock->highs[window],
			atomic_exchange_explicit(&clock->high, 0, memory_order_relaxed),
			__ATOMIC_RELAXED);
		now++;
		if (window + 1 == GPC_WINDOWS) {
			for (uint32_t i = 0; i < HALF; i++)
				__atomic_store_n(&clock->highs[i],
					gpc_larger(clock->highs[2 * i], clock->highs[2 * i + 1]),
					__ATOMIC_RELAXED);
			/* What passed so far is as long as half of the windows. */
			clock->step = gpc_larger(2 * clock->step, total / HALF);
			now = ((now >> 8) + 1) << 8 | HALF;
		}
		atomic_store(&clock->now, now);
		atomic_store(&clock->next, total + clock->step);
	}
	atomic_flag_clear_explicit(&clock->is_busy, memory_order_release);
}

uint64_t gpc_window_clock_usual(const struct gpc_window_clock *clock)
{
	uint32_t n = atomic_load(&clock->now) & 0xff;
	uint64_t most = 0;

	if (n < HALF)
		return UINT64_MAX;
	for (uint32_t i = 0; i < n - LATEST; i++)
		most = gpc_larger(most, __atomic_load_n(&clock->highs[i], __ATOMIC_RELAXED));
	return is_steady(__atomic_load_n(&clock->highs[n / 2], __ATOMIC_RELAXED), most)
		       ? most
		       : UINT64_MAX;
}

/* Closes the running window and those after it, up to `end`, in which the site held `live` bytes. */
static void fill(struct gpc_windows *windows, uint32_t from, uint32_t end, uint64_t live)
{
	if (from >= end)
		return;
	windows->lows[from] = windows->low;
	windows->highs[from] = windows->high;
	for (uint32_t i = from + 1; i < end; i++)
		windows->lows[i] = windows->highs[i] = live;
	windows->low = windows->high = live;
}

void gpc_windows_pass(struct gpc_windows *windows, uint32_t now, uint64_t live)
{
	uint32_t at = windows->clock & 0xff;

	for (uint32_t n = windows->clock >> 8; n < now >> 8; n++) {
		fill(windows, at, GPC_WINDOWS, live);
		for (uint32_t i = 0; i < HALF; i++) {
			windows->lows[i] =
				gpc_smaller(windows->lows[2 * i], windows->lows[2 * i + 1]);
			windows->highs[i] =
				gpc_larger(windows->highs[2 * i], windows->highs[2 * i + 1]);
		}
		at = HALF;
	}
	fill(windows, at, now & 0xff, live);
	windows->clock = now;
}
