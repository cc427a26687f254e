/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap: what all pools of the process share.
 *
 *      heap ---- segment map        address -> segment -> pool
 *           ---- slab of segments   number i <-> slot i of the recording's SEGMENTS
 *           ---- slab of blocks     number i <-> slot i of the recording's BLOCKS
 *           ---- slab of grain maps one for each segment of small blocks
 *           ---- captures, observer, duties
 *
 * Threads   The members have their own locks; the rest is fixed after init.
 * Failure   init: GPC_NO_METADATA, and nothing is left behind.
 */
#ifndef GPC_ALLOC_HEAP_H
#define GPC_ALLOC_HEAP_H

#include "alloc/barrier.h"
#include "alloc/captures.h"
#include "alloc/observer.h"
#include "alloc/segment_map.h"
#include "alloc/size_class.h"
#include "base/metamem.h"

/* 16 million blocks need 1.5 GiB of metadata: a bound, not an aim. */
#define GPC_MAX_BLOCKS   (1u << 24)
#define GPC_MAX_SEGMENTS (1u << 20)

struct gpc_heap {
	struct gpc_segment_map segment_map;
	struct gpc_slab blocks;
	struct gpc_slab segments;
	struct gpc_slab grain_maps;
	struct gpc_captures captures;
	struct gpc_observer observer;
	_Atomic bool is_exporting; /* memory left the process by a handle */
	/* Blocks of this size and more get segments of their own (gpc_heap_set_apart); UINT64_MAX: none. */
	_Atomic uint64_t whole_from;
	struct gpc_duties
		*duties; /* own_duties, until somebody gives others: before the first pool */
	struct gpc_duties own_duties;
};

/* `observer` may be NULL: nobody listens. */
GPC_MUST_CHECK enum gpc_status gpc_heap_init(
	struct gpc_heap *heap, const struct gpc_observer *observer);

/* All pools are gone before. */
void gpc_heap_fini(struct gpc_heap *heap);

/*
 * From now on blocks of this size and more get segments of their own: GPC_WHOLE_EXPORTED where memory leaves the
 * process, GPC_WHOLE_ASKED where the program asks where its allocations begin, or who they are.
 */
#define GPC_WHOLE_EXPORTED GPC_SMALL_MAX
#define GPC_WHOLE_ASKED    (64 * GPC_KIB)
void gpc_heap_set_apart(struct gpc_heap *heap, uint64_t from);

/*
 * The pool whose segment contains this address, or NULL.  Lock-free; see segment_map.h on what
 * it is worth.
 */
static inline struct gpc_pool *gpc_heap_find_pool(const struct gpc_heap *heap, gpc_devptr address)
{
	const struct gpc_segment *segment = gpc_segment_map_find(&heap->segment_map, address);

	return segment ? segment->pool : NULL;
}

#endif
