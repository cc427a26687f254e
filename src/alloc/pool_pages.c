/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages: when a new segment is made of pages, how they are mapped, and which devices may access them.  Idle pages of
 * such a segment go back to the driver one at a time (pool_holes.c), so a live block pins only the pages it lies on.
 *
 * A page costs driver calls, so vmm:auto uses none until the driver, or the limit, has refused a request.  If any of
 * the calls for pages fails, memory comes from cuMemAlloc.
 */
#include "alloc/pool_internal.h"
#include "driver/driver_pages.h"

/*
 * A page is at least 1 / AUTO_PART of its segment (vmm:on: 1 / ON_PART).  Larger pages take fewer calls, but a small
 * block pins more of the segment: docs/inside/MEMORY-POLICY.md has the costs.
 */
#define AUTO_PART 64
#define ON_PART   256

static uint64_t page_bytes_of(const struct gpc_pool *pool, uint64_t size)
{
	uint64_t part = pool->params.vmm == GPC_VMM_ON ? ON_PART : AUTO_PART;

	return gpc_round_up(size / part, GPC_PAGE_ALIGN);
}

bool gpc_pool_wants_pages(const struct gpc_pool *pool, uint64_t rounded)
{
	if (pool->params.vmm == GPC_VMM_OFF || !pool->drv->pages || rounded <= GPC_SMALL_MAX ||
		gpc_pool_gives_whole(pool, rounded) ||
		atomic_load_explicit(&pool->has_no_pages, memory_order_relaxed) ||
		atomic_load_explicit(&pool->heap->is_paging_over, memory_order_relaxed))
		return false;
	return pool->params.vmm == GPC_VMM_ON ||
	       atomic_load_explicit(&pool->is_pressed, memory_order_relaxed);
}

static struct gpc_range *reserve(struct gpc_pool *pool, uint64_t size, enum gpc_status *ret_st)
{
	struct gpc_range *range;
	uint32_t number = 0;

	range = gpc_slab_take(&pool->heap->ranges, &number);
	if (!range) {
		*ret_st = GPC_UNSUPPORTED;
		return NULL;
	}
	range->number = number;
	range->size = size;
	*ret_st = pool->drv->pages->reserve(pool->drv, size, &range->address);
	if (!*ret_st)
		return range;
	gpc_slab_give_back(&pool->heap->ranges, number);
	return NULL;
}

static void release(struct gpc_pool *pool, struct gpc_range *range)
{
	pool->drv->pages->release(pool->drv, range->address, range->size);
	gpc_slab_give_back(&pool->heap->ranges, range->number);
}

/* Checks that the driver has `size` bytes free: cheaper than to map hundreds of pages and have the last one refused. */
static enum gpc_status look(struct gpc_pool *pool, uint64_t size)
{
	uint64_t available = 0;
	uint64_t total = 0;

	if (pool->drv->ops->mem_info(pool->drv, &available, &total))
		return GPC_OK;
	return available + atomic_load(&pool->budget->yielding_bytes) < size ? GPC_DEVICE_NO_MEMORY
									     : GPC_OK;
}

/* On failure, *ret_kept is what stays mapped because the driver refused to unmap it. */
static enum gpc_status map_all(
	struct gpc_pool *pool, const struct gpc_memory *memory, uint64_t *ret_kept)
{
	const struct gpc_page_ops *ops = pool->drv->pages;
	enum gpc_status st = GPC_OK;
	uint64_t mapped = 0;

	while (mapped < memory->size && !st) {
		uint64_t left = memory->size - mapped;
		uint64_t page = left < memory->page_bytes ? left : memory->page_bytes;

		st = ops->map(pool->drv, memory->address + mapped, page);
		mapped += st ? 0 : page;
	}
	if (!st)
		st = ops->open(pool->drv, memory->address, memory->size, memory->devices);
	if (st && mapped && ops->unmap(pool->drv, memory->address, mapped))
		*ret_kept = mapped;
	return st;
}

