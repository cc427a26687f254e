/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of src/runtime share: the one object.  Nobody else includes this. */
#ifndef GPC_RUNTIME_INTERNAL_H
#define GPC_RUNTIME_INTERNAL_H

#include <stdatomic.h>

#include "alloc/pool.h"
#include "config/config.h"
#include "driver/driver_cuda.h"
#include "oom/neighbours.h"
#include "record/record.h"
#include "runtime/runtime.h"
#include "stack/capture.h"
#include "stack/sample.h"
#include "stats/counters.h"
#include "stats/growth.h"

#define GPC_MAX_DEVICES  GPC_RECORD_MAX_DEVICES
#define GPC_MAX_CONTEXTS GPC_RECORD_MAX_CONTEXTS
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
	struct gpucache_device known; /* name, uuid, total, the last look */
	/*
	 * Written under runtime.lock, read by anybody.  The contexts of this device; the place
	 * of one that is gone is taken by another.
	 */
	_Atomic(struct gpc_context *) contexts[GPC_MAX_CONTEXTS];
	_Atomic uint32_t n_contexts;
	_Atomic(struct gpc_context *) owner; /* one of them; gpc_context_owner */
	_Atomic uint64_t next_look_ns;
	_Atomic uint64_t next_history_ns;
	struct gpc_growth growth;
	CUcontext primary;
	struct gpc_lock primary_lock; /* see gpc_runtime_primary_begin */
	/* The last failure that nobody recovered from yet; see rescue.c. */
	uint64_t failed_number;
	uint64_t failed_size;
	bool failed_on_host; /* stored before the size */
};

struct gpc_context {
	struct gpc_pool pool;
	struct gpc_cuda_driver drv;
	struct gpc_device *device;
	CUcontext handle; /* NULL: it stands for the device, gpc_context_owner */
	uint32_t generation;
	bool is_retired;     /* under the pool's lock: its counters are another's, or nobody's */
	uint32_t n_attached; /* cuCtxAttach less cuCtxDetach; under runtime.lock */
	_Atomic bool is_gone;
	_Atomic uint64_t
		owed_bytes; /* to be returned in the next free, so that the reserve is there */
};

struct gpc_runtime {
	_Atomic int state; /* enum gpc_runtime_state */
	bool saw_start;
	/* calls passed while another thread started us: not every stream was seen */
	atomic_bool has_missed;
	const struct gpc_runtime_loader *loader;
	const struct gpc_cuda_fns *fns;
	struct gpc_config config;
	struct gpc_heap heap;
	struct gpc_record record;
	struct gpc_stacks stacks;
	bool has_stacks;

	/* Lock: lock (rank RUNTIME). */
	struct gpc_device devices[GPC_MAX_DEVICES];
	uint32_t n_devices;
	bool is_per_thread_used;
	bool is_overlap_used; /* gpc_runtime_overlap_used */
	bool is_green_used;   /* there was a green context: NULL names many streams */
	/* never NULL: which stream that is depends on the caller */
	CUstream capturing[GPC_MAX_CAPTURES];
	const struct gpc_context *capturing_in[GPC_MAX_CAPTURES]; /* which was current then */
	uint32_t n_unlisted_captures;
	struct gpc_nvml nvml;
	bool nvml_was_tried;
	struct gpc_lock lock;
};

extern struct gpc_runtime gpc_runtime;

/*
 * contexts.c: the context with this handle, made at first sight; NULL: unknown to the driver,
 * or too many.
 */
struct gpc_context *gpc_context_get(CUcontext handle);

/* As gpc_context_get, for one that need not be current. */
struct gpc_context *gpc_context_visit(CUcontext handle);

/* A context that is known already, whether it is current or not; NULL: not known, or gone. */
struct gpc_context *gpc_context_find(CUcontext handle);

/* The context that is current, NULL: none, or none of ours. */
struct gpc_context *gpc_context_current(void);

/*
 * Whose books hold what the driver gives to a device and to no context: it outlives them all.  It
 * has counters, and neither segments nor a driver.  NULL: no metadata.
 */
struct gpc_context *gpc_context_owner(struct gpc_device *device);

/* A context to ask about this device: the current one, or any that lives; NULL: none. */
struct gpc_context *gpc_context_on(struct gpc_device *device);

/*
 * Waits until whoever ends the device's primary context has done so and it is forgotten: meanwhile
 * the driver gives its addresses to others, and they are still in our maps.
 */
void gpc_context_await_end(struct gpc_device *device);

