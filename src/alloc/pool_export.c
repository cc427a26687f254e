/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Withdraws segments, which then serve no more requests: other processes may hold them, or pages are no longer used.
 * Also decides how a block within a segment appears to the program (block.h, enum gpc_block_view).
 */
#include "alloc/pool.h"

#include "alloc/pool_internal.h"

static void hide_block(struct gpc_block *block, struct gpc_pool *pool)
{
	if (block->state == GPC_BLOCK_FREE)
		gpc_pool_leave_bin_locked(pool, block);
	gpc_stream_order_remove(&pool->order, block);
}

/* From now on the segment serves no request, and it goes back to the driver once all of it is free. */
static void withdraw_locked(struct gpc_pool *pool, struct gpc_segment *segment)
{
	if (segment->is_exported)
		return;
	for (struct gpc_block *at = segment->first; at; at = at->next)
		hide_block(at, pool);
	if (!gpc_list_is_empty(&segment->idle))
		atomic_fetch_add(&pool->n_leaving, 1);
	segment->is_exported = true;
}

void gpc_pool_end_pages(struct gpc_pool *pool)
{
	(void)gpc_pool_trim(pool, UINT64_MAX, true);
	gpc_pool_lock(pool);
	gpc_list_each (link, &pool->segments) {
		struct gpc_segment *segment = gpc_list_entry(link, struct gpc_segment, link);

		if (segment->range)
			withdraw_locked(pool, segment);
	}
	gpc_lock_release(&pool->lock);
}

enum gpc_status gpc_pool_export(struct gpc_pool *pool, gpc_devptr address, gpc_devptr *ret_base)
{
	enum gpc_status st = GPC_NOT_FOUND;
	struct gpc_segment *segment;

	gpc_pool_lock(pool);
	segment = gpc_pool_find_segment_locked(pool, address);
	if (segment) {
		withdraw_locked(pool, segment);
		*ret_base = segment->address;
		st = GPC_OK;
	}
	gpc_lock_release(&pool->lock);
	return st;
}

enum gpc_status gpc_pool_segment_of(
	struct gpc_pool *pool, gpc_devptr address, gpc_devptr *ret_base, uint64_t *ret_size)
{
	const struct gpc_segment *segment;

	gpc_pool_lock(pool);
	segment = gpc_pool_find_segment_locked(pool, address);
	if (segment) {
		*ret_base = segment->address;
		*ret_size = segment->size;
	}
	gpc_lock_release(&pool->lock);
	return segment ? GPC_OK : GPC_NOT_FOUND;
}

/* The live block that contains this address, or NULL. */
static struct gpc_block *find_around(const struct gpc_segment *segment, gpc_devptr address)
{
	struct gpc_block *block = segment->first;

	while (address - block->address >= block->size)
		block = block->next;
	return block->state == GPC_BLOCK_LIVE ? block : NULL;
}

enum gpc_status gpc_pool_decide_view(struct gpc_pool *pool, gpc_devptr address,
	enum gpc_block_view view, struct gpc_span *ret_span)
{
	enum gpc_status st = GPC_NOT_FOUND;
	struct gpc_segment *segment;
	struct gpc_block *block;

	gpc_pool_lock(pool);
	segment = gpc_pool_find_segment_locked(pool, address);
	if (segment) {
		block = find_around(segment, address);
		st = block ? GPC_OK : GPC_INVALID;
		if (block && segment->range)
			view = GPC_VIEW_OWN; /* a segment of pages may split there */
		else if (block && block == segment->first)
			view = GPC_VIEW_SEGMENT;
		if (block && block->view == GPC_VIEW_OPEN)
			block->view = (uint8_t)view;
		if (block)
			*ret_span = (struct gpc_span){
				.segment = segment->address,
				.block = block->address,
				.size = block->size,
				.view = (enum gpc_block_view)block->view,
			};
	}
	gpc_lock_release(&pool->lock);
	return st;
}
