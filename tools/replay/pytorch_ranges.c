/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expandable segments: each pool of a stream has one address range.  On demand, memory is mapped into the range in
 * handles of 2 MiB (small pool) or 20 MiB (large pool).
 *
 *      range    | block | block | free | .... not mapped .... | free | block | ............. |
 *      handles  |   h   |   h   |  h   |                      |      h       |
 *
 * If no free block fits, the request takes the lowest unmapped gap that is large enough together with its free
 * neighbours, and maps what is missing.  Handles wholly inside free blocks go back to the driver when the device is
 * full, or when the program empties the cache.
 */
#include <stdlib.h>

#include "format/memory.h"
#include "tools/replay/pytorch_model.h"

#define RANGE_STRIDE (UINT64_C(1) << 43)

static uint64_t handle_size(const struct gpc_block *block)
{
	return block->number == GPC_POOL_SMALL ? GPC_TORCH_SMALL_BUFFER : GPC_TORCH_LARGE_BUFFER;
}

/* Unlike gpc_round_up(), takes any size of handle: 20 MiB is no power of two. */
static uint64_t round_up(uint64_t size, uint64_t handle)
{
	return (size + handle - 1) / handle * handle;
}

/* The size of the block and of the unmapped part after it. */
static uint64_t expandable_size(const struct gpc_block *block)
{
	const struct gpc_block *next = block->next;

	return block->size + (next && next->state == GPC_BLOCK_UNUSED ? next->size : 0);
}

struct walk {
	uint64_t size;
	struct gpc_block *best;
	bool is_over;
};

/*
 * Visits blocks in ascending size.  As PyTorch does, takes the smallest block that fits, and then goes on to the next
 * block as long as its expandable_size() is smaller.
 */
static void walk_on(struct gpc_block *block, void *arg)
{
	struct walk *walk = arg;

	if (walk->is_over || block->size < walk->size)
		return;
	if (!walk->best || expandable_size(block) < expandable_size(walk->best))
		walk->best = block;
	else
		walk->is_over = true;
}

struct gpc_block *gpc_pytorch_find_in_range(
	struct pytorch *self, uint64_t size, uint32_t stream, enum gpc_pool_kind kind)
{
	struct walk walk = { .size = size };

	gpc_bins_each(&self->streams[stream].pools[kind], walk_on, &walk);
	return walk.best;
}

static struct gpc_block **gap_of(struct pytorch *self, const struct gpc_block *block)
{
	return &self->streams[block->mark].gaps[block->number];
}

static void reserve(struct pytorch *self, uint32_t stream, enum gpc_pool_kind kind)
{
	struct gpc_block **range = &self->streams[stream].ranges[kind];
	uint64_t bytes = self->machine->device_bytes / 8 * 9;

	if (*range)
		return;
	*range = gpc_new(1, sizeof **range);
	(*range)->address = GPC_PYTORCH_START + (2 * (uint64_t)stream + kind) * RANGE_STRIDE;
	(*range)->mark = stream;
	(*range)->number = kind;
	(*range)->size = round_up(bytes, handle_size(*range));
	*gap_of(self, *range) = *range;
}

static bool is_open(const struct gpc_block *block)
{
	return block && (block->state == GPC_BLOCK_FREE || block->state == GPC_BLOCK_UNUSED);
}

static bool has_room(const struct gpc_block *block, uint64_t size)
{
	uint64_t bytes = 0;

	for (; bytes < size && is_open(block); block = block->next)
		bytes += block->size;
	return bytes >= size;
}

/*
 * Finds the lowest run of adjacent free and unmapped blocks, with an unmapped one first or second, that has room for
 * `size`.  Returns its first block, or NULL.
 */
static struct gpc_block *find_expandable(struct gpc_block *gap, uint64_t size)
{
	for (struct gpc_block *at = gap; at; at = at->next) {
		struct gpc_block *start = is_open(at->prev) ? at->prev : at;

		if (at->state == GPC_BLOCK_UNUSED && has_room(start, size))
			return start;
	}
	return NULL;
}

/*
 * Maps at least `size` bytes, or the whole unmapped block if it is smaller, from its start.  *ret_block is the mapped
 * block, coalesced with its free neighbours.
 */
