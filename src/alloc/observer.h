/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observer: whom the allocator tells what it did, so that it needs to know of no file and no
 * stack.
 *
 * Threads   Called with the pool's lock held; must not call back, block, or take a lock of a lower
 *           rank.
 * Failure   None: what an observer cannot store it drops and counts.
 */
#ifndef GPC_ALLOC_OBSERVER_H
#define GPC_ALLOC_OBSERVER_H

#include "alloc/block.h"

/* One request of the program, as the allocator passes it on. */
struct gpc_request {
	uint64_t size; /* bytes asked for */
	uint64_t now_ns;
	uint32_t mark; /* the owner's note: a stack id */
	uint32_t thread;
	gpc_stream stream; /* the one that the program named (stream_order.h); 0: none */
	bool is_async; /* a free that keeps no order but its stream's, with the plain driver, too */
};

struct gpc_observer {
	void *self;
	/*
	 * A block changed its state or extent; UNUSED: it was merged away and its number is
	 * free again.
	 */
	void (*block_changed)(void *self, const struct gpc_block *block, uint64_t now_ns);
	/* The program got this block, or gave it back.  Follows block_changed. */
	void (*taken)(void *self, const struct gpc_block *block, const struct gpc_request *request);
	void (*freed)(void *self, const struct gpc_block *block, const struct gpc_request *request);
	/* The program hands out pieces of this block: its mark holds it no longer. */
	void (*lent)(void *self, const struct gpc_block *block);
	/* A segment came from the driver, or is about to go back to it. */
	void (*segment_added)(
		void *self, const struct gpc_segment *segment, const struct gpc_request *request);
	void (*segment_removed)(void *self, const struct gpc_segment *segment);
};

#endif
