/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream order: a stream may reuse at once, without a fence, what it freed itself.
 *
 * A free that names a stream promises: every use of the block is on that stream, or ordered before
 * this point of it.  A request that names a stream promises: every use will be on that stream, or
 * ordered after this point of it.  If both name the same stream, the device orders the uses, and there
 * is nothing to wait for:
 *
 *      stream s   ...work on p | free_on(p, s) | malloc_on(s) -> p | new work on p ...
 *                                    |                  ^
 *      p in a fence                  '-- PENDING -------'   taken out of its fence
 *                                           |
 *                                           '--> its fence passes: FREE, for any request
 *
 * A block freed in order is PENDING in the open fence as any other, and also in the order of its
 * stream: a set of bins per known stream, exact best fit, no driver call.
 *
 * Invariants
 *   S1  A block is in the order of at most one stream, the one that its free named; in none if other
 *       streams use it (gpc_pool_record_use), if a capture was open, or if its segment is exported.
 *   S2  Only a request that names the same stream, outside a capture, takes it.
 *   S3  Only the pool of its context knows a stream, from its creation to its destruction.  The driver
 *       reuses handles while work of the old stream may still run: so blocks in the order of a
 *       destroyed stream wait for their fences, and a stream whose creation was not seen has no order.
 * Threads     The pool's lock.
 * Failure     None: without metadata, or with too many streams, a block waits for its fence.
 * Limits      GPC_MAX_ORDERED_STREAMS streams of a context at a time.  Blocks are never cut.  The
 *             per-thread default streams share one handle, so the caller never names one.
 */
#ifndef GPC_ALLOC_STREAM_ORDER_H
#define GPC_ALLOC_STREAM_ORDER_H

#include "alloc/bin.h"

/* PyTorch's stream pool has 32 streams of each of two priorities. */
#define GPC_MAX_ORDERED_STREAMS 96

/* Stands for the legacy default stream, because 0 means no stream: the driver's CU_STREAM_LEGACY. */
#define GPC_ORDERED_LEGACY ((gpc_stream)1)

struct gpc_stream_order {
	/* of each slot; the first one is the legacy stream; 0: the slot is free */
	gpc_stream streams[GPC_MAX_ORDERED_STREAMS];
	uint32_t n_slots; /* slots that were ever used */
	/* the bins of each slot; mapped at the first free that names a stream */
	struct gpc_bins *bins;
};

/* Makes an order that knows only the legacy stream.  It holds no memory until the first add. */
void gpc_stream_order_init(struct gpc_stream_order *order);

/* Forgets all blocks and streams. */
void gpc_stream_order_fini(struct gpc_stream_order *order);

/* Call after a stream of the context was created, and before one is destroyed. */
void gpc_stream_order_created(struct gpc_stream_order *order, gpc_stream stream);
void gpc_stream_order_destroyed(struct gpc_stream_order *order, gpc_stream stream);

/* Adds a PENDING block that `stream` freed; no-op if the stream is unknown. */
void gpc_stream_order_add(
	struct gpc_stream_order *order, gpc_stream stream, struct gpc_block *block);

/* Slow path of gpc_stream_order_remove. */
void gpc_stream_order_take_out(struct gpc_stream_order *order, struct gpc_block *block);

/* Removes a block from its order, if it is in one. */
static inline void gpc_stream_order_remove(struct gpc_stream_order *order, struct gpc_block *block)
{
	if (block->order)
		gpc_stream_order_take_out(order, block);
}

/* Returns the smallest block of at least `size` bytes that `stream` freed, or NULL.  The block stays in its order. */
struct gpc_block *gpc_stream_order_find(
	const struct gpc_stream_order *order, gpc_stream stream, uint64_t size);

#endif
