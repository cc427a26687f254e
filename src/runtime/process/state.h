/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The global state of the process: the configuration, the recording, each device with its contexts.
 *
 * Only src/runtime includes this file; the hooks of preload/ call the functions of src/runtime.
 *
 * Threads   State that changes after the start is atomic, or protected by gpc_runtime.lock (rank RUNTIME), unless
 *           noted.
 */
#ifndef GPC_RUNTIME_PROCESS_STATE_H
#define GPC_RUNTIME_PROCESS_STATE_H

#include <stdatomic.h>

#include "alloc/pool.h"
#include "config/config.h"
#include "driver/driver_cuda.h"
#include "model/counters.h"
#include "oom/neighbours.h"
#include "record/record.h"
#include "runtime/process/report_command.h"
#include "stack/capture.h"
#include "stack/sample.h"

struct gpc_runtime_loader;

#define GPC_MAX_DEVICES  GPUCACHE_MAX_DEVICES
#define GPC_ANY_SIZE     1
#define GPC_MAX_CONTEXTS GPUCACHE_MAX_CONTEXTS
#define GPC_MAX_CAPTURES 64

enum gpc_runtime_state {
	GPC_STATE_ARMED,
	GPC_STATE_STARTING,
	GPC_STATE_RUNNING,
	GPC_STATE_PASS,
};

struct gpc_device {
	struct gpc_budget budget;
	uint32_t ordinal;
	struct gpucache_device known; /* name, uuid, total, the last reading */
	/* Written under runtime.lock, read without it.  NULL: a place whose context has ended. */
	_Atomic(struct gpc_context *) contexts[GPC_MAX_CONTEXTS];
	_Atomic uint32_t n_contexts;
	_Atomic(struct gpc_context *) owner; /* one of `contexts`: see gpc_context_owner */
	_Atomic uint64_t next_look_ns;
	_Atomic uint64_t next_history_ns;
	_Atomic bool
		has_arenas; /* memory that no site holds, until a tensor in it is reported (tensors.c) */
	_Atomic bool is_peak_reset; /* gpucache_stats reports the recent peaks */
	CUcontext primary;
	struct gpc_lock primary_lock; /* see gpc_runtime_primary_begin */
	/* The last failure that the program has not recovered from; see failure.c. */
	uint64_t failed_size; /* 0: none; GPC_ANY_SIZE: any success is of interest */
	bool failed_on_host;  /* valid after failed_size was loaded with acquire */
	/* The last block that was sized by what was free (rescue/asked.h); under runtime.lock. */
	uint64_t taken_bytes;
	uint32_t taken_stack;
	_Atomic uint64_t n_refused_frees; /* see rescue/refused.h */
	_Atomic uint64_t row_padding;     /* in live memory of cudaMallocPitch */
	_Atomic uint32_t refused_free_stack;
};

struct gpc_context {
	struct gpc_pool pool;
	struct gpc_cuda_driver drv;
	struct gpc_device *device;
	CUcontext handle; /* NULL: the pseudo-context of the device, gpc_context_owner */
	uint32_t generation;
	bool is_retired;     /* its counters may be another context's now; under the pool's lock */
	uint32_t n_attached; /* cuCtxAttach less cuCtxDetach; under runtime.lock */
	_Atomic bool is_ending;      /* see gpc_runtime_begin_destroy */
	_Atomic uint64_t owed_bytes; /* the next free returns them: the driver has too little */
	/* Once it is in no device's list: in the list of those to be reused, and from when on (base/grace.h). */
	struct gpc_list retired;
	uint64_t grace;
	_Atomic bool
		is_gone; /* also while the object waits, and while it becomes another context (contexts.c) */
};

/* The context of one of the runtime's pools. */
static inline struct gpc_context *gpc_context_of(const struct gpc_pool *pool)
{
	return gpc_list_entry(pool, struct gpc_context, pool);
}

struct gpc_runtime {
	_Atomic int state; /* enum gpc_runtime_state */
	bool saw_start;    /* see gpc_runtime_saw_start */
	/* During the start, calls of other threads passed to the driver; they may have used new streams. */
	atomic_bool has_missed;
	const struct gpc_runtime_loader *loader;
	const struct gpc_cuda_fns *fns;
	struct gpc_config config;
	struct gpc_heap heap;
	struct gpc_record record;
	struct gpc_stacks stacks;
	bool has_stacks;
	bool is_eager;        /* CUDA_MODULE_LOADING=EAGER */
	bool torch_rounds_up; /* roundup_power2_divisions for PyTorch */
	char report_command[GPC_REPORT_COMMAND_SIZE];

	/* Lock: lock (rank RUNTIME). */
	struct gpc_device devices[GPC_MAX_DEVICES];
	uint32_t n_devices;
	_Atomic uint32_t n_ending; /* contexts inside gpc_runtime_begin_destroy and _end_destroy */
	bool is_per_thread_used;
	bool is_overlap_used; /* gpc_runtime_overlap_used */
	bool is_green_used;   /* a green context was created: NULL may mean several streams */
	CUstream capturing[GPC_MAX_CAPTURES];                     /* NULL: a free entry */
	const struct gpc_context *capturing_in[GPC_MAX_CAPTURES]; /* current at its begin */
	uint32_t n_unlisted_captures;
	struct gpc_nvml nvml;
	bool nvml_was_tried;
	struct gpc_lock lock;
};

extern struct gpc_runtime gpc_runtime;

/* The device with this number; NULL: there is none. */
static inline struct gpc_device *gpc_device_at(int number)
{
	return number >= 0 && (uint32_t)number < gpc_runtime.n_devices
		       ? &gpc_runtime.devices[number]
		       : NULL;
}

/* The sum of one counter over all contexts of a device: GPC_DEVICE_SUM(device, live_bytes). */
static inline uint64_t gpc_device_sum(const struct gpc_device *device, size_t counter_offset)
{
	uint32_t n = atomic_load_explicit(&device->n_contexts, memory_order_acquire);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct gpc_context *context = device->contexts[i];
		const char *counters = context ? (const char *)context->pool.counters : NULL;

		if (counters)
			sum += gpc_counter_get(
				(const uint64_t *)(const void *)(counters + counter_offset));
	}
	return sum;
}

#define GPC_DEVICE_SUM(device, counter) \
	gpc_device_sum((device), offsetof(struct gpucache_counters, counter))

static inline bool gpc_green_is_used(void)
{
	return __atomic_load_n(&gpc_runtime.is_green_used, __ATOMIC_ACQUIRE);
}

#endif
