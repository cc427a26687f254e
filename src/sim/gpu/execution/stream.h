/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts, streams and events of the simulated device, on a timeline.
 *
 * Every piece of work has a known duration, so a stream is one number: the time when its last work ends, its tail.  A
 * submission computes the end of its work at once:
 *
 *      start = max(now, what must come first)         end = start + duration         tail = end
 *
 *      blocking stream      own tail, the legacy stream's tail
 *      legacy stream        own tail, the tails of all blocking streams     (in `blocking_ns`)
 *      non-blocking stream  own tail
 *      every stream         also `barrier_ns`, which cuCtxWaitEvent sets
 *      early kernel         instead of its own tail, the start of the last kernel in the stream that is not early
 *                           (`early_ns`): the two overlap, as programmatic dependent launch allows
 *
 * If the queues of streams are bounded (queue.h), the host waits when it submits to a full one.
 *
 * An event is one number: the end of the work that it recorded.  The event has passed when the clock has reached that
 * number.
 *
 * A green context has its own streams and uses the memory of its primary context.  A wait for the
 * primary context includes the work of its green contexts; a wait for a green context is for its own
 * work alone.
 *
 * Invariants  1 Tails never go back.  2 context->tail_ns >= the tail of each of its streams, also
 *             of destroyed ones.
 * Threads     Any; a lock in each context.
 * Failure     The driver's codes.
 * Limits      Priorities are stored and have no effect.  The race detector knows no green contexts.
 */
#ifndef GPC_SIM_STREAM_H
#define GPC_SIM_STREAM_H

#include "sim/gpu/execution/queue.h"
#include "sim/gpu/sim.h"

struct gpc_sim_capture;

#define GPC_SIM_STREAM_MAGIC UINT32_C(0x73747265)
#define GPC_SIM_EVENT_MAGIC  UINT32_C(0x65766e74)

/* The first driver with cuCtxRecordEvent and cuCtxWaitEvent: CUDA 12.5. */
#define GPC_SIM_CONTEXT_EVENTS 12050

struct gpc_sim_stream {
	uint32_t magic;
	unsigned flags;
	int priority;
	uint64_t number;
	struct gpc_sim_context *context;
	uint32_t thread; /* whose per-thread default stream this is; else 0 */
	_Atomic uint64_t tail_ns;
	uint64_t early_ns; /* when an early kernel may begin; 0: the last work is no kernel */
	struct gpc_sim_queue queue;
	_Atomic(struct gpc_sim_capture *) capture; /* written under the capture lock */
	struct gpc_list in_capture;                /* in the capture's `members`, if captured */
	struct gpc_list link;                      /* in the context's `streams` */
	uint32_t race_track; /* its track in the race detector, if there is one */
};

struct gpc_sim_event {
	uint32_t magic;
	unsigned flags;
	struct gpc_sim_context *context;
	_Atomic uint64_t done_ns;              /* 0: never recorded, which counts as passed */
	_Atomic uint64_t capture_number;       /* the capture of its last record; 0: none */
	struct gpc_sim_race_clock *race_clock; /* the race detector's */
};

struct gpc_sim_context {
	struct gpc_sim *sim;
	struct gpc_sim_device *device;
	struct gpc_sim_context *primary; /* the primary context of a green one; else NULL */
	uint32_t number;                 /* the owner of its memory; never 0 */
	unsigned flags;
	_Atomic int broken;     /* the sticky CUresult of every call; 0: none */
	_Atomic int n_attached; /* calls of cuCtxAttach less those of cuCtxDetach */

	_Atomic uint64_t tail_ns;          /* the end of all work */
	_Atomic uint64_t blocking_ns;      /* the end of the work of blocking streams */
	_Atomic uint64_t barrier_ns;       /* no work submitted later starts before this */
	struct gpc_sim_race_context *race; /* the race detector's, or NULL */

	struct gpc_sim_stream legacy;
	struct gpc_list link; /* in the machine's `contexts`, unless green */

	/* Lock: lock. */
	struct gpc_list streams; /* all but `legacy` */

	pthread_mutex_t lock;
};

static inline bool gpc_sim_is_legacy(const struct gpc_sim_stream *stream)
{
	return stream == &stream->context->legacy;
}

static inline bool gpc_sim_is_blocking(const struct gpc_sim_stream *stream)
{
	return !(stream->flags & CU_STREAM_NON_BLOCKING);
}

