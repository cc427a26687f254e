/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs against the allocator, watched by the race detector of the simulated GPU (sim/gpu/execution/race.h).
 *
 * A program is a list of steps, each run by one of a few threads.  A step names what it uses (a thread's block c,
 * stream 2 of context 1), never a result of another step; if that does not exist, the step does nothing.  So any subset
 * of the steps is a program, and a failing program can be shrunk by removing steps.
 *
 *      prove_generate --> steps --> prove_run --> result: violations --> prove_shrink --> prove_print
 *
 * prove_run runs the steps in the order of the list, so it is deterministic.  Calls that another thread can overtake in
 * the middle (synchronize, create a stream, enable a peer, first use of a per-thread stream) continue only at an
 * explicit step. prove_run_threads runs the same program with real threads, for races within a step.
 *
 * The broken variants change the driver below the allocator, which does not do what it claims (variant.c).
 */
#ifndef GPC_TESTS_PROVE_PROVE_H
#define GPC_TESTS_PROVE_PROVE_H

#include <pthread.h>

#include "alloc/pool.h"
#include "sim/gpu/driver_sim.h"
#include "sim/gpu/execution/capture.h"
#include "sim/gpu/execution/race.h"
#include "tests/model/random.h"

#define PROVE_THREADS  3
#define PROVE_CONTEXTS 2
#define PROVE_BLOCKS   10 /* a thread's */
#define PROVE_EVENTS   2  /* a thread's, in each context */
#define PROVE_SHARED   3  /* streams of a context that every thread uses */
#define PROVE_TOUCHED  8  /* blocks that a graph uses */
#define PROVE_STEPS    1200

/* How a step names a stream: the legacy one, 1 .. PROVE_SHARED, the thread's own, the thread's default stream. */
#define PROVE_LEGACY     0
#define PROVE_OWN        (PROVE_SHARED + 1)
#define PROVE_PER_THREAD (PROVE_SHARED + 2)
#define PROVE_STREAMS    (PROVE_SHARED + 3)

enum prove_variant {
	PROVE_SHIPPED,
	PROVE_NO_FENCE,
	PROVE_LEGACY_FENCE,  /* the fence's event is recorded on the legacy stream only */
	PROVE_FAILED_PASSES, /* a record that failed is taken as done */
	PROVE_NO_WAIT, /* a new stream does not wait for work on memory reused under the one-stream rule */
	PROVE_BARE_EXPORT, /* memory is exported under the one-stream rule */
	/* With barriers. */
	PROVE_NO_BARRIER,    /* neither recorded nor waited for */
	PROVE_STALE_BARRIER, /* its event was recorded too early */
	PROVE_LEGACY_WAIT,   /* only the legacy stream waits for it */
	PROVE_EARLY_RETURN,  /* memory goes back to the driver before the event has passed */
	PROVE_LOOSE_CAPTURE, /* a capture begins while a barrier is due */
	PROVE_LOOSE_EXPORT,  /* memory is exported behind a barrier, without a wait */
	PROVE_EARLY_LOOK,    /* a query or wait after a free does not wait for the event */
	PROVE_BARE_OVERLAP,  /* a kernel overlaps another under the one-stream rule */
	PROVE_NO_HOST_WAIT,  /* free_order:host, and the host does not wait */
	/* With pages. */
	PROVE_EARLY_UNMAP, /* what the one-stream rule let through is taken as over at once */
	PROVE_VARIANTS
};

/* How the order of cudaFree is kept: free_order of the options. */
enum prove_order {
	PROVE_DEVICE,
	PROVE_FENCE,
	PROVE_HOST,
	PROVE_ORDERS
};

enum prove_op {
	PROVE_ALLOC,
	PROVE_FREE,
	PROVE_LAUNCH,
	PROVE_TIME,
	PROVE_CONTINUE,
	PROVE_STREAM_CREATE,
	PROVE_STREAM_DESTROY,
	PROVE_STREAM_SYNC,
	PROVE_EVENT_RECORD,
	PROVE_EVENT_WAIT,
	PROVE_EVENT_SYNC,
	PROVE_SYNC,
	PROVE_PER_THREAD_USE,
	PROVE_PEER,
	PROVE_EXPORT,
	PROVE_OVERLAP_USE,
	PROVE_LAUNCH_EARLY,
	PROVE_READ,
	PROVE_CAPTURE_BEGIN,
	PROVE_CAPTURE_END,
	PROVE_GRAPH_LAUNCH,
	PROVE_RESET,
	PROVE_HOG,
	PROVE_FAULT,
	PROVE_REAP,
	PROVE_WAIT,
	PROVE_TRIM,
	PROVE_OPS
};

struct prove_step {
	uint8_t op;
	uint8_t thread;
	uint8_t context;
	uint8_t stream;
	uint8_t a;  /* block or event */
	uint8_t b;  /* a second one, or a kind */
	uint64_t n; /* bytes or nanoseconds */
};

/* True if an allocation is for a caller with a cache of its own (alloc/pool_exact.c): every third that may be. */
static inline bool prove_is_exact(const struct prove_step *step)
{
	return step->n >= GPC_SEGMENT_ALIGN && step->b % 3 == 0;
}

struct prove_program {
	enum prove_order order; /* not drawn: every program is played under each */
	enum gpc_vmm vmm;       /* the same */
	int driver_version;
	bool is_one_stream; /* the allocator saw every stream being made */
	uint64_t pending_limit;
	/* The machine: places in a queue, 0: no end; and what cuMemFree waits for. */
	uint32_t queue;
	bool is_event_queued;
	uint64_t free_waits;
	bool free_waits_alone;
	uint32_t n_steps;
	struct prove_step steps[PROVE_STEPS];
};

