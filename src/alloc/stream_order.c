/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams are found by a linear scan of a dense array of words: a program that names streams has few, and a hit is near
 * the front.
 */
#include "alloc/stream_order.h"

#include <string.h>

#include "base/metamem.h"

#define BINS_SIZE (GPC_MAX_ORDERED_STREAMS * sizeof(struct gpc_bins))

_Static_assert(GPC_MAX_ORDERED_STREAMS < UINT8_MAX, "a slot's number fits into a block");

void gpc_stream_order_init(struct gpc_stream_order *order)
{
	memset(order, 0, sizeof *order);
	order->streams[0] = GPC_ORDERED_LEGACY;
	order->n_slots = 1;
}

void gpc_stream_order_fini(struct gpc_stream_order *order)
{
	gpc_metamem_unmap(order->bins, BINS_SIZE);
	gpc_stream_order_init(order);
}

/* The slot of this stream; for stream 0 the first free slot.  n_slots: there is none. */
static uint32_t slot_of(const struct gpc_stream_order *order, gpc_stream stream)
{
	uint32_t slot = 0;

	while (slot < order->n_slots && order->streams[slot] != stream)
		slot++;
	return slot;
}

static void leave(struct gpc_block *block, void *arg)
{
	(void)arg;
	block->order = 0;
}

void gpc_stream_order_destroyed(struct gpc_stream_order *order, gpc_stream stream)
{
	uint32_t slot = stream == 0 || stream == GPC_ORDERED_LEGACY ? order->n_slots
								    : slot_of(order, stream);

	if (slot == order->n_slots)
		return;
	if (order->bins) {
		gpc_bins_each(&order->bins[slot], leave, NULL);
		memset(&order->bins[slot], 0, sizeof order->bins[slot]);
	}
	order->streams[slot] = 0;
}

void gpc_stream_order_created(struct gpc_stream_order *order, gpc_stream stream)
{
	uint32_t slot;

	/* If the destruction of an older stream with this handle was missed, the new one must not inherit its blocks. */
	gpc_stream_order_destroyed(order, stream);
	slot = slot_of(order, 0);
	if (slot == GPC_MAX_ORDERED_STREAMS)
		return;
	if (slot == order->n_slots)
		order->n_slots++;
	order->streams[slot] = stream;
}

void gpc_stream_order_add(
	struct gpc_stream_order *order, gpc_stream stream, struct gpc_block *block)
{
	uint32_t slot = stream ? slot_of(order, stream) : order->n_slots;

	if (slot == order->n_slots)
		return;
	if (!order->bins)
		order->bins = gpc_metamem_map(BINS_SIZE);
	if (!order->bins)
		return;
	gpc_bins_insert(&order->bins[slot], block);
	block->order = (uint8_t)(slot + 1);
}

void gpc_stream_order_take_out(struct gpc_stream_order *order, struct gpc_block *block)
{
	gpc_bins_remove(&order->bins[block->order - 1], block);
	block->order = 0;
}

struct gpc_block *gpc_stream_order_find(
	const struct gpc_stream_order *order, gpc_stream stream, uint64_t size)
{
	uint32_t slot = stream && order->bins ? slot_of(order, stream) : order->n_slots;

	return slot == order->n_slots ? NULL : gpc_bins_find(&order->bins[slot], size);
}