/* Creates a context on that device.  OUT_OF_MEMORY if its own memory does not fit. */
CUresult gpc_sim_context_create(
	struct gpc_sim *sim, unsigned device, unsigned flags, struct gpc_sim_context **ret_context);

/* Initialises the parts common to ordinary and green contexts; the caller has zeroed *context. */
void gpc_sim_context_init(
	struct gpc_sim_context *context, struct gpc_sim *sim, struct gpc_sim_device *device);

/* green.c: creates a green context of `primary`, which must outlive it. */
CUresult gpc_sim_context_create_green(
	struct gpc_sim_context *primary, struct gpc_sim_context **ret_context);

/* Waits for the context's work, then frees its memory, its streams and the context. */
void gpc_sim_context_destroy(struct gpc_sim_context *context);

/*
 * Waits for the context's work, then frees its memory and streams, but not the context.  Clears its error, and that of
 * its device.
 */
void gpc_sim_context_reset(struct gpc_sim_context *context);

/* Makes every later call on the context fail with `code`, unless the context is broken already. */
void gpc_sim_context_break(struct gpc_sim_context *context, CUresult code);

/*
 * After a kernel touched unallocated memory: breaks this context until it is reset, and the others of its device until
 * any of them all is reset.
 */
void gpc_sim_context_fault(struct gpc_sim_context *context, CUresult code);

/* The error that broke the context, or CUDA_SUCCESS. */
static inline CUresult gpc_sim_context_state(struct gpc_sim_context *context)
{
	int code = atomic_load_explicit(&context->broken, memory_order_relaxed);

	if (!code && context->primary)
		code = atomic_load_explicit(&context->primary->broken, memory_order_relaxed);
	if (!code)
		code = atomic_load_explicit(&context->device->fault, memory_order_relaxed);
	return (CUresult)code;
}

CUresult gpc_sim_context_sync(struct gpc_sim_context *context);
CUresult gpc_sim_context_record(struct gpc_sim_context *context, struct gpc_sim_event *event);
CUresult gpc_sim_context_wait(struct gpc_sim_context *context, struct gpc_sim_event *event);

CUresult gpc_sim_stream_create(struct gpc_sim_context *context, unsigned flags, int priority,
	struct gpc_sim_stream **ret_stream);
void gpc_sim_stream_destroy(struct gpc_sim_stream *stream);

/* The calling thread's default stream in this context, created on first use.  NULL without memory. */
struct gpc_sim_stream *gpc_sim_stream_of_thread(struct gpc_sim_context *context);

/* Submits work.  Takes ownership of `effect`, even on failure. */
CUresult gpc_sim_stream_submit(struct gpc_sim_stream *stream, struct gpc_sim_effect *effect);

/*
 * Submits a node of a graph, which takes its place in the stream and runs in the context that it was captured in.
 * CONTEXT_IS_DESTROYED: that one has ended.
 */
CUresult gpc_sim_stream_submit_node(struct gpc_sim_stream *stream, struct gpc_sim_effect *node);

CUresult gpc_sim_stream_record(struct gpc_sim_stream *stream, struct gpc_sim_event *event);
CUresult gpc_sim_stream_wait(struct gpc_sim_stream *stream, struct gpc_sim_event *event);
CUresult gpc_sim_stream_query(struct gpc_sim_stream *stream);
CUresult gpc_sim_stream_sync(struct gpc_sim_stream *stream);

CUresult gpc_sim_event_create(
	struct gpc_sim_context *context, unsigned flags, struct gpc_sim_event **ret_event);
void gpc_sim_event_destroy(struct gpc_sim_event *event);
CUresult gpc_sim_event_query(struct gpc_sim_event *event);
CUresult gpc_sim_event_sync(struct gpc_sim_event *event);

/*
 * Allocate and free device memory.  Both fail if a capture forbids them (capture.h).  gpc_sim_mem_free accepts the
 * start of an allocation of any context, and waits as free_waits and free_waits_alone of config.h say.
 */
CUresult gpc_sim_mem_alloc(struct gpc_sim_context *context, uint64_t size, uint64_t *ret_ptr);
CUresult gpc_sim_mem_free(struct gpc_sim *sim, uint64_t ptr);

/* Frees memory as cuMemFreeAsync does, at once and without a wait: the caller's stream has no work. */
CUresult gpc_sim_mem_free_now(struct gpc_sim *sim, uint64_t ptr);

/* True if work submitted to the stream now would begin at once. */
bool gpc_sim_stream_is_idle(const struct gpc_sim_stream *stream);

#endif
