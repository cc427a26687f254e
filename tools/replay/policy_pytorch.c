/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of the decisions of PyTorch's native CUDA allocator, on sizes and addresses alone:
 * c10/cuda/CUDACachingAllocator.cpp, releases 1.8 to 2.x, with and without expandable segments.
 *
 *   size         512 B steps, or roundup_power2_divisions
 *   pools        up to 1 MiB: small; above: large; each per stream
 *   segments     small 2 MiB; large 20 MiB below 10 MiB, else the size rounded up to 2 MiB
 *   search       the smallest free block that fits; among equals that of the oldest segment, and in it the lowest address,
 *                as since release 2.13 (pull request 183591); before, the lowest address, which the driver chooses; if a
 *                rule of max_split_size forbids that block, no other one is tried
 *   split        small: if 512 B remain; large: if more than 1 MiB remains, and the size is below max_split_size
 *   free         the block is free at once and coalesces within its segment; but if other streams used the block
 *                (record_stream), it is free when an event on each of them has passed, queried at each request
 *   no room      with max_split_size, returns an oversize cached segment that is large enough; then waits
 *                for all events, and returns all cached segments
 *   expandable   one address range per pool instead of segments (pytorch_ranges.c)
 *
 * Some sizes of model/torch.h equal those of src/alloc, but this library may change its own while PyTorch's stay.
 * struct gpc_bins serves as an ordered set of the free blocks.  garbage_collection_threshold has no effect, because
 * PyTorch ignores it unless the program sets a memory fraction.
 */
#include <stdlib.h>

#include "format/memory.h"
#include "tools/replay/pytorch_model.h"

static uint64_t round_to_division(uint64_t size, uint64_t divisions)
{
	uint64_t floor = UINT64_C(1) << (63 - __builtin_clzll(size));
	uint64_t step = floor >> (63 - __builtin_clzll(divisions));

	if (floor == size)
		return size;
	return step ? (size + step - 1) & ~(step - 1) : floor << 1;
}

static uint64_t round_size(const struct pytorch *self, uint64_t size)
{
	uint64_t divisions = self->roundup_divisions;

	if (size < MIN_BLOCK)
		return MIN_BLOCK;
	if (divisions > 1 && size > MIN_BLOCK * divisions)
		return round_to_division(size, divisions);
	return gpc_round_up(size, MIN_BLOCK);
}

static enum gpc_pool_kind kind_of(uint64_t size)
{
	return size <= GPC_TORCH_SMALL_SIZE ? GPC_POOL_SMALL : GPC_POOL_LARGE;
}

static bool should_split(const struct pytorch *self, const struct gpc_block *block, uint64_t size)
{
	uint64_t rest = block->size - size;

	if (block->number == GPC_POOL_SMALL || self->is_expandable)
		return rest >= MIN_BLOCK;
	return size < self->max_split_size && rest > GPC_TORCH_SMALL_SIZE;
}

void gpc_pytorch_absorb_next(struct gpc_block *left)
{
	struct gpc_block *right = left->next;

	left->size += right->size;
	left->next = right->next;
	if (left->next)
		left->next->prev = left;
	free(right);
}

struct gpc_block *gpc_pytorch_make_free(struct pytorch *self, struct gpc_block *block)
{
	block->state = GPC_BLOCK_FREE;
	block->requested = 0;
	if (block->prev && block->prev->state == GPC_BLOCK_FREE) {
		block = block->prev;
		gpc_bins_remove(pool_of(self, block), block);
		gpc_pytorch_absorb_next(block);
	}
	if (block->next && block->next->state == GPC_BLOCK_FREE) {
		gpc_bins_remove(pool_of(self, block->next), block->next);
		gpc_pytorch_absorb_next(block);
	}
	gpc_bins_insert(pool_of(self, block), block);
	return block;
}

static enum gpc_status create(const struct gpc_policy_ops *policy, struct gpc_machine *machine,
	const struct gpc_policy_settings *settings, void **ret_self)
{
	uint32_t n_streams = machine->n_streams;
	struct pytorch *self = gpc_new(1, sizeof *self + n_streams * sizeof self->streams[0]);

	self->machine = machine;
	self->driver = machine->driver;
	self->max_split_size = settings->max_split_size ? settings->max_split_size : UINT64_MAX;
	self->roundup_divisions = settings->roundup_divisions;
	self->n_streams = n_streams;
	self->is_expandable = policy->variant == GPC_POLICY_PAGES;
	self->next_address = GPC_PYTORCH_START;
	for (uint32_t i = 0; i < n_streams; i++)
		self->streams[i].end = &self->streams[i].first;
	*ret_self = self;
	return GPC_OK;
}

