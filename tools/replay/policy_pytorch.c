/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of what PyTorch's native CUDA allocator decides, on sizes and addresses alone:
 * c10/cuda/CUDACachingAllocator.cpp, releases 1.8 to 2.x, without expandable segments.
 *
 *   size         512 B steps, or roundup_power2_divisions
 *   pools        up to 1 MiB: small; above: large; each per stream
 *   segments     small 2 MiB; large 20 MiB below 10 MiB, else the size rounded up to 2 MiB
 *   search       the smallest free block that fits, the lowest address among equals; only that one is looked at
 *   split        small: where 512 B are left; large: where more than 1 MiB is left, and below max_split_size
 *   free         at once, merged with free neighbours of the same segment; where other streams used the
 *                block (record_stream), when an event on each of them has passed, asked at each request
 *   no room      with max_split_size, an oversize cached segment that is large enough; then wait for all
 *                events, and all cached segments
 *
 * The constants are written out here again on purpose: those of src/alloc may change, these may
 * not. The free blocks are kept in struct gpc_bins, which is only an ordered set here.
 * garbage_collection_threshold has no effect, as in PyTorch where no memory fraction is set.
 */
#include <stdlib.h>

#include "alloc/address_map.h"
#include "alloc/bin.h"
#include "tools/replay/policy_pytorch.h"

#define MIN_BLOCK    UINT64_C(512)  /* kMinBlockSize */
#define SMALL_SIZE   (1 * GPC_MIB)  /* kSmallSize */
#define SMALL_BUFFER (2 * GPC_MIB)  /* kSmallBuffer */
#define LARGE_BUFFER (20 * GPC_MIB) /* kLargeBuffer */
#define MIN_LARGE    (10 * GPC_MIB) /* kMinLargeAlloc */
#define ROUND_LARGE  (2 * GPC_MIB)  /* kRoundLarge */

/* Streams that a block remembers as its users: a bit each.  Workloads have fewer. */
#define MAX_USERS 64

/* A freed block that waits for a stream; kept with its event when that has passed. */
struct awaited {
	struct awaited *next;
	struct gpc_block *block;
	gpc_event event;
};

struct stream_pools {
	struct gpc_bins pools[GPC_N_POOL_KINDS];
	struct awaited *first; /* oldest */
	struct awaited **end;
};

struct pytorch {
	struct gpc_machine *machine;
	struct gpc_driver *driver;
	struct gpc_policy_settings settings;
	struct gpc_address_map blocks; /* live, by address */
	struct awaited *spare;
	uint64_t pending_bytes;
	uint64_t peak_pending_bytes;
	uint32_t n_streams;
	struct stream_pools streams[];
};

/*
 * `mark` of a block is its stream, `number` its pool: segments need no object of their own.
 * `requested` has the bits of its users, `fence` the number of their events that are awaited.
 */
static struct gpc_bins *pool_of(struct pytorch *self, const struct gpc_block *block)
{
	return &self->streams[block->mark].pools[block->number];
}

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
	uint64_t divisions = self->settings.roundup_divisions;

	if (size < MIN_BLOCK)
		return MIN_BLOCK;
	if (divisions > 1 && size > MIN_BLOCK * divisions)
		return round_to_division(size, divisions);
	return gpc_round_up(size, MIN_BLOCK);
}

static uint64_t segment_size(uint64_t size)
{
	if (size <= SMALL_SIZE)
		return SMALL_BUFFER;
	return size < MIN_LARGE ? LARGE_BUFFER : gpc_round_up(size, ROUND_LARGE);
}

static uint64_t max_split_size(const struct pytorch *self)
{
	return self->settings.max_split_size ? self->settings.max_split_size : UINT64_MAX;
}

static bool should_split(const struct pytorch *self, const struct gpc_block *block, uint64_t size)
{
	uint64_t rest = block->size - size;

	if (block->number == GPC_POOL_SMALL)
		return rest >= MIN_BLOCK;
	return size < max_split_size(self) && rest > SMALL_SIZE;
}

/* `left` and `right` are neighbours, `left` in no pool: it becomes both. */
static void absorb(struct gpc_block *left, struct gpc_block *right)
{
	left->size += right->size;
	left->next = right->next;
	if (left->next)
		left->next->prev = left;
	free(right);
}

static void make_free(struct pytorch *self, struct gpc_block *block)
{
	block->state = GPC_BLOCK_FREE;
	block->requested = 0;
	if (block->prev && block->prev->state == GPC_BLOCK_FREE) {
		block = block->prev;
		gpc_bins_remove(pool_of(self, block), block);
		absorb(block, block->next);
	}
	if (block->next && block->next->state == GPC_BLOCK_FREE) {
		gpc_bins_remove(pool_of(self, block->next), block->next);
		absorb(block, block->next);
	}
	gpc_bins_insert(pool_of(self, block), block);
}

