/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows are united by the least of two lows and the most of two highs.  A clock that unites begins the window in the
 * middle; a site that missed it first fills the windows up to the end with what it held, so both stay in step.
 */
#include "record/windows.h"

#include <stdbool.h>

#define HALF (GPC_WINDOWS / 2)

/* The last windows may already belong to what is unusual. */
#define LATEST 3u

/* Fewer windows show nothing usual. */
#define FEWEST 4u

/* A spike frees so many times fewer blocks in a window. */
#define RARER 2u

static uint64_t most_of(const struct gpc_window_clock *clock, uint32_t end)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < end; i++)
		most = gpc_larger(most, clock->highs[i]);
	return most;
}

/* The most in the first half of n windows is at least 3/4 of `most`, or the run has only risen.  A step may be a window. */
static bool is_steady(const struct gpc_window_clock *clock, uint32_t n, uint64_t most)
{
	return most_of(clock, n / 2 + 1) >= most / 4 * 3;
}

void gpc_window_clock_init(struct gpc_window_clock *clock)
{
	*clock = (struct gpc_window_clock){ .step = 1, .next = 1 };
}

void gpc_window_clock_turn(struct gpc_window_clock *clock)
{
	uint32_t window = clock->now & 0xff;

	clock->freed_at[window] = clock->freed;
	clock->highs[window] = atomic_exchange_explicit(&clock->high, 0, memory_order_relaxed);
	clock->now++;
	if (window + 1 == GPC_WINDOWS) {
		for (uint32_t i = 0; i < HALF; i++) {
			clock->highs[i] = gpc_larger(clock->highs[2 * i], clock->highs[2 * i + 1]);
			clock->freed_at[i] = clock->freed_at[2 * i + 1];
		}
		/* What passed so far is as long as half of the windows. */
		clock->step = gpc_larger(2 * clock->step, clock->total / HALF);
		clock->now = ((clock->now >> 8) + 1) << 8 | HALF;
	}
	clock->next = clock->total + clock->step;
}

/* The last of the first n windows had more live than those of the first half. */
static bool is_higher(const struct gpc_window_clock *clock, uint32_t n)
{
	return !is_steady(clock, n, clock->highs[n - 1]);
}

/* Far fewer blocks were freed in it, for the same bytes, than in those before the middle. */
static bool is_of_larger(const struct gpc_window_clock *clock, uint32_t n)
{
	uint64_t freed = clock->freed_at[n - 1] - clock->freed_at[n - 2];

	return freed * RARER * (n / 2 + 1) < clock->freed_at[n / 2];
}

/* The end of the windows before a step with larger blocks, which began in one.  A leak leaves the frees of a step as they were. */
static uint32_t spike_start(const struct gpc_window_clock *clock, uint32_t end)
{
	uint32_t start = end;

	while (start > FEWEST && is_higher(clock, start) && is_of_larger(clock, start))
		start--;
	return start < end && start > FEWEST && is_higher(clock, start) ? start - 1 : start;
}

uint32_t gpc_window_clock_usual_end(const struct gpc_window_clock *clock)
{
	uint32_t n = clock->now & 0xff;
	uint32_t end = n < HALF ? 0 : n - LATEST;

	while (end > 0 && clock->freed_at[end - 1] == clock->freed)
		end--;
	return end < FEWEST ? 0 : spike_start(clock, end);
}

uint64_t gpc_window_clock_usual(const struct gpc_window_clock *clock)
{
	uint32_t end = gpc_window_clock_usual_end(clock);
	uint64_t most = most_of(clock, end);

	return end && is_steady(clock, end, most) ? most : UINT64_MAX;
}

uint64_t gpc_windows_most_before(const struct gpc_windows *windows)
{
	uint32_t n_united = (windows->clock >> 8) - (windows->shrank >> 8);
	uint32_t end = n_united < 8 ? (windows->shrank & 0xff) >> n_united : 0;
	uint64_t most = 0;

	for (uint32_t i = 0; i < end; i++)
		most = gpc_larger(most, windows->highs[i]);
	return most;
}

uint64_t gpc_windows_base(const struct gpc_windows *windows, uint32_t usual_end)
{
	uint64_t least = windows->live;

	for (uint32_t i = usual_end / 2; i < usual_end; i++)
		least = gpc_smaller(least, windows->lows[i]);
	return least;
}

/* Closes the running window and those after it, up to `end`, in which nothing changed. */
static void fill(struct gpc_windows *windows, uint32_t from, uint32_t end)
{
	if (from >= end)
		return;
	windows->lows[from] = windows->low;
	windows->highs[from] = windows->high;
	for (uint32_t i = from + 1; i < end; i++)
		windows->lows[i] = windows->highs[i] = windows->live;
	windows->low = windows->high = windows->live;
}

void gpc_windows_pass(struct gpc_windows *windows, uint32_t now)
{
	uint32_t at = windows->clock & 0xff;

	for (uint32_t n = windows->clock >> 8; n < now >> 8; n++) {
		fill(windows, at, GPC_WINDOWS);
		for (uint32_t i = 0; i < HALF; i++) {
			windows->lows[i] =
				gpc_smaller(windows->lows[2 * i], windows->lows[2 * i + 1]);
			windows->highs[i] =
				gpc_larger(windows->highs[2 * i], windows->highs[2 * i + 1]);
		}
		at = HALF;
	}
	fill(windows, at, now & 0xff);
	windows->clock = now;
}
