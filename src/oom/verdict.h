/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a request failed: the tests, as a table over one filled struct gpucache_oom.
 *
 * Each test asks what would have happened without the cause.  The letters:
 *
 *	R  what had to be found, rounded       D  free on the device, as the driver says
 *	L  live, as asked for, and direct      I  lost to rounding          P  freed, still pending
 *	C  cached and free                     c  its largest piece that this request may use
 *	X  other processes                     U  this process outside our books
 *	Q  limit of the configuration          T  total        S  shortage: R - max(D, c)
 *	V  free, had the driver itself served every live block (oom/plain.h)
 *	G  what one site keeps of the last windows (stats/growth.h), F what it freed since the start
 *	N  contexts                            M  managed memory that can be on the device
 *
 *	short of room: D + C + P < R, or V < R while C is less than an eighth of T
 *	of X, of the contexts and of what V has more than there was, the most is the reason
 *
 *	IMPOSSIBLE   R > T - driver's reserve
 *	LIMIT        L + I + P + C + R > Q, without contexts and modules: without the limit D >= R
 *	CONTEXTS     short of room, N > 1, and with one of them D >= R
 *	GROWTH       without G there was room; and with C, X or N gone it would run out as well
 *	FRAGMENTED   D < R, c < R, and C + D >= R
 *	PENDING      C + D < R <= P + C + D, or one pending block >= R
 *	ROUNDING     D < R and I > 10 % of L, or the request would have fitted before it was rounded
 *	NEIGHBOUR    short of room, and D + C + P + X >= R
 *	MANAGED      short of room, and D + M >= R
 *	UNTRACKED    short of room, and U > 15 % of T or U >= S
 *	SPIKE        short of room, and this step needs more than twice what is usual
 *	EXHAUSTED    short of room, and X is small or would not be enough either; never certain where
 *	             GROWTH holds
 *	DRIVER       D >= R + 2 MiB, before and after the failed call
 *	WRONG_POOL   D < R, c < R, but another pool has a piece >= R
 *	PINNED       the request was for memory of the host
 *
 * Invariants
 *   1 All tests are evaluated.  The verdict is the first in this order that is certain or likely,
 *     else the first that is possible; the others that hold are in `also`.
 *   2 A number that is not known never satisfies a test.
 *   3 CERTAIN is arithmetic over measured numbers only.  What only a replay can settle, as
 *     fragmentation, is never certain here: gpumem-report replays.
 *
 * Threads   Pure functions.
 * Failure   None: GPUCACHE_VERDICT_NONE where nothing holds.
 * Limits    One moment is judged.  PREALLOCATED is found by gpumem-report only, which knows libraries.
 */
#ifndef GPC_OOM_VERDICT_H
#define GPC_OOM_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpucache_format.h"

/* Keys of GPUCACHE_CONF that the user has set. */
#define GPC_SET_FRACTION 0x1u /* per_process_memory_fraction made the limit */
#define GPC_SET_ROUNDUP  0x2u /* roundup_power2_divisions */
#define GPC_SET_OOM_WAIT 0x4u /* oom_wait_ms */

/* What the tests and the advice need beyond the record.  Start from gpc_verdict_facts_unknown(). */
struct gpc_verdict_facts {
	uint64_t free_before; /* the driver's free bytes before its last refusal, and after it */
	uint64_t free_after;
	uint64_t largest_usable; /* largest free piece this request may use; unknown: balance's */
	uint64_t largest_other_pool; /* largest free piece in pools it may not use */
	uint64_t largest_pending;
	uint64_t usual_request; /* median of this run's requests */
	uint64_t usual_live;    /* median of this run's live bytes */
	uint64_t plain_live;    /* what the driver would take for the live blocks of our segments */
	uint64_t growth_blocks; /* of oom->growth_bytes */
	uint64_t growth_others; /* bytes that other sites keep of the same windows as steadily */
	uint64_t growth_total;  /* bytes that the growing site asked for since the start */
	uint64_t growth_held;   /* of them, held now */
	uint64_t growth_held_blocks;
	uint64_t n_free;      /* frees on the device since the start */
	uint64_t host_bytes;  /* pinned by this process */
	uint32_t n_contexts;  /* on the device; 0: not known */
	uint32_t options_set; /* GPC_SET_* */
	bool is_renewed;    /* the growing site keeps few blocks, and makes larger ones for them */
	bool is_varied;     /* its blocks are of many sizes */
	bool caching;       /* cache:on */
	bool capturing;     /* a stream capture was open */
	bool eager_modules; /* CUDA_MODULE_LOADING=EAGER */
	const char *conf;   /* GPUCACHE_CONF as set, NULL or "" where it is not */
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
	uint64_t charged;    /* of it, what Q counts: not contexts and modules */
	uint64_t step;       /* what Q would have had to leave: R in whole steps of the driver */
	uint64_t sum;        /* D + C + P */
	uint64_t shortage;   /* S; 0 where nothing is known of the room */
	uint64_t others;     /* X */
	uint64_t most_other; /* the most that X can be */
	uint64_t plain;      /* V; unknown where plain_live is */
	uint64_t wasted;     /* what V has more than there was; 0: nothing, or not known */
	uint64_t managed;    /* M */
	uint64_t contexts;   /* of all contexts but one */
	bool piece_known;
	bool limited; /* Q refuses */
	bool gone;    /* D + C + P < R: nothing left to give back would have been enough */
	bool scarce;  /* short of room */
};

void gpc_verdict_view(const struct gpucache_oom *oom, const struct gpc_verdict_facts *facts,
	struct gpc_verdict_view *ret_view);

#endif
