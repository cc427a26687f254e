/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth: which call site keeps more and more of one device.
 *
 * What a leak keeps was asked for all along the run; what comes and goes was asked for lately, and what
 * was filled once was asked for long ago.  So the ages of the live blocks tell them apart, to the byte:
 *
 *      run    |----|----|----|----|----|----|----|----| now        windows, by number of allocations
 *      leak   |  x |  x |  x |  x |  x |  x |  x |  x |            kept of 8 of the last 8: it grows
 *      batch  |    |    |    |    |    |    |    | xx |            a sawtooth keeps nothing old
 *      cache  | xx | xx |    |    |    |    |    |    |            full since long ago
 *      renew  |    |    |    |    |    |    |    | XX |            peak 1 2 3 4 5 6 7 8: larger each time
 *
 * A loop that began late keeps of the late windows only, as the last tooth of a sawtooth does.  The tooth's site
 * gave back the teeth before; so in shorter windows only a site counts that gave back nearly nothing.
 *
 * What is renewed (a longer tensor for the one before, realloc) leaves no old blocks at all.  There the
 * device's highest level rises from window to window, by more than the blocks kept of them explain.
 *
 * Only the moments between windows are noted.  When there are GPC_GROWTH_ROWS every second one is dropped
 * and the distance doubles, so that they always span the whole run.
 *
 * Threads   note: any; one takes the moment, the others go on.  find: any; it may miss a moment being
 *           noted, and blocks that change meanwhile.
 * Failure   None.  With fewer than GPC_GROWTH_WINDOWS moments nothing is found.
 * Limits    Windows are counted in allocations, not in time.  Of blocks without a record nothing is known.
 */
#ifndef GPC_STATS_GROWTH_H
#define GPC_STATS_GROWTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpucache_format.h"

#define GPC_GROWTH_ROWS      128 /* a power of two */
#define GPC_GROWTH_WINDOWS   8   /* that a verdict looks at */
#define GPC_GROWTH_STEADY    7   /* of them, to be called steady */
#define GPC_GROWTH_MAX_SITES 32

/* So many blocks of one site are a loop's: no network has as many equal layers. */
#define GPC_GROWTH_MANY_BLOCKS 160u

struct gpc_growth {
	uint64_t times_ns[GPC_GROWTH_ROWS];
	uint64_t peaks[GPC_GROWTH_ROWS]; /* the most bytes live on the device until then */
	_Atomic uint32_t n_times;
	uint64_t step;         /* allocations between two moments */
	_Atomic uint64_t next; /* number of the allocation that is worth one */
	atomic_flag is_busy;
};

/* What is looked at: the holders of one device, the sites and blocks of the whole process. */
struct gpc_growth_view {
	uint32_t device;
	const struct gpucache_holder *holders; /* GPC_GROWTH_MAX_SITES are looked at */
	uint32_t n_holders;
	const struct gpucache_site *sites;
	uint32_t n_sites;
	const struct gpucache_block *blocks;
	uint32_t n_blocks;
};

/* The site that keeps most of what was asked for in the last windows, among those that keep of most. */
struct gpc_growing {
	uint32_t stack;        /* 0: none is steady, or too few windows */
	uint32_t n_up;         /* windows of which it keeps something, GPC_GROWTH_STEADY at least */
	uint64_t bytes;        /* that it keeps of the windows, as requested */
	uint64_t n_blocks;     /* of them */
	uint64_t others_bytes; /* that other sites keep of them, of half of the windows or more */
	bool is_renewed;       /* young blocks all, larger than those before them */
	bool is_varied;        /* the largest of the blocks is four times the smallest, or more */
};

void gpc_growth_init(struct gpc_growth *growth);

/* Behind gpc_growth_note. */
void gpc_growth_take_moment(
	struct gpc_growth *growth, uint64_t n_mallocs, uint64_t now_ns, uint64_t peak_bytes);

/*
 * After each allocation on the device, of which `n_mallocs` were made so far; `peak_bytes`: the most that
 * was live on it until now.
 */
static inline void gpc_growth_note(
	struct gpc_growth *growth, uint64_t n_mallocs, uint64_t now_ns, uint64_t peak_bytes)
{
	if (__builtin_expect(
		    n_mallocs >= atomic_load_explicit(&growth->next, memory_order_relaxed), 0))
		gpc_growth_take_moment(growth, n_mallocs, now_ns, peak_bytes);
}

struct gpc_growing gpc_growth_find(
	const struct gpc_growth *growth, const struct gpc_growth_view *view);

/* What one stack keeps of the last windows on the device, or of all where there are fewer. */
uint64_t gpc_growth_of(const struct gpc_growth *growth, uint32_t device, uint32_t stack,
	const struct gpucache_block *blocks, uint32_t n_blocks);

#endif