/* The sum of one counter over all contexts of a device: GPC_DEVICE_SUM(device, live_bytes). */
static inline uint64_t gpc_device_sum(const struct gpc_device *device, size_t counter_offset)
{
	uint32_t n = atomic_load_explicit(&device->n_contexts, memory_order_acquire);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct gpc_context *context = device->contexts[i];
		const char *counters = context ? (const char *)context->pool.counters : NULL;

		/* NULL: it moves to another place. */
		if (counters)
			sum += gpc_counter_get(
				(const uint64_t *)(const void *)(counters + counter_offset));
	}
	return sum;
}

#define GPC_DEVICE_SUM(device, counter) \
	gpc_device_sum((device), offsetof(struct gpucache_counters, counter))

/*
 * green.c: whose memory a context has that is current: its own handle, or the primary context's
 * where it is a green one.  NULL: nobody can say.
 */
CUcontext gpc_green_owner(CUcontext handle);

/* The primary context of a green one that is known already; NULL: not known, or not green. */
CUcontext gpc_green_find(CUcontext handle);

static inline bool gpc_green_is_used(void)
{
	return __atomic_load_n(&gpc_runtime.is_green_used, __ATOMIC_ACQUIRE);
}

/*
 * reach.c: what was reused without a fence in this context is done; from now on every free waits
 * for one.  The first reason is kept in the recording.
 */
void gpc_reach_end_one_stream(struct gpc_context *owner, enum gpucache_one_stream_end why);

/* The same for later work of this context only: where it can, the device waits, and the host does not. */
void gpc_reach_order_one_stream(struct gpc_context *owner, enum gpucache_one_stream_end why);

/* The reason alone, where the caller ends the rule itself.  Lock: the pool's. */
static inline void gpc_reach_note_end_locked(
	struct gpc_pool *pool, enum gpucache_one_stream_end why)
{
	if (gpc_counter_get(&pool->counters->one_stream_end) == GPUCACHE_ONE_STREAM_HOLDS)
		gpc_counter_set(&pool->counters->one_stream_end, why);
}

/* reach.c: the context that this stream belongs to. */
struct gpc_context *gpc_context_of_stream(CUstream stream);

/* observe.c: the observer of the heap, and what it shares with track.c. */
extern const struct gpc_observer gpc_runtime_observer;
void gpc_observe_malloc(struct gpc_context *context, enum gpucache_kind kind, uint64_t address,
	uint64_t size, const struct gpc_request *request, struct gpc_share share);
void gpc_observe_free(struct gpc_context *context, enum gpucache_kind kind, uint64_t address,
	uint64_t size, uint64_t requested, uint32_t stack, uint64_t now_ns, struct gpc_share share);
/* A piece of an arena: it has a block number, and belongs to no context. */
struct gpc_observed {
	struct gpc_device *device;
	enum gpucache_kind kind;
	uint32_t number;
	uint32_t stack;
	uint64_t address;
	uint64_t size;
	uint64_t now_ns;
};
void gpc_observe_piece_taken(const struct gpc_observed *piece);
void gpc_observe_piece_freed(const struct gpc_observed *piece);

void gpc_observe_context(const struct gpc_context *context, uint32_t what);

/*
 * Asks the driver about the whole device and records the answer; at most every so often unless
 * `must`.
 */
void gpc_observe_device(struct gpc_context *context, bool must);

/* The same, and a point of the history. */
void gpc_observe_now(struct gpc_context *context);

/* barrier.c: every context that owes a barrier raises it. */
void gpc_barriers_raise_all(void);

/* streams.c: the context died, and with it the captures that began in it. */
void gpc_streams_forget_context(const struct gpc_context *context);

/* start.c: configuration, recording, devices. False: pass. */
bool gpc_runtime_start(void);

/* tags.c: the recording is open; and the end of all tags, for tables of them. */
void gpc_runtime_tags_start(void);
uint32_t gpc_runtime_tags_end(void);

/*
 * track.c: into the books, with the address, sizes and kind of `call`; and what an entry has there.
 * The context died, and with it all that was tracked in it; or the pools of a device.
 */
void gpc_track_remember(struct gpc_context *context, const struct gpc_passed_call *call,
	const struct gpc_request *request);
uint64_t gpc_track_size(const struct gpc_tracked *tracked);
void gpc_track_forget_context(struct gpc_context *context);
void gpc_track_forget_pools(const struct gpc_device *device);

/*
 * pools.c: asks the driver what its pools and graphs hold on this device, and books it; has them
 * give back what they can; an allocation of the pool with this number came or went.
 */
