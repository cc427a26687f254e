/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ladder: the steps tried before "out of memory" is returned, cheapest first.
 *
 * The rungs are model/rungs.def.  The request is retried after each, even if the rung freed nothing, as
 * another process may have freed memory.  A rung that does not apply (no pool, no handler, no wait
 * allowed) is skipped.  The climb ends when a retry succeeds.  The caller supplies the retry: for the
 * pool, another search and driver call; for calls that bypass the cache, the call itself.
 *
 * Threads   Any; no lock of ours may be held.  Rungs wait for the device and call the program's
 *           handlers.
 * Failure   The status of the last attempt; the driver's own, unless no attempt reached the driver.
 */
#ifndef GPC_OOM_LADDER_H
#define GPC_OOM_LADDER_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/pool.h"
#include "gpucache_format.h"

struct gpc_ladder {
	struct gpc_pool *pool;         /* of the request; NULL: it bypasses the cache */
	struct gpc_pool *const *pools; /* all pools of the device, `pool` included */
	uint32_t n_pools;
	uint64_t wanted;  /* bytes needed */
	uint64_t wait_ms; /* limit of waits for other processes; 0: none */
	uint64_t sync_ms; /* limit of all waits for our own device work; 0: unlimited */
	/*
	 * Free memory of the device and our idle, pending and moving memory together do not suffice: skip the rungs
	 * that wait for the device or trim, as the plain driver fails at once, too.
	 */
	bool is_out_of_reach;

	/* Retries the request.  GPC_DEVICE_NO_MEMORY or GPC_LIMIT: still no room. */
	enum gpc_status (*attempt)(void *arg);
	/*
	 * Makes the driver trim its own pools and graph memory; may be NULL.  False: work runs, so they may keep some.
	 * must_wait: waits for the work first, however long.
	 */
	bool (*trim_driver)(void *arg, bool must_wait);
	/* Calls the program's OOM handlers; false: there are none.  May be NULL. */
	bool (*call_handlers)(void *arg, uint64_t wanted, bool *ret_did_free);
	/* From now on `attempt` may serve the request from elsewhere; false: it may not.  May be NULL. */
	bool (*spill)(void *arg);
	void *arg;

	/* Of the climb: what the driver may have only once running work has ended. */
	uint64_t late_pools; /* bit i: memory of pools[i] was returned beside work */
	bool is_untrimmed;   /* trim_driver returned false */

	/* Results. */
	uint64_t sync_left_ms;              /* what is left of sync_ms */
	uint64_t moves_left_ms;             /* what is left for waits for moves */
	uint64_t wait_left_ms;              /* what is left of wait_ms */
	uint64_t freed[GPUCACHE_MAX_RUNGS]; /* bytes freed or returned by each rung */
	uint32_t n_tried;
	uint32_t helped; /* 1 + index of the rung after which the request succeeded; 0: none */
};

/* Climbs the ladder after a first attempt failed with `st`.  GPC_OK: a retry succeeded. */
GPC_MUST_CHECK enum gpc_status gpc_ladder_climb(struct gpc_ladder *ladder, enum gpc_status st);

/* True if the ladder may help against this status. */
static inline bool gpc_ladder_helps(enum gpc_status st)
{
	return st == GPC_DEVICE_NO_MEMORY || st == GPC_LIMIT;
}

#endif
