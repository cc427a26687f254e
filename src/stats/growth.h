/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth: which call site holds more and more of one device.
 *
 * Every so many allocations on it what each site holds is noted: a window.  When the rows are full every
 * second one is dropped and the distance doubles, so that the rows always span the whole run in
 * bounded memory:
 *
 *      run   |----|----|----|----|----|----|----|----|          a row a window, GPC_GROWTH_ROWS at most
 *      site       3    6    9   12   15   18   21   24          rose in 8 of the last 8 windows: it grows
 *      other      5    0    5    0    5    5    0    5          comes and goes
 *
 * Threads   note: any; one takes the window, the others go on.  find: any; it may miss a window
 *           being taken.
 * Failure   init: GPC_NO_METADATA; then nothing is ever noted or found.
 * Limits    Windows are counted in allocations, not in time.
 */
#ifndef GPC_STATS_GROWTH_H
#define GPC_STATS_GROWTH_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/status.h"
#include "gpucache_format.h"

#define GPC_GROWTH_ROWS    16 /* even */
#define GPC_GROWTH_WINDOWS 8  /* that a verdict looks at */

struct gpc_growth {
	uint32_t device;
	uint64_t *rows; /* GPC_GROWTH_ROWS rows of max_sites bytes held */
	uint32_t max_sites;
	_Atomic uint32_t n_rows;
	uint64_t step;         /* allocations between two rows */
	_Atomic uint64_t next; /* number of the allocation that is worth a row */
	atomic_flag is_busy;
};

/* What grew most over the last windows. */
struct gpc_growing {
	uint32_t stack; /* 0: nothing, or too few windows */
	uint64_t bytes;
	uint32_t n_windows;
	uint32_t n_up; /* of them, those in which it rose */
};

GPC_MUST_CHECK enum gpc_status gpc_growth_init(
	struct gpc_growth *growth, uint32_t device, uint32_t max_sites);
void gpc_growth_fini(struct gpc_growth *growth);

/* Behind gpc_growth_note. */
void gpc_growth_take_row(struct gpc_growth *growth, uint64_t n_mallocs,
	const struct gpucache_site *sites, uint32_t n_sites);

/* After each allocation on the device, of which `n_mallocs` were made so far.  n_sites never falls. */
static inline void gpc_growth_note(struct gpc_growth *growth, uint64_t n_mallocs,
	const struct gpucache_site *sites, uint32_t n_sites)
{
	if (__builtin_expect(
		    n_mallocs >= atomic_load_explicit(&growth->next, memory_order_relaxed), 0))
		gpc_growth_take_row(growth, n_mallocs, sites, n_sites);
}

/* The site that grew most over the last windows up to now. */
struct gpc_growing gpc_growth_find(
	const struct gpc_growth *growth, const struct gpucache_site *sites, uint32_t n_sites);

/* The bytes that a site gained over the last windows, or since the first one; 0: none. */
uint64_t gpc_growth_of(const struct gpc_growth *growth, const struct gpucache_site *sites,
	uint32_t n_sites, uint32_t stack);

#endif
