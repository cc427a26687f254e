/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own memory pools (cuMemPoolCreate), and the memory of graphs: what they reserve beyond what is in use.
 *
 *      reserved by a pool   |  allocations of the program      |  idle                |
 *                           '-- tracked, one by one (ASYNC) ---'-- this file (POOL) --'
 *
 * Idle bytes are what the driver reports as reserved, less the tracked allocations of that pool.  So both together are
 * the pool's memory on the device, however the driver rounds.  The driver is asked when observe.c reads the device, and
 * when a pool must have grown.  Between these queries an allocation subtracts its size from the idle bytes, and a free
 * adds it.  Of graphs the driver reports only the total.
 *
 * A pool is queried under our lock, and marked as gone under it before the driver destroys it.  So the driver is not
 * asked about a pool that is gone.  A query would invalidate an open capture, so none is made then.
 *
 * Limits   Idle memory of pools beyond MAX_POOLS is not seen.  Pools of host and managed memory have entries, so that
 *          their allocations get the right kind; their idle memory is not counted.
 */
#include "runtime/ledger/pools.h"

#include "model/counters.h"
#include "runtime/context/contexts.h"
#include "runtime/context/endings.h"
#include "runtime/context/streams.h"
#include "runtime/ledger/track.h"
#include "runtime/process/state.h"

#define MAX_POOLS 64

struct driver_pool {
	uint32_t
		number; /* of no other pool, ever: an allocation may outlive its pool's entry; 0: none */
	CUmemoryPool handle;
	uint64_t used; /* by tracked allocations */
	uint64_t idle; /* reserved beyond `used`, by the last query and the calls since */
	uint64_t max;  /* maxSize; 0: none */
	uint32_t device;
	uint8_t kind; /* enum gpucache_kind of its allocations; NONE: an unused entry */
	bool is_gone; /* destroyed; the driver keeps it until its last allocation is freed */
};

static struct {
	struct driver_pool pools[MAX_POOLS];
	uint32_t last_number;
	CUmemoryPool current[GPC_MAX_DEVICES]; /* NULL: the default pool, not asked for yet */
	uint64_t idle[GPC_MAX_DEVICES];        /* as accounted for, of all its pools */
	uint64_t graph[GPC_MAX_DEVICES];
	atomic_bool has_pools;
	atomic_bool has_graphs;
	struct gpc_lock lock;
} all = { .lock = GPC_LOCK_INIT(GPC_RANK_DRIVER_POOLS) };

bool gpc_runtime_graph_is_new;

/* ---- accounting ---- */

static void book_locked(
	struct gpc_context *owner, enum gpucache_kind kind, uint64_t *booked, uint64_t bytes)
{
	struct gpucache_counters *counters = owner->pool.counters;

	gpc_lock_take(&owner->pool.lock);
	gpc_counter_sub(&counters->kind_bytes[kind], *booked);
	gpc_counter_sub(&counters->direct_bytes, *booked);
	gpc_counter_add(&counters->kind_bytes[kind], bytes);
	gpc_counter_add_peak(&counters->direct_bytes, &counters->peak_direct_bytes, bytes);
	gpc_lock_release(&owner->pool.lock);
	*booked = bytes;
}

static bool is_looked_into(const struct driver_pool *pool, uint32_t device)
{
	return pool->kind == GPUCACHE_KIND_ASYNC && pool->device == device && !pool->is_gone;
}

static void book_idle_locked(struct gpc_device *device, struct gpc_context *owner)
{
	uint64_t idle = 0;

	for (uint32_t i = 0; i < MAX_POOLS; i++) {
		if (is_looked_into(&all.pools[i], device->ordinal))
			idle += all.pools[i].idle;
	}
	if (owner)
		book_locked(owner, GPUCACHE_KIND_POOL, &all.idle[device->ordinal], idle);
}

static void ask_pools_locked(uint32_t device)
{
	const struct gpc_cuda_fns *fns = gpc_runtime.fns;

	for (uint32_t i = 0; fns->cuMemPoolGetAttribute && i < MAX_POOLS; i++) {
		struct driver_pool *pool = &all.pools[i];
		uint64_t reserved = 0;

		if (is_looked_into(pool, device) &&
			!fns->cuMemPoolGetAttribute(
				pool->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved))
			pool->idle = gpc_bytes_less(reserved, pool->used);
	}
}

