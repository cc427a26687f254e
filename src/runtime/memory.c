/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain device memory: finds the pool of the current context, or of an address, and calls it.  If the pool is out of
 * memory, the ladder runs.
 */
#include "runtime/memory.h"

#include "alloc/pool_hit.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "model/counters.h"
#include "runtime/context/contexts.h"
#include "runtime/context/streams.h"
#include "runtime/export/ipc.h"
#include "runtime/ledger/arrays.h"
#include "runtime/ledger/observe.h"
#include "runtime/ledger/observe_hot.h"
#include "runtime/ledger/tensors.h"
#include "runtime/ledger/track.h"
#include "runtime/process/callers.h"
#include "runtime/process/stacks.h"
#include "runtime/process/state.h"
#include "runtime/rescue/asked.h"
#include "runtime/rescue/rescue.h"
#include "runtime/rescue/spill.h"

/* True if the pool cannot serve the request, and the driver is to serve it. */
static bool is_for_driver(enum gpc_status st)
{
	return st != GPC_OK && gpc_status_to_device(st) == 0 && st != GPC_LIMIT;
}

static CUresult to_result(enum gpc_status st)
{
	if (st == GPC_LIMIT)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return (CUresult)gpc_status_to_device(st);
}

static enum gpc_status retry(struct gpc_rescue *rescue)
{
	return gpc_pool_retry(&rescue->context->pool, &rescue->request, rescue->arg);
}

static __attribute__((noinline)) enum gpc_status rescue(struct gpc_context *context,
	const struct gpc_request *request, enum gpc_status st, gpc_devptr *ret_address)
{
	struct gpc_rescue rescue = {
		.context = context,
		.kind = GPUCACHE_KIND_DEVICE,
		.size = request->size,
		.rounded = gpc_pool_rounded(&context->pool, request),
		.request = *request,
		.attempt = retry,
		.arg = ret_address,
	};

	st = gpc_rescue_run(&rescue, st);
	if (!st && rescue.spilled)
		*ret_address = rescue.spilled;
	return st;
}

static enum gpc_status alloc_or_rescue(
	struct gpc_context *context, const struct gpc_request *request, gpc_devptr *ret_address)
{
	enum gpc_status st = gpc_pool_alloc(&context->pool, request, ret_address);

	if (st == GPC_DEVICE_NO_MEMORY || st == GPC_LIMIT)
		st = rescue(context, request, st, ret_address);
	return st;
}

static CUresult make_plain(struct gpc_passed_call *call)
{
	CUdeviceptr ptr = 0;
	CUresult result = gpc_runtime.fns->cuMemAlloc_v2(&ptr, call->size);

	call->ret_address = ptr;
	call->ret_size = call->size;
	return result;
}

/* A tracked allocation of the driver: the cache is off, or the pool cannot serve the request. */
static CUresult malloc_plain(CUdeviceptr *ret_ptr, size_t size)
{
	struct gpc_passed_call call = {
		.make = make_plain, .kind = GPUCACHE_KIND_DEVICE, .size = size
	};
	CUresult result = gpc_runtime_passed_malloc(&call);

	if (!result) {
		*ret_ptr = call.ret_address;
		gpc_tensors_note_malloc(call.ret_address, size);
	}
	return result;
}

void gpc_memory_mark_arena(uint64_t address)
{
	struct gpc_pool *pool;

	if (gpc_runtime.config.tensors == GPC_TENSORS_OFF)
		return;
	pool = gpc_heap_find_pool(&gpc_runtime.heap, address);
	if (!pool || gpc_pool_lend(pool, address))
		gpc_runtime_mark_arena(GPUCACHE_KIND_DEVICE, address);
}

/*
 * Reads the device's free memory.  The driver loads modules lazily, and a launch fails if it finds no memory for that.
 * So idle segments go back to the driver if less than the option `reserve` is free.  The next free returns them,
 * because a free may wait for the device and an allocation should not.  Also looks for new callers, for stacks:off.
 */
static void after_growth(struct gpc_context *context)
{
	uint64_t reserve = gpc_runtime.config.reserve;
	uint64_t available;
	uint64_t total;

	gpc_observe_device(context, false);
	gpc_callers_look();
	gpc_lock_take(&gpc_runtime.lock);
	available = context->device->known.free_bytes;
	total = context->device->known.total_bytes;
	gpc_lock_release(&gpc_runtime.lock);
	if (available < reserve && reserve <= total / 8)
		atomic_store_explicit(
			&context->owed_bytes, reserve - available, memory_order_relaxed);
}

