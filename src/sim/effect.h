/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What work does to memory, and when: at its end.
 *
 * The duration of work is known when it is submitted, so its end is known, too.  Its effect waits in one
 * queue, ordered by end.  Each call through which the host could see the device first applies the effects
 * whose end has passed.  So memory that is reused while a copy into it is in flight gets the old owner's
 * data, as on a real device.
 *
 *      submit --> [ end 10 ms: fill ] [ end 12 ms: copy ] [ end 12 ms: free ]   <-- settle(now) applies the front
 *
 * Invariants  1 Effects happen in the order of their ends, those of equal ends in the order of
 *             submission.
 *             2 A device address is turned into bytes when the effect happens, not before.
 * Threads     Any; one lock, held while effects happen.  `turn` makes it fair: without that, a thread with many effects
 *             to apply could take the lock again before a waiter wakes.  Host functions run without the lock, in one
 *             thread of the machine.
 * Failure     A kernel that touches unallocated memory breaks all contexts of its device: sticky 700.
 * Limits      A host function begins only when a thread makes a call that looks at the device.  One runs at a time, and
 *             until it returns no work that ends later is over, on any stream.
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
	GPC_SIM_EFFECT_COPY, /* rows of width bytes from src, or from `staged` */
	GPC_SIM_EFFECT_FILL, /* rows of width bytes with `value` of `value_size` bytes */
	GPC_SIM_EFFECT_KERNEL,
	GPC_SIM_EFFECT_FREE,        /* cuMemFreeAsync of memory from cuMemAlloc */
	GPC_SIM_EFFECT_POOL_FREE,   /* of pool memory; `dst` is the number of the free */
	GPC_SIM_EFFECT_GRAPH_ALLOC, /* nodes of a graph, never submitted to a stream */
	GPC_SIM_EFFECT_GRAPH_FREE,
	GPC_SIM_EFFECT_HOST, /* a host function */
};

/* Bytes that a kernel touches. */
struct gpc_sim_range {
	uint64_t ptr;
	uint64_t size;
	int fill; /* -1: reads only; else every byte is this when the kernel ends */
};

struct gpc_sim_effect {
	enum gpc_sim_effect_kind kind;
	uint64_t duration_ns;
	uint64_t end_ns;
	uint64_t number; /* of submission */
	struct gpc_sim_context *context;
	struct gpc_sim_effect *next; /* in a graph */

	uint64_t dst, src;
	uint64_t width, rows;
	uint64_t dst_pitch, src_pitch;
	uint32_t value;
	uint32_t value_size;
	void (*host)(void *arg);
	void *arg;
	bool is_early; /* a kernel that may begin with its predecessor in the stream */
	unsigned n_ranges;
	struct gpc_sim_range *ranges;      /* owned */
	char *staged;                      /* owned: the source's bytes, taken at submission */
	struct gpc_sim_graph_block *block; /* of a graph's node; holds a reference */
	struct gpc_sim_race_clock
		*known; /* owned: the work that has ended when this happens, or NULL */
};

struct gpc_sim_effects {
	/* the first end in the queue; UINT64_MAX: it is empty.  Read without the lock */
	_Atomic uint64_t next_end_ns;

	/* Lock: lock. */
	struct gpc_sim_effect **heap;
	size_t n;
	size_t room;
	uint64_t n_submitted;

	/* A host function running on its own thread; effects that end with it or later wait for its return. */
	struct gpc_sim_effect *running;
	_Atomic uint64_t held_ns; /* its end; UINT64_MAX: none runs.  Read without the lock */
	pthread_t caller;
	bool has_caller, must_stop;
	pthread_cond_t changed; /* `running`, `must_stop` */

	pthread_mutex_t lock;
	pthread_mutex_t turn; /* held while waiting for `lock` */
};

void gpc_sim_effects_init(struct gpc_sim_effects *effects);
void gpc_sim_effects_fini(struct gpc_sim_effects *effects);

/* NULL without memory. */
struct gpc_sim_effect *gpc_sim_effect_create(enum gpc_sim_effect_kind kind, uint64_t duration_ns);
struct gpc_sim_effect *gpc_sim_effect_clone(const struct gpc_sim_effect *effect);
void gpc_sim_effect_destroy(struct gpc_sim_effect *effect);

/* Reads the bytes of a copy's source now.  False without memory. */
bool gpc_sim_effect_stage(struct gpc_sim *sim, struct gpc_sim_effect *effect);

/* Queues an effect, whose end_ns and context are set, and takes ownership.  False without memory. */
bool gpc_sim_effect_submit(struct gpc_sim *sim, struct gpc_sim_effect *effect);

/* Applies all effects whose end has passed, up to a host function, which is started. */
void gpc_sim_settle(struct gpc_sim *sim);

/* Waits until this time, and until all effects that end by then are applied. */
void gpc_sim_await(struct gpc_sim *sim, uint64_t until_ns);

/* True if work with this end is over: the time has come, and no host function delays it. */
bool gpc_sim_is_over(struct gpc_sim *sim, uint64_t end_ns);

/* Copies at once, outside all streams: for a host function that stands in for a kernel. */
void gpc_sim_effect_copy_now(struct gpc_sim *sim, uint64_t dst, uint64_t src, uint64_t size);

/* True inside a host function, where no call of CUDA is allowed. */
bool gpc_sim_in_host_function(void);

#endif
