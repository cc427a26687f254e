/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The windows of a site are united to the last GPC_GROWTH_WINDOWS, which span half of the run or more.  A loop that began
 * later is looked for in the last ones as they are, and united to fewer.
 */
#include "record/growth.h"

#include "base/saturating.h"

#define N GPC_GROWTH_WINDOWS

/* A steady site rises from window to window, but for one: another thread may have filled a whole window. */
#define STEADY (N - 2)

/* A site that has allocated REPLACED times as many blocks as it holds replaces them. */
#define REPLACED 8u

/* By this part of their mean. */
#define LARGER_PART 8u

#define QUIET_PART 8u

/* All blocks that a buffer had which grows by half of itself are three times the last. */
#define DOUBLED 4u

/* Fewer blocks may be those of one step. */
#define STEP_BLOCKS 12u

/* A model that is loaded so often, and stays each time, is loaded again. */
#define BURSTS 3u
#define PAUSE  2u /* frees between two times */

/* A site whose largest request is so many times its smallest has blocks of varied sizes. */
#define VARIED 4u

/* All that is known about a site. */
struct candidate {
	const struct gpucache_site *site;
	const struct gpc_windows *windows;
	const struct gpc_window_clock *clock;
	uint64_t asked;   /* by it, with the request that fails */
	uint64_t n_freed; /* by the sites that are not much older */
};

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

static bool has_replaced(const struct gpucache_site *site)
{
	return site->total_blocks >= REPLACED * (site->live_blocks ?: 1);
}

