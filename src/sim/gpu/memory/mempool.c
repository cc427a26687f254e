/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool allocates from slabs (slab.h).  A free is an effect in its stream: when the stream has passed it, the piece is
 * available to all streams.  A synchronisation returns idle slabs beyond the release threshold.
 */
#include "sim/gpu/memory/mempool.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "sim/gpu/execution/stream.h"

/*
 * Identifies a stream: legacy streams, which all have the number 0, are told apart by their contexts.  Only the legacy
 * streams of a context and of its green contexts have the same key, because these have the context's number.
 */
static uint64_t stream_key(const struct gpc_sim_stream *stream)
{
	return (uint64_t)stream->context->number << 32 | (stream->number & UINT32_MAX);
}

static struct gpc_sim_mempool *pool_of(struct gpc_list *link)
{
	return gpc_list_entry(link, struct gpc_sim_mempool, link);
}

static void pool_destroy_locked(struct gpc_sim_mempool *pool)
{
	gpc_sim_slabs_clear(&pool->slabs);
	gpc_list_remove(&pool->link);
	free(pool);
}

static void destroy_idle_doomed_locked(struct gpc_sim_mempools *pools)
{
	gpc_list_each_safe (link, &pools->all) {
		struct gpc_sim_mempool *pool = pool_of(link);

		if (pool->is_doomed && gpc_sim_slabs_are_idle(&pool->slabs))
			pool_destroy_locked(pool);
	}
}

/* ---- the pools of a machine ---- */

static struct gpc_sim_mempool *pool_create_locked(
	struct gpc_sim_mempools *pools, struct gpc_sim_device *device, const CUmemPoolProps *props)
{
	struct gpc_sim_mempool *pool = calloc(1, sizeof *pool);

	if (!pool)
		return NULL;
	gpc_sim_slabs_init(&pool->slabs, device, props->maxSize);
	pool->is_shareable = props->handleTypes != CU_MEM_HANDLE_TYPE_NONE;
	for (unsigned i = 0; i < 3; i++)
		pool->reuse[i] = 1;
	gpc_list_append(&pools->all, &pool->link);
	return pool;
}

bool gpc_sim_mempools_init(struct gpc_sim *sim)
{
	struct gpc_sim_mempools *pools = &sim->mempools;
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_HOST } };

	gpc_list_init(&pools->all);
	gpc_list_init(&pools->imports);
	pthread_mutex_init(&pools->lock, NULL);
	pools->host = pool_create_locked(pools, NULL, &props);
	if (!pools->host)
		return false;
	pools->host->is_default = true;
	for (unsigned i = 0; i < sim->config.n_devices; i++) {
		props.location = (CUmemLocation){ CU_MEM_LOCATION_TYPE_DEVICE, (int)i };
		pools->defaults[i] = pool_create_locked(pools, &sim->devices[i], &props);
		if (!pools->defaults[i])
			return false;
		pools->defaults[i]->is_default = true;
		pools->currents[i] = pools->defaults[i];
	}
	return true;
}

void gpc_sim_mempools_fini(struct gpc_sim *sim)
{
	struct gpc_sim_mempools *pools = &sim->mempools;

	gpc_list_each_safe (link, &pools->imports)
		free(gpc_list_entry(link, struct gpc_sim_import, link));
	while (!gpc_list_is_empty(&pools->all))
		pool_destroy_locked(pool_of(pools->all.next));
	pthread_mutex_destroy(&pools->lock);
}

void gpc_sim_mempools_synchronized(struct gpc_sim *sim, const struct gpc_sim_device *device)
{
	pthread_mutex_lock(&sim->mempools.lock);
	gpc_list_each (link, &sim->mempools.all) {
		struct gpc_sim_mempool *pool = pool_of(link);

		if (pool->slabs.device == device)
			gpc_sim_slabs_trim(&pool->slabs, pool->threshold);
	}
	pthread_mutex_unlock(&sim->mempools.lock);
}

void gpc_sim_mempools_reset(struct gpc_sim *sim, const struct gpc_sim_device *device)
{
	pthread_mutex_lock(&sim->mempools.lock);
	gpc_list_each (link, &sim->mempools.all) {
		struct gpc_sim_mempool *pool = pool_of(link);

		if (pool->slabs.device != device)
			continue;
		pool->used = 0;
		gpc_sim_slabs_clear(&pool->slabs);
	}
	destroy_idle_doomed_locked(&sim->mempools);
	pthread_mutex_unlock(&sim->mempools.lock);
}