/* An element for the queue of a stream, with an event; NULL: there is none to be had. */
static struct awaited *new_awaited(struct pytorch *self)
{
	struct awaited *awaited = self->spare;

	if (awaited) {
		self->spare = awaited->next;
		return awaited;
	}
	awaited = calloc(1, sizeof *awaited);
	if (awaited && self->driver->ops->event_create(self->driver, &awaited->event)) {
		free(awaited);
		return NULL;
	}
	return awaited;
}

/* An event on each stream that used the block besides its own. */
static enum gpc_status await_users(struct pytorch *self, struct gpc_block *block)
{
	enum gpc_status st = GPC_OK;

	block->state = GPC_BLOCK_PENDING;
	for (uint32_t stream = 0; stream < MAX_USERS && !st; stream++) {
		struct stream_pools *pools = &self->streams[stream];
		struct awaited *awaited;

		if (!(block->requested >> stream & 1))
			continue;
		awaited = new_awaited(self);
		if (!awaited)
			return GPC_NO_METADATA;
		awaited->block = block;
		awaited->next = NULL;
		*pools->end = awaited;
		pools->end = &awaited->next;
		block->fence++;
		st = gpc_machine_record(self->machine, stream, awaited->event);
	}
	self->pending_bytes += block->size;
	if (self->pending_bytes > self->peak_pending_bytes)
		self->peak_pending_bytes = self->pending_bytes;
	return st;
}

static void take_first(struct pytorch *self, struct stream_pools *pools)
{
	struct awaited *awaited = pools->first;
	struct gpc_block *block = awaited->block;

	pools->first = awaited->next;
	if (!pools->first)
		pools->end = &pools->first;
	awaited->next = self->spare;
	self->spare = awaited;
	if (--block->fence > 0)
		return;
	self->pending_bytes -= block->size;
	make_free(self, block);
}

/* process_events: each queue up to the first event that has not passed. */
static void process_events(struct pytorch *self)
{
	struct gpc_driver *driver = self->driver;

	for (uint32_t i = 0; i < self->n_streams && self->pending_bytes; i++)
		while (self->streams[i].first &&
			!driver->ops->event_query(driver, self->streams[i].first->event))
			take_first(self, &self->streams[i]);
}

static void wait_for_events(struct pytorch *self)
{
	struct gpc_driver *driver = self->driver;

	for (uint32_t i = 0; i < self->n_streams && self->pending_bytes; i++) {
		while (self->streams[i].first) {
			(void)!driver->ops->event_wait(driver, self->streams[i].first->event);
			take_first(self, &self->streams[i]);
		}
	}
}

static enum gpc_status create(const struct gpc_policy_params *params, void **ret_self)
{
	uint32_t n_streams = params->machine->n_streams;
	struct pytorch *self = calloc(1, sizeof *self + n_streams * sizeof self->streams[0]);

	if (!self)
		return GPC_NO_METADATA;
	self->machine = params->machine;
	self->driver = params->machine->driver;
	self->settings = params->settings;
	self->n_streams = n_streams;
	for (uint32_t i = 0; i < n_streams; i++)
		self->streams[i].end = &self->streams[i].first;
	*ret_self = self;
	return GPC_OK;
}

static bool is_whole_segment(const struct gpc_block *block)
{
	return !block->prev && !block->next;
}

/* Gives a whole free segment back to the driver. */
static void release(struct pytorch *self, struct gpc_block *block)
{
	gpc_bins_remove(pool_of(self, block), block);
	(void)self->driver->ops->mem_free(self->driver, block->address);
	free(block);
}

/* Collects the whole free segments: release changes the set that is walked, so it comes after. */
struct collected {
	struct gpc_block *first;
};

static void collect(struct gpc_block *block, void *arg)
{
	struct collected *collected = arg;

	if (!is_whole_segment(block))
		return;
	block->segment = (struct gpc_segment *)(void *)collected->first;
	collected->first = block;
}

static void release_cached_blocks(struct pytorch *self)
{
	for (uint32_t s = 0; s < self->n_streams; s++) {
		for (int kind = 0; kind < GPC_N_POOL_KINDS; kind++) {
			struct collected collected = { NULL };
			struct gpc_block *next;

			gpc_bins_each(&self->streams[s].pools[kind], collect, &collected);
			for (struct gpc_block *at = collected.first; at; at = next) {
				next = (struct gpc_block *)(void *)at->segment;
				release(self, at);
			}
		}
	}
}

/* The largest whole segment of the pool that is at least max_split_size. */
static void find_largest(struct gpc_block *block, void *arg)
{
	struct collected *collected = arg;

	if (is_whole_segment(block))
		collected->first = block;
}

/*
 * With max_split_size: an oversize segment that makes the room, else the largest ones until
 * they do together.
 */
