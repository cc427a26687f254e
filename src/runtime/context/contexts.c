/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: one pool per context and generation.
 *
 * A device lists its contexts; lookups read the list without a lock.  When a context ends, its pool forgets all memory,
 * and the object is marked gone, leaves the list and waits.  The driver may reuse the handle (a primary context keeps
 * its handle over a reset): then another object, with a later generation, has the handle.
 *
 * An object becomes another context when its grace period is over (base/grace.h).  Until then threads that found it
 * before may use it.  Nothing else leads to it: what refers to a context is removed at its end (endings.c), and who
 * adds such a reference looks at is_gone under the same lock.  A thread remembers the context that it found last over
 * its calls, and believes this only after it has seen that the object is not gone, and then which handle it has.
 */
#include "runtime/context/contexts.h"

#include <string.h>

#include "base/grace.h"
#include "base/log.h"
#include "base/metamem.h"
#include "driver/sticky.h"
#include "model/counters.h"
#include "runtime/context/green.h"
#include "runtime/context/pages.h"
#include "runtime/context/reach.h"
#include "runtime/ledger/observe.h"
#include "runtime/process/state.h"

bool gpc_runtime_many_contexts;

/* The most objects: contexts that live, and those that wait for their grace period. */
#define MAX_OBJECTS 1024

/* Lock: runtime.lock. */
static struct {
	struct gpc_list retired; /* longest first */
	uint32_t n;
	uint32_t last_generation;
	bool was_full_said;
} objects = { .retired = GPC_LIST_INIT(objects.retired) };

struct gpc_context *gpc_context_find_own(CUcontext handle)
{
	for (uint32_t d = 0; handle && d < gpc_runtime.n_devices; d++) {
		const struct gpc_device *device = &gpc_runtime.devices[d];
		uint32_t n = atomic_load_explicit(&device->n_contexts, memory_order_acquire);

		for (uint32_t i = 0; i < n; i++) {
			struct gpc_context *context =
				atomic_load_explicit(&device->contexts[i], memory_order_acquire);

			if (context && context->handle == handle &&
				!atomic_load_explicit(&context->is_gone, memory_order_acquire))
				return context;
		}
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
	if (!objects.was_full_said)
		gpc_log("too many contexts (%u at a time on a device, or %u that ended during a "
			"call of another thread): memory of new ones is passed to the driver, "
			"neither cached nor recorded.",
			GPC_MAX_CONTEXTS, MAX_OBJECTS);
	objects.was_full_said = true;
}

/* Returns an object that is zero, except that it may be gone.  NULL: too many, or no metadata. */
static struct gpc_context *take_object_locked(void)
{
	struct gpc_list *first = objects.retired.next;
	struct gpc_context *context = gpc_list_entry(first, struct gpc_context, retired);

	if (first != &objects.retired && gpc_grace_is_over(context->grace)) {
		gpc_list_remove(first);
		memset(context, 0, offsetof(struct gpc_context, is_gone));
		return context;
	}
	if (objects.n == MAX_OBJECTS) {
		say_full();
		return NULL;
	}
	context = gpc_metamem_map(sizeof *context);
	objects.n += context != NULL;
	return context;
}

/* `record_handle` identifies the context in the recording.  Lock: runtime.lock. */
static struct gpc_context *add_locked(
	struct gpc_device *device, CUcontext handle, uint64_t record_handle)
{
	struct gpc_context *context;
	struct gpucache_counters *counters;
	uint32_t index = 0;
	uint32_t place = 0;

	while (place < GPC_MAX_CONTEXTS && atomic_load(&device->contexts[place]))
		place++;
	if (place == GPC_MAX_CONTEXTS) {
		say_full();
		return NULL;
	}
	context = take_object_locked();
	if (!context)
		return NULL;
	context->handle = handle;
	context->generation = handle ? ++objects.last_generation : 1;
	counters = gpc_record_counters_take(
		&gpc_runtime.record, record_handle, context->generation, device->ordinal, &index);
	init_context(context, device, index, counters);
	if (context->generation > 1)
		gpc_runtime_context_created();
	atomic_store(&context->is_gone, false);
	atomic_store(&device->contexts[place], context);
	if (place == atomic_load(&device->n_contexts))
		atomic_store(&device->n_contexts, place + 1);
	return context;
}

/* `handle` must be current: cuCtxGetDevice returns the device of the current context. */
static struct gpc_context *make_locked(CUcontext handle)
{
	CUdevice ordinal = 0;