struct gpc_sim_mempool *gpc_sim_mempool_of(struct gpc_sim *sim, CUmemoryPool handle)
{
	struct gpc_sim_mempool *found = NULL;

	pthread_mutex_lock(&sim->mempools.lock);
	gpc_list_each (link, &sim->mempools.all) {
		struct gpc_sim_mempool *pool = pool_of(link);

		if ((void *)pool == (void *)handle && !pool->is_doomed)
			found = pool;
	}
	pthread_mutex_unlock(&sim->mempools.lock);
	return found;
}

/* Finds the device that the properties name, NULL for the host; false if the properties are invalid. */
static bool place_of(
	struct gpc_sim *sim, const CUmemPoolProps *props, struct gpc_sim_device **ret_device)
{
	CUmemLocation location = props->location;

	*ret_device = NULL;
	if (location.type == CU_MEM_LOCATION_TYPE_HOST)
		return props->handleTypes == CU_MEM_HANDLE_TYPE_NONE;
	if (location.type != CU_MEM_LOCATION_TYPE_DEVICE || location.id < 0 ||
		(unsigned)location.id >= sim->config.n_devices)
		return false;
	*ret_device = &sim->devices[location.id];
	return true;
}

CUresult gpc_sim_mempool_create(
	struct gpc_sim *sim, const CUmemPoolProps *props, struct gpc_sim_mempool **ret_pool)
{
	struct gpc_sim_mempool *pool;
	struct gpc_sim_device *device;

	if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || !place_of(sim, props, &device))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim->mempools.lock);
	pool = pool_create_locked(&sim->mempools, device, props);
	pthread_mutex_unlock(&sim->mempools.lock);
	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_pool = pool;
	return CUDA_SUCCESS;
}

CUresult gpc_sim_mempool_destroy(struct gpc_sim *sim, struct gpc_sim_mempool *pool)
{
	struct gpc_sim_mempools *pools = &sim->mempools;

	if (pool->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pools->lock);
	for (unsigned i = 0; i < sim->config.n_devices; i++) {
		if (pools->currents[i] == pool)
			pools->currents[i] = pools->defaults[i];
	}
	pool->is_doomed = true;
	destroy_idle_doomed_locked(pools);
	pthread_mutex_unlock(&pools->lock);
	return CUDA_SUCCESS;
}

CUresult gpc_sim_mempool_set_current(
	struct gpc_sim *sim, unsigned device, struct gpc_sim_mempool *pool)
{
	if (pool->slabs.device != &sim->devices[device] || pool->is_imported)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim->mempools.lock);
	sim->mempools.currents[device] = pool;
	pthread_mutex_unlock(&sim->mempools.lock);
	return CUDA_SUCCESS;
}

/* ---- allocations ---- */

static CUresult alloc_locked(struct gpc_sim_mempool *pool, uint64_t size, uint64_t stream,
	struct gpc_sim_piece **ret_piece)
{
	struct gpc_sim_piece *piece = gpc_sim_slabs_take(&pool->slabs, size, stream);
	CUresult res = piece ? CUDA_SUCCESS : gpc_sim_slabs_grow(&pool->slabs, size);

	if (!piece && res == CUDA_SUCCESS)
		piece = gpc_sim_slabs_take(&pool->slabs, size, stream);
	if (!piece)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (pool->slabs.reserved > pool->reserved_high)
		pool->reserved_high = pool->slabs.reserved;
	pool->used += size;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	*ret_piece = piece;
	return CUDA_SUCCESS;
}

CUresult gpc_sim_mempool_alloc(struct gpc_sim_mempool *pool, struct gpc_sim_stream *stream,
	uint64_t size, uint64_t *ret_ptr)
{
	struct gpc_sim *sim = stream->context->sim;
	struct gpc_sim_race_stack nobody = { .n = 0 };
	struct gpc_sim_piece *piece = NULL;
	CUresult res = gpc_sim_context_state(stream->context);

	if (res != CUDA_SUCCESS)
		return res;
	if (size == 0 || pool->is_imported)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > UINT64_MAX / 2)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gpc_sim_settle(sim);
	pthread_mutex_lock(&sim->mempools.lock);
	res = alloc_locked(pool, gpc_round_up(size, GPC_SIM_SLOT), stream_key(stream), &piece);
	if (res == CUDA_SUCCESS) {
		*ret_ptr = piece->ptr;
		(void)gpc_sim_race_own_on(sim, stream, piece->ptr, piece->size, &nobody);
	}
	pthread_mutex_unlock(&sim->mempools.lock);
	return res;
}

