/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth: which call site holds ever more of one device.
 *
 * A leak holds blocks of every age; what comes and goes holds young blocks; a cache that was filled once,
 * old ones.  So the ages of the live blocks distinguish them, to the byte:
 *
 *      run    |----|----|----|----|----|----|----|----| now        windows, by number of allocations
 *      leak   |  x |  x |  x |  x |  x |  x |  x |  x |            survivors of 8 of the last 8: it grows
 *      batch  |    |    |    |    |    |    |    | xx |            a sawtooth: no old blocks
 *      cache  | xx | xx |    |    |    |    |    |    |            filled long ago
 *      renew  |    |    |    |    |    |    |    | XX |            replaced by larger ones: the peak grows 1 2 3 ... 8
 *
 * A loop that began late has survivors of late windows only, as has the last tooth of a sawtooth; but the site of the
 * sawtooth freed the teeth before.  So shorter windows, at the end of the run, are tried next; there a site counts only
 * if it freed nearly nothing.
 *
 * A block that is replaced (by a longer tensor, by realloc) leaves no old blocks.  Then the device's peak rises from
 * window to window by more than the survivors explain.
 *
 * If other threads make nearly all allocations, whole windows may pass without one of the growing site.  Then the sizes
 * that the site requested one after another decide, as far as the ring of events goes back.
 *
 * Only moments are stored: the boundaries of windows.  When GPC_GROWTH_ROWS is reached, every second one is dropped and
 * the distance doubles, so that they always span the whole run.
 *
 * Threads   note: any; one thread takes the moment, the others go on.  find: any; may miss a moment being taken, and
 *           blocks that change meanwhile.
 * Failure   None.  With fewer than GPC_GROWTH_WINDOWS moments nothing is found.
 * Limits    Windows are counted in allocations, not in time.  Blocks without a record are not seen.
 */
#ifndef GPC_STATS_GROWTH_H
#define GPC_STATS_GROWTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpucache_format.h"

#define GPC_GROWTH_ROWS      128 /* a power of two */
#define GPC_GROWTH_WINDOWS   8   /* the last windows, which a verdict considers */
#define GPC_GROWTH_STEADY    7   /* a steady site has survivors of so many windows */
#define GPC_GROWTH_MAX_SITES 32

/* A site with this many blocks is in a loop: no network has as many equal layers. */
#define GPC_GROWTH_MANY_BLOCKS 160u

struct gpc_growth {
	uint64_t times_ns[GPC_GROWTH_ROWS];
	uint64_t peaks[GPC_GROWTH_ROWS]; /* peak live bytes of the device until then */
	_Atomic uint32_t n_times;
	uint64_t step;         /* allocations between two moments */
	_Atomic uint64_t next; /* number of the allocation that takes the next moment */
	atomic_flag is_busy;
};

/* The input: the holders of one device, the sites and blocks of the whole process. */
struct gpc_growth_view {
	uint32_t device;
	const struct gpucache_holder *holders; /* the first GPC_GROWTH_MAX_SITES are considered */
	uint32_t n_holders;
	const struct gpucache_site *sites;
	uint32_t n_sites;
	const struct gpucache_block *blocks;
	uint32_t n_blocks;
	const struct gpucache_event *events; /* the ring; NULL: not recorded */
	uint32_t n_events;
	uint64_t end_event; /* the number of the next one */
};

/* The growing site: of the sites with survivors of most windows, that with the most surviving bytes. */
struct gpc_growing {
	uint32_t stack;        /* 0: no site grows, or there are too few windows */
	uint32_t n_up;         /* windows with survivors; if steady, GPC_GROWTH_STEADY or more */
	uint64_t bytes;        /* that the program requested for its survivors */
	uint64_t n_blocks;     /* number of its survivors */
	uint64_t others_bytes; /* of other sites with survivors of half of the windows or more */
	bool is_renewed;       /* each block replaced a smaller one, so none is old */
	bool is_varied;        /* the largest block is at least four times the smallest */
};

void gpc_growth_init(struct gpc_growth *growth);

/* Slow path of gpc_growth_note. */
void gpc_growth_take_moment(
	struct gpc_growth *growth, uint64_t n_mallocs, uint64_t now_ns, uint64_t peak_bytes);

/*
 * Call after each allocation on the device: `n_mallocs` were made so far, and `peak_bytes` is the peak of its live
 * bytes.
 */
static inline void gpc_growth_note(
	struct gpc_growth *growth, uint64_t n_mallocs, uint64_t now_ns, uint64_t peak_bytes)
{
	if (__builtin_expect(
		    n_mallocs >= atomic_load_explicit(&growth->next, memory_order_relaxed), 0))
		gpc_growth_take_moment(growth, n_mallocs, now_ns, peak_bytes);
}

/* Finds the site whose memory grows, steadily or by replaced blocks. */
struct gpc_growing gpc_growth_find(
	const struct gpc_growth *growth, const struct gpc_growth_view *view);

/* The live bytes of one stack that were allocated in the last windows: the second half of the run, or more. */
uint64_t gpc_growth_of(const struct gpc_growth *growth, uint32_t device, uint32_t stack,
	const struct gpucache_block *blocks, uint32_t n_blocks);

#endif
