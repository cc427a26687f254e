/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of gpucache.h; preload/api.c exports them. */
#include "runtime/process/api.h"

#include <assert.h>
#include <string.h>

#include "base/thread.h"
#include "model/counters.h"
#include "model/held.h"
#include "record/store.h"
#include "runtime/context/contexts.h"
#include "runtime/ledger/observe.h"
#include "runtime/memory.h"
#include "runtime/process/state.h"
#include "runtime/process/tags.h"

/* Lock: runtime.lock. */
static struct {
	gpucache_oom_handler call;
	void *arg;
} handler;

/* The device with this number, or, for -1, the current context's; NULL and *ret_error if there is none. */
static struct gpc_device *device_of(int number, CUresult *ret_error)
{
	struct gpc_device *device = gpc_device_at(number);
	const struct gpc_context *context;

	if (device)
		return device;
	*ret_error = CUDA_ERROR_INVALID_DEVICE;
	if (number != -1)
		return NULL;
	context = gpc_context_current();
	*ret_error = CUDA_ERROR_INVALID_CONTEXT;
	return context ? context->device : NULL;
}

static uint64_t trim_device(const struct gpc_device *device, uint64_t bytes)
{
	struct gpc_pool *pools[GPC_MAX_CONTEXTS];
	uint32_t n = gpc_device_pools(device, pools);
	uint64_t went = 0;

	for (uint32_t i = 0; i < n && went < bytes; i++) {
		(void)gpc_pool_reap(pools[i]);
		went += gpc_pool_trim(pools[i], bytes - went, true);
	}
	return went;
}

CUresult gpc_runtime_trim(int number, size_t bytes, size_t *ret_bytes)
{
	CUresult error;
	const struct gpc_device *device = device_of(number, &error);

	if (!device)
		return error;
	*ret_bytes = (size_t)trim_device(device, bytes);
	return CUDA_SUCCESS;
}

#define NONE(name)                                    +0
#define STATS(name)                                   +1
#define COUNTER(name, when, adds, counts, key, stats) stats(name)
static_assert((2
#include "model/counters.def"
		      ) * sizeof(uint64_t) ==
		      sizeof(struct gpucache_stats),
	"size, limit_bytes and the counters that counters.def names");
#undef STATS
#undef NONE

/* The peaks since gpucache_reset_peaks, each summed over the contexts of the device. */
static struct gpc_pool_peaks recent_peaks(const struct gpc_device *device)
{
	struct gpc_pool *pools[GPC_MAX_CONTEXTS];
	uint32_t n = gpc_device_pools(device, pools);
	struct gpc_pool_peaks sum = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		sum.requested_bytes += gpc_counter_get(&pools[i]->recent.requested_bytes);
		sum.live_bytes += gpc_counter_get(&pools[i]->recent.live_bytes);
		sum.reserved_bytes += gpc_counter_get(&pools[i]->recent.reserved_bytes);
	}
	return sum;
}

CUresult gpc_runtime_reset_peaks(int number)
{
	struct gpc_pool *pools[GPC_MAX_CONTEXTS];
	CUresult error;
	struct gpc_device *device = device_of(number, &error);
	uint32_t n;

	if (!device)
		return error;
	n = gpc_device_pools(device, pools);
	for (uint32_t i = 0; i < n; i++)
		gpc_pool_reset_peaks(pools[i]);
	atomic_store(&device->is_peak_reset, true);
	return CUDA_SUCCESS;
}

#define PART_MIN_SIZE sizeof(struct gpucache_part_stats)

static void give_part(struct gpucache_part_stats *ret_stats, uint64_t bytes, uint64_t n_blocks)
{
	ret_stats->size = PART_MIN_SIZE;
	ret_stats->live_bytes = bytes;
	ret_stats->n_blocks = n_blocks;
}