void gpc_pools_look(struct gpc_device *device);
void gpc_pools_trim(struct gpc_device *device);
bool gpc_pools_are_used(void);
void gpc_pools_took(uint32_t number, uint64_t size);
void gpc_pools_gave(uint32_t number, uint64_t size);

/*
 * ipc.c: the block that starts here is about to be freed, the context died, the process ends or is
 * a child of fork: what was exported is withdrawn, what was opened is forgotten.
 */
void gpc_ipc_withdraw(uint64_t address);
void gpc_ipc_forget_context(const struct gpc_context *context);
void gpc_ipc_end(bool is_child);

/*
 * The stack of the caller, as the configuration wants it: for a driver call, which costs more, and
 * for a request of the cache, where small ones may be sampled.
 */
uint32_t gpc_runtime_stack(void);
uint32_t gpc_runtime_stack_of(size_t size);

/* tensors.c: this thread got device memory; PyTorch's, if its next tensor lies in it. */
void gpc_tensors_note_malloc(uint64_t address, uint64_t size);

/* tensors.c: this thread's request failed for good, as OOM `number`; why PyTorch gives up, if that is next. */
void gpc_tensors_note_failure(const struct gpc_device *device, uint64_t number);

/* What PyTorch has on the device, as of its last tensor there. */
struct gpucache_oom_torch gpc_tensors_have(const struct gpc_device *device);

/* What PyTorch keeps of a device in no tensor; how many tensors it ever made there. */
uint64_t gpc_tensors_idle_bytes(const struct gpc_device *device);
uint64_t gpc_tensors_n_malloc(const struct gpc_device *device);
uint64_t gpc_tensors_n_free(const struct gpc_device *device);

/*
 * memory.c, track.c: who holds the device memory that starts here, or this handle, hands out pieces of
 * it, which have holders of their own: its stack holds it no longer.
 */
void gpc_memory_lend(uint64_t address);
void gpc_track_lend(enum gpucache_kind kind, uint64_t key);

/* rescue.c */

/*
 * A request that failed with `st`: what the ladder can do.  GPC_OK: `attempt` succeeded in the
 * end.
 */
struct gpc_rescue {
	struct gpc_context *context;
	enum gpucache_kind kind;
	uint64_t size;
	uint64_t rounded;
	struct gpc_request request;
	enum gpc_status (*attempt)(void *arg);
	void *arg;
};
GPC_MUST_CHECK enum gpc_status gpc_rescue_run(struct gpc_rescue *rescue, enum gpc_status st);

/* PyTorch refused a tensor and asked nobody: it keeps to a limit of its own. */
void gpc_rescue_torch_limit(struct gpc_device *device, uint64_t size);

/* PyTorch gave up behind the OOM of that number, as it says in `torch`. */
void gpc_rescue_torch_failed(
	struct gpc_device *device, uint64_t number, const struct gpucache_oom_torch *torch);

/* Behind the function below: the failure on this device was recovered. */
void gpc_rescue_recovered(struct gpc_device *device);

/*
 * A request of this size succeeded: earlier failures up to it of memory of the same place were recovered
 * by the program.
 */
static inline void gpc_rescue_succeeded(struct gpc_device *device, uint8_t kind, uint64_t size)
{
	uint64_t failed = __atomic_load_n(&device->failed_size, __ATOMIC_ACQUIRE);
	bool on_host = gpucache_kind_place(kind) == GPUCACHE_ON_HOST;

	if (__builtin_expect(failed != 0 && size >= failed, 0) &&
		on_host == __atomic_load_n(&device->failed_on_host, __ATOMIC_RELAXED))
		gpc_rescue_recovered(device);
}

/* Asks NVML, which is loaded at the first need; unknown where another thread is asking. */
bool gpc_runtime_ask_neighbours(
	const struct gpc_device *device, struct gpc_neighbours *ret_neighbours);

/* holders.c: what can be said of a device's holders; the second prints them, with `total` bytes in all. */
struct gpc_describer gpc_holder_describer(struct gpc_device *device);
void gpc_holders_print(struct gpc_device *device, uint64_t total);

/* The process ends: print what was fatal. */
void gpc_rescue_at_exit(void);

/* The pools of a device whose contexts live; their number.  `pools` has GPC_MAX_CONTEXTS places. */
uint32_t gpc_device_pools(const struct gpc_device *device, struct gpc_pool **pools);

/* api.c: asks the program's OOM handler; false: there is none, or this thread is in it. */
bool gpc_runtime_ask_handler(const struct gpc_device *device, uint64_t wanted, bool *ret_did_free);

/* exit.c */
void gpc_runtime_at_exit(void);

#endif