static bool release_available_cached_blocks(struct pytorch *self, uint64_t size, uint32_t stream)
{
	struct gpc_bins *pool = &self->streams[stream].pools[GPC_POOL_LARGE];
	uint64_t max = max_split_size(self);
	uint64_t wanted = size < max ? max : size;
	struct gpc_block *fits = max == UINT64_MAX ? NULL : gpc_bins_find(pool, wanted);
	uint64_t released = 0;

	if (max == UINT64_MAX)
		return false;
	if (fits && is_whole_segment(fits)) {
		release(self, fits);
		return true;
	}
	while (released < wanted) {
		struct collected largest = { NULL };

		gpc_bins_each(pool, find_largest, &largest);
		if (!largest.first || largest.first->size < max)
			return false;
		released += largest.first->size;
		release(self, largest.first);
	}
	return true;
}

static void empty_cache(void *arg)
{
	struct pytorch *self = arg;

	wait_for_events(self);
	release_cached_blocks(self);
}

static struct gpc_block *find_free(struct pytorch *self, uint64_t size, uint32_t stream)
{
	enum gpc_pool_kind kind = size <= SMALL_SIZE ? GPC_POOL_SMALL : GPC_POOL_LARGE;
	struct gpc_block *block = gpc_bins_find(&self->streams[stream].pools[kind], size);
	uint64_t max = max_split_size(self);

	if (!block || (size < max && block->size >= max) ||
		(size >= max && block->size >= size + LARGE_BUFFER))
		return NULL;
	gpc_bins_remove(&self->streams[stream].pools[kind], block);
	return block;
}

static enum gpc_status new_segment(
	struct pytorch *self, uint64_t size, uint32_t stream, struct gpc_block **ret_block)
{
	struct gpc_block *block = calloc(1, sizeof *block);
	struct gpc_driver *driver = self->driver;
	enum gpc_status st;

	if (!block)
		return GPC_NO_METADATA;
	block->size = segment_size(size);
	st = driver->ops->mem_alloc(driver, block->size, &block->address);
	if (st == GPC_DEVICE_NO_MEMORY && release_available_cached_blocks(self, size, stream))
		st = driver->ops->mem_alloc(driver, block->size, &block->address);
	if (st == GPC_DEVICE_NO_MEMORY) {
		wait_for_events(self);
		release_cached_blocks(self);
		st = driver->ops->mem_alloc(driver, block->size, &block->address);
	}
	if (st) {
		free(block);
		return st;
	}
	block->mark = stream;
	block->number = size <= SMALL_SIZE ? GPC_POOL_SMALL : GPC_POOL_LARGE;
	*ret_block = block;
	return GPC_OK;
}

/* The front is handed out, the rest goes back to the pool. */
static void split(struct pytorch *self, struct gpc_block *block, uint64_t size)
{
	struct gpc_block *rest = calloc(1, sizeof *rest);

	if (!rest)
		return;
	*rest = *block;
	rest->state = GPC_BLOCK_FREE;
	rest->address += size;
	rest->size -= size;
	rest->prev = block;
	if (rest->next)
		rest->next->prev = rest;
	block->size = size;
	block->next = rest;
	gpc_bins_insert(pool_of(self, rest), rest);
}

static enum gpc_status alloc(
	void *arg, uint64_t size, uint32_t stream, uint64_t now_ns, uint64_t *ret_address)
{
	struct pytorch *self = arg;
	struct gpc_block *block = NULL;
	enum gpc_status st = gpc_address_map_reserve(&self->blocks, 1);
	uint64_t rounded;

	(void)now_ns;
	if (size > GPC_SIZE_MAX)
		return GPC_DEVICE_NO_MEMORY;
	rounded = round_size(self, size);
	process_events(self);
	if (!st)
		block = find_free(self, rounded, stream);
	if (!st && !block)
		st = new_segment(self, rounded, stream, &block);
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
		return await_users(self, block);
	make_free(self, block);
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

/* Live blocks that the trace never freed go with the simulated device; their records go here. */
static void destroy(void *arg)
{
	struct pytorch *self = arg;

	wait_for_events(self);
	for (uint64_t i = 0; i < self->blocks.n_slots; i++) {
		uint64_t address = self->blocks.slots[i].address;

		while (address) {
			make_free(self, gpc_address_map_take(&self->blocks, address));
			address = self->blocks.slots[i].address;
		}
	}
	release_cached_blocks(self);
	while (self->spare) {
		struct awaited *awaited = self->spare;

		self->spare = awaited->next;
		self->driver->ops->event_destroy(self->driver, awaited->event);
		free(awaited);
	}
	gpc_address_map_fini(&self->blocks);
	free(self);
}

static const char *check(void *arg)
{
	(void)arg;
	return NULL;
}

const struct gpc_policy_ops gpc_policy_pytorch = {
	.name = "pytorch",
	.help = "a model of PyTorch's native allocator",
	.is_model = true,
	.is_stream_ordered = true,
	.create = create,
	.destroy = destroy,
	.alloc = alloc,
	.free = free_address,
	.use = use,
	.empty_cache = empty_cache,
	.peak_pending = peak_pending,
	.check = check,
};