/* Returns idle memory to the driver if after_growth asked for that.  If less is idle now, the next growth asks again. */
static void return_owed(struct gpc_context *context)
{
	if (__builtin_expect(
		    atomic_load_explicit(&context->owed_bytes, memory_order_relaxed) > 0, 0))
		(void)gpc_pool_trim(&context->pool, atomic_exchange(&context->owed_bytes, 0), true);
}

static void say_off_grid_once(const struct gpc_context *context)
{
	static atomic_bool was_said;

	if (!atomic_exchange(&was_said, true))
		gpc_log("GPU %u: no cache, because the driver places memory at addresses that are "
			"not multiples of 2 MiB, or above 2^48; every request goes to the driver",
			context->device->ordinal);
}

/* A number that overflowed, as a rule: no device has so much, and our arithmetic has no room for it. */
static __attribute__((noinline)) CUresult malloc_impossible(CUdeviceptr *ret_ptr, size_t size)
{
	CUresult result = gpc_runtime.fns->cuMemAlloc_v2(ret_ptr, size);

	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		gpc_rescue_refused(
			gpc_context_current(), GPUCACHE_KIND_DEVICE, size, GPC_DEVICE_NO_MEMORY);
	return result;
}

/* What the pools of the runtime call for blocks: a constant, so that a hit calls it directly. */
static const struct gpc_observer observer = {
	.block_changed = gpc_observe_block_changed,
	.taken = gpc_observe_taken,
	.freed = gpc_observe_freed,
};

static inline void succeed(
	struct gpc_context *context, CUdeviceptr *ret_ptr, gpc_devptr address, size_t size)
{
	gpc_rescue_succeeded(context->device, GPUCACHE_KIND_DEVICE, size);
	gpc_tensors_note_malloc(address, size);
	*ret_ptr = address;
}

/* A request that no parked block serves. */
static __attribute__((noinline)) CUresult malloc_missed(
	struct gpc_context *context, const struct gpc_request *request, CUdeviceptr *ret_ptr)
{
	uint64_t n_driver_malloc = gpc_counter_get(&context->pool.counters->n_driver_malloc);
	gpc_devptr address = 0;
	enum gpc_status st = alloc_or_rescue(context, request, &address);

	if (st == GPC_UNSUPPORTED)
		say_off_grid_once(context);
	if (is_for_driver(st))
		return malloc_plain(ret_ptr, request->size);
	if (st)
		return to_result(st);
	if (gpc_counter_get(&context->pool.counters->n_driver_malloc) != n_driver_malloc) {
		after_growth(context);
		if (!request->is_exact)
			gpc_asked_took(context->device, request->size, (uint32_t)request->mark);
	}
	gpc_spill_served();
	succeed(context, ret_ptr, address, request->size);
	return CUDA_SUCCESS;
}

/* `stream` as in alloc/stream_order.h; 0: the program named no stream. */
static inline CUresult malloc_in_order(CUdeviceptr *ret_ptr, size_t size, gpc_stream stream)
{
	struct gpc_context *context;
	struct gpc_request request;
	struct gpc_request missed;
	gpc_devptr address;
	int sticky;

	/* The driver returns the error for wrong arguments. */
	if (!ret_ptr || size == 0)
		return gpc_runtime.fns->cuMemAlloc_v2(ret_ptr, size);
	if (size > GPC_SIZE_MAX)
		return malloc_impossible(ret_ptr, size);
	context = gpc_runtime.config.cache != GPC_CACHE_OFF ? gpc_context_current() : NULL;
	if (!context)
		return malloc_plain(ret_ptr, size);
	sticky = atomic_load_explicit(&context->drv.sticky, memory_order_relaxed);
	if (sticky)
		return (CUresult)sticky;
	request = (struct gpc_request){
		.size = size,
		.now_ns = gpc_clock_ns(),
		.mark = gpc_runtime_stack_of(size),
		.thread = gpc_thread_id(),
		.stream = stream,
	};
	request.is_exact = !stream && gpc_caller_has_cache(size, request.mark);
	if (!stream && !request.is_exact &&
		gpc_pool_hit(&context->pool, &request, &observer, &address)) {
		succeed(context, ret_ptr, address, size);
		return CUDA_SUCCESS;
	}
	missed = request; /* so that a hit keeps its request in registers */
	return malloc_missed(context, &missed, ret_ptr);
}

