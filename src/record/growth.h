/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth: which call site holds ever more of one device, by what each held in the windows of the run (windows.h).
 *
 *	leak   1 2 3 4 5 6 7 8     the least of each window rises: it grows by what it kept
 *	late   0 0 0 0 0 0 3 8     a loop that began late; it must have kept nearly all, in many blocks
 *	beside 0 0 0 0 0 0 0 8     it kept nearly all, while much older sites went on as before: for each block that it kept
 *	                           they freed one, and as many before it began
 *	stop   1 1 1 1 1 1 1 8     it freed its blocks, and keeps them now: twice what it ever held, while the device freed
 *	                           at least as many
 *	again  0 0 3 3 3 6 6 9     it grew by the same again and again, and the device freed meanwhile: models loaded
 *	                           beside those before them
 *	renew  1 2 3 4 5 6 7 8     the most of each window rises, and it freed what it held before: each block replaces
 *	                           a smaller one, or each step needs more; with the request that fails now
 *	steps  1 2 3 4 5 6 7 8     the same, but several blocks, or sites, hold nothing at times: each step needs more, and
 *	                           nothing stays; the one block of a buffer may be freed before its larger successor comes
 *	double 0 0 0 0 1 2 4 8     each block was larger than all before it together, or nearly
 *	batch  0 0 0 0 0 0 0 0     a sawtooth
 *	cache  8 8 8 8 8 8 8 8     filled once; also if it filled most windows, but nothing in the last eighth of the
 *	                           run's allocations
 *
 * Threads   A struct gpc_growth belongs to one thread.
 * Failure   None.  With fewer than GPC_GROWTH_WINDOWS windows nothing is found.
 * Limits    Windows are counted in allocated bytes, not in time.  A sawtooth whose teeth are as long as an eighth of the run
 *           cannot be told from growth.
 */
#ifndef GPC_RECORD_GROWTH_H
#define GPC_RECORD_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#include "gpucache_format.h"
#include "model/sizes.h"
#include "record/windows.h"

#define GPC_GROWTH_WINDOWS 8u /* the last ones, which a verdict considers */

/* The request that fails, which a site would hold if it had succeeded. */
struct gpc_growth_request {
	uint64_t stack;
	uint64_t bytes;
};

struct gpc_growing {
	uint32_t stack; /* 0: no site grows */
	uint64_t bytes; /* by which it grew in the last windows */
	uint64_t held;  /* all that it holds, and in how many blocks */
	uint64_t n_blocks;
	uint64_t total;   /* what it asked for since the start */
	uint64_t n_frees; /* of the device since its growth began */
	enum gpucache_growing how;
	bool is_varied;  /* its largest request is at least four times its smallest */
	bool is_emptied; /* it freed all of its blocks in each window */
};

struct gpc_growth {
	struct gpc_growing most;
	uint64_t others_bytes; /* by which the other sites grew, in half of the windows or more */
	uint32_t n_emptied;    /* sites that grow, and are emptied */
};

/*
 * Considers one site: its record, its windows up to the running one of the clock (gpc_windows_reach), and what all sites
 * freed that are not much older (gpc_growth_is_older).  Begin with a zeroed struct.
 */
void gpc_growth_consider(struct gpc_growth *growth, const struct gpucache_site *site,
	const struct gpc_windows *windows, const struct gpc_window_clock *clock,
	struct gpc_growth_request request, uint64_t n_freed);

/* True if `other` had allocated, before `site` did first, for half as long as `site` has since, or longer. */
bool gpc_growth_is_older(const struct gpc_windows *other, const struct gpc_windows *site,
	const struct gpc_window_clock *clock);

/* The bytes by which a site grew in the last windows, steadily or not. */
uint64_t gpc_growth_lately(const struct gpucache_site *site, const struct gpc_windows *windows);

#endif
