/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ladder: what is tried, and in which order, before the program is told "out of memory".
 *
 * The rungs are a table in ladder.c, from cheap and harmless to costly.  After each of them the
 * request is attempted again, whatever the rung found: another process may have freed meanwhile.
 * Only a rung that has nothing to work on (no pool, no handler, no wait allowed) is passed over.
 * The first attempt that succeeds ends the climb.  The attempt is the caller's: for the pool it is
 * one more search and one more try of the driver, for calls that are not ours it is that call
 * itself.
 *
 * Threads   Any; no lock of ours may be held.  Rungs wait for the device and call the program's
 *           handlers.
 * Failure   The status of the last attempt; the driver's own, unless an attempt never reached it.
 */
#ifndef GPC_OOM_LADDER_H
#define GPC_OOM_LADDER_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/pool.h"
#include "gpucache_format.h"

struct gpc_ladder {
	struct gpc_pool *pool;         /* of the request; NULL: none of ours */
	struct gpc_pool *const *pools; /* all of the device, `pool` included */
	uint32_t n_pools;
	uint64_t wanted;  /* bytes that have to be found */
	uint64_t wait_ms; /* for other processes; 0: not at all */
	uint64_t sync_ms; /* for our own work on the device, in all; 0: until it is over */
	/*
	 * All that the device has free, and we idle or pending, is less than what is wanted: so nothing is
	 * waited for, and nothing given back.  The plain driver says no at once, too.
	 */
	bool is_out_of_reach;

	/* Try again.  GPC_DEVICE_NO_MEMORY or GPC_LIMIT: still no room. */
	enum gpc_status (*attempt)(void *arg);
	/* Ask the driver to trim its own pools and graph memory; may be NULL. */
	void (*trim_driver)(void *arg);
	/* Call the program's OOM handlers; false: there are none.  May be NULL. */
	bool (*call_handlers)(void *arg, uint64_t wanted, bool *ret_did_free);
	void *arg;

	/* Results. */
	uint64_t sync_left_ms;              /* of sync_ms */
	uint64_t freed[GPUCACHE_MAX_RUNGS]; /* what each rung made free or gave back */
	uint32_t n_tried;
	uint32_t helped; /* 1 + index of the rung after which it succeeded; 0: none */
};

/* Climbs after a first attempt failed with `st`.  GPC_OK: an attempt succeeded. */
GPC_MUST_CHECK enum gpc_status gpc_ladder_climb(struct gpc_ladder *ladder, enum gpc_status st);

/* True where the ladder may help against this status. */
static inline bool gpc_ladder_helps(enum gpc_status st)
{
	return st == GPC_DEVICE_NO_MEMORY || st == GPC_LIMIT;
}

#endif