CUresult gpc_runtime_malloc(CUdeviceptr *ret_ptr, size_t size)
{
	return malloc_in_order(ret_ptr, size, 0);
}

gpc_stream gpc_runtime_order_of(CUstream stream)
{
	if (stream == CU_STREAM_PER_THREAD)
		return 0;
	if (gpc_green_is_used() && (stream == NULL || stream == CU_STREAM_LEGACY))
		return 0;
	if (stream != NULL)
		return (gpc_stream)(uintptr_t)stream;
	return __atomic_load_n(&gpc_runtime_per_thread_seen, __ATOMIC_ACQUIRE) ? 0
									       : GPC_ORDERED_LEGACY;
}

CUresult gpc_runtime_malloc_on(CUdeviceptr *ret_ptr, size_t size, CUstream stream)
{
	gpc_streams_name(stream);
	return malloc_in_order(ret_ptr, size, gpc_runtime_order_of(stream));
}

/*
 * Waits for the device as the driver's cudaFree does, unless that wait would invalidate a capture, or keep one from
 * beginning that has been announced: then the block stays pending.
 */
static CUresult sync_for_free(struct gpc_pool *pool)
{
	struct gpc_captures *captures = &gpc_runtime.heap.captures;
	struct gpc_pool_sync sync;
	enum gpc_status st;

	if (gpc_captures_is_near(captures))
		return CUDA_SUCCESS;
	sync = gpc_pool_begin_sync(pool);
	if (!gpc_captures_try_hold(captures))
		return CUDA_SUCCESS;
	st = pool->drv->ops->context_sync(pool->drv);
	gpc_captures_release(captures);
	if (!st)
		gpc_pool_end_sync(pool, sync, pool->drv->ops->now_ns(pool->drv));
	return (CUresult)gpc_status_to_device(st);
}

/*
 * Of a context that we know, that is its sticky error.  A context that we do not know is asked by cuMemGetInfo, because
 * cheaper calls succeed even for a destroyed context.
 */
static __attribute__((noinline)) CUresult judge_other(CUcontext current)
{
	const struct gpc_context *context = gpc_context_find(current);
	size_t available;
	size_t total;

	if (!context)
		return gpc_runtime.fns->cuMemGetInfo_v2(&available, &total);
	return (CUresult)atomic_load_explicit(&context->drv.sticky, memory_order_relaxed);
}

/*
 * Returns the error that the driver would return before it looks at the pointer: the driver is shut down, the current
 * context is destroyed, or a fault broke the device.  Without a current context, the memory's own context counts.
 */
static inline CUresult judge_caller(const struct gpc_context *owner)
{
	CUcontext current = NULL;
	CUresult result = gpc_runtime.fns->cuCtxGetCurrent(&current);

	if (__builtin_expect(result != CUDA_SUCCESS, 0))
		return result;
	if (__builtin_expect(current && current != owner->handle, 0))
		return judge_other(current);
	return (CUresult)atomic_load_explicit(&owner->drv.sticky, memory_order_relaxed);
}

/* False: cudaFree returns at once, because the device keeps the order (alloc/barrier.h), or free_order is `fence`. */
static bool must_wait(struct gpc_pool *pool)
{
	if (gpc_runtime.config.free_order == GPC_FREE_ORDER_DEVICE)
		return !gpc_pool_keeps_order(pool);
	return gpc_runtime.config.free_order == GPC_FREE_ORDER_HOST;
}

/* The driver has ended before the program's last destructors: what these free is no leak. */
static __attribute__((noinline)) CUresult refuse_free(
	struct gpc_pool *pool, CUdeviceptr ptr, CUresult result)
{
	struct gpc_request request = {
		.now_ns = gpc_clock_ns(), .thread = gpc_thread_id(), .is_async = true
	}; /* waits for nothing */

	if (result == CUDA_ERROR_DEINITIALIZED)
		(void)!gpc_pool_free(pool, ptr, &request);
	return result;
}

