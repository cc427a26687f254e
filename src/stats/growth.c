/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation costs one comparison; every step-th one stores a moment: the time and the peak.  When all
 * GPC_GROWTH_ROWS moments are used, every second one is dropped and the step doubles, so they always span the run.
 * gpc_growth_find sorts the live blocks of each site into the last GPC_GROWTH_WINDOWS windows.  It tries windows of
 * many moments first, then of half as many, down to one: each time one pass over the blocks, after a failed request.
 */
#include "stats/growth.h"

#include "base/saturating.h"
#include "model/held.h"

/* Allocations before the first moment: few, because a leak of large blocks fills a device within some dozen. */
#define FIRST_STEP 2

/* Blocks of the last two windows are young. */
#define FIRST_YOUNG (GPC_GROWTH_WINDOWS - 2)

/* A site whose largest block is this many times its smallest has blocks of varied sizes. */
#define VARIED 4

/*
 * A site that has allocated REPLACED times as many blocks as it holds replaces them.  If they grow by a constant step,
 * the last one is at most twice as large as the mean of all; a block of more than RENEWED times the mean is an outlier.
 */
#define REPLACED 16
#define RENEWED  4

/* What a site has kept per window. */
struct kept {
	uint64_t n_blocks;
	uint64_t bytes;
	uint64_t smallest;
	uint64_t largest;
	uint32_t windows;     /* bit w: it keeps a block of window w */
	uint64_t young_bytes; /* in blocks of the last two windows */
};

/* The last windows, and what each site has kept of them. */
struct look {
	const struct gpc_growth_view *view;
	uint32_t n_sites;                      /* of view->holders */
	uint64_t times_ns[GPC_GROWTH_WINDOWS]; /* when each window starts */
	uint64_t peaks[GPC_GROWTH_WINDOWS];    /* the device's peak at that time */
	struct kept kept[GPC_GROWTH_MAX_SITES];
	uint64_t old_bytes; /* what all sites keep, except blocks of the last two windows */
};

void gpc_growth_init(struct gpc_growth *growth)
{
	*growth = (struct gpc_growth){ .step = FIRST_STEP, .is_busy = ATOMIC_FLAG_INIT };
	atomic_store(&growth->next, FIRST_STEP);
}