/* Finds the piece in use that contains this address, and its pool; NULL if there is none. */
static struct gpc_sim_piece *find_locked(
	struct gpc_sim_mempools *pools, uint64_t ptr, struct gpc_sim_mempool **ret_pool)
{
	gpc_list_each (link, &pools->all) {
		struct gpc_sim_piece *piece = gpc_sim_slabs_find(&pool_of(link)->slabs, ptr);

		if (piece) {
			*ret_pool = pool_of(link);
			return piece;
		}
	}
	return NULL;
}

bool gpc_sim_mempool_find(struct gpc_sim *sim, uint64_t ptr, uint64_t *ret_base, uint64_t *ret_size,
	struct gpc_sim_mempool **ret_pool)
{
	struct gpc_sim_mempool *pool;

	pthread_mutex_lock(&sim->mempools.lock);
	const struct gpc_sim_piece *piece = find_locked(&sim->mempools, ptr, &pool);
	if (piece && ret_base)
		*ret_base = piece->ptr;
	if (piece && ret_size)
		*ret_size = piece->size;
	if (piece && ret_pool)
		*ret_pool = pool;
	pthread_mutex_unlock(&sim->mempools.lock);
	return piece != NULL;
}

bool gpc_sim_mempool_has(struct gpc_sim *sim, uint64_t ptr)
{
	bool has = false;

	pthread_mutex_lock(&sim->mempools.lock);
	gpc_list_each (link, &sim->mempools.all)
		has |= gpc_sim_slabs_have(&pool_of(link)->slabs, ptr);
	pthread_mutex_unlock(&sim->mempools.lock);
	return has;
}

CUresult gpc_sim_mempool_free_async(struct gpc_sim_stream *stream, uint64_t ptr)
{
	struct gpc_sim *sim = stream->context->sim;
	struct gpc_sim_effect *effect = gpc_sim_effect_create(GPC_SIM_EFFECT_POOL_FREE, 0);
	struct gpc_sim_mempool *pool;

	if (!effect)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim->mempools.lock);
	struct gpc_sim_piece *piece = find_locked(&sim->mempools, ptr, &pool);
	if (piece && piece->ptr == ptr) {
		gpc_sim_race_disown(sim, ptr);
		piece->state = GPC_SIM_PIECE_FREED;
		piece->free_number = ++sim->mempools.n_frees;
		piece->free_stream = stream_key(stream);
		pool->used -= piece->size;
		effect->dst = piece->free_number;
		effect->known = gpc_sim_race_of_stream(stream);
	} else {
		piece = NULL;
	}
	pthread_mutex_unlock(&sim->mempools.lock);
	if (piece)
		return gpc_sim_stream_submit(stream, effect);
	gpc_sim_effect_destroy(effect);
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult gpc_sim_mempool_free(struct gpc_sim *sim, uint64_t ptr)
{
	struct gpc_sim_mempool *pool;
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&sim->mempools.lock);
	struct gpc_sim_piece *piece = find_locked(&sim->mempools, ptr, &pool);
	if (piece && piece->ptr == ptr) {
		gpc_sim_race_disown(sim, ptr);
		pool->used -= piece->size;
		gpc_sim_piece_free(piece);
		destroy_idle_doomed_locked(&sim->mempools);
		res = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sim->mempools.lock);
	return res;
}

void gpc_sim_mempool_finish(struct gpc_sim *sim, uint64_t number)
{
	pthread_mutex_lock(&sim->mempools.lock);
	gpc_list_each (link, &sim->mempools.all)
		gpc_sim_slabs_finish(&pool_of(link)->slabs, number);
	destroy_idle_doomed_locked(&sim->mempools);
	pthread_mutex_unlock(&sim->mempools.lock);
}

/* ---- sharing ---- */

CUresult gpc_sim_mempool_import(
	struct gpc_sim *sim, struct gpc_sim_mempool *pool, struct gpc_sim_mempool **ret_pool)
{
	const CUmemPoolProps props = { .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };
	struct gpc_sim_mempool *made;

	if (!pool->is_shareable)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim->mempools.lock);
	made = pool_create_locked(&sim->mempools, pool->slabs.device, &props);
	if (made)
		made->is_imported = true;
	pthread_mutex_unlock(&sim->mempools.lock);
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_pool = made;
	return CUDA_SUCCESS;
}

static struct gpc_sim_import *find_import_locked(struct gpc_sim *sim, uint64_t ptr)
{
	gpc_list_each (link, &sim->mempools.imports) {
		struct gpc_sim_import *import = gpc_list_entry(link, struct gpc_sim_import, link);

		if (ptr - import->ptr < import->size)
			return import;
	}
	return NULL;
}