static uint64_t held_by_graphs(uint32_t device)
{
	const struct gpc_cuda_fns *fns = gpc_runtime.fns;
	uint64_t reserved = 0;

	if (!atomic_load(&all.has_graphs) || !fns->cuDeviceGetGraphMemAttribute ||
		fns->cuDeviceGetGraphMemAttribute(
			(CUdevice)device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved))
		return 0;
	return reserved;
}

bool gpc_pools_are_used(void)
{
	return atomic_load(&all.has_pools) || atomic_load(&all.has_graphs);
}

void gpc_pools_look(struct gpc_device *device)
{
	uint32_t d = device->ordinal;
	struct gpc_context *owner;

	if (!gpc_pools_are_used())
		return;
	owner = gpc_context_owner(device);
	if (!owner)
		return;
	gpc_lock_take(&all.lock);
	if (gpc_captures_try_hold(&gpc_runtime.heap.captures)) {
		uint64_t graph = held_by_graphs(d);

		ask_pools_locked(d);
		gpc_captures_release(&gpc_runtime.heap.captures);
		book_locked(owner, GPUCACHE_KIND_GRAPH, &all.graph[d], graph);
	}
	book_idle_locked(device, owner);
	gpc_lock_release(&all.lock);
}

void gpc_pools_trim(struct gpc_device *device)
{
	const struct gpc_cuda_fns *fns = gpc_runtime.fns;
	CUdevice ordinal = (CUdevice)device->ordinal;
	CUmemoryPool standard = NULL;

	gpc_lock_take(&all.lock);
	if (gpc_captures_try_hold(&gpc_runtime.heap.captures)) {
		if (fns->cuDeviceGetDefaultMemPool && fns->cuMemPoolTrimTo &&
			!fns->cuDeviceGetDefaultMemPool(&standard, ordinal))
			(void)fns->cuMemPoolTrimTo(standard, 0);
		for (uint32_t i = 0; fns->cuMemPoolTrimTo && i < MAX_POOLS; i++) {
			const struct driver_pool *pool = &all.pools[i];

			if (is_looked_into(pool, device->ordinal) && pool->handle != standard)
				(void)fns->cuMemPoolTrimTo(pool->handle, 0);
		}
		if (fns->cuDeviceGraphMemTrim)
			(void)fns->cuDeviceGraphMemTrim(ordinal);
		gpc_captures_release(&gpc_runtime.heap.captures);
	}
	gpc_lock_release(&all.lock);
	gpc_pools_look(device);
}

static struct driver_pool *numbered_locked(uint32_t number)
{
	for (uint32_t i = 0; number && i < MAX_POOLS; i++)
		if (all.pools[i].kind && all.pools[i].number == number)
			return &all.pools[i];
	return NULL;
}

uint64_t gpc_pools_max(uint32_t number, uint64_t *ret_used)
{
	const struct driver_pool *pool;
	uint64_t max;

	gpc_lock_take(&all.lock);
	pool = numbered_locked(number);
	max = pool ? pool->max : 0;
	*ret_used = pool ? pool->used : 0;
	gpc_lock_release(&all.lock);
	return max;
}

void gpc_pools_count(struct gpc_device *device, uint32_t number, uint64_t size, bool is_malloc)
{
	struct gpc_context *owner = number ? gpc_context_owner(device) : NULL;
	struct driver_pool *pool;
	bool has_grown;

	if (!number)
		return;
	gpc_lock_take(&all.lock);
	pool = numbered_locked(number);
	if (!pool) {
		gpc_lock_release(&all.lock);
		return;
	}
	has_grown = is_malloc && pool->idle < size;
	if (is_malloc) {
		pool->used += size;
		pool->idle = gpc_bytes_less(pool->idle, size);
	} else {
		pool->used -= size;
		pool->idle += size;
		if (pool->is_gone && pool->used == 0)
			*pool = (struct driver_pool){ .kind = GPUCACHE_KIND_NONE };
	}
	book_idle_locked(device, owner);
	gpc_lock_release(&all.lock);
	if (has_grown)
		gpc_pools_look(device);
}