static void move(uint64_t *to, const uint64_t *from)
{
	__atomic_store_n(to, __atomic_load_n(from, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* Drops every second moment, so that their distance doubles. */
static uint32_t thin(struct gpc_growth *growth)
{
	for (uint32_t i = 0; i < GPC_GROWTH_ROWS / 2; i++) {
		move(&growth->times_ns[i], &growth->times_ns[2 * i + 1]);
		move(&growth->peaks[i], &growth->peaks[2 * i + 1]);
	}
	growth->step *= 2;
	return GPC_GROWTH_ROWS / 2;
}

void gpc_growth_take_moment(
	struct gpc_growth *growth, uint64_t n_mallocs, uint64_t now_ns, uint64_t peak_bytes)
{
	uint32_t n;

	if (atomic_flag_test_and_set_explicit(&growth->is_busy, memory_order_acquire))
		return;
	n = atomic_load(&growth->n_times);
	if (n == GPC_GROWTH_ROWS) {
		n = thin(growth);
		atomic_store(&growth->n_times, n);
	}
	__atomic_store_n(&growth->times_ns[n], now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&growth->peaks[n], peak_bytes, __ATOMIC_RELAXED);
	atomic_store_explicit(&growth->n_times, n + 1, memory_order_release);
	atomic_store(&growth->next, n_mallocs + growth->step);
	atomic_flag_clear_explicit(&growth->is_busy, memory_order_release);
}

/* Finds the window in which a block was allocated; 0 is the oldest.  False if the block is older than all windows. */
static bool window_of(const uint64_t *times_ns, uint64_t time_ns, uint32_t *ret_window)
{
	uint32_t w = GPC_GROWTH_WINDOWS;

	while (w > 0 && time_ns <= times_ns[w - 1])
		w--;
	if (w == 0)
		return false;
	*ret_window = w - 1;
	return true;
}

static void keep(struct kept *kept, const struct gpucache_block *block, uint32_t window)
{
	if (kept->n_blocks == 0 || block->requested < kept->smallest)
		kept->smallest = block->requested;
	if (block->requested > kept->largest)
		kept->largest = block->requested;
	kept->bytes = gpc_bytes_add(kept->bytes, block->requested);
	kept->n_blocks++;
	kept->windows |= 1u << window;
	if (window >= FIRST_YOUNG)
		kept->young_bytes = gpc_bytes_add(kept->young_bytes, block->requested);
}

static void count_block(struct look *look, const struct gpucache_block *block, uint32_t window)
{
	if (window < FIRST_YOUNG)
		look->old_bytes = gpc_bytes_add(look->old_bytes, block->requested);
	for (uint32_t i = 0; i < look->n_sites; i++) {
		if (look->view->holders[i].stack != block->stack)
			continue;
		keep(&look->kept[i], block, window);
		return;
	}
}

/* Sorts the live blocks into the last windows, of n_each moments each.  The caller checks that n_times suffices. */
static void look_at(struct look *look, const struct gpc_growth *growth, uint32_t n_times,
	uint32_t n_each, const struct gpc_growth_view *view)
{
	struct gpucache_block block;
	uint32_t first = n_times - GPC_GROWTH_WINDOWS * n_each;
	uint32_t window;

	*look = (struct look){ .view = view, .n_sites = view->n_holders };
	if (look->n_sites > GPC_GROWTH_MAX_SITES)
		look->n_sites = GPC_GROWTH_MAX_SITES;
	for (uint32_t i = 0; i < GPC_GROWTH_WINDOWS; i++) {
		move(&look->times_ns[i], &growth->times_ns[first + i * n_each]);
		move(&look->peaks[i], &growth->peaks[first + i * n_each]);
	}
	for (uint32_t i = 0; i < view->n_blocks; i++)
		if (gpc_held_read(&view->blocks[i], view->device, &block) &&
			window_of(look->times_ns, block.time_ns, &window))
			count_block(look, &block, window);
}

static struct gpc_growing growing(const struct look *look, uint32_t i)
{
	const struct kept *kept = &look->kept[i];

	return (struct gpc_growing){ .stack = look->view->holders[i].stack,
		.n_up = (uint32_t)__builtin_popcount(kept->windows),
		.bytes = kept->bytes,
		.n_blocks = kept->n_blocks,
		.is_varied = kept->largest / VARIED >= kept->smallest };
}

/* The totals of a stack on the view's device; zeros if it has no record. */
static struct gpucache_site totals_of(const struct gpc_growth_view *view, uint32_t stack)
{
	for (uint32_t i = 0; i < view->n_sites; i++) {
		const struct gpucache_site *site = &view->sites[i];

		if (__atomic_load_n(&site->stack, __ATOMIC_RELAXED) == stack &&
			__atomic_load_n(&site->device, __ATOMIC_RELAXED) == view->device)
			return (struct gpucache_site){
				.live_bytes = __atomic_load_n(&site->live_bytes, __ATOMIC_RELAXED),
				.live_blocks =
					__atomic_load_n(&site->live_blocks, __ATOMIC_RELAXED),
				.total_bytes =
					__atomic_load_n(&site->total_bytes, __ATOMIC_RELAXED),
				.total_blocks =
					__atomic_load_n(&site->total_blocks, __ATOMIC_RELAXED),
				.peak_bytes = __atomic_load_n(&site->peak_bytes, __ATOMIC_RELAXED),
			};
	}
	return (struct gpucache_site){ 0 };
}

/* True if a site has freed less than an eighth of all it allocated. */
static bool has_kept_all(const struct gpc_growth_view *view, uint32_t stack)
{
	struct gpucache_site site = totals_of(view, stack);

	return site.total_bytes && site.live_bytes >= site.total_bytes - site.total_bytes / 8;
}

/*
 * The steady site that keeps the most bytes.  If the windows do not span the run (!is_whole), a site counts only if it
 * has many blocks and freed nearly nothing.
 */
static struct gpc_growing choose(const struct look *look, bool is_whole)
{
	struct gpc_growing found = { 0 };
	uint64_t all = 0;

	for (uint32_t i = 0; i < look->n_sites; i++) {
		struct gpc_growing site = growing(look, i);

		if (site.n_up < GPC_GROWTH_WINDOWS / 2)
			continue;
		all = gpc_bytes_add(all, site.bytes);
		if (site.n_up < GPC_GROWTH_STEADY)
			continue;
		if (!is_whole && (site.n_blocks < GPC_GROWTH_MANY_BLOCKS ||
					 !has_kept_all(look->view, site.stack)))
			continue;
		if (site.bytes > found.bytes)
			found = site;
	}
	found.others_bytes = all - found.bytes;
	return found;
}

/*
 * If the peak rises in half of the windows, and in the later half, but at most half of the rise is in older blocks,
 * then the site with most young bytes renews its blocks, provided it holds few older ones and has freed some.
 */
static struct gpc_growing find_renewed(const struct look *look)
{
	uint64_t rise = gpc_bytes_less(look->peaks[GPC_GROWTH_WINDOWS - 1], look->peaks[0]);
	struct gpc_growing found = { 0 };
	uint32_t n_rises = 0;
	uint32_t top = 0;

	for (uint32_t i = 1; i < GPC_GROWTH_WINDOWS; i++)
		n_rises += look->peaks[i] > look->peaks[i - 1];
	for (uint32_t i = 1; i < look->n_sites; i++)
		if (look->kept[i].young_bytes > look->kept[top].young_bytes)
			top = i;
	/* Half is enough: other threads may have filled whole windows. */
	if (n_rises < GPC_GROWTH_WINDOWS / 2 ||
		look->peaks[GPC_GROWTH_WINDOWS - 1] <= look->peaks[GPC_GROWTH_WINDOWS / 2] ||
		look->old_bytes > rise / 2 || look->n_sites == 0)
		return found;
	if (look->kept[top].young_bytes < look->view->holders[top].bytes / 8 * 7 ||
		rise - look->old_bytes < look->kept[top].young_bytes / 4 ||
		has_kept_all(look->view, look->view->holders[top].stack))
		return found;
	found = growing(look, top);
	found.is_renewed = true;
	if (found.bytes > rise - look->old_bytes)
		found.bytes = rise - look->old_bytes;
	return found;
}

/* True if the site has replaced its blocks many times by larger ones, and is at its peak. */
static bool replaces(const struct gpucache_site *site)
{
	uint64_t mean;
	uint64_t mean_live;

	if (site->live_blocks == 0 || site->total_blocks / site->live_blocks < REPLACED)
		return false;
	mean = site->total_bytes / site->total_blocks;
	mean_live = site->live_bytes / site->live_blocks;
	/* While a block is replaced, the old and the new one are live: the peak may be one block higher. */
	return mean_live >= mean + mean / 2 && mean_live / RENEWED <= mean &&
	       site->live_bytes + mean_live >= site->peak_bytes - site->peak_bytes / 8;
}

/* Reads the slot of event `number` from the ring, which may hold a later event; seq 0: it is being written. */
static struct gpucache_event read_event(const struct gpc_growth_view *view, uint64_t number)
{
	const struct gpucache_event *slot = &view->events[number % view->n_events];
	struct gpucache_event event = {
		.seq = __atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE),
		.requested = __atomic_load_n(&slot->requested, __ATOMIC_ACQUIRE),
		.stack = __atomic_load_n(&slot->stack, __ATOMIC_ACQUIRE),
		.kind = __atomic_load_n(&slot->kind, __ATOMIC_ACQUIRE),
		.device = __atomic_load_n(&slot->device, __ATOMIC_ACQUIRE),
	};

	if (__atomic_load_n(&slot->seq, __ATOMIC_RELAXED) != event.seq)
		event.seq = 0;
	return event;
}

/*
 * True if the stack's blocks grew step by step up to the size it holds: nearly each at least as large as the one
 * before, and no step as large as half of the last block.
 */
static bool asks_for_more(const struct gpc_growth_view *view, uint32_t stack, uint64_t mean_live)
{
	uint64_t number = gpc_bytes_less(view->end_event, view->n_events);
	bool is_lost = number > 0;
	uint64_t last = 0;
	uint32_t n = 0;
	uint32_t n_down = 0;
	uint64_t step = 0;

	for (; view->events && number < view->end_event; number++) {
		struct gpucache_event event = read_event(view, number);
		uint64_t size = event.requested;

		is_lost |= event.seq > number + 1;
		if (event.seq != number + 1 || event.kind != GPUCACHE_EVENT_MALLOC ||
			event.stack != stack || event.device != view->device)
			continue;
		n_down += size < last;
		if (n > 0 && size > last && size - last > step)
			step = size - last;
		last = size;
		n++;
	}
	/*
	 * While the ladder ran, other threads may have overwritten the ring of events: then the site's totals decide
	 * alone.
	 */
	if (n < GPC_GROWTH_WINDOWS)
		return view->events && is_lost;
	return n_down <= n / 8 && step < last / 2 && last >= mean_live / 2;
}

/*
 * The largest holder that replaces its blocks.  It need not be the first one, which may be managed memory, not resident
 * on the device.
 */
static struct gpc_growing find_replaced(const struct gpc_growth_view *view)
{
	for (uint32_t i = 0; i < view->n_holders; i++) {
		uint32_t stack = view->holders[i].stack;
		struct gpucache_site site = totals_of(view, stack);

		if (view->holders[i].bytes < view->holders[0].bytes / 8)
			break;
		if (replaces(&site) &&
			asks_for_more(view, stack, site.live_bytes / site.live_blocks))
			return (struct gpc_growing){ .stack = stack,
				.bytes = gpc_bytes_less(site.live_bytes,
					gpc_bytes_times(site.live_blocks,
						site.total_bytes / site.total_blocks)),
				.n_blocks = site.live_blocks,
				.is_renewed = true };
	}
	return (struct gpc_growing){ 0 };
}

struct gpc_growing gpc_growth_find(
	const struct gpc_growth *growth, const struct gpc_growth_view *view)
{
	uint32_t n_times = atomic_load_explicit(&growth->n_times, memory_order_acquire);
	uint32_t n_each = 1;
	struct gpc_growing renewed;
	struct gpc_growing found;
	struct look look;

	if (n_times < GPC_GROWTH_WINDOWS)
		return (struct gpc_growing){ 0 };
	while (2 * n_each * GPC_GROWTH_WINDOWS <= n_times)
		n_each *= 2;
	look_at(&look, growth, n_times, n_each, view);
	found = choose(&look, true);
	renewed = find_renewed(&look);
	for (n_each /= 2; !found.stack && n_each; n_each /= 2) {
		look_at(&look, growth, n_times, n_each, view);
		found = choose(&look, false);
	}
	if (found.stack)
		return found;
	return renewed.stack ? renewed : find_replaced(view);
}

/* The start of the last windows that gpc_growth_find would try first, or of the run if there are fewer. */
static uint64_t find_first(const struct gpc_growth *growth)
{
	uint32_t n_times = atomic_load_explicit(&growth->n_times, memory_order_acquire);
	uint32_t n_windows = GPC_GROWTH_WINDOWS;
	uint64_t since_ns;

	while (2 * n_windows <= n_times)
		n_windows *= 2;
	move(&since_ns, &growth->times_ns[n_times > n_windows ? n_times - n_windows : 0]);
	return since_ns;
}

uint64_t gpc_growth_of(const struct gpc_growth *growth, uint32_t device, uint32_t stack,
	const struct gpucache_block *blocks, uint32_t n_blocks)
{
	uint64_t since_ns = find_first(growth);
	struct gpucache_block block;
	uint64_t kept = 0;

	for (uint32_t i = 0; since_ns && stack && i < n_blocks; i++)
		if (gpc_held_read(&blocks[i], device, &block) && block.stack == stack &&
			block.time_ns > since_ns)
			kept = gpc_bytes_add(kept, block.requested);
	return kept;
}