CUresult gpc_sim_mempool_import_pointer(struct gpc_sim *sim, uint64_t ptr, uint64_t *ret_ptr)
{
	struct gpc_sim_import *import = calloc(1, sizeof *import);
	struct gpc_sim_mempool *pool;
	CUresult res = CUDA_ERROR_INVALID_VALUE;

	if (!import)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim->mempools.lock);
	const struct gpc_sim_piece *piece = find_locked(&sim->mempools, ptr, &pool);
	if (piece && piece->ptr == ptr && pool->is_shareable)
		res = gpc_sim_device_reserve(pool->slabs.device, piece->size, &import->ptr);
	if (res == CUDA_SUCCESS) {
		import->device = pool->slabs.device;
		import->size = piece->size;
		import->target = ptr;
		*ret_ptr = import->ptr;
		gpc_list_append(&sim->mempools.imports, &import->link);
		atomic_fetch_add(&sim->mempools.n_imports, 1);
	}
	pthread_mutex_unlock(&sim->mempools.lock);
	if (res != CUDA_SUCCESS)
		free(import);
	return res;
}

bool gpc_sim_mempool_forget_import(struct gpc_sim *sim, uint64_t ptr)
{
	pthread_mutex_lock(&sim->mempools.lock);
	struct gpc_sim_import *import = find_import_locked(sim, ptr);
	bool is_start = import && import->ptr == ptr;
	if (is_start) {
		gpc_list_remove(&import->link);
		atomic_fetch_sub(&sim->mempools.n_imports, 1);
		(void)gpc_sim_device_free(import->device, import->ptr);
		free(import);
	}
	pthread_mutex_unlock(&sim->mempools.lock);
	return is_start;
}

uint64_t gpc_sim_mempool_target(struct gpc_sim *sim, uint64_t ptr)
{
	if (atomic_load_explicit(&sim->mempools.n_imports, memory_order_relaxed) == 0)
		return ptr;
	pthread_mutex_lock(&sim->mempools.lock);
	const struct gpc_sim_import *import = find_import_locked(sim, ptr);
	if (import)
		ptr = import->target + (ptr - import->ptr);
	pthread_mutex_unlock(&sim->mempools.lock);
	return ptr;
}

/* ---- trim and attributes ---- */

void gpc_sim_mempool_trim(struct gpc_sim *sim, struct gpc_sim_mempool *pool, uint64_t keep)
{
	gpc_sim_settle(sim);
	pthread_mutex_lock(&sim->mempools.lock);
	gpc_sim_slabs_trim(&pool->slabs, keep);
	pthread_mutex_unlock(&sim->mempools.lock);
}

static const uint64_t *figure_of(const struct gpc_sim_mempool *pool, CUmemPool_attribute attribute)
{
	switch ((int)attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return &pool->threshold;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		return &pool->slabs.reserved;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return &pool->reserved_high;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return &pool->used;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return &pool->used_high;
	default:
		return NULL;
	}
}

static bool is_reuse(CUmemPool_attribute attribute)
{
	return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
	       attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUresult gpc_sim_mempool_get(struct gpc_sim *sim, const struct gpc_sim_mempool *pool,
	CUmemPool_attribute attribute, void *value)
{
	const uint64_t *figure = figure_of(pool, attribute);

	if (!figure && !is_reuse(attribute))
		return CUDA_ERROR_INVALID_VALUE;
	gpc_sim_settle(sim);
	pthread_mutex_lock(&sim->mempools.lock);
	if (figure)
		memcpy(value, figure, sizeof *figure);
	else
		memcpy(value, &pool->reuse[attribute - 1], sizeof(int));
	pthread_mutex_unlock(&sim->mempools.lock);
	return CUDA_SUCCESS;
}

CUresult gpc_sim_mempool_set(struct gpc_sim *sim, struct gpc_sim_mempool *pool,
	CUmemPool_attribute attribute, const void *value)
{
	uint64_t number = 0;
	CUresult res = CUDA_SUCCESS;

	memcpy(&number, value, is_reuse(attribute) ? sizeof(int) : sizeof number);
	pthread_mutex_lock(&sim->mempools.lock);
	if (is_reuse(attribute))
		pool->reuse[attribute - 1] = (int)number;
	else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		pool->threshold = number;
	else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && number == 0)
		pool->reserved_high = pool->slabs.reserved;
	else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH && number == 0)
		pool->used_high = pool->used;
	else
		res = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&sim->mempools.lock);
	return res;
}