/* ---- known pools ---- */

static struct driver_pool *find_locked(CUmemoryPool handle)
{
	for (uint32_t i = 0; i < MAX_POOLS; i++) {
		struct driver_pool *pool = &all.pools[i];

		if (pool->kind && !pool->is_gone && pool->handle == handle)
			return pool;
	}
	return NULL;
}

/* Adds a pool unless it is known.  False: there is no room for another entry. */
static bool add(CUmemoryPool handle, uint32_t device, enum gpucache_kind kind, uint64_t max)
{
	struct driver_pool *pool;

	atomic_store(&all.has_pools, true);
	gpc_lock_take(&all.lock);
	pool = find_locked(handle);
	for (uint32_t i = 0; !pool && i < MAX_POOLS; i++) {
		if (all.pools[i].kind)
			continue;
		pool = &all.pools[i];
		*pool = (struct driver_pool){ .number = ++all.last_number,
			.handle = handle,
			.max = max,
			.device = device,
			.kind = (uint8_t)kind };
	}
	gpc_lock_release(&all.lock);
	return pool != NULL;
}

static uint32_t current_device(void)
{
	const struct gpc_context *context = gpc_context_current();

	return context ? context->device->ordinal : 0;
}

void gpc_runtime_pool_seen(
	CUmemoryPool handle, CUmemLocation location, CUmemAllocationType type, uint64_t max)
{
	bool is_on_device =
		location.type == CU_MEM_LOCATION_TYPE_DEVICE && gpc_device_at(location.id);
	enum gpucache_kind kind = type == CU_MEM_ALLOCATION_TYPE_MANAGED ? GPUCACHE_KIND_MANAGED
				  : is_on_device                         ? GPUCACHE_KIND_ASYNC
									 : GPUCACHE_KIND_HOST;

	(void)add(handle, is_on_device ? (uint32_t)location.id : current_device(), kind, max);
}

void gpc_runtime_pool_destroyed(CUmemoryPool handle)
{
	struct driver_pool *pool;
	uint32_t device = GPC_MAX_DEVICES;

	gpc_lock_take(&all.lock);
	pool = find_locked(handle);
	if (pool) {
		device = pool->device;
		pool->is_gone = true;
		if (pool->used == 0)
			pool->kind = GPUCACHE_KIND_NONE;
	}
	for (uint32_t d = 0; d < GPC_MAX_DEVICES; d++) {
		if (all.current[d] == handle)
			all.current[d] = NULL;
	}
	gpc_lock_release(&all.lock);
	if (device < GPC_MAX_DEVICES)
		gpc_pools_look(&gpc_runtime.devices[device]);
}

void gpc_runtime_pool_kept(CUmemoryPool handle)
{
	gpc_lock_take(&all.lock);
	for (uint32_t i = 0; i < MAX_POOLS; i++) {
		if (all.pools[i].kind && all.pools[i].handle == handle)
			all.pools[i].is_gone = false;
	}
	gpc_lock_release(&all.lock);
}

void gpc_runtime_pool_made_current(CUdevice device, CUmemoryPool handle)
{
	if (!gpc_device_at(device))
		return;
	gpc_lock_take(&all.lock);
	all.current[device] = handle;
	gpc_lock_release(&all.lock);
}

static CUmemoryPool default_of(uint32_t device)
{
	CUmemoryPool handle = NULL;

	if (!gpc_runtime.fns->cuDeviceGetDefaultMemPool ||
		gpc_runtime.fns->cuDeviceGetDefaultMemPool(&handle, (CUdevice)device))
		return NULL;
	return handle;
}

/* Adds a pool whose creation we did not see: a device's default pool, or one made before our start.  False: no room. */
static bool meet(CUmemoryPool handle)
{
	uint32_t device = current_device();

	for (uint32_t d = 0; d < gpc_runtime.n_devices; d++) {
		if (default_of(d) == handle)
			device = d;
	}
	return add(handle, device, GPUCACHE_KIND_ASYNC, 0);
}