enum gpc_status gpc_pool_map_pages(
	struct gpc_pool *pool, uint64_t size, struct gpc_memory *ret_memory)
{
	enum gpc_status st = look(pool, size);
	struct gpc_memory memory;
	struct gpc_range *range;
	uint64_t kept = 0;

	if (st)
		return st;
	if (!gpc_captures_try_hold(&pool->heap->captures))
		return GPC_UNSUPPORTED;
	range = reserve(pool, size, &st);
	if (range) {
		memory = (struct gpc_memory){ .address = range->address,
			.size = size,
			.range = range,
			.page_bytes = page_bytes_of(pool, size),
			.devices = atomic_load(&pool->page_devices) };
		atomic_store(&range->mapped_bytes, size);
		st = map_all(pool, &memory, &kept);
		if (!st)
			*ret_memory = memory;
		else if (!kept)
			release(pool, range);
	}
	gpc_captures_release(&pool->heap->captures);
	if (kept && gpc_pool_book_refused(pool, kept))
		atomic_fetch_add(&pool->budget->used_bytes, kept);
	/* After any other failure, such as no room for mappings, only use cuMemAlloc, which may still succeed. */
	if (st && st != GPC_DEVICE_NO_MEMORY)
		atomic_store_explicit(&pool->has_no_pages, true, memory_order_relaxed);
	return st ? GPC_UNSUPPORTED : GPC_OK;
}

enum gpc_status gpc_pool_unmap_pages(struct gpc_pool *pool, const struct gpc_memory *memory)
{
	struct gpc_range *range = memory->range;
	enum gpc_status st = pool->drv->pages->unmap(pool->drv, memory->address, memory->size);

	/* Memory that stays mapped keeps its addresses. */
	if (!st && atomic_fetch_sub(&range->mapped_bytes, memory->size) == memory->size)
		release(pool, range);
	return st;
}

/* Finds a segment of pages that some device in page_devices cannot access yet. */
static bool find_missing_locked(struct gpc_pool *pool, struct gpc_memory *ret_memory)
{
	uint64_t devices = atomic_load(&pool->page_devices);

	gpc_list_each (link, &pool->segments) {
		const struct gpc_segment *segment = gpc_list_entry(link, struct gpc_segment, link);

		if (!segment->range || segment->devices == devices)
			continue;
		*ret_memory = (struct gpc_memory){
			.address = segment->address, .size = segment->size, .devices = devices
		};
		return true;
	}
	return false;
}

/*
 * Notes the result for the segments in this memory, which may have been split or returned meanwhile.  After a failure
 * the pieces are tried again; an unchanged segment is not.
 */
static void note_opened_locked(
	struct gpc_pool *pool, const struct gpc_memory *memory, enum gpc_status st)
{
	gpc_list_each (link, &pool->segments) {
		struct gpc_segment *segment = gpc_list_entry(link, struct gpc_segment, link);
		bool is_same = segment->address == memory->address && segment->size == memory->size;
		bool is_part = segment->address - memory->address < memory->size;

		if (segment->range && (is_same || (is_part && !st)))
			segment->devices = memory->devices;
	}
}

void gpc_pool_open_missing(struct gpc_pool *pool)
{
	struct gpc_memory memory;

	gpc_pool_lock(pool);
	while (find_missing_locked(pool, &memory)) {
		enum gpc_status st;

		gpc_lock_release(&pool->lock);
		st = pool->drv->pages->open(pool->drv, memory.address, memory.size, memory.devices);
		gpc_pool_lock(pool);
		note_opened_locked(pool, &memory, st);
	}
	gpc_lock_release(&pool->lock);
}

void gpc_pool_open_pages(struct gpc_pool *pool, uint32_t device)
{
	(void)atomic_fetch_or(&pool->page_devices, UINT64_C(1) << device);
	gpc_pool_open_missing(pool);
}
