/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a verdict is judged by: facts in addition to the record of the failure, and the numbers derived from both.
 *
 * Invariants  A number that is not known is GPUCACHE_UNKNOWN; no comparison holds with one.
 * Threads     Pure functions.
 * Failure     None.
 */
#ifndef GPC_OOM_VERDICT_VIEW_H
#define GPC_OOM_VERDICT_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "gpucache_format.h"

/* The driver allocates in steps of 2 MiB, so free memory of less than a step serves no request. */
#define GPC_DRIVER_STEP (2 * GPC_MIB)

/* If the plain driver would have been short, too, a cache below this part of the device is not the reason. */
#define GPC_WASTED_PART 8u

/* Keys of GPUCACHE_CONF that the user has set. */
#define GPC_SET_FRACTION 0x1u /* per_process_memory_fraction has set the limit */
#define GPC_SET_ROUNDUP  0x2u /* roundup_power2_divisions */
#define GPC_SET_OOM_WAIT 0x4u /* oom_wait_ms */

/* What tests and advice need beyond the record of the failure.  Begin with gpc_verdict_facts_unknown(). */
struct gpc_verdict_facts {
	uint64_t free_before; /* the driver's free bytes before its last refusal, and after it */
	uint64_t free_after;
	uint64_t largest_usable;     /* free piece for this request; unknown: cached_largest */
	uint64_t largest_other_pool; /* largest free piece in pools it may not use */
	uint64_t largest_pending;
	uint64_t usual_request; /* median of this run's requests */
	uint64_t usual_live;    /* median of this run's live bytes */
	uint64_t plain_live;    /* what the driver would take for the live blocks of our segments */
	uint64_t growth_blocks; /* that hold oom->growth_bytes */
	uint64_t growth_others; /* bytes that other sites keep as steadily in the same windows */
	uint64_t growth_total;  /* bytes that the growing site asked for since the start */
	uint64_t growth_held;   /* of these, bytes that it holds now */
	uint64_t growth_held_blocks;
	uint64_t n_free;      /* frees on the device since the start */
	uint64_t host_bytes;  /* of the host, pinned by this process */
	uint32_t n_contexts;  /* on the device; 0: unknown */
	uint32_t options_set; /* GPC_SET_* */
	bool is_renewed;      /* the growing site replaces its few blocks by larger ones */
	bool is_varied;       /* its blocks are of many sizes */
	bool caching;         /* cache:on */
	bool capturing;       /* a stream capture was open */
	bool eager_modules;   /* CUDA_MODULE_LOADING=EAGER */
	const char *conf;     /* GPUCACHE_CONF as set; NULL or "": not set */
};

/* All facts unknown, with caching on. */
struct gpc_verdict_facts gpc_verdict_facts_unknown(void);

/*
 * The bytes of the device that the plain driver uses for a block of this size.  From GPC_DRIVER_STEP on a block uses
 * whole steps; blocks of a smaller size share a step, and each uses its part of that step.
 */
uint64_t gpc_plain_bytes(uint64_t size);

/*
 * The sum of gpc_plain_bytes over the device's live blocks in our segments: an estimate, since it assumes perfect
 * packing of small blocks.  It tells failures by fragmentation of the cache from those that the plain driver would have
 * had, too.  `requested`: the bytes of the same blocks by the counters; GPUCACHE_UNKNOWN if the slots cover less than
 * 63/64 of them.  Any thread; a block that changes meanwhile is skipped.
 */
uint64_t gpc_plain_live(const struct gpucache_block *blocks, uint32_t n_blocks, uint32_t device,
	uint64_t requested);

/* The quantities of verdict.h, computed once; the letters are those of verdict.h. */
struct gpc_verdict_view {
	const struct gpucache_oom *oom;
	const struct gpc_verdict_facts *facts;
	uint64_t need;       /* R */
	uint64_t driver;     /* D */
	uint64_t room;       /* D, or what Q leaves if that is less */
	uint64_t piece;      /* c; 0 also if unknown: see piece_known */
	uint64_t held;       /* L + I, direct included */
	uint64_t taken;      /* L + I + P + C */
	uint64_t charged;    /* part of `taken` that counts against Q: no contexts, no modules */
	uint64_t step;       /* what Q counts for R: device memory rounded up to GPC_DRIVER_STEP */
	uint64_t sum;        /* D + C + P */
	uint64_t shortage;   /* S; 0 if the room is unknown */
	uint64_t others;     /* X */
	uint64_t most_other; /* upper bound of X */
	uint64_t plain;      /* V; unknown if plain_live is */
	uint64_t wasted;     /* bytes by which V exceeds what was free; 0 also if unknown */
	uint64_t managed;    /* M */
	uint64_t contexts;   /* bytes of all contexts but one; 0 also if unknown */
	bool piece_known;
	bool limited; /* the limit Q refuses the request */
	bool gone;    /* D + C + P < R: returning everything would not have sufficed */
	bool scarce;  /* short of room */
};

void gpc_verdict_view(const struct gpucache_oom *oom, const struct gpc_verdict_facts *facts,
	struct gpc_verdict_view *ret_view);

static inline bool gpc_is_known(uint64_t value)
{
	return value != GPUCACHE_UNKNOWN;
}

/* a >= b, and a < b; both are false if a or b is unknown. */
static inline bool gpc_is_at_least(uint64_t a, uint64_t b)
{
	return gpc_is_known(a) && gpc_is_known(b) && a >= b;
}

static inline bool gpc_is_below(uint64_t a, uint64_t b)
{
	return gpc_is_known(a) && gpc_is_known(b) && a < b;
}

#endif