GPC_HOT CUresult free_in_order(CUdeviceptr ptr, gpc_stream stream, bool is_async, bool *ret_is_ours)
{
	struct gpc_pool *pool = gpc_heap_find_pool(&gpc_runtime.heap, ptr);
	struct gpc_request request;
	CUresult result;
	enum gpc_status st;

	*ret_is_ours = pool != NULL;
	if (!pool)
		return CUDA_SUCCESS;
	result = judge_caller(gpc_context_of(pool));
	if (__builtin_expect(!result && !is_async && must_wait(pool), 0))
		result = sync_for_free(pool);
	if (__builtin_expect(result != CUDA_SUCCESS, 0))
		return refuse_free(pool, ptr, result);
	if (atomic_load_explicit(&gpc_runtime.heap.watches_frees, memory_order_relaxed)) {
		gpc_ipc_withdraw(ptr);
		gpc_arrays_piece_end(ptr);
	}
	request = (struct gpc_request){
		.now_ns = gpc_clock_ns(),
		.thread = gpc_thread_id(),
		.stream = stream,
		.is_async = is_async,
	};
	st = gpc_pool_free_as(pool, ptr, &request, &observer);
	if (!is_async)
		return_owed(gpc_context_of(pool));
	if (st == GPC_NOT_FOUND) /* another thread ended the context meanwhile */
		*ret_is_ours = false;
	return st == GPC_INVALID ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

bool gpc_runtime_is_of_parent(CUdeviceptr ptr)
{
	return gpc_process_is_child() && gpc_heap_find_pool(&gpc_runtime.heap, ptr) != NULL;
}

CUresult gpc_runtime_free(CUdeviceptr ptr, bool *ret_is_ours)
{
	return free_in_order(ptr, 0, false, ret_is_ours);
}

static __attribute__((noinline)) CUresult free_on(
	CUdeviceptr ptr, gpc_stream stream, bool *ret_is_ours)
{
	return free_in_order(ptr, stream, true, ret_is_ours);
}

/* A default stream is that of the current context, so without a current context it is an error. */
CUresult gpc_runtime_free_async(CUdeviceptr ptr, CUstream stream, bool *ret_is_ours)
{
	bool is_default = !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
	CUcontext current = NULL;

	gpc_streams_name(stream);
	*ret_is_ours = is_default && !gpc_runtime.fns->cuCtxGetCurrent(&current) && !current;
	return *ret_is_ours ? CUDA_ERROR_INVALID_CONTEXT
			    : free_on(ptr, gpc_runtime_order_of(stream), ret_is_ours);
}

CUresult gpc_runtime_free_on(CUdeviceptr ptr, CUstream stream, bool *ret_is_ours)
{
	gpc_streams_name(stream);
	return free_on(ptr, gpc_runtime_order_of(stream), ret_is_ours);
}

CUresult gpc_runtime_record_use(CUdeviceptr ptr, bool *ret_is_ours)
{
	struct gpc_pool *pool = gpc_heap_find_pool(&gpc_runtime.heap, ptr);
	enum gpc_status st = pool ? gpc_pool_record_use(pool, ptr) : GPC_NOT_FOUND;

	*ret_is_ours = st != GPC_NOT_FOUND;
	return st == GPC_INVALID ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static uint64_t returnable_bytes(const struct gpc_device *device)
{
	struct gpc_pool *pools[GPC_MAX_CONTEXTS];
	uint32_t n = gpc_device_pools(device, pools);
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += gpc_pool_returnable(pools[i]);
	return bytes;
}

void gpc_runtime_adjust_free(size_t *available, size_t *total)
{
	struct gpc_context *context = gpc_context_current();
	const struct gpc_budget *budget;
	uint64_t limit;
	uint64_t whole;
	uint64_t returnable;
	uint64_t left;

	if (!context)
		return;
	budget = &context->device->budget;
	limit = atomic_load(&budget->limit_bytes);
	whole = total ? *total : budget->device_bytes;
	whole = limit && limit < whole ? limit : whole;
	if (total)
		*total = whole;
	if (!available)
		return;
	/*
	 * A program may request all that is free at once.  So only what the ladder could return for one request counts:
	 * whole idle segments, but no free blocks of a segment with live blocks.
	 */
	returnable = returnable_bytes(context->device);
	*available += returnable;
	if (whole)
		*available = gpc_smaller(*available, whole);
	if (!limit)
		return;
	/* Segments are charged to the limit in multiples of GPC_SEGMENT_ALIGN. */
	left = gpc_bytes_less(gpc_bytes_add(limit, returnable), atomic_load(&budget->used_bytes));
	left -= left % GPC_SEGMENT_ALIGN;
	*available = gpc_smaller(*available, left);
}