static bool is_whole_segment(const struct gpc_block *block)
{
	return !block->prev && !block->next;
}

/* Returns a whole free segment to the driver. */
static void release(struct pytorch *self, struct gpc_block *block)
{
	gpc_bins_remove(pool_of(self, block), block);
	(void)self->driver->ops->mem_free(self->driver, block->segment->address);
	free(block->segment);
	free(block);
}

/* Prepends a whole segment to a list, linked by `next`, which whole segments do not use. */
static void collect(struct gpc_block *block, void *arg)
{
	struct gpc_block **list = arg;

	if (!is_whole_segment(block))
		return;
	block->next = *list;
	*list = block;
}

static void release_cached_blocks(struct pytorch *self)
{
	if (self->is_expandable) {
		gpc_pytorch_shrink(self);
		return;
	}
	for (uint32_t s = 0; s < self->n_streams; s++) {
		for (int kind = 0; kind < GPC_N_POOL_KINDS; kind++) {
			struct gpc_block *list = NULL;
			struct gpc_block *next;

			/* Collect first: a release changes the set that gpc_bins_each() walks. */
			gpc_bins_each(&self->streams[s].pools[kind], collect, &list);
			for (struct gpc_block *at = list; at; at = next) {
				next = at->next;
				release(self, at);
			}
		}
	}
}

/* Visits in ascending order, so the last whole segment that it stores is the largest. */
static void find_largest(struct gpc_block *block, void *arg)
{
	struct gpc_block **largest = arg;

	if (is_whole_segment(block))
		*largest = block;
}

/*
 * With max_split_size: releases one oversize segment that is large enough.  If there is none, releases the largest
 * segments until their sum is large enough; false if it never is.
 */
static bool release_available_cached_blocks(struct pytorch *self, uint64_t size, uint32_t stream)
{
	struct gpc_bins *pool = &self->streams[stream].pools[GPC_POOL_LARGE];
	uint64_t max = self->max_split_size;
	uint64_t wanted = size < max ? max : size;
	uint64_t released = 0;
	struct gpc_block *block;

	if (max == UINT64_MAX || self->is_expandable)
		return false;
	block = gpc_bins_find(pool, wanted);
	if (block && is_whole_segment(block)) {
		release(self, block);
		return true;
	}
	while (released < wanted) {
		block = NULL;
		gpc_bins_each(pool, find_largest, &block);
		if (!block || block->size < max)
			return false;
		released += block->size;
		release(self, block);
	}
	return true;
}

static void empty_cache(void *arg)
{
	struct pytorch *self = arg;

	gpc_pytorch_process_events(self, true);
	release_cached_blocks(self);
}

static struct gpc_block *find_free(struct pytorch *self, uint64_t size, uint32_t stream)
{
	enum gpc_pool_kind kind = kind_of(size);
	struct gpc_block *block = self->is_expandable
					  ? gpc_pytorch_find_in_range(self, size, stream, kind)
					  : gpc_bins_find(&self->streams[stream].pools[kind], size);
	uint64_t max = self->max_split_size;

	if (!block || (size < max && block->size >= max) ||
		(size >= max && block->size >= size + GPC_TORCH_LARGE_BUFFER))
		return NULL;
	gpc_bins_remove(&self->streams[stream].pools[kind], block);
	return block;
}

static enum gpc_status new_segment(
	struct pytorch *self, uint64_t size, uint32_t stream, struct gpc_block **ret_block)
{
	struct gpc_driver *driver = self->driver;
	uint64_t bytes = gpc_torch_segment_size(size);
	struct gpc_block *block;
	gpc_devptr address;
	enum gpc_status st;

	if (self->is_expandable)
		return gpc_pytorch_expand(self, size, stream, kind_of(size), ret_block);
	if (bytes > UINT64_MAX - self->next_address)
		return GPC_DEVICE_NO_MEMORY;
	st = driver->ops->mem_alloc(driver, bytes, &address);
	if (st)
		return st;
	block = gpc_new(1, sizeof *block);
	block->segment = gpc_new(1, sizeof *block->segment);
	block->segment->address = address;
	block->address = self->next_address;
	self->next_address += bytes;
	block->size = bytes;
	block->mark = stream;
	block->number = kind_of(size);
	*ret_block = block;
	return GPC_OK;
}

static enum gpc_status grow(
	struct pytorch *self, uint64_t size, uint32_t stream, struct gpc_block **ret_block)
{
	enum gpc_status st = new_segment(self, size, stream, ret_block);

