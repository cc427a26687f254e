/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policies that run this library's allocator: a pool (alloc/pool.h), with the ladder of the preloaded library for
 * requests that fail.
 */
#include <stdlib.h>

#include "alloc/pool.h"
#include "format/memory.h"
#include "oom/ladder.h"
#include "tools/replay/policy.h"

/* The default of the option pending_limit: 1/PENDING_PART of the device, but no less than PENDING_MIN. */
#define PENDING_MIN  (64 * GPC_MIB)
#define PENDING_PART 16

struct gpucache {
	const struct gpc_policy_ops *policy;
	const struct gpc_machine *machine;
	struct gpc_heap heap;
	struct gpc_budget budget;
	struct gpc_pool pool;
};

/* The stream that a request names to the pool; 0: none, as for cudaMalloc. */
static gpc_stream name_of(const struct gpucache *self, uint32_t stream)
{
	if (!self->policy->is_stream_ordered)
		return 0;
	return stream ? self->machine->streams[stream] : GPC_ORDERED_LEGACY;
}

/* Registers all streams with the pool, as the preloaded library does when the program creates them. */
static void tell_streams(struct gpucache *self)
{
	gpc_lock_take(&self->pool.lock);
	for (uint32_t i = 1; i < self->machine->n_streams; i++)
		gpc_stream_order_created(&self->pool.order, self->machine->streams[i]);
	gpc_lock_release(&self->pool.lock);
}

static enum gpc_status create(const struct gpc_policy_ops *policy, struct gpc_machine *machine,
	const struct gpc_policy_settings *settings, void **ret_self)
{
	struct gpc_pool_params pool_params = {
		.max_split_size = settings->max_split_size,
		.roundup_divisions = settings->roundup_divisions,
		.gc_threshold_ppm = settings->gc_threshold_ppm,
		.pending_limit = machine->device_bytes / PENDING_PART,
		.is_one_stream = machine->n_streams <= 1,
		.has_barriers = policy->is_late,
		.is_fence_skipped = policy->variant == GPC_POLICY_UNSAFE,
		.vmm = policy->variant == GPC_POLICY_PAGES        ? GPC_VMM_ON
		       : policy->variant == GPC_POLICY_PAGES_AUTO ? GPC_VMM_AUTO
								  : GPC_VMM_OFF,
	};
	struct gpucache *self = gpc_new(1, sizeof *self);
	enum gpc_status st;

	if (pool_params.pending_limit < PENDING_MIN)
		pool_params.pending_limit = PENDING_MIN;
	st = gpc_heap_init(&self->heap, NULL);
	if (st) {
		free(self);
		return st;
	}
	self->policy = policy;
	self->machine = machine;
	self->budget.device_bytes = machine->device_bytes;
	atomic_init(&self->budget.limit_bytes, settings->limit_bytes);
	gpc_pool_init(
		&self->pool, &self->heap, machine->driver, &self->budget, &pool_params, 0, 0, NULL);
	if (policy->is_stream_ordered)
		tell_streams(self);
	*ret_self = self;
	return GPC_OK;
}

static void destroy(void *arg)
{
	struct gpucache *self = arg;

	gpc_pool_fini(&self->pool);
	gpc_heap_fini(&self->heap);
	free(self);
}

struct attempt {
	struct gpc_pool *pool;
	const struct gpc_request *request;
	gpc_devptr address;
};

static enum gpc_status try_again(void *arg)
{
	struct attempt *attempt = arg;

	return gpc_pool_retry(attempt->pool, attempt->request, &attempt->address);
}

static enum gpc_status climb(struct gpucache *self, const struct gpc_request *request,
	enum gpc_status st, uint64_t *ret_address)
{
	struct gpc_pool *pools[] = { &self->pool };
	struct attempt attempt = { .pool = &self->pool, .request = request };
	struct gpc_ladder ladder = {
		.pool = &self->pool,
		.pools = pools,
		.n_pools = 1,
		.wanted = gpc_size_round(request->size, self->pool.params.roundup_divisions),
		.attempt = try_again,
		.arg = &attempt,
	};

	st = gpc_ladder_climb(&ladder, st);
	if (!st)
		*ret_address = attempt.address;
	return st;
}

static enum gpc_status alloc(
	void *arg, uint64_t size, uint32_t stream, uint64_t now_ns, uint64_t *ret_address)
{
	struct gpucache *self = arg;
	const struct gpc_request request = {
		.size = size, .now_ns = now_ns, .stream = name_of(self, stream)
	};
	enum gpc_status st = gpc_pool_alloc(&self->pool, &request, ret_address);

	return gpc_ladder_helps(st) ? climb(self, &request, st, ret_address) : st;
}

static enum gpc_status sync_device(void *arg, struct gpc_driver *driver, uint64_t now_ns)
{
	struct gpucache *self = arg;
	struct gpc_pool_sync sync = gpc_pool_begin_sync(&self->pool);
	enum gpc_status st = driver->ops->context_sync(driver);

	if (!st)
		gpc_pool_end_sync(&self->pool, sync, now_ns);
	return st;
}

static enum gpc_status free_address(void *arg, uint64_t address, uint32_t stream, uint64_t now_ns)
{
	struct gpucache *self = arg;
	const struct gpc_request request = { .now_ns = now_ns, .stream = name_of(self, stream) };

	if (self->policy->variant == GPC_POLICY_HOST_ORDER)
		(void)!sync_device(self, self->pool.drv, now_ns);
	return gpc_pool_free(&self->pool, address, &request);
}

static enum gpc_status use(void *arg, uint64_t address, uint32_t stream)
{
	struct gpucache *self = arg;

	(void)stream;
	return gpc_pool_record_use(&self->pool, address);
}

/* As gpucache_trim does. */
static void empty_cache(void *arg)
{
	struct gpucache *self = arg;

	(void)gpc_pool_reap(&self->pool);
	(void)gpc_pool_trim(&self->pool, UINT64_MAX, true);
}

static void submits(void *arg)
{
	struct gpucache *self = arg;

	if (atomic_load(&self->heap.duties->n_due) > 0)
		gpc_pool_raise_barrier(&self->pool);
}

static uint64_t peak_pending(void *arg)
{
	struct gpucache *self = arg;

	return self->pool.counters->peak_pending_bytes;
}

static const char *check(void *arg)
{
	struct gpucache *self = arg;

	return gpc_pool_check(&self->pool);
}

#define COMMON                                                                         \
	.create = create, .destroy = destroy, .alloc = alloc, .free = free_address,    \
	.empty_cache = empty_cache, .sync = sync_device, .peak_pending = peak_pending, \
	.check = check

/* A policy with barriers. */
#define LATE .is_late = true, .submits = submits

const struct gpc_policy_ops gpc_policy_gpucache = {
	.name = "gpucache",
	.help = "the allocator of this library",
	LATE,
	COMMON,
};

const struct gpc_policy_ops gpc_policy_gpucache_on = {
	.name = "gpucache-on",
	.help = "the same, told the streams (gpucache_malloc_on)",
	.is_stream_ordered = true,
	.use = use,
	COMMON,
};

const struct gpc_policy_ops gpc_policy_vmm = {
	.name = "vmm",
	.help = "gpucache with vmm:on",
	.variant = GPC_POLICY_PAGES,
	LATE,
	COMMON,
};

const struct gpc_policy_ops gpc_policy_vmm_auto = {
	.name = "vmm-auto",
	.help = "gpucache with vmm:auto",
	.variant = GPC_POLICY_PAGES_AUTO,
	LATE,
	COMMON,
};