struct prove_result {
	uint64_t n_violations;
	uint64_t n_alloc;
	uint64_t n_hit;
	uint64_t n_refused;  /* no room */
	const char *problem; /* NULL, or what is wrong besides */
	bool has_first;
	struct gpc_sim_race_violation first; /* frames[0] of a stack is the number of a step */
};

/* ---- variant.c ---- */

/* The pool's driver: the simulated one, or a broken one. */
struct prove_driver {
	struct gpc_driver base;
	struct gpc_sim_driver sim;
	enum prove_variant variant;
	_Atomic uint32_t n_records;
	/* Every event of the context that lives; a reset ends them.  Lock: lock. */
	gpc_event *events;
	size_t n_events, room_events;
	pthread_mutex_t lock;
};

bool prove_driver_open(struct prove_driver *drv, struct gpc_sim *sim, enum prove_variant variant);
void prove_driver_close(struct prove_driver *drv);
void prove_driver_reset(struct prove_driver *drv);

/* ---- machine.c ---- */

struct prove_block {
	gpc_devptr address; /* 0: none */
	uint64_t size;
	uint64_t life; /* a number for each life */
	uint8_t context;
};

enum prove_stream_state {
	PROVE_STREAM_NONE,
	PROVE_STREAM_COMING,
	PROVE_STREAM_THERE
};

struct prove_stream {
	_Atomic int state; /* enum prove_stream_state */
	struct gpc_sim_stream *stream;
};

struct prove_context {
	struct prove_driver drv;
	struct gpc_pool pool;
	struct prove_stream shared[PROVE_SHARED];
	atomic_bool is_reached_by[PROVE_CONTEXTS];
};

/* A call of the library in which the thread is: what it has still to do. */
struct prove_call {
	enum prove_op op; /* PROVE_CONTINUE: none */
	unsigned stage;
	uint8_t context;
	uint8_t other;
	bool must_wait[PROVE_CONTEXTS];
	struct gpc_pool_sync sync;
	gpc_devptr address;
	struct prove_stream *stream;
};

struct prove_thread {
	struct prove_block blocks[PROVE_BLOCKS];
	struct prove_stream own[PROVE_CONTEXTS];
	struct gpc_sim_stream *per_thread[PROVE_CONTEXTS];
	struct gpc_sim_event *events[PROVE_CONTEXTS][PROVE_EVENTS];
	struct prove_call call;
	struct gpc_sim_stream *capturing;
	uint8_t capture_context;
	struct gpc_sim_graph *graph;
	struct { /* what the graph, or the capture that becomes one, uses */
		uint8_t block;
		uint64_t life;
	} touched[PROVE_TOUCHED];
	uint32_t n_touched;
	uint64_t n_lives;
	uint64_t n_refused;
	const char *problem;
	struct gpc_request request; /* of the allocation under way */
	struct gpc_pool *pool;
	gpc_devptr address;
};

struct prove_machine {
	const struct prove_program *program;
	enum prove_variant variant;
	bool is_threaded;
	struct gpc_sim *sim;
	struct gpc_heap heap;
	struct gpc_budget budget;
	struct prove_context contexts[PROVE_CONTEXTS];
	struct prove_thread threads[PROVE_THREADS];
	atomic_bool is_per_thread_used; /* for contexts that come */
	atomic_bool is_per_thread_seen; /* nobody looks any more */
	atomic_bool is_overlap_used; /* the same for kernels that overlap the one ahead of them */
	atomic_bool is_overlap_seen;
	_Atomic uint64_t hogged;
	uint64_t n_alloc, n_hit; /* of the pools that are gone */
	pthread_rwlock_t life;   /* taken alone where things that others may use end */
};

bool prove_machine_open(struct prove_machine *machine, const struct prove_program *program,
	enum prove_variant variant, bool is_threaded);
/* Frees everything, checks the heap, and returns the result. */
struct prove_result prove_machine_close(struct prove_machine *machine);

/* Resets the context, which keeps its handle. */
void prove_machine_reset(struct prove_machine *machine, uint8_t context);

/* Records a problem; the first of a thread is kept. */
void prove_complain(struct prove_thread *thread, const char *problem);

/* NULL, or the invariant of a pool that does not hold. */
const char *prove_machine_check(struct prove_machine *machine);

/* Work is about to be submitted to this context: what the hooks do. */
void prove_submits(struct prove_machine *machine, uint8_t context);

/* ---- calls.c: what takes several steps ---- */

/* The host waits for the context.  False: a capture is open, and a correct program does not do that. */
bool prove_sync_context(struct prove_machine *machine, uint8_t c);

/* Continues the thread's call by one stage, or to its end. */
void prove_call_continue(struct prove_machine *machine, struct prove_thread *thread, bool to_end);
void prove_call_begin(struct prove_machine *machine, const struct prove_step *step);

/* The stream that a step names, or NULL. */
struct gpc_sim_stream *prove_stream_find(
	struct prove_machine *machine, const struct prove_step *step);

/* ---- steps.c ---- */

void prove_step_do(struct prove_machine *machine, uint32_t number);

/* ---- run.c ---- */

struct prove_result prove_run(const struct prove_program *program, enum prove_variant variant);
struct prove_result prove_run_threads(
	const struct prove_program *program, enum prove_variant variant);

static inline bool prove_is_bad(const struct prove_result *result)
{
	return result->n_violations > 0 || result->problem;
}

/* ---- program.c ---- */

void prove_generate(struct prove_program *program, uint64_t seed, uint64_t number);

/* Removes steps as long as the program still fails. */
void prove_shrink(struct prove_program *program, enum prove_variant variant);
void prove_print(const struct prove_program *program, const struct prove_result *result);

#endif
