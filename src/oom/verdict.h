/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a request failed: the tests, as a table over one filled struct gpucache_oom.
 *
 * The letters of the tests:
 *
 *	R  what had to be found, rounded       D  free on the device, as the driver says
 *	L  live, as asked for, and direct      I  lost to rounding          P  freed, still pending
 *	C  cached and free                     c  its largest piece that this request may use
 *	X  other processes                     U  this process outside our books
 *	Q  limit of the configuration          T  total        S  shortage: R - max(D, c)
 *
 *	IMPOSSIBLE  R > T - driver's reserve
 *	LIMIT       L + I + P + C + R > Q
 *	FRAGMENTED  D < R, c < R, and C >= R, or C + D >= R
 *	PENDING     C + D < R <= P + C + D, or one pending block >= R
 *	ROUNDING    D < R and I > 10 % of L, or the request would have fitted before it was rounded
 *	NEIGHBOUR   D + C + P < R <= D + C + P + X
 *	UNTRACKED   D + C + P < R, and U > 15 % of T or U >= S
 * 	GROWTH      no room, and a holder grew in 6 of the last 8 windows, or by S since the last
 * 	            look
 *	SPIKE       no room, and this step needs more than twice what is usual
 *	EXHAUSTED   D + C + P < R, and X is small or would not be enough either
 *	DRIVER      D >= R + 2 MiB, before and after the failed call
 *	WRONG_POOL  D < R, c < R, but another pool has a piece >= R
 *
 * Invariants
 *   1 All tests are evaluated.  The verdict is the first in this order that is certain or likely,
 *     else the first that is possible; the others that hold are in `also`.
 *   2 A number that is not known never satisfies a test.
 *   3 CERTAIN is arithmetic over measured numbers only.
 *
 * Threads   Pure functions.
 * Failure   None: GPUCACHE_VERDICT_NONE where nothing holds.
 * Limits    Pinned host memory is not judged: its shortage is not the device's.
 */
#ifndef GPC_OOM_VERDICT_H
#define GPC_OOM_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpucache_format.h"

/* Keys of GPUCACHE_CONF that the user has set. */
#define GPC_SET_MAX_SPLIT_SIZE 0x1u
#define GPC_SET_FRACTION       0x2u /* per_process_memory_fraction made the limit */
#define GPC_SET_ROUNDUP        0x4u /* roundup_power2_divisions */
#define GPC_SET_PENDING_LIMIT  0x8u
#define GPC_SET_OOM_WAIT       0x10u /* oom_wait_ms */

/* What the tests and the advice need beyond the record.  Start from gpc_verdict_facts_unknown(). */
struct gpc_verdict_facts {
	uint64_t free_before; /* the driver's free bytes before its last refusal, and after it */
	uint64_t free_after;
	uint64_t largest_usable; /* largest free piece this request may use; unknown: balance's */
	uint64_t largest_other_pool; /* largest free piece in pools it may not use */
	uint64_t largest_pending;
	uint64_t usual_request;  /* median of this run's requests */
	uint64_t usual_live;     /* median of this run's live bytes */
	uint64_t pending_limit;  /* in force */
	uint32_t growth_windows; /* the last windows seen of oom->growth_stack, and how many rose */
	uint32_t growth_windows_up;
	uint32_t options_set; /* GPC_SET_* */
	bool caching;         /* cache:on */
	bool capturing;       /* a stream capture was open */
	bool eager_modules;   /* CUDA_MODULE_LOADING=EAGER */
	const char *conf;     /* GPUCACHE_CONF as set, NULL or "" where it is not */
};

/* Facts of which none is known, with caching on. */
struct gpc_verdict_facts gpc_verdict_facts_unknown(void);

/*
 * Sets oom->verdict, strength, also and short_by.  Everything else must have been filled in
 * before.
 */
void gpc_verdict_find(struct gpucache_oom *oom, const struct gpc_verdict_facts *facts);

/* The letters above, computed once.  For oom/advice.c. */
struct gpc_verdict_view {
	const struct gpucache_oom *oom;
	const struct gpc_verdict_facts *facts;
	uint64_t need;       /* R */
	uint64_t driver;     /* D */
	uint64_t room;       /* D, or what Q leaves where that is less */
	uint64_t piece;      /* c; 0 where it is not known, `piece_known` says which */
	uint64_t held;       /* L + I, direct included */
	uint64_t taken;      /* L + I + P + C */
	uint64_t sum;        /* D + C + P */
	uint64_t shortage;   /* S; 0 where nothing is known of the room */
	uint64_t most_other; /* the most that X can be */
	bool piece_known;
	bool limited; /* Q refuses */
	bool gone;    /* D + C + P < R: nothing left to give back would have been enough */
};

void gpc_verdict_view(const struct gpucache_oom *oom, const struct gpc_verdict_facts *facts,
	struct gpc_verdict_view *ret_view);

#endif