	if (st == GPC_DEVICE_NO_MEMORY && release_available_cached_blocks(self, size, stream))
		st = new_segment(self, size, stream, ret_block);
	if (st == GPC_DEVICE_NO_MEMORY) {
		gpc_pytorch_process_events(self, true);
		release_cached_blocks(self);
		st = new_segment(self, size, stream, ret_block);
	}
	return st;
}

struct gpc_block *gpc_pytorch_cut(struct gpc_block *block, uint64_t size)
{
	struct gpc_block *rest = gpc_new(1, sizeof *rest);

	*rest = *block;
	rest->address += size;
	rest->size -= size;
	rest->prev = block;
	if (rest->next)
		rest->next->prev = rest;
	block->size = size;
	block->next = rest;
	return rest;
}

/* Cuts the block to `size`, and puts the remainder into the pool. */
static void split(struct pytorch *self, struct gpc_block *block, uint64_t size)
{
	struct gpc_block *rest = gpc_pytorch_cut(block, size);

	rest->state = GPC_BLOCK_FREE;
	gpc_bins_insert(pool_of(self, rest), rest);
}

static enum gpc_status alloc(
	void *arg, uint64_t size, uint32_t stream, uint64_t now_ns, uint64_t *ret_address)
{
	struct pytorch *self = arg;
	enum gpc_status st = gpc_address_map_reserve(&self->blocks, 1);
	struct gpc_block *block;
	uint64_t rounded;

	(void)now_ns;
	if (st || size > GPC_SIZE_MAX)
		return st ? st : GPC_DEVICE_NO_MEMORY;
	rounded = round_size(self, size);
	gpc_pytorch_process_events(self, false);
	block = find_free(self, rounded, stream);
	if (!block)
		st = grow(self, rounded, stream, &block);
	if (st)
		return st;
	if (should_split(self, block, rounded))
		split(self, block, rounded);
	block->state = GPC_BLOCK_LIVE;
	gpc_address_map_insert(&self->blocks, block->address, block);
	*ret_address = block->address;
	return GPC_OK;
}

static enum gpc_status free_address(void *arg, uint64_t address, uint32_t stream, uint64_t now_ns)
{
	struct pytorch *self = arg;
	struct gpc_block *block = gpc_address_map_take(&self->blocks, address);

	(void)stream;
	(void)now_ns;
	if (!block)
		return GPC_NOT_FOUND;
	if (block->requested)
		return gpc_pytorch_await_users(self, block);
	(void)gpc_pytorch_make_free(self, block);
	return GPC_OK;
}

/* recordStream */
static enum gpc_status use(void *arg, uint64_t address, uint32_t stream)
{
	struct pytorch *self = arg;
	struct gpc_block *block = gpc_address_map_find(&self->blocks, address);

	if (!block)
		return GPC_NOT_FOUND;
	if (stream != block->mark && stream < MAX_USERS)
		block->requested |= UINT64_C(1) << stream;
	return GPC_OK;
}

static uint64_t peak_pending(void *arg)
{
	struct pytorch *self = arg;

	return self->peak_pending_bytes;
}

/* Also frees the blocks that the trace never freed, so that release_cached_blocks() finds whole segments. */
static void destroy(void *arg)
{
	struct pytorch *self = arg;

	gpc_pytorch_process_events(self, true);
	for (uint64_t i = 0; i < self->blocks.n_slots; i++) {
		uint64_t address = self->blocks.slots[i].address;

		while (address) {
			(void)gpc_pytorch_make_free(
				self, gpc_address_map_take(&self->blocks, address));
			address = self->blocks.slots[i].address;
		}
	}
	release_cached_blocks(self);
	gpc_pytorch_end_streams(self);
	gpc_pytorch_end_ranges(self);
	gpc_address_map_fini(&self->blocks);
	free(self);
}

#define COMMON                                                                             \
	.is_model = true, .is_stream_ordered = true, .create = create, .destroy = destroy, \
	.alloc = alloc, .free = free_address, .use = use, .empty_cache = empty_cache,      \
	.peak_pending = peak_pending

const struct gpc_policy_ops gpc_policy_pytorch = {
	.name = "pytorch", .help = "a model of PyTorch's native allocator", COMMON
};

const struct gpc_policy_ops gpc_policy_pytorch_expandable = {
	.name = "expandable",
	.help = "the same with expandable_segments",
	.variant = GPC_POLICY_PAGES,
	/* A range is 9/8 of the device, and the search compares unmapped parts of it. */
	.is_of_size = true,
	COMMON,
};