/* The stream's device, which need not be the current one. */
static uint32_t device_of_stream(CUstream stream)
{
	CUcontext handle = NULL;
	CUcontext popped;
	CUdevice device = (CUdevice)current_device();

	if (gpc_runtime.n_devices == 1 || !stream || stream == CU_STREAM_LEGACY ||
		stream == CU_STREAM_PER_THREAD || !gpc_runtime.fns->cuStreamGetCtx ||
		gpc_runtime.fns->cuStreamGetCtx(stream, &handle) ||
		gpc_runtime.fns->cuCtxPushCurrent_v2(handle))
		return (uint32_t)device;
	(void)gpc_runtime.fns->cuCtxGetDevice(&device);
	(void)gpc_runtime.fns->cuCtxPopCurrent_v2(&popped);
	return (uint32_t)device;
}

/* Returns the number of the pool with this handle, and copies its entry; 0: unknown. */
static uint32_t find(CUmemoryPool handle, struct driver_pool *ret_pool)
{
	struct driver_pool *pool;
	uint32_t number = 0;

	gpc_lock_take(&all.lock);
	pool = find_locked(handle);
	if (pool) {
		number = pool->number;
		*ret_pool = *pool;
	}
	gpc_lock_release(&all.lock);
	return number;
}

static CUmemoryPool current_of(uint32_t device)
{
	CUmemoryPool handle;
	CUmemoryPool standard;

	gpc_lock_take(&all.lock);
	handle = all.current[device];
	gpc_lock_release(&all.lock);
	if (handle)
		return handle;
	standard = default_of(device);
	gpc_lock_take(&all.lock);
	/* Another thread may have set a pool meanwhile. */
	if (!all.current[device])
		all.current[device] = standard;
	handle = all.current[device];
	gpc_lock_release(&all.lock);
	return handle;
}

CUresult gpc_runtime_pool_malloc(struct gpc_passed_call *call, CUmemoryPool handle, CUstream stream)
{
	struct driver_pool pool = { .kind = GPUCACHE_KIND_ASYNC };
	bool is_new;
	CUresult result;

	gpc_streams_name(stream);
	if (!handle) {
		pool.device = device_of_stream(stream);
		handle = current_of(pool.device);
	}
	call->pool = find(handle, &pool);
	is_new = !call->pool && handle && meet(handle);
	if (is_new)
		call->pool = find(handle, &pool);
	call->kind = (enum gpucache_kind)pool.kind;
	result = gpc_runtime_passed_malloc_of_device(call, (int)pool.device);
	/* The handle is no pool, or one imported from another process, from which we cannot allocate: forget it. */
	if (is_new && result && result != CUDA_ERROR_OUT_OF_MEMORY)
		gpc_runtime_pool_destroyed(handle);
	return result;
}

/* A reset of the primary context destroys all pools of the device, so the driver may reuse their handles. */
void gpc_runtime_primary_reset(CUdevice number)
{
	struct gpc_device *device = gpc_device_at(number);
	struct gpc_context *owner;

	gpc_runtime_primary_forget(number);
	if (!device || !gpc_pools_are_used())
		return;
	gpc_track_forget(NULL, device);
	owner = gpc_context_owner(device);
	gpc_lock_take(&all.lock);
	for (uint32_t i = 0; i < MAX_POOLS; i++) {
		if (all.pools[i].device == device->ordinal)
			all.pools[i].kind = GPUCACHE_KIND_NONE;
	}
	all.current[number] = NULL;
	book_idle_locked(device, owner);
	gpc_lock_release(&all.lock);
}

/* ---- graphs, and trims by the program ---- */

void gpc_runtime_graph_made(void)
{
	atomic_store(&all.has_graphs, true);
	__atomic_store_n(&gpc_runtime_graph_is_new, true, __ATOMIC_RELAXED);
}

void gpc_runtime_pools_changed(void)
{
	struct gpc_context *context = gpc_context_current();

	if (!context || gpc_captures_is_any_open(&gpc_runtime.heap.captures))
		return;
	__atomic_store_n(&gpc_runtime_graph_is_new, false, __ATOMIC_RELAXED);
	gpc_pools_look(context->device);
}
