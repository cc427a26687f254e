/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator of this library, with the ladder that the preloaded library climbs. */
#include <stdlib.h>

#include "alloc/pool.h"
#include "oom/ladder.h"
#include "tools/gpumem-replay/policy.h"

/* As the runtime has it: see the option pending_limit. */
#define PENDING_MIN  (64 * GPC_MIB)
#define PENDING_PART 16

struct gpucache {
	struct gpc_heap heap;
	struct gpc_budget budget;
	struct gpc_pool pool;
};

static enum gpc_status create(const struct gpc_policy_params *params, void **ret_self)
{
	struct gpc_pool_params pool_params = {
		.max_split_size = params->settings.max_split_size,
		.roundup_divisions = params->settings.roundup_divisions,
		.gc_threshold_ppm = params->settings.gc_threshold_ppm,
		.pending_limit = params->device_bytes / PENDING_PART,
		.is_one_stream = params->n_streams <= 1,
	};
	struct gpucache *self = calloc(1, sizeof *self);
	enum gpc_status st;

	if (!self)
		return GPC_NO_METADATA;
	if (pool_params.pending_limit < PENDING_MIN)
		pool_params.pending_limit = PENDING_MIN;
	st = gpc_heap_init(&self->heap, NULL);
	if (st) {
		free(self);
		return st;
	}
	self->budget.device_bytes = params->device_bytes;
	gpc_pool_init(
		&self->pool, &self->heap, params->driver, &self->budget, &pool_params, 0, 0, NULL);
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
	enum gpc_status st = gpc_pool_search(attempt->pool, attempt->request, &attempt->address);

	if (st != GPC_NOT_FOUND)
		return st;
	return gpc_pool_grow(attempt->pool, attempt->request, &attempt->address);
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
	const struct gpc_request request = { .size = size, .now_ns = now_ns };
	enum gpc_status st = gpc_pool_alloc(&self->pool, &request, ret_address);

	/* cudaMalloc names no stream, so the stream of the trace is not used. */
	(void)stream;
	return gpc_ladder_helps(st) ? climb(self, &request, st, ret_address) : st;
}

static enum gpc_status free_address(void *arg, uint64_t address, uint64_t now_ns)
{
	struct gpucache *self = arg;
	const struct gpc_request request = { .now_ns = now_ns };

	return gpc_pool_free(&self->pool, address, &request);
}

static const char *check(void *arg)
{
	struct gpucache *self = arg;

	return gpc_pool_check(&self->pool);
}

const struct gpc_policy_ops gpc_policy_gpucache = {
	.name = "gpucache",
	.help = "the allocator of this library",
	.create = create,
	.destroy = destroy,
	.alloc = alloc,
	.free = free_address,
	.check = check,
};
