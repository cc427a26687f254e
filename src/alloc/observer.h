/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observer: callbacks for what the allocator does, so that it depends on no file and no stack.
 *
 * Threads   Called with the pool's lock held; must not call back, block, or take a lock of a lower
 *           rank.
 * Failure   None: an observer drops and counts what it cannot store.
 */
#ifndef GPC_ALLOC_OBSERVER_H
#define GPC_ALLOC_OBSERVER_H

#include "alloc/block.h"

/* A request of the program. */
struct gpc_request {
	uint64_t size; /* bytes requested */
	uint64_t now_ns;
	uint32_t mark; /* id of its stack */
	uint32_t thread;
	gpc_stream stream; /* that the program named (stream_order.h); 0: none */
	bool is_exact; /* an allocation by a caller that has a cache of its own (pool_exact.c), of 2 MiB or more */
	bool is_async; /* a free in stream order (cudaFreeAsync), for which the plain driver does not wait either */
};

struct gpc_observer {
	/*
	 * A block changed its state or extent; UNUSED: it was coalesced or its segment was removed,
	 * its number may be reused, and now_ns is 0.
	 */
	void (*block_changed)(const struct gpc_block *block, uint64_t now_ns);
	/* The program allocated this block, which is LIVE now: block_changed is not called for that. */
	void (*taken)(const struct gpc_block *block, const struct gpc_request *request);
	/* The program freed this block.  is_parked: it is FREE, and as large as it was; else block_changed follows. */
	void (*freed)(
		const struct gpc_block *block, const struct gpc_request *request, bool is_parked);
	/* The program suballocates from this block: it stops counting for the stack block->mark, cleared next. */
	void (*became_arena)(const struct gpc_block *block);
	/* A segment was allocated, or is about to be returned to the driver. */
	void (*segment_added)(const struct gpc_segment *segment, const struct gpc_request *request);
	void (*segment_removed)(const struct gpc_segment *segment);
};

#endif
