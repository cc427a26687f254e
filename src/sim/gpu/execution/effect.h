/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect of submitted work on memory, which happens when the work ends.
 *
 * The duration of work is known when it is submitted, and so is its end.  Effects wait in one queue, ordered by end.
 * Every call through which the host could observe the device first applies the effects whose end has passed.  So if
 * memory is reused while a copy into it is in flight, the copy overwrites the new owner's data, as on a real device.
 *
 *      submit --> [ end 10 ms: fill ] [ end 12 ms: copy ] [ end 12 ms: free ]   <-- settle(now) applies the front
 *
 * Invariants  1 Effects happen in the order of their ends, those of equal ends in the order of
 *             submission.
 *             2 A device address is translated to a host address when the effect happens, not before.
 * Threads     Any; one lock, held while effects are applied.  `turn` makes the lock fair: without `turn`, a thread that
 *             applies many effects could retake the lock before a waiting thread wakes.  Host functions run without the
 *             lock, in one thread of the machine.
 * Failure     A kernel that touches unallocated memory breaks all contexts of its device with a sticky 700
 *             (CUDA_ERROR_ILLEGAL_ADDRESS).
 * Limits      A host function begins only when a thread makes a call that applies effects.  One host function runs at a
 *             time; until it returns, no work that ends at the same time or later is over, on any stream.
 */
#ifndef GPC_SIM_EFFECT_H
#define GPC_SIM_EFFECT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_sim;
struct gpc_sim_context;
struct gpc_sim_graph_block;
struct gpc_sim_race_clock;

enum gpc_sim_effect_kind {
	GPC_SIM_EFFECT_NONE,
	GPC_SIM_EFFECT_COPY, /* copies rows of `width` bytes from `src`, or from `staged` if set */
	GPC_SIM_EFFECT_FILL, /* fills rows of `width` bytes with `value`, value_size bytes long */
	GPC_SIM_EFFECT_KERNEL,
	GPC_SIM_EFFECT_FREE,        /* cuMemFreeAsync of memory from cuMemAlloc */
	GPC_SIM_EFFECT_POOL_FREE,   /* cuMemFreeAsync of pool memory; `dst` is the free's number */
	GPC_SIM_EFFECT_GRAPH_ALLOC, /* an allocation node of a graph; never submitted */
	GPC_SIM_EFFECT_GRAPH_FREE,  /* a free node of a graph; never submitted */
	GPC_SIM_EFFECT_HOST,        /* a host function */
};

/* Bytes that a kernel touches. */
struct gpc_sim_range {
	uint64_t ptr;
	uint64_t size;
	int fill; /* the value of every byte when the kernel ends; -1: the kernel only reads */
};

struct gpc_sim_effect {
	enum gpc_sim_effect_kind kind;
	uint64_t duration_ns;
	uint64_t end_ns;
	uint64_t number; /* its place in the order of submission; of a node, its own */
	struct gpc_sim_context *context;
	uint32_t home; /* a node: the context in which it was captured, by number; 0: any */
	struct gpc_sim_effect *next; /* the next node of its graph */

	uint64_t dst, src;
	uint64_t width, rows;
	uint64_t dst_pitch, src_pitch;
	uint32_t value;
	uint32_t value_size;
	void (*host)(void *arg);
	void *arg;
	bool is_early; /* a kernel that may begin before the kernel ahead of it ends (stream.h) */
	unsigned n_ranges;
	struct gpc_sim_range *ranges;      /* owned */
	char *staged;                      /* owned: the bytes of `src`, copied at submission */
	struct gpc_sim_graph_block *block; /* a memory node's block, which counts this reference */
	struct gpc_sim_race_clock *known;  /* owned: POOL_FREE: for gpc_sim_race_learn, or NULL */
};

struct gpc_sim_effects {
	/* The earliest end in the queue; UINT64_MAX: the queue is empty.  Read without the lock. */
	_Atomic uint64_t next_end_ns;

	/* Lock: lock. */
	struct gpc_sim_effect **heap;
	size_t n;
	size_t room;
	uint64_t n_submitted;

	/* The host function that runs in the thread `caller`.  Effects that end at held_ns or later wait for its return. */
	struct gpc_sim_effect *running;
	_Atomic uint64_t held_ns; /* end of `running`, or UINT64_MAX.  Read without the lock */
	pthread_t caller;
	bool has_caller, must_stop;
	pthread_cond_t changed; /* signalled when `running` or `must_stop` changes */

	pthread_mutex_t lock;
	pthread_mutex_t turn; /* held while waiting for `lock` */
};

void gpc_sim_effects_init(struct gpc_sim_effects *effects);
void gpc_sim_effects_fini(struct gpc_sim_effects *effects);

/* NULL without memory. */
struct gpc_sim_effect *gpc_sim_effect_create(enum gpc_sim_effect_kind kind, uint64_t duration_ns);
struct gpc_sim_effect *gpc_sim_effect_clone(const struct gpc_sim_effect *effect);
void gpc_sim_effect_destroy(struct gpc_sim_effect *effect);

/* Copies the bytes of a copy's source into `staged` now, not at the copy's end.  False without memory. */
bool gpc_sim_effect_stage(struct gpc_sim *sim, struct gpc_sim_effect *effect);

/* Queues an effect, whose end_ns and context are set.  False without memory: the caller still owns the effect. */
bool gpc_sim_effect_submit(struct gpc_sim *sim, struct gpc_sim_effect *effect);

/* Applies, in order, the effects whose end has passed.  Stops at a host function, which it starts. */
void gpc_sim_settle(struct gpc_sim *sim);

/* Waits until the time until_ns, and until all effects that end by then are applied. */
void gpc_sim_await(struct gpc_sim *sim, uint64_t until_ns);

/* True if work that ends at `end_ns` is over: that time has passed, and no running host function delays the work. */
bool gpc_sim_is_over(struct gpc_sim *sim, uint64_t end_ns);

/* Copies at once, outside all streams.  For a host function that does the work of a kernel. */
void gpc_sim_effect_copy_now(struct gpc_sim *sim, uint64_t dst, uint64_t src, uint64_t size);

/* True if the calling thread is in a host function, which must not call CUDA. */
bool gpc_sim_in_host_function(void);

#endif