/* True if its live blocks are larger than those it has freed: equal ones are more of the same. */
static bool has_larger_blocks(const struct gpucache_site *site)
{
	uint64_t mean = site->total_blocks ? site->total_bytes / site->total_blocks : 0;

	return site->live_blocks &&
	       site->live_bytes / site->live_blocks >= mean + mean / LARGER_PART;
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

/*
 * The frees of the device from window `first` on; since the site's own last one, if that was soon after: of the two windows
 * of a series in which a steady site need not rise.
 */
static uint64_t freed_from(const struct candidate *it, uint32_t first)
{
	const struct gpc_windows *windows = it->windows;
	uint32_t now = windows->clock & 0xff;

	if (windows->freed && windows->shrank - (windows->clock - now + first) <= 2 * (now / N))
		return it->clock->freed - windows->freed;
	return it->clock->freed - (first ? it->clock->freed_at[first - 1] : 0);
}

static void add(struct gpc_growth *growth, const struct candidate *site, uint64_t bytes,
	enum gpucache_growing how, uint64_t n_frees)
{
	const struct gpc_windows *windows = site->windows;

	if (bytes <= growth->most.bytes) {
		growth->others_bytes = gpc_bytes_add(growth->others_bytes, bytes);
		return;
	}
	growth->others_bytes = gpc_bytes_add(growth->others_bytes, growth->most.bytes);
	growth->most = (struct gpc_growing){ .stack = site->site->stack,
		.bytes = bytes,
		.held = windows->live,
		.n_blocks = site->site->live_blocks,
		.total = site->site->total_bytes,
		.n_frees = n_frees,
		.how = how,
		.is_varied = windows->smallest && windows->largest / VARIED >= windows->smallest };
}

/* The site, which may be the one that grows most, freed all that it held in each window. */
static void note_emptied(struct gpc_growth *growth, const struct gpucache_site *site)
{
	struct gpc_growing *most = &growth->most;

	growth->n_emptied++;
	most->is_emptied |= most->stack == site->stack;
	if (most->is_emptied && (most->n_blocks > 1 || growth->n_emptied > 1))
		most->how = GPUCACHE_GROWS_STEPS;
}

/*
 * True if each step needs more than the one before: the most of each window rises, by half of itself in all, and what it
 * would hold now is near the most it ever held.
 */
static bool needs_more(const struct candidate *it, const struct series *series)
{
	uint64_t last = series->highs[N - 1];

	return has_replaced(it->site) && count_rises(series->highs) >= STEADY &&
	       series->highs[0] <= last / 3 * 2 && series->highs[N - 2] >= last / 2 &&
	       gpc_bytes_add(it->site->live_bytes, it->asked) >= last / 8 * 7;
}

static bool is_emptied(const struct series *series)
{
	for (uint32_t i = 0; i < N; i++)
		if (series->lows[i])
			return false;
	return true;
}

/*
 * True if it asks for more than ever, and all that it asked for before is little more than its largest block: each
 * replaced one that was much smaller.
 */
static bool doubles(const struct candidate *it)
{
	return has_replaced(it->site) && it->asked > it->windows->largest &&
	       it->site->total_bytes <= DOUBLED * it->windows->largest;
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

	if (!has_replaced(site) || !site->live_blocks)
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
static bool began_late(const struct candidate *it, const struct series *series)
{
	uint32_t first = N - 1;

	if (it->site->live_blocks < GPC_MANY_BLOCKS || !has_kept_all(it->site))
		return false;
	while (first > 0 && series->lows[first] > series->lows[first - 1])
		first--;
	return N - 1 - first >= 2 && (first == 0 || series->lows[first] == 0);
}

/*
 * Returns by how much a site has grown that freed its blocks before, and has kept them since, in the last window perhaps:
 * it holds twice what it ever held, in more blocks, and for each block that it kept the device freed one.  Without frees
 * it may be a single step that is larger than those before.  0: it has not.
 */
static uint64_t has_stopped_freeing(const struct candidate *it)
{
	const struct gpucache_site *site = it->site;
	uint64_t most = gpc_windows_most_before(it->windows);
	uint64_t kept = gpc_bytes_less(it->windows->live, most);
	uint64_t n_freed = gpc_bytes_less(site->total_blocks, site->live_blocks);
	/* As many as it held before, of the mean size of those. */
	uint64_t mean = n_freed ? (site->total_bytes - site->live_bytes) / n_freed : 0;
	uint64_t n_kept = gpc_smaller(kept / (site->live_bytes / site->live_blocks),
		gpc_bytes_less(site->live_blocks, mean ? most / mean : 0));

	return it->windows->freed && kept >= it->windows->live / 2 && n_kept >= STEP_BLOCKS &&
			       it->clock->freed - it->windows->freed >= n_kept
		       ? kept
		       : 0;
}

bool gpc_growth_is_older(const struct gpc_windows *other, const struct gpc_windows *site,
	const struct gpc_window_clock *clock)
{
	return other->born <= site->born &&
	       site->born - other->born >= gpc_bytes_less(clock->count, site->born) / 2;
}

/*
 * The frees of much older sites since the site allocated first, if it kept nearly all, in some blocks, and if there were
 * as many frees before as it has blocks, and since: they are of a loop that went on.  A larger step than usual is made by
 * sites that free in other steps, and a step of another kind by sites as new as itself.  0: not so.
 */
static uint64_t freed_beside(const struct candidate *it)
{
	uint64_t n_blocks = it->site->live_blocks;
	uint64_t n_freed = gpc_bytes_less(it->clock->freed - it->windows->began, it->n_freed);

	return has_kept_all(it->site) && n_blocks >= STEP_BLOCKS && n_freed >= n_blocks - 1 &&
			       it->windows->began >= n_blocks
		       ? n_freed
		       : 0;
}

/* What the device freed in a window. */
static uint64_t freed_in(const struct gpc_window_clock *clock, uint32_t window)
{
	return clock->freed_at[window] - (window ? clock->freed_at[window - 1] : 0);
}

/*
 * Returns by how much the site has grown if it rose at least BURSTS times, by about the same but for the last time, and
 * held what it had between them while others went on, and freed: the layers of one model are loaded without; 0: it has not.
 */
static uint64_t grew_again(const struct candidate *it)
{
	const struct gpc_windows *windows = it->windows;
	uint32_t n = windows->clock & 0xff;
	uint64_t least = UINT64_MAX;
	uint64_t most = 0;
	uint64_t burst = windows->lows[0];
	uint32_t n_bursts = 0;

	if (!has_kept_all(it->site) || n < N)
		return 0;
	for (uint32_t i = 1; i <= n; i++) {
		uint64_t low = i < n ? windows->lows[i] : windows->low;

		if (low < windows->lows[i - 1])
			return 0;
		burst += low - windows->lows[i - 1];
		if (burst == 0 || low > windows->lows[i - 1] || freed_in(it->clock, i - 1) < PAUSE)
			continue;
		least = gpc_smaller(least, burst);
		most = gpc_larger(most, burst);
		n_bursts++;
		burst = 0;
	}
	return n_bursts >= BURSTS && most - least <= most / 4 ? windows->live - most : 0;
}

/* True if nothing was added to the site in the last 1/QUIET_PART of all allocations, and it replaces nothing. */
static bool is_filled(const struct candidate *it)
{
	return !has_replaced(it->site) &&
	       gpc_bytes_less(it->clock->count, it->windows->last) > it->clock->count / QUIET_PART;
}

/* What it would hold if the request had succeeded, beyond as many blocks as usual. */
static uint64_t more_than_usual(const struct candidate *it)
{
	uint64_t mean = it->site->total_bytes / it->site->total_blocks;
	uint64_t n_blocks = it->site->live_blocks + (it->asked != 0);

	return gpc_bytes_less(
		gpc_bytes_add(it->windows->live, it->asked), gpc_bytes_times(n_blocks, mean));
}

void gpc_growth_consider(struct gpc_growth *growth, const struct gpucache_site *site,
	const struct gpc_windows *windows, const struct gpc_window_clock *clock,
	struct gpc_growth_request request, uint64_t n_freed)
{
	const struct candidate it = { .site = site,
		.windows = windows,
		.clock = clock,
		.asked = site->stack == request.stack ? request.bytes : 0,
		.n_freed = n_freed };
	uint32_t now = windows->clock & 0xff;
	uint32_t n_each = now / N;
	struct series series;
	uint64_t bytes;
	uint32_t first;
	uint32_t n_rises;

	if (n_each == 0 || (windows->live == 0 && !it.asked) || is_filled(&it))
		return;
	bytes = grew_again(&it);
	if (bytes) {
		add(growth, &it, bytes, GPUCACHE_GROWS_AGAIN, clock->freed);
		return;
	}
	first = now - N * n_each;
	unite(&series, windows, n_each);
	n_rises = count_rises(series.lows);
	if (n_rises >= STEADY) {
		add(growth, &it, kept_in(site, windows, &series),
			has_replaced(site) && has_larger_blocks(site) ? GPUCACHE_GROWS_RENEWED
								      : GPUCACHE_GROWS_STEADILY,
			freed_from(&it, first));
		return;
	}
	if (needs_more(&it, &series) || has_larger(site, &series) || doubles(&it)) {
		add(growth, &it, more_than_usual(&it), GPUCACHE_GROWS_RENEWED,
			freed_from(&it, first));
		if (is_emptied(&series))
			note_emptied(growth, site);
		return;
	}
	bytes = windows->live ? has_stopped_freeing(&it) : 0;
	if (bytes) {
		add(growth, &it, bytes, GPUCACHE_GROWS_STEADILY, clock->freed - windows->freed);
		return;
	}
	bytes = windows->live ? freed_beside(&it) : 0;
	if (bytes) {
		add(growth, &it, windows->live, GPUCACHE_GROWS_STEADILY, bytes);
		return;
	}
	if (n_rises >= N / 2)
		growth->others_bytes =
			gpc_bytes_add(growth->others_bytes, kept_in(site, windows, &series));
	for (uint32_t n = 1; windows->live && n <= n_each; n *= 2) {
		unite(&series, windows, n);
		if (began_late(&it, &series)) {
			add(growth, &it, kept_in(site, windows, &series), GPUCACHE_GROWS_STEADILY,
				freed_from(&it, now - N * n));
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
