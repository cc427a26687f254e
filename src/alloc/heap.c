/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates and destroys the shared parts in order.  Without an observer a no-op one is used, so callers never test
 * for NULL.
 */
#include "alloc/heap.h"

#include <string.h>

static void ignore_block(const struct gpc_block *block, const struct gpc_request *request)
{
	(void)block;
	(void)request;
}

static void ignore_changed(const struct gpc_block *block, uint64_t now_ns)
{
	(void)block;
	(void)now_ns;
}

static void ignore_added(const struct gpc_segment *segment, const struct gpc_request *request)
{
	(void)segment;
	(void)request;
}

static void ignore_removed(const struct gpc_segment *segment)
{
	(void)segment;
}

static void ignore_lent(const struct gpc_block *block)
{
	(void)block;
}

static const struct gpc_observer nobody = {
	.block_changed = ignore_changed,
	.taken = ignore_block,
	.freed = ignore_block,
	.lent = ignore_lent,
	.segment_added = ignore_added,
	.segment_removed = ignore_removed,
};

enum gpc_status gpc_heap_init(struct gpc_heap *heap, const struct gpc_observer *observer)
{
	enum gpc_status st;

	memset(heap, 0, sizeof *heap);
	st = gpc_segment_map_init(&heap->segment_map);
	if (st)
		return st;
	gpc_slab_init(&heap->blocks, sizeof(struct gpc_block), 4096, GPC_MAX_BLOCKS);
	gpc_slab_init(&heap->grain_maps, sizeof(struct gpc_grain_map), 16, GPC_MAX_SEGMENTS);
	gpc_slab_init(&heap->segments, sizeof(struct gpc_segment), 256, GPC_MAX_SEGMENTS);
	gpc_slab_init(&heap->ranges, sizeof(struct gpc_range), 64, GPC_MAX_SEGMENTS);
	gpc_captures_init(&heap->captures);
	heap->observer = observer ? *observer : nobody;
	heap->duties = &heap->own_duties;
	atomic_init(&heap->whole_from, UINT64_MAX);
	return GPC_OK;
}

void gpc_heap_set_apart(struct gpc_heap *heap, uint64_t from)
{
	uint64_t now = atomic_load_explicit(&heap->whole_from, memory_order_relaxed);

	while (from < now && !atomic_compare_exchange_weak(&heap->whole_from, &now, from))
		;
}

void gpc_heap_fini(struct gpc_heap *heap)
{
	gpc_slab_fini(&heap->ranges);
	gpc_slab_fini(&heap->grain_maps);
	gpc_slab_fini(&heap->segments);
	gpc_slab_fini(&heap->blocks);
	gpc_segment_map_fini(&heap->segment_map);
}
