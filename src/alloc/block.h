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
 * A block is in one of three states.  These are all the transitions:
 *
 *             alloc                      free, and later work is ordered behind it (barrier.h)
 *      FREE ---------> LIVE ------------------------------------------------------> FREE
 *                        \                                                        /
 *                         '-- free, but work of any stream may still use it      / its fence passed
 *                                       |                                       /
 *                                       '--------------> PENDING --------------'
 *
 *      PENDING ------> LIVE   only for the stream that freed it (stream_order.h)
 *
 * A block that is FREE at its free is PARKED first (pool_hit.h): as free as any other, but not coalesced yet and in no
 * bin, and so not FREE below.
 *
 * Invariants.  gpc_pool_check() verifies them; tests name the one they break.
 *   I1  The first block starts where its segment does, each next one where the previous ends, and
 *       the last one ends where the segment does.
 *   I2  Two neighbours are never both FREE: they coalesce.
 *   I3  A block is in the bin of its size if and only if it is FREE and its segment not exported.  The bin is one of
 *       pool->exacts if the segment is exact, else of pool->wholes if it is idle and of large blocks, else of pool->pieces.
 *       Exception: of the blocks of one size that the grain map of a segment lists, only the lowest is in the bin.
 *   I4  A block is on the list of a fence if and only if it is PENDING.
 *   I5  Sizes are positive multiples of GPC_GRAIN, and requested <= size.
 *   I6  live + pending + cached bytes of a pool are the sum of its segments; parked blocks are cached.
 *   I7  A block is entered by its address in the grain map of its segment, if it has one (segments of small
 *       blocks), else in the pool's address map.  Neither map has any other entry.
 *   I8  A segment is on the idle list if and only if it is one FREE block.
 *   I9  Only a PENDING block is in the order of a stream (stream_order.h).
 *   I10 An exact segment is one block.
 *
 * Threads   The pool's lock.
 * Failure   None: a block that cannot be split for lack of metadata is handed out whole.
 * Limits    A block never spans two segments.  Blocks do not move.
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
	GPC_BLOCK_PARKED, /* FREE in the recording */
};

/*
 * How a LIVE block inside a segment appears to the program: as a part of the driver's allocation, or as
 * an allocation of its own.  The first answer that the program gets is final (pool.h, gpc_pool_decide_view).
 */
enum gpc_block_view {
	GPC_VIEW_OPEN,    /* undecided */
	GPC_VIEW_SEGMENT, /* a part of the allocation that is its segment */
	GPC_VIEW_OWN,     /* an allocation of its own, and exported as such */
};

/* Addresses reserved for the pages of one segment and of all that it splits into (pool_holes.c). */
struct gpc_range {
	gpc_devptr address;
	uint64_t size;
	_Atomic uint64_t mapped_bytes; /* if it falls to 0, the addresses are released */
	uint32_t number;               /* in the slab */
};

struct gpc_segment {
	gpc_devptr address;
	uint64_t size;
	struct gpc_pool *pool; /* also read without a lock: heap.h */
	struct gpc_block *first;
	struct gpc_grain_map *grains; /* of a segment of small blocks; else NULL */
	struct gpc_list link;         /* in the pool's list of segments, oldest first */
	struct gpc_list idle;         /* in the pool's list of idle segments, idle longest first */
	uint64_t idle_since_ns;
	uint64_t last_loose;    /* number of the last free that left a block loose (barrier.h) */
	uint32_t number;        /* in the slab, and in the recording */
	uint32_t grains_number; /* in the slab */
	uint32_t mark;          /* id of the stack of the request that grew the pool */
	uint32_t n_live;        /* LIVE blocks */
	uint8_t kind;           /* enum gpc_pool_kind */
	/* it serves no more requests: other processes may hold it, or its pages are withdrawn */
	bool is_exported;
	bool is_exact;           /* never cut, and in bins of its own (pool_exact.c) */
	struct gpc_range *range; /* contains its pages; NULL: one driver allocation */
	uint64_t page_bytes;     /* size of each page; the last one may be smaller */
	uint64_t devices;        /* bit i: device i may access its pages, too */
};

struct gpc_block {
	gpc_devptr address;
	uint64_t size;
	uint64_t requested; /* LIVE and PENDING: bytes that the program requested */
	struct gpc_segment *segment;
	struct gpc_block *prev; /* in address order, within the segment */
	struct gpc_block *next;
	uint32_t number; /* in the slab, and in the recording */
	uint32_t mark;   /* id of the stack of the request */
	uint8_t state;   /* enum gpc_block_state */
	uint8_t fence;   /* PENDING: ring index of its fence */
	uint8_t order;   /* PENDING: 1 + the slot of the stream whose order it is in; 0: none */
	bool is_arena;   /* LIVE: the program suballocates from it */
	bool is_shared;  /* LIVE: used by streams besides the one that its free will name */
	uint8_t view;    /* LIVE: enum gpc_block_view */
	bool is_told;    /* LIVE: the request named a stream, `stream` */
	union {
		struct {
			struct gpc_block *left;
			struct gpc_block *right;
		} tree; /* FREE: within its bin; PENDING: within the order of a stream */
		struct {
			struct gpc_block *next; /* in its slot: parked before it */
			uint64_t time_ns;       /* of the free */
		} parked;
		gpc_stream stream; /* LIVE: that the request named */
	};
	struct gpc_list link; /* PENDING: in the list of its fence; PARKED: in the order of frees */
};

#endif