	if (gpc_runtime.fns->cuCtxGetDevice(&ordinal) || !gpc_device_at(ordinal))
		return NULL;
	return add_locked(gpc_device_at(ordinal), handle, (uint64_t)(uintptr_t)handle);
}

void gpc_context_retire(struct gpc_context *context)
{
	gpc_lock_take(&gpc_runtime.lock);
	for (uint32_t i = 0; i < GPC_MAX_CONTEXTS; i++)
		if (atomic_load(&context->device->contexts[i]) == context)
			atomic_store(&context->device->contexts[i], NULL);
	context->grace = gpc_grace_begin();
	gpc_list_append(&objects.retired, &context->retired);
	gpc_lock_release(&gpc_runtime.lock);
}

struct gpc_context *gpc_context_get(CUcontext handle)
{
	struct gpc_context *context = gpc_context_find_own(handle);
	CUcontext current = NULL;
	bool is_new;

	if (context)
		return context;
	if (gpc_runtime.fns->cuCtxGetCurrent(&current) || current != handle)
		return NULL;
	handle = gpc_green_owner(handle);
	if (!handle)
		return NULL;
	gpc_lock_take(&gpc_runtime.lock);
	context = gpc_context_find_own(handle);
	is_new = !context;
	if (is_new)
		context = make_locked(handle);
	gpc_lock_release(&gpc_runtime.lock);
	if (is_new && context)
		gpc_observe_context(context, 1);
	return context;
}

struct gpc_context *gpc_context_current(void)
{
	static _Thread_local struct gpc_context *last;
	CUcontext handle = NULL;

	if (gpc_runtime.fns->cuCtxGetCurrent(&handle) || !handle)
		return NULL;
	if (!last || atomic_load_explicit(&last->is_gone, memory_order_acquire) ||
		last->handle != handle)
		last = gpc_context_get(handle);
	return last;
}

struct gpc_context *gpc_context_owner(struct gpc_device *device)
{
	struct gpc_context *owner = atomic_load_explicit(&device->owner, memory_order_acquire);

	if (owner)
		return owner;
	gpc_lock_take(&gpc_runtime.lock);
	owner = atomic_load(&device->owner);
	if (!owner) {
		owner = add_locked(device, NULL, GPUCACHE_NO_CONTEXT);
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
	return gpc_device_pools(device, pools) ? gpc_context_of(pools[0]) : NULL;
}

uint32_t gpc_contexts_count(const struct gpc_device *device)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < atomic_load(&device->n_contexts); i++) {
		const struct gpc_context *context = atomic_load(&device->contexts[i]);

		n += context && context->handle;
	}
	return n;
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

	(void)gpc_cuda_driver_note(&context->drv, result);
	if (!gpc_cuda_is_sticky(result) || result == CUDA_ERROR_ASSERT)
		return;
	for (uint32_t i = 0; i < GPC_MAX_CONTEXTS; i++) {
		struct gpc_context *each = atomic_load(&device->contexts[i]);

		if (each)
			(void)gpc_cuda_driver_note(&each->drv, result);
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
		sync.covered = gpc_pool_begin_sync(&context->pool);
	return sync;
}

void gpc_runtime_end_sync(struct gpc_sync sync, CUresult result)
{
	struct gpc_context *context = sync.context;

	if (!context)
		return;
	if (!result)
		gpc_pool_end_sync(&context->pool, sync.covered,
			context->drv.base.ops->now_ns(&context->drv.base));
	else
		hear(context, result);
}

/*
 * The call may have returned the error of another context, whose event it was given.  So the current context is asked
 * by cuMemGetInfo, which returns the error of the context's own earlier work.
 */
void gpc_runtime_answered(CUresult result)
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

		if (context && context->handle && !atomic_load(&context->is_gone) &&
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