static enum gpc_status map(
	struct pytorch *self, struct gpc_block *block, uint64_t size, struct gpc_block **ret_block)
{
	struct gpc_block **gap = gap_of(self, block);
	uint64_t handle = handle_size(block);
	uint64_t wanted = round_up(size < block->size ? size : block->size, handle);
	enum gpc_status st = GPC_OK;
	uint64_t mapped = 0;

	if (wanted < block->size)
		(void)gpc_pytorch_cut(block, wanted);
	for (; mapped < wanted && !st; mapped += st ? 0 : handle)
		st = gpc_machine_create_handle(self->machine, handle);
	if (!st) {
		while (*gap && (*gap == block || (*gap)->state != GPC_BLOCK_UNUSED))
			*gap = (*gap)->next;
		*ret_block = gpc_pytorch_make_free(self, block);
		return GPC_OK;
	}
	for (; mapped; mapped -= handle)
		gpc_machine_release_handle(self->machine, handle);
	if (block->next && block->next->state == GPC_BLOCK_UNUSED)
		gpc_pytorch_absorb_next(block);
	return st;
}

enum gpc_status gpc_pytorch_expand(struct pytorch *self, uint64_t size, uint32_t stream,
	enum gpc_pool_kind kind, struct gpc_block **ret_block)
{
	struct gpc_block *block;
	enum gpc_status st = GPC_OK;

	reserve(self, stream, kind);
	block = find_expandable(self->streams[stream].gaps[kind], size);
	if (!block)
		return GPC_DEVICE_NO_MEMORY;
	if (block->state == GPC_BLOCK_UNUSED)
		st = map(self, block, size, &block);
	while (!st && block->size < size)
		st = map(self, block->next, size - block->size, &block);
	if (st)
		return st;
	gpc_bins_remove(pool_of(self, block), block);
	*ret_block = block;
	return GPC_OK;
}

/* Unmaps the handles wholly inside the free block.  Returns the next block that may be free. */
static struct gpc_block *unmap(struct pytorch *self, struct gpc_block *block)
{
	uint64_t handle = handle_size(block);
	struct gpc_block **gap = gap_of(self, block);
	uint64_t range = block->address & ~(RANGE_STRIDE - 1);
	uint64_t begin = round_up(block->address - range, handle) + range;
	uint64_t end = (block->address + block->size - range) / handle * handle + range;
	struct gpc_block *middle = block;

	if (begin >= end)
		return block->next;
	gpc_bins_remove(pool_of(self, block), block);
	if (begin > block->address) {
		middle = gpc_pytorch_cut(block, begin - block->address);
		gpc_bins_insert(pool_of(self, block), block);
	}
	if (end < middle->address + middle->size) {
		struct gpc_block *rest = gpc_pytorch_cut(middle, end - middle->address);

		gpc_bins_insert(pool_of(self, rest), rest);
	}
	for (uint64_t at = begin; at < end; at += handle)
		gpc_machine_release_handle(self->machine, handle);
	middle->state = GPC_BLOCK_UNUSED;
	if (!*gap || middle->address < (*gap)->address)
		*gap = middle;
	if (middle->next && middle->next->state == GPC_BLOCK_UNUSED)
		gpc_pytorch_absorb_next(middle);
	if (middle->prev && middle->prev->state == GPC_BLOCK_UNUSED) {
		middle = middle->prev;
		gpc_pytorch_absorb_next(middle);
	}
	return middle->next;
}

void gpc_pytorch_shrink(struct pytorch *self)
{
	for (uint32_t i = 0; i < self->n_streams; i++) {
		for (int kind = 0; kind < GPC_N_POOL_KINDS; kind++) {
			struct gpc_block *at = self->streams[i].ranges[kind];

			while (at)
				at = at->state == GPC_BLOCK_FREE ? unmap(self, at) : at->next;
		}
	}
}

void gpc_pytorch_end_ranges(struct pytorch *self)
{
	for (uint32_t i = 0; i < self->n_streams; i++)
		for (int kind = 0; kind < GPC_N_POOL_KINDS; kind++)
			free(self->streams[i].ranges[kind]);
}
