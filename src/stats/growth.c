/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The windows of a site are united to the last GPC_GROWTH_WINDOWS, which span half of the run or more.  A loop that began
 * later is looked for in the last ones as they are, and united to fewer.
 */
#include "stats/growth.h"

#include "base/saturating.h"

#define N GPC_GROWTH_WINDOWS

/* A steady site rises from window to window, but for one: another thread may have filled a whole window. */
#define STEADY (N - 2)

/* A site that has allocated REPLACED times as many blocks as it holds replaces them. */
#define REPLACED 8u

#define QUIET_PART 8u

/* A site whose largest request is so many times its smallest has blocks of varied sizes. */
#define VARIED 4u

/* The last windows of a site, of `n_each` of its own each. */
struct series {
	uint64_t before; /* the least in the window before the first one */
	uint64_t lows[N];
	uint64_t highs[N];
};

static void unite(struct series *series, const struct gpc_windows *windows, uint32_t n_each)
{
	uint32_t first = (windows->clock & 0xff) - N * n_each;

	series->before = first > 0 ? windows->lows[first - 1] : 0;
	for (uint32_t i = 0; i < N; i++) {
		uint32_t at = first + i * n_each;

		series->lows[i] = windows->lows[at];
		series->highs[i] = windows->highs[at];
		for (uint32_t k = at + 1; k < at + n_each; k++) {
			series->lows[i] = gpc_smaller(series->lows[i], windows->lows[k]);
			series->highs[i] = gpc_larger(series->highs[i], windows->highs[k]);
		}
	}
}

/* How often the values rise from one window to the next; 0 if one falls by more than an eighth of the last. */
static uint32_t count_rises(const uint64_t values[N])
{
	uint32_t n_rises = 0;

	for (uint32_t i = 1; i < N; i++) {
		n_rises += values[i] > values[i - 1];
		if (gpc_bytes_less(values[i - 1], values[i]) > values[N - 1] / 8)
			return 0;
	}
	return n_rises;
}

/* True if a site has freed less than an eighth of all it allocated. */
static bool has_kept_all(const struct gpucache_site *site)
{
	return site->total_bytes && site->live_bytes >= site->total_bytes - site->total_bytes / 8;
}

/* What as many blocks as it holds had on average since the start. */
static uint64_t usual_bytes(const struct gpucache_site *site)
{
	return gpc_bytes_times(site->live_blocks, site->total_bytes / site->total_blocks);
}

static bool has_replaced(const struct gpucache_site *site)
{
	return site->live_blocks && site->total_blocks / site->live_blocks >= REPLACED;
}

/* What a site kept of what it allocated in these windows. */
static uint64_t kept_in(const struct gpucache_site *site, const struct gpc_windows *windows,
	const struct series *series)
{
	/* What comes and goes is in `live`, and not in the least of a window. */
	uint64_t floor =
		has_kept_all(site) ? windows->live : gpc_larger(series->lows[N - 1], windows->low);

	return gpc_bytes_less(gpc_smaller(floor, windows->live), series->before);
}

static void add(struct gpc_growth *growth, const struct gpucache_site *site,
	const struct gpc_windows *windows, uint64_t bytes, bool is_renewed)
{
	if (bytes <= growth->most.bytes) {
		growth->others_bytes = gpc_bytes_add(growth->others_bytes, bytes);
		return;
	}
	growth->others_bytes = gpc_bytes_add(growth->others_bytes, growth->most.bytes);
	growth->most = (struct gpc_growing){ .stack = site->stack,
		.bytes = bytes,
		.held = windows->live,
		.n_blocks = site->live_blocks,
		.total = site->total_bytes,
		.is_renewed = is_renewed,
		.is_varied = windows->smallest && windows->largest / VARIED >= windows->smallest };
}

/*
 * True if each step needs more than the one before: the most of each window rises, by half of itself in all, and what it
 * holds now is near the most it ever held.
 */
static bool needs_more(const struct gpucache_site *site, const struct series *series)
{
	uint64_t last = series->highs[N - 1];

	return has_replaced(site) && count_rises(series->highs) >= STEADY &&
	       series->highs[0] <= last / 3 * 2 && site->live_bytes >= last / 8 * 7;
}

/*
 * The same if other threads fill whole windows: no window has less than the one before, at least two have more, and its
 * blocks are larger than they were on average, but no outliers.
 */
static bool has_larger(const struct gpucache_site *site, const struct series *series)
{
	uint64_t most = series->highs[0];
	uint64_t mean;
	uint64_t mean_live;
	uint32_t n_rises = 0;

	if (!has_replaced(site))
		return false;
	for (uint32_t i = 1; i < N; i++) {
		if (series->lows[i] < series->lows[i - 1])
			return false;
		n_rises += series->lows[i] > series->lows[i - 1];
		most = gpc_larger(most, series->highs[i]);
	}
	mean = site->total_bytes / site->total_blocks;
	mean_live = site->live_bytes / site->live_blocks;
	return n_rises >= 2 && mean_live >= mean + mean / 2 && mean_live / 4 <= mean &&
	       /* While a block is replaced, the old and the new one are live. */
	       site->live_bytes + mean_live >= most / 8 * 7;
}

/*
 * True if the site began in the last windows, has risen in each since, and kept nearly all, in many blocks: a loop that
 * began late.
 */
static bool began_late(const struct gpucache_site *site, const struct series *series)
{
	uint32_t first = N - 1;

	if (site->live_blocks < GPC_GROWTH_MANY_BLOCKS || !has_kept_all(site))
		return false;
	while (first > 0 && series->lows[first] > series->lows[first - 1])
		first--;
	return N - 1 - first >= 2 && (first == 0 || series->lows[first] == 0);
}

/* True if nothing was added to the site in the last 1/QUIET_PART of all allocations, and it replaces nothing. */
static bool is_filled(const struct gpucache_site *site, const struct gpc_windows *windows,
	const struct gpc_window_clock *clock)
{
	return !has_replaced(site) &&
	       gpc_bytes_less(clock->count, windows->last) > clock->count / QUIET_PART;
}

void gpc_growth_consider(struct gpc_growth *growth, const struct gpucache_site *site,
	const struct gpc_windows *windows, const struct gpc_window_clock *clock)
{
	uint32_t n_each = (windows->clock & 0xff) / N;
	struct series series;
	uint32_t n_rises;

	if (n_each == 0 || windows->live == 0 || is_filled(site, windows, clock))
		return;
	unite(&series, windows, n_each);
	n_rises = count_rises(series.lows);
	if (n_rises >= STEADY) {
		add(growth, site, windows, kept_in(site, windows, &series), has_replaced(site));
		return;
	}
	if (needs_more(site, &series) || has_larger(site, &series)) {
		add(growth, site, windows, gpc_bytes_less(windows->live, usual_bytes(site)), true);
		return;
	}
	if (n_rises >= N / 2)
		growth->others_bytes =
			gpc_bytes_add(growth->others_bytes, kept_in(site, windows, &series));
	for (uint32_t n = 1; n <= n_each; n *= 2) {
		unite(&series, windows, n);
		if (began_late(site, &series)) {
			add(growth, site, windows, kept_in(site, windows, &series), false);
			return;
		}
	}
}

uint64_t gpc_growth_lately(const struct gpucache_site *site, const struct gpc_windows *windows)
{
	uint32_t n_each = (windows->clock & 0xff) / N;
	struct series series = { 0 };

	if (n_each)
		unite(&series, windows, n_each);
	return kept_in(site, windows, &series);
}
