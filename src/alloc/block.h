/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks: the pieces that a segment is cut into.
 *
 * A segment is one allocation of the driver.  Its blocks tile it in address order, without gaps,
 * and each knows its two neighbours:
 *
 *            address                                      address + size
 *            +-----------+--------+---------------+-------------+
 *            | A  live   | B free | C  pending    | D  live     |
 *            +-----------+--------+---------------+-------------+
 *
 * A block is in one of three states.  These are all the moves:
 *
 *             take                       free, all work is in order behind it (fence.h)
 *      FREE ---------> LIVE ------------------------------------------------------> FREE
 *                        \                                                        /
 *                         '-- free, work of any stream may still use it          / its fence passed
 *                                       |                                       /
 *                                       '--------------> PENDING --------------'
 *
 *      PENDING ------> LIVE   the stream that freed it asks again, and nobody else (stream_order.h)
 *
 * Invariants.  gpc_pool_check() verifies them; tests name the one they break.
 *   I1  The first block starts where its segment does, each next one where the previous ends, and
 *       the last one ends where the segment does.
 *   I2  Two neighbours are never both FREE: freeing merges them.
 *   I3  A block is in a bin if and only if it is FREE, and in the bin of its size; a whole segment of
 *       large blocks is among the wholes.  Of small ones of one size the bin has the lowest of each segment,
 *       and the grain map of that the others.
 *   I4  A block is on the list of a fence if and only if it is PENDING.
 *   I5  Sizes are positive multiples of GPC_GRAIN, and requested <= size.
 *   I6  live + pending + cached bytes of a pool are the sum of its segments.
 *   I7  Every block is found by its address, in the grain map of a small segment or in the pool's address
 *       map, and nothing else is.
 *   I8  A segment is on the idle list if and only if it is one FREE block.
 *   I9  A block is in the order of a stream only while it is PENDING (stream_order.h).
 *
 * Threads   Everything here needs the lock of the pool.
 * Failure   None: a block that cannot be split for lack of metadata is handed out whole.
 * Limits    A block never spans two segments.  Blocks do not move.
 *
 * The words of this library, each for one idea:
 *   segment    one allocation of the driver
 *   block      a piece of a segment
 *   bin        the free blocks of about one size
 *   pool       the segments, bins and fences of one context
 *   live       the program holds it
 *   pending    the program freed it, work of the device may still use it
 *   cached     free, and kept by us
 *   direct     given by the driver for one request of the program, tracked but never cached
 *   foreign    device memory that is not ours: contexts, libraries, other processes
 *   fence      a point in the work of a context after which older frees are safe
 */
#ifndef GPC_ALLOC_BLOCK_H
#define GPC_ALLOC_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/grain_map.h"
#include "alloc/size_class.h"
#include "base/list.h"
#include "driver/driver.h"
#include "gpucache_format.h"

struct gpc_pool;

enum gpc_block_state {
	GPC_BLOCK_UNUSED = GPUCACHE_BLOCK_UNUSED,
	GPC_BLOCK_FREE = GPUCACHE_BLOCK_FREE,
	GPC_BLOCK_LIVE = GPUCACHE_BLOCK_LIVE,
	GPC_BLOCK_PENDING = GPUCACHE_BLOCK_PENDING,
};

/*
 * As what the program knows a LIVE block that does not start its segment: for others it must stay
 * that, so the first answer binds (pool.h, gpc_pool_decide_view).
 */
enum gpc_block_view {
	GPC_VIEW_OPEN,    /* nobody asked yet */
	GPC_VIEW_SEGMENT, /* a part of an allocation that starts before it */
	GPC_VIEW_OWN,     /* an allocation of its own, which has left the process */
};

struct gpc_segment {
	gpc_devptr address;
	uint64_t size;
	struct gpc_pool *pool;
	struct gpc_block *first;
	struct gpc_grain_map *grains; /* of small blocks only, else NULL */
	struct gpc_list link;         /* all segments of the pool, oldest first */
	struct gpc_list idle;         /* the idle ones, idle longest first */
	uint64_t idle_since_ns;
	uint64_t last_loose; /* the last free in it of a block that was FREE at once (barrier.h) */
	uint32_t number;     /* in the slab, and in the recording */
	uint32_t grains_number; /* in the slab */
	uint32_t mark;          /* the owner's note of the request that made it necessary */
	uint32_t n_live;        /* of its blocks */
	uint8_t kind;           /* enum gpc_pool_kind */
	bool is_exported;       /* others hold its memory: never split, recycled or trimmed */
};

struct gpc_block {
	gpc_devptr address;
	uint64_t size;
	uint64_t requested; /* LIVE and PENDING: what the program asked for */
	struct gpc_segment *segment;
	struct gpc_block *prev; /* in address order, within the segment */
	struct gpc_block *next;
	uint32_t number; /* in the slab, and in the recording */
	uint32_t mark;   /* the owner's note: who asked */
	uint8_t state;   /* enum gpc_block_state */
	uint8_t fence;   /* PENDING: where in the ring its fence is */
	uint8_t order;   /* PENDING: 1 + the slot of the stream whose order it is in; 0: none */
	bool is_arena;   /* LIVE: the program hands out pieces of it */
	bool is_shared;  /* LIVE: streams that its free will not name use it */
	uint8_t view;    /* LIVE: enum gpc_block_view */
	bool is_told;    /* LIVE: `stream` asked for it */
	union {
		struct {
			struct gpc_block *left;
			struct gpc_block *right;
		} tree; /* FREE: within its bin; PENDING: within the order of a stream */
		gpc_stream stream;
	};
	/* PENDING: within its fence.  Last, since a hit without streams never touches it. */
	struct gpc_list link;
};

#endif
