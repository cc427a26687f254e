/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator of this library over virtual memory management, as a model, with the rules of handles.
 *
 *      request              while there is plenty            where memory is short
 *      .. 1 MiB             a pool                           the same
 *      1 MiB .. 32 MiB      a pool of their own              what that has free, else pages (pages.h)
 *      32 MiB ..            a pool                           the same: a segment of exactly the size
 *
 * A segment is one handle: created, mapped and given access at once, never split.  So what pins one costs
 * all of it, and two rules keep small pieces from pinning large segments: requests below 32 MiB have segments of
 * their own, and those that come when half of the device is taken have pages, which go where they are needed.
 * What is idle in one place goes back when another is refused.
 */
#include <stdlib.h>

#include "tools/replay/pages.h"
#include "tools/replay/policy_gpucache.h"

#define PAGED_MIN     (1 * GPC_MIB)
#define PAGED_MAX     (32 * GPC_MIB)
#define PLENTY_PART   2 /* of the device: up to here there is plenty */
#define PAGES_ADDRESS UINT64_C(0x600000000000)
#define PAGES_FACTOR  4 /* addresses, over the device's memory */

struct vmm {
	struct gpucache *cache;  /* of small and large requests */
	struct gpucache *medium; /* of those between */
	struct gpc_machine *machine;
	struct gpc_pages pages;
	uint64_t plenty; /* bytes reserved */
	bool is_loose;   /* a block of pages was freed, and no work submitted since */
	bool has_work;
};

static void destroy(void *arg)
{
	struct vmm *self = arg;

	(void)gpc_pages_trim(&self->pages, UINT64_MAX);
	if (self->medium)
		gpc_policy_gpucache.destroy(self->medium);
	if (self->cache)
		gpc_policy_gpucache.destroy(self->cache);
	gpc_pages_fini(&self->pages);
	free(self);
}

static enum gpc_status create(const struct gpc_policy_params *params, void **ret_self)
{
	struct gpc_machine *machine = params->machine;
	struct vmm *self = calloc(1, sizeof *self);
	void *cache = NULL;
	void *medium = NULL;
	enum gpc_status st;

	if (!self)
		return GPC_NO_METADATA;
	self->machine = machine;
	self->plenty = machine->free_at_start_bytes / PLENTY_PART;
	st = gpc_pages_init(
		&self->pages, machine, PAGES_ADDRESS, PAGES_FACTOR * machine->device_bytes);
	if (!st)
		st = gpc_policy_gpucache.create(params, &cache);
	if (!st)
		st = gpc_policy_gpucache.create(params, &medium);
	self->cache = cache;
	self->medium = medium;
	if (st)
		destroy(self);
	else
		*ret_self = self;
	return st;
}

static uint64_t left(struct vmm *self)
{
	return gpc_bytes_less(
		self->machine->free_at_start_bytes, gpc_machine_reserved_bytes(self->machine));
}

static bool is_short(struct vmm *self, uint64_t size)
{
	return gpc_machine_reserved_bytes(self->machine) + size > self->plenty;
}

/* Gives back what is idle in a pool, of another class first.  False: nothing was. */
static bool trim_other(struct vmm *self, struct gpucache *cache, uint64_t wanted)
{
	struct gpucache *other = cache == self->medium ? self->cache : self->medium;

	if (gpc_pool_trim(&other->pool, wanted) > 0)
		return true;
	if (!self->has_work)
		return false;
	/* What is idle may still be in use by the device. */
	(void)gpc_pool_wait(&other->pool, 0);
	return gpc_pool_trim(&other->pool, wanted) > 0;
}

static enum gpc_status alloc_pages(struct vmm *self, uint64_t size, uint64_t *ret_address)
{
	enum gpc_status st = gpc_pages_alloc(&self->pages, size, ret_address);

	while (st == GPC_DEVICE_NO_MEMORY &&
		(trim_other(self, self->cache, GPC_PAGE_BYTES) ||
			trim_other(self, self->medium, GPC_PAGE_BYTES)))
		st = gpc_pages_alloc(&self->pages, size, ret_address);
	return st;
}

