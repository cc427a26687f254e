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
#include "oom/verdict_view.h"

/*
 * Sets oom->verdict, strength, also and short_by.  Everything else must have been filled in
 * before.
 */
void gpc_verdict_find(struct gpucache_oom *oom, const struct gpc_verdict_facts *facts);

#endif
