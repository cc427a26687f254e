/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream order: what a stream freed may be given to the same stream at once, without a fence.
 *
 * A free that names its stream says: every use of the block is on that stream, or ordered before
 * this point of it.  A request that names a stream says: every use will be on that stream, or
 * ordered behind this point of it.  Where both name the same one, the device itself keeps them
 * apart, and there is nothing to wait for:
 *
 *      stream s   ...work on p | free_on(p, s) | malloc_on(s) -> p | new work on p ...
 *                                    |                  ^
 *      the fences                    '-- PENDING -------'   taken out of its fence
 *                                           |
 *                                           '--> its fence passes: FREE, for everybody
 *
 * So a block freed in order is PENDING in the open fence as any other, and is besides in the order
 * of its stream: a set of bins for each known stream, exact best fit, no driver call.
 *
 * Invariants
 *   S1  A block is in the order of at most one stream: the one that its free named; and in none
 *       where other streams use it (gpc_pool_record_use), where a capture of the program was open,
 *       or where its segment is exported.
 *   S2  Only a request that names the same stream, outside a capture, takes it.
 *   S3  A stream is known from its creation to its destruction, to the pool of its context only.
 *       The driver uses handles again; work of the old stream may still run then.  So what was in
 *       the order of a destroyed stream waits for its fence, and a stream whose creation nobody
 *       saw keeps no order at all.
 * Threads     The pool's lock.
 * Failure     None: without metadata, or with too many streams, a block just waits for its fence.
 * Limits      GPC_MAX_ORDERED_STREAMS streams of a context at a time.  Blocks are given whole, never
 *             cut.  Per-thread default streams are not told apart by their handle: the caller never
 *             names one.
 */
#ifndef GPC_ALLOC_STREAM_ORDER_H
#define GPC_ALLOC_STREAM_ORDER_H

#include "alloc/bin.h"

/* PyTorch takes up to 32 streams of each of two priorities from its pool, and the legacy one. */
#define GPC_MAX_ORDERED_STREAMS 96

/* The name of the legacy default stream here, since 0 is none: CU_STREAM_LEGACY of the driver. */
#define GPC_ORDERED_LEGACY ((gpc_stream)1)

struct gpc_stream_order {
	gpc_stream
		streams[GPC_MAX_ORDERED_STREAMS]; /* the first one is the legacy stream; 0: free */
	uint32_t n_slots;                         /* used ever */
	struct gpc_bins *bins; /* of each slot; mapped at the first free that names a stream */
};

/* Knows the legacy stream; holds no memory until the first add. */
void gpc_stream_order_init(struct gpc_stream_order *order);

/* Forgets all blocks and streams. */
void gpc_stream_order_fini(struct gpc_stream_order *order);

/* A stream of the context was created, and is about to be destroyed. */
void gpc_stream_order_created(struct gpc_stream_order *order, gpc_stream stream);
void gpc_stream_order_destroyed(struct gpc_stream_order *order, gpc_stream stream);

/* Puts in a PENDING block that `stream` freed, where that stream is known. */
void gpc_stream_order_add(
	struct gpc_stream_order *order, gpc_stream stream, struct gpc_block *block);

/* Behind gpc_stream_order_remove. */
void gpc_stream_order_take_out(struct gpc_stream_order *order, struct gpc_block *block);

/* Takes a block out, where it is in. */
static inline void gpc_stream_order_remove(struct gpc_stream_order *order, struct gpc_block *block)
{
	if (block->order)
		gpc_stream_order_take_out(order, block);
}

/* The smallest block of at least `size` bytes that `stream` freed; NULL: none.  It stays in. */
struct gpc_block *gpc_stream_order_find(
	const struct gpc_stream_order *order, gpc_stream stream, uint64_t size);

#endif