CUresult gpc_runtime_stream_stats(
	int number, CUstream stream, struct gpucache_part_stats *ret_stats)
{
	struct gpc_pool *pools[GPC_MAX_CONTEXTS];
	gpc_stream order = gpc_runtime_order_of(stream);
	CUresult error;
	const struct gpc_device *device = device_of(number, &error);
	uint64_t bytes = 0, n_blocks = 0;
	uint32_t n;

	if (!device)
		return error;
	if (ret_stats->size < PART_MIN_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	n = gpc_device_pools(device, pools);
	for (uint32_t i = 0; i < n && order; i++)
		gpc_pool_count_stream(pools[i], order, &bytes, &n_blocks);
	give_part(ret_stats, bytes, n_blocks);
	return CUDA_SUCCESS;
}

CUresult gpc_runtime_tag_stats(int number, const char *name, struct gpucache_part_stats *ret_stats)
{
	const struct gpc_record *rec = &gpc_runtime.record;
	CUresult error;
	const struct gpc_device *device = device_of(number, &error);
	uint64_t bytes = 0, n_blocks = 0;
	struct gpucache_block block;

	if (!device)
		return error;
	if (ret_stats->size < PART_MIN_SIZE || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	if (rec->n_blocks == 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (uint32_t i = 0; i < gpc_record_block_end(rec); i++) {
		if (!gpc_held_read(&rec->blocks[i], device->ordinal, &block) ||
			!gpc_runtime_is_tagged(block.tag, name))
			continue;
		bytes += block.requested;
		n_blocks++;
	}
	give_part(ret_stats, bytes, n_blocks);
	return CUDA_SUCCESS;
}

/* The size of the first version of the struct: a program built with any version passes at least this. */
#define STATS_MIN_SIZE (offsetof(struct gpucache_stats, n_rescued) + sizeof(uint64_t))

static struct gpucache_counters counters_of(const struct gpc_device *device)
{
	uint32_t n = atomic_load_explicit(&device->n_contexts, memory_order_acquire);
	struct gpucache_counters sum = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		const struct gpc_context *context = device->contexts[i];
		const struct gpucache_counters *counters = context ? context->pool.counters : NULL;

		if (counters)
			gpc_counters_add(&sum, counters);
	}
	return sum;
}

CUresult gpc_runtime_stats(int number, struct gpucache_stats *ret_stats)
{
	CUresult error;
	const struct gpc_device *device = device_of(number, &error);
	size_t size = ret_stats->size;
	struct gpucache_counters sum;
	struct gpucache_stats stats;

	if (!device)
		return error;
	if (size < STATS_MIN_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > sizeof stats)
		size = sizeof stats;
	sum = counters_of(device);
	stats = (struct gpucache_stats){
		.size = size,
		.limit_bytes = atomic_load(&device->budget.limit_bytes),
#define NONE(name)
#define STATS(name)                                   .name = sum.name,
#define COUNTER(name, when, adds, counts, key, stats) stats(name)
#include "model/counters.def"
#undef STATS
#undef NONE
	};
	if (atomic_load(&device->is_peak_reset)) {
		struct gpc_pool_peaks peaks = recent_peaks(device);

		stats.peak_requested_bytes = peaks.requested_bytes;
		stats.peak_live_bytes = peaks.live_bytes;
		stats.peak_reserved_bytes = peaks.reserved_bytes;
	}
	memcpy(ret_stats, &stats, size);
	return CUDA_SUCCESS;
}

CUresult gpc_runtime_snapshot(char *ret_path, size_t size)
{
	size_t length = strlen(gpc_runtime.record.path) + 1;

	if (ret_path && size < length)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t d = 0; d < gpc_runtime.n_devices; d++) {
		struct gpc_pool *pools[GPC_MAX_CONTEXTS];

		if (gpc_device_pools(&gpc_runtime.devices[d], pools) > 0)
			gpc_observe_now(gpc_context_of(pools[0]));
	}
	if (ret_path)
		memcpy(ret_path, gpc_runtime.record.path, length);
	return CUDA_SUCCESS;
}

static void set_limit(struct gpc_device *device, uint64_t bytes)
{
	uint64_t used;

	atomic_store(&device->budget.limit_bytes, bytes);
	used = atomic_load(&device->budget.used_bytes);
	if (bytes > 0 && used > bytes)
		(void)trim_device(device, used - bytes);
}

CUresult gpc_runtime_set_limit(int number, uint64_t bytes)
{
	CUresult error;
	struct gpc_device *device = device_of(number, &error);

	if (!device)
		return error;
	set_limit(device, bytes);
	return CUDA_SUCCESS;
}

CUresult gpc_runtime_set_fraction(int number, double fraction)
{
	CUresult error;
	struct gpc_device *device = device_of(number, &error);

	if (!device)
		return error;
	/* The negation refuses a NaN as well: both comparisons are false for it. */
	if (!(fraction >= 0.0 && fraction <= 1.0))
		return CUDA_ERROR_INVALID_VALUE;
	/* 1.0 means no limit.  The + 1 is for small fractions: a limit of 0 bytes would mean no limit, too. */
	if (fraction == 1.0)
		set_limit(device, 0);
	else
		set_limit(device, (uint64_t)((double)device->budget.device_bytes * fraction) + 1);
	return CUDA_SUCCESS;
}

void gpc_runtime_set_oom_handler(gpucache_oom_handler call, void *arg)
{
	gpc_lock_take(&gpc_runtime.lock);
	handler.call = call;
	handler.arg = arg;
	gpc_lock_release(&gpc_runtime.lock);
}

bool gpc_runtime_ask_handler(const struct gpc_device *device, uint64_t wanted, bool *ret_did_free)
{
	static _Thread_local bool is_asking;
	struct gpc_stay *stay;
	gpucache_oom_handler call;
	void *arg;

	gpc_lock_take(&gpc_runtime.lock);
	call = handler.call;
	arg = handler.arg;
	gpc_lock_release(&gpc_runtime.lock);
	if (!call || is_asking)
		return false;
	is_asking = true;
	stay = gpc_thread_step_out();
	*ret_did_free = call(arg, (size_t)wanted, (int)device->ordinal) != 0;
	gpc_thread_step_in(stay);
	is_asking = false;
	return true;
}

CUresult gpc_runtime_segment_of(CUdeviceptr ptr, CUdeviceptr *ret_base, size_t *ret_size)
{
	struct gpc_pool *pool = gpc_heap_find_pool(&gpc_runtime.heap, ptr);
	gpc_devptr base;
	uint64_t bytes;

	if (!pool || gpc_pool_segment_of(pool, ptr, &base, &bytes))
		return CUDA_ERROR_NOT_FOUND;
	*ret_base = base;
	*ret_size = (size_t)bytes;
	return CUDA_SUCCESS;
}

CUresult gpc_runtime_enter_device(int number, bool *ret_must_pop)
{
	const struct gpc_context *context = gpc_context_current();
	CUresult error;
	CUcontext primary;

	if (!gpc_device_at(number))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_must_pop = false;
	if (context && context->device->ordinal == (uint32_t)number)
		return CUDA_SUCCESS;
	gpc_lock_take(&gpc_runtime.lock);
	primary = gpc_runtime.devices[number].primary;
	gpc_lock_release(&gpc_runtime.lock);
	if (!primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	error = gpc_runtime.fns->cuCtxPushCurrent_v2(primary);
	*ret_must_pop = !error;
	return error;
}

void gpc_runtime_leave_device(bool must_pop)
{
	CUcontext popped;

	if (must_pop)
		(void)gpc_runtime.fns->cuCtxPopCurrent_v2(&popped);
}