/* A segment of a pool; idle pages, and what is idle in the other, make room for it. */
static enum gpc_status alloc_segment(struct vmm *self, struct gpucache *cache, uint64_t size,
	uint32_t stream, uint64_t now_ns, uint64_t *ret_address)
{
	uint64_t tight = gpc_size_tight_segment(size);
	enum gpc_status st;

	if (left(self) < tight)
		(void)gpc_pages_trim(&self->pages, tight - left(self));
	st = gpc_policy_gpucache.alloc(cache, size, stream, now_ns, ret_address);
	if (st == GPC_DEVICE_NO_MEMORY && trim_other(self, cache, tight))
		st = gpc_policy_gpucache.alloc(cache, size, stream, now_ns, ret_address);
	return st;
}

static enum gpc_status alloc(
	void *arg, uint64_t size, uint32_t stream, uint64_t now_ns, uint64_t *ret_address)
{
	struct vmm *self = arg;
	const struct gpc_request request = { .size = size, .now_ns = now_ns };
	uint64_t rounded = gpc_round_up(size, GPC_GRAIN);
	bool is_medium = rounded > PAGED_MIN && rounded < PAGED_MAX;
	struct gpucache *cache = is_medium ? self->medium : self->cache;
	enum gpc_status st;

	if (size > GPC_SIZE_MAX)
		return GPC_DEVICE_NO_MEMORY;
	st = gpc_pool_search(&cache->pool, &request, ret_address);
	if (st == GPC_NOT_FOUND && is_medium && is_short(self, rounded)) {
		st = alloc_pages(self, rounded, ret_address);
		if (st == GPC_DEVICE_NO_MEMORY)
			st = GPC_NOT_FOUND;
	}
	return st == GPC_NOT_FOUND
		       ? alloc_segment(self, cache, rounded, stream, now_ns, ret_address)
		       : st;
}

static struct gpucache *cache_of(struct vmm *self, uint64_t address)
{
	return gpc_heap_find_pool(&self->medium->heap, address) ? self->medium : self->cache;
}

static enum gpc_status free_address(void *arg, uint64_t address, uint32_t stream, uint64_t now_ns)
{
	struct vmm *self = arg;

	if (address - PAGES_ADDRESS >= self->pages.n_pages * GPC_PAGE_BYTES)
		return gpc_policy_gpucache.free(cache_of(self, address), address, stream, now_ns);
	self->is_loose = true;
	self->pages.is_unsettled = self->has_work;
	return gpc_pages_free(&self->pages, address);
}

static void empty_cache(void *arg)
{
	struct vmm *self = arg;

	(void)gpc_pages_trim(&self->pages, UINT64_MAX);
	gpc_policy_gpucache.empty_cache(self->medium);
	gpc_policy_gpucache.empty_cache(self->cache);
}

static void submits(void *arg)
{
	struct vmm *self = arg;

	self->has_work = true;
	if (self->is_loose)
		(void)gpc_pool_order_all(&self->cache->pool);
	self->is_loose = false;
	gpc_policy_gpucache.submits(self->medium);
	gpc_policy_gpucache.submits(self->cache);
}

static uint64_t peak_pending(void *arg)
{
	struct vmm *self = arg;

	return gpc_policy_gpucache.peak_pending(self->cache) +
	       gpc_policy_gpucache.peak_pending(self->medium);
}

static const char *check(void *arg)
{
	struct vmm *self = arg;
	const char *broken = gpc_pages_check(&self->pages);

	if (!broken)
		broken = gpc_policy_gpucache.check(self->medium);
	return broken ? broken : gpc_policy_gpucache.check(self->cache);
}

const struct gpc_policy_ops gpc_policy_vmm = {
	.name = "vmm",
	.help = "a model: gpucache over handles that are mapped",
	.is_model = true,
	.is_late = true,
	.create = create,
	.destroy = destroy,
	.alloc = alloc,
	.free = free_address,
	.empty_cache = empty_cache,
	.submits = submits,
	.peak_pending = peak_pending,
	.check = check,
};
