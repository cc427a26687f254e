/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates and destroys the parts that all pools share.  A heap without an observer gets one that does nothing, so
 * the pools never test for NULL.
 */
#include "alloc/heap.h"

static void ignore_taken(const struct gpc_block *block, const struct gpc_request *request)
{
	(void)block;
	(void)request;
}

static void ignore_freed(
	const struct gpc_block *block, const struct gpc_request *request, bool is_parked)
{
	(void)block;
	(void)request;
	(void)is_parked;
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

static void ignore_arena(const struct gpc_block *block)
{
	(void)block;
}

static const struct gpc_observer no_observer = {
	.block_changed = ignore_changed,
	.taken = ignore_taken,
	.freed = ignore_freed,
	.became_arena = ignore_arena,
	.segment_added = ignore_added,
	.segment_removed = ignore_removed,
};

enum gpc_status gpc_heap_init(struct gpc_heap *heap, const struct gpc_observer *observer)
{
	*heap = (struct gpc_heap){
		.blocks = GPC_SLAB_INIT(struct gpc_block, 4096, GPC_MAX_BLOCKS),
		.grain_maps = GPC_SLAB_INIT(struct gpc_grain_map, 16, GPC_MAX_SEGMENTS),
		.segments = GPC_SLAB_INIT(struct gpc_segment, 256, GPC_MAX_SEGMENTS),
		.ranges = GPC_SLAB_INIT(struct gpc_range, 64, GPC_MAX_SEGMENTS),
		.observer = observer ? *observer : no_observer,
		.duties = &heap->own_duties,
		.whole_from = UINT64_MAX,
	};
	gpc_captures_init(&heap->captures);
	return gpc_segment_map_init(&heap->segment_map);
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
