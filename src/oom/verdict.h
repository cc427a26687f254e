/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a request failed: a table of tests over one filled struct gpucache_oom.
 *
 * Each test computes what would have happened without the cause.  The letters:
 *
 *	R  bytes needed, rounded               D  free on the device, by the driver
 *	L  live, as requested, and direct      I  lost to rounding          P  pending
 *	C  cached                              c  the largest free block usable for this request
 *	X  other processes                     U  this process, untracked
 *	Q  limit of the configuration          T  total        S  shortage: R - max(D, c)
 *	V  free if the plain driver had served every live block (gpc_plain_live)
 *	G  survivors of one site in the last windows (stats/growth.h)
 *	N  contexts                            M  managed memory that may be on the device
 *
 *	short of room: D + C + P < R, or V < R and C is less than an eighth of T
 *	of X, of the contexts and of the excess of V over what was free, the largest is the reason
 *
 *	IMPOSSIBLE   R > T - driver's reserve
 *	LIMIT        L + I + P + C + R > Q, without contexts and modules: without the limit D >= R
 *	CONTEXTS     short of room, N > 1, and with one of them D >= R
 *	GROWTH       without G there was room; and without C, X or N it would run out all the same
 *	FRAGMENTED   D < R, c < R, and C + D >= R
 *	PENDING      C + D < R <= P + C + D, or one pending block >= R
 *	ROUNDING     D < R and I > 10 % of L, or the unrounded request would have fit
 *	NEIGHBOUR    short of room, and D + C + P + X >= R
 *	MANAGED      short of room, and D + M >= R
 *	UNTRACKED    short of room, and U > 15 % of T or U >= S
 *	SPIKE        short of room, or refused by Q, and this step needs more than twice the usual
 *	EXHAUSTED    short of room, and X is small or would not suffice either; never certain if GROWTH
 *	             applies
 *	DRIVER       D >= R + 2 MiB, before and after the failed call
 *	WRONG_POOL   D < R, c < R, but another pool has a free block >= R
 *	PINNED       the request was for memory of the host
 *
 * Invariants
 *   1 All tests are evaluated.  The verdict is the first in this order that is certain or likely, else
 *     the first that is possible; all others that apply are in `also`.
 *   2 An unknown number never satisfies a test.
 *   3 CERTAIN is arithmetic over measurements only.  What only a replay can decide, such as
 *     fragmentation, is never certain here: gpumem-report replays.
 *
 * Threads   Pure functions.
 * Failure   None: GPUCACHE_VERDICT_NONE if no test applies.
 * Limits    Judges one moment.  Only gpumem-report, which knows libraries, finds PREALLOCATED.
 */
#ifndef GPC_OOM_VERDICT_H
#define GPC_OOM_VERDICT_H

#include "gpucache_format.h"
#include "oom/verdict_view.h"

/* Sets oom->verdict, strength, also and short_by from all other fields, which must be filled in. */
void gpc_verdict_find(struct gpucache_oom *oom, const struct gpc_verdict_facts *facts);

#endif
