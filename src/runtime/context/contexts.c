/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: one pool per context and generation.
 *
 * An open-addressed table of atomic pointers maps handles to contexts.  Entries are never removed, so lookups need no
 * lock.  When a context ends, its pool forgets all memory and the object is marked gone.  The driver may reuse the
 * handle (a primary context keeps its handle over a reset): then a new object with the next generation replaces the old
 * one in the table.  The old object stays allocated, because a thread may still be reading it.
 */
#include "runtime/context/contexts.h"

#include "base/log.h"
#include "base/metamem.h"
#include "driver/sticky.h"
#include "runtime/context/green.h"
#include "runtime/context/pages.h"
#include "runtime/context/reach.h"
#include "runtime/ledger/observe.h"
#include "runtime/process/state.h"
#include "stats/counters.h"

bool gpc_runtime_many_contexts;

/* The most contexts over the life of the process, each generation counted; memory of further ones is not cached. */
#define MAX_GENERATIONS 1024

#define TABLE_SLOTS (MAX_GENERATIONS * 2)

static struct {
	_Atomic(struct gpc_context *) slots[TABLE_SLOTS];
	uint32_t n_made;
	bool was_full_said;
} table;

static _Atomic(struct gpc_context *) last_found;

/* The slot of this handle, or the empty one where it belongs; NULL: the table is full. */
static _Atomic(struct gpc_context *) *slot_of(CUcontext handle)
{
	uint64_t hash = (uint64_t)(uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t i = (uint32_t)(hash >> 40) % TABLE_SLOTS;

	for (uint32_t n = 0; n < TABLE_SLOTS; n++, i = (i + 1) % TABLE_SLOTS) {
		const struct gpc_context *context =
			atomic_load_explicit(&table.slots[i], memory_order_acquire);

		if (!context || context->handle == handle)
			return &table.slots[i];
	}
	return NULL;
}

static uint64_t pending_limit(const struct gpc_device *device)
{
	if (gpc_runtime.config.pending_limit)
		return gpc_runtime.config.pending_limit;
	return gpc_larger(device->known.total_bytes / 16, 64 * GPC_MIB);
}

/* CUDA 12.5 has cuCtxRecordEvent and cuCtxWaitEvent.  An older driver may export both and refuse every call. */
#define FIRST_WITH_BARRIERS 12050

static bool may_have_barriers(void)
{
	const struct gpc_cuda_fns *fns = gpc_runtime.fns;
	int version = 0;

	return gpc_runtime.config.free_order == GPC_FREE_ORDER_DEVICE && fns->cuCtxRecordEvent &&
	       fns->cuCtxWaitEvent && !fns->cuDriverGetVersion(&version) &&
	       version >= FIRST_WITH_BARRIERS;
}

/* True if the host may access the device's memory directly (Grace): no stream and no event orders such an access. */
static bool is_host_near(const struct gpc_device *device)
{
	__typeof__(gpc_runtime.fns->cuDeviceGetAttribute) ask =
		gpc_runtime.fns->cuDeviceGetAttribute;
	int by_pages = 0;
	int directly = 0;

	if (!ask)
		return false;
	(void)!ask(&by_pages, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
		(CUdevice)device->ordinal);
	(void)!ask(&directly, CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
		(CUdevice)device->ordinal);
	return by_pages || directly;
}

/* Why the one-stream rule does not hold in a new context; ONE_STREAM_HOLDS: the rule holds.  Lock: runtime.lock. */
static enum gpucache_one_stream_end one_stream_end(const struct gpc_device *device)
{
	if (is_host_near(device))
		return GPUCACHE_ONE_STREAM_END_HOST;
	if (!gpc_runtime.saw_start || atomic_load(&gpc_runtime.has_missed))
		return GPUCACHE_ONE_STREAM_END_UNSEEN;
	if (gpc_runtime.is_per_thread_used)
		return GPUCACHE_ONE_STREAM_END_PER_THREAD;
	if (gpc_green_is_used())
		return GPUCACHE_ONE_STREAM_END_GREEN;
	if (gpc_runtime.is_overlap_used)
		return GPUCACHE_ONE_STREAM_END_OVERLAP;
	return GPUCACHE_ONE_STREAM_HOLDS;
}

static void init_context(struct gpc_context *context, struct gpc_device *device, uint32_t index,
	struct gpucache_counters *counters)
{
	const struct gpc_config *config = &gpc_runtime.config;
	enum gpucache_one_stream_end end = one_stream_end(device);
	struct gpc_pool_params params = {
		.max_split_size = (uint64_t)config->max_split_size_mb * GPC_MIB,
		.roundup_divisions = (uint32_t)config->roundup_power2_divisions,
		.gc_threshold_ppm = config->garbage_collection_threshold,
		.pending_limit = pending_limit(device),
		.decay_ns = config->decay_ms * UINT64_C(1000000),
		.is_one_stream = end == GPUCACHE_ONE_STREAM_HOLDS,
		.vmm = (enum gpc_vmm)config->vmm,
		.has_barriers = may_have_barriers(),
	};

	context->device = device;
	gpc_cuda_driver_init(&context->drv, gpc_runtime.fns, context->handle);
	gpc_pages_offer(context);
	gpc_pool_init(&context->pool, &gpc_runtime.heap, &context->drv.base, &device->budget,
		&params, device->ordinal, index, counters);
	gpc_counter_set(&context->pool.counters->one_stream_end, end);
	/* The host may access memory without a call, and no barrier makes it wait.  So freed blocks wait for fences. */
	if (end == GPUCACHE_ONE_STREAM_END_HOST)
		gpc_fences_expect_peer(&context->pool.fences);
}

static void say_full(void)
{
	if (!table.was_full_said)
		gpc_log("too many contexts (%u at a time on a device, %u in all): memory of new "
			"ones is passed to the driver, neither cached nor recorded.",
			GPC_MAX_CONTEXTS, MAX_GENERATIONS);
	table.was_full_said = true;
}

/* `record_handle` identifies the context in the recording.  Lock: runtime.lock. */
static struct gpc_context *add_locked(
	struct gpc_device *device, CUcontext handle, uint64_t record_handle, uint32_t generation)
{
	struct gpc_context *context;
	struct gpucache_counters *counters;
	uint32_t index = 0;

	if (table.n_made == MAX_GENERATIONS ||
		atomic_load(&device->n_contexts) == GPC_MAX_CONTEXTS) {
		say_full();
		return NULL;
	}
	context = gpc_metamem_map(sizeof *context);
	if (!context)
		return NULL;
	context->handle = handle;
	context->generation = generation;
	counters = gpc_record_counters_take(
		&gpc_runtime.record, record_handle, generation, device->ordinal, &index);
	init_context(context, device, index, counters);
	if (handle && table.n_made++ > 0)
		gpc_runtime_context_created();
	device->contexts[atomic_load(&device->n_contexts)] = context;
	atomic_fetch_add(&device->n_contexts, 1);
	return context;
}

/* `handle` must be current: cuCtxGetDevice returns the device of the current context. */
static struct gpc_context *make_locked(CUcontext handle, const struct gpc_context *old)
{
	CUdevice ordinal = 0;

	if (gpc_runtime.fns->cuCtxGetDevice(&ordinal) || !gpc_device_at(ordinal))
		return NULL;
	return add_locked(gpc_device_at(ordinal), handle, (uint64_t)(uintptr_t)handle,
		old ? old->generation + 1 : 1);
}

/* Removes contexts that are gone from their devices: a new context needs a place, and may get their counters. */
static void drop_gone_locked(void)
{
	for (uint32_t d = 0; d < gpc_runtime.n_devices; d++) {
		struct gpc_device *device = &gpc_runtime.devices[d];
		uint32_t n = atomic_load(&device->n_contexts);

		for (uint32_t i = n; i-- > 0;) {
			const struct gpc_context *context = device->contexts[i];

			/* Moves the last context here.  A concurrent sum may miss it, but does not count it twice. */
			if (atomic_load(&context->is_gone))
				device->contexts[i] = atomic_exchange(&device->contexts[--n], NULL);
		}
		atomic_store(&device->n_contexts, n);
	}
}

struct gpc_context *gpc_context_get(CUcontext handle)
{
	_Atomic(struct gpc_context *) *slot = slot_of(handle);
	struct gpc_context *context =
		slot ? atomic_load_explicit(slot, memory_order_acquire) : NULL;
	CUcontext current = NULL;
	bool is_new = false;

	if (context && !atomic_load_explicit(&context->is_gone, memory_order_acquire))
		return context;
	if (!slot || gpc_runtime.fns->cuCtxGetCurrent(&current) || current != handle)
		return NULL;
	handle = gpc_green_owner(handle);
	if (!handle)
		return NULL;
	gpc_lock_take(&gpc_runtime.lock);
	slot = slot_of(handle);
	context = slot ? atomic_load(slot) : NULL;
	if (slot && (!context || atomic_load(&context->is_gone))) {
		drop_gone_locked();
		context = make_locked(handle, context);
		is_new = context != NULL;
		if (context)
			atomic_store_explicit(slot, context, memory_order_release);
	}
	gpc_lock_release(&gpc_runtime.lock);
	if (is_new)
		gpc_observe_context(context, 1);
	return context;
}

struct gpc_context *gpc_context_current(void)
{
	CUcontext handle = NULL;

	struct gpc_context *context;

	if (gpc_runtime.fns->cuCtxGetCurrent(&handle) || !handle)
		return NULL;
	/* Usually it is the context found last.  Contexts are never freed, so `last_found` can always be read. */
	context = atomic_load_explicit(&last_found, memory_order_acquire);
	if (context && context->handle == handle &&
		!atomic_load_explicit(&context->is_gone, memory_order_acquire))
		return context;
	context = gpc_context_get(handle);
	atomic_store_explicit(&last_found, context, memory_order_release);
	return context;
}

struct gpc_context *gpc_context_owner(struct gpc_device *device)
{
	struct gpc_context *owner = atomic_load_explicit(&device->owner, memory_order_acquire);

	if (owner)
		return owner;
	gpc_lock_take(&gpc_runtime.lock);
	owner = atomic_load(&device->owner);
	if (!owner) {
		drop_gone_locked();
		owner = add_locked(device, NULL, GPUCACHE_NO_CONTEXT, 1);
		atomic_store_explicit(&device->owner, owner, memory_order_release);
	}
	gpc_lock_release(&gpc_runtime.lock);
	return owner;
}

struct gpc_context *gpc_context_on(struct gpc_device *device)
{
	struct gpc_context *current = gpc_context_current();
	struct gpc_pool *pools[GPC_MAX_CONTEXTS];

	if (current && current->device == device)
		return current;
	/* A pool is the first member of its context. */
	return gpc_device_pools(device, pools) ? (struct gpc_context *)pools[0] : NULL;
}

struct gpc_context *gpc_context_visit(CUcontext handle)
{
	struct gpc_context *context;
	CUcontext popped;

	if (gpc_runtime.fns->cuCtxPushCurrent_v2(handle))
		return NULL;
	context = gpc_context_get(handle);
	(void)gpc_runtime.fns->cuCtxPopCurrent_v2(&popped);
	return context;
}

struct gpc_context *gpc_context_find_own(CUcontext handle)
{
	_Atomic(struct gpc_context *) *slot = slot_of(handle);
	struct gpc_context *context = slot ? atomic_load(slot) : NULL;

	return context && !atomic_load(&context->is_gone) ? context : NULL;
}

struct gpc_context *gpc_context_find(CUcontext handle)
{
	struct gpc_context *context = gpc_context_find_own(handle);
	CUcontext primary = context ? NULL : gpc_green_find(handle);

	return primary ? gpc_context_find_own(primary) : context;
}

/*
 * A fault breaks every context of its device (tests/gpu, "fault_in_another_context").  A failed assertion breaks only
 * its own context: cuda.h says that the context must be destroyed, not that the process must end.
 */
static void hear(struct gpc_context *context, CUresult result)
{
	const struct gpc_device *device = context->device;

	(void)gpc_cuda_driver_heard(&context->drv, result);
	if (!gpc_cuda_is_sticky(result) || result == CUDA_ERROR_ASSERT)
		return;
	for (uint32_t i = 0; i < GPC_MAX_CONTEXTS; i++) {
		struct gpc_context *each = atomic_load(&device->contexts[i]);

		if (each)
			(void)gpc_cuda_driver_heard(&each->drv, result);
	}
}

struct gpc_sync gpc_runtime_begin_sync(CUcontext handle)
{
	CUcontext current = NULL;
	struct gpc_context *context;
	struct gpc_sync sync = { .context = NULL };

	if (!handle && !gpc_runtime.fns->cuCtxGetCurrent(&current))
		handle = current;
	/* A wait for a green context is no wait for its primary context, whose work may use the same memory. */
	context = gpc_context_find_own(handle);
	sync.context = context;
	if (context)
		sync.number = gpc_pool_begin_sync(&context->pool);
	return sync;
}

void gpc_runtime_end_sync(struct gpc_sync sync, CUresult result)
{
	struct gpc_context *context = sync.context;

	if (!context)
		return;
	if (!result)
		gpc_pool_end_sync(&context->pool, sync.number,
			context->drv.base.ops->now_ns(&context->drv.base));
	else
		hear(context, result);
}

/*
 * The call may have returned the error of another context, whose event it was given.  So the current context is asked
 * by cuMemGetInfo, which returns the error of the context's own earlier work.
 */
void gpc_runtime_heard(CUresult result)
{
	struct gpc_context *context;
	size_t available;
	size_t total;

	if (!gpc_cuda_is_sticky(result))
		return;
	context = gpc_context_current();
	if (context)
		hear(context, gpc_runtime.fns->cuMemGetInfo_v2(&available, &total));
}

uint32_t gpc_device_pools(const struct gpc_device *device, struct gpc_pool **pools)
{
	uint32_t n_pools = 0;
	uint32_t n;

	gpc_lock_take(&gpc_runtime.lock);
	n = atomic_load(&device->n_contexts);
	for (uint32_t i = 0; i < n; i++) {
		struct gpc_context *context = device->contexts[i];

		if (context->handle && !atomic_load(&context->is_gone) &&
			!atomic_load(&context->is_ending))
			pools[n_pools++] = &context->pool;
	}
	gpc_lock_release(&gpc_runtime.lock);
	return n_pools;
}

struct gpc_pool *gpc_pool_next(struct gpc_pool_walk *walk)
{
	while (walk->n_left == 0 && walk->device < gpc_runtime.n_devices)
		walk->n_left = gpc_device_pools(&gpc_runtime.devices[walk->device++], walk->pools);
	return walk->n_left ? walk->pools[--walk->n_left] : NULL;
}
