/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap: state shared by all pools of the process.
 *
 *      heap ---- segment map        address -> segment -> pool
 *           ---- slab of segments   number i <-> slot i of the recording's SEGMENTS
 *           ---- slab of blocks     number i <-> slot i of the recording's BLOCKS
 *           ---- slab of grain maps one per segment of small blocks
 *           ---- slab of ranges     one per reservation of addresses for pages
 *           ---- captures, observer, duties
 *
 * Threads   The members have their own locks; atomics may change at any time; the rest is fixed once a pool exists.
 * Failure   init: GPC_NO_METADATA, and nothing stays allocated.
 */
#ifndef GPC_ALLOC_HEAP_H
#define GPC_ALLOC_HEAP_H

#include "alloc/barrier.h"
#include "alloc/captures.h"
#include "alloc/observer.h"
#include "alloc/segment_map.h"
#include "alloc/size_class.h"
#include "base/metamem.h"

/* 16 million blocks need 1.5 GiB of metadata: an upper bound, not a target. */
#define GPC_MAX_BLOCKS   (1u << 24)
#define GPC_MAX_SEGMENTS (1u << 20)

struct gpc_heap {
	struct gpc_segment_map segment_map;
	struct gpc_slab blocks;
	struct gpc_slab segments;
	struct gpc_slab grain_maps;
	struct gpc_slab ranges; /* addresses reserved for pages */
	struct gpc_captures captures;
	struct gpc_observer observer;
	/* The runtime looks at each free: memory was exported by a handle, or is a piece of XLA's pool. */
	_Atomic bool watches_frees;
	/* Blocks of at least this size get segments of their own (gpc_heap_set_apart); UINT64_MAX: none. */
	_Atomic uint64_t whole_from;
	_Atomic bool is_paging_over; /* no new segment gets pages, whatever `vmm` says */
	struct gpc_duties *duties;   /* &own_duties, or the caller's; constant once a pool exists */
	struct gpc_duties own_duties;
};

/* `observer` may be NULL. */
GPC_MUST_CHECK enum gpc_status gpc_heap_init(
	struct gpc_heap *heap, const struct gpc_observer *observer);

/* Call after all pools are gone. */
void gpc_heap_fini(struct gpc_heap *heap);

/*
 * From now on gives blocks of at least `from` bytes segments of their own; the smallest `from` so far counts.  It is
 * GPC_WHOLE_EXPORTED once the program exports memory, GPC_WHOLE_ASKED once it queries the base address or the id of an
 * allocation.
 */
#define GPC_WHOLE_EXPORTED GPC_SMALL_MAX
#define GPC_WHOLE_ASKED    (64 * GPC_KIB)
void gpc_heap_set_apart(struct gpc_heap *heap, uint64_t from);

/*
 * The pool whose segment contains this address, or NULL.  Lock-free; segment_map.h says how long the answer holds: if
 * the segment is removed meanwhile, any pool may be the answer.
 */
static inline struct gpc_pool *gpc_heap_find_pool(const struct gpc_heap *heap, gpc_devptr address)
{
	const struct gpc_segment *segment = gpc_segment_map_find(&heap->segment_map, address);

	return segment ? __atomic_load_n(&segment->pool, __ATOMIC_ACQUIRE) : NULL;
}

#endif
