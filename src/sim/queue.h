/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of a stream: how much work it takes before the host has to wait.
 *
 * A driver puts work into a ring of fixed size.  Where that is full, the call that submits returns only
 * when the oldest piece has ended: an asynchronous call that blocks.
 *
 *      ends   | 3 ms | 5 ms | 9 ms |     the next piece goes in at 3 ms
 *               '-- oldest
 *
 * Threads     A queue belongs to its stream: the lock of the context, but for gpc_sim_queue_await.
 * Failure     No memory: the queue has no end.
 * Limits      Threads that wait for the same place go in together.  A real ring may hold back other streams, too.
 */
#ifndef GPC_SIM_QUEUE_H
#define GPC_SIM_QUEUE_H

#include <stdint.h>

struct gpc_sim_context;
struct gpc_sim_stream;

struct gpc_sim_queue {
	uint64_t *ends; /* of the last `room` entries; NULL: unbounded */
	uint64_t room;
	uint64_t n; /* entries ever */
};

/* Creates the queue with the configured length. */
void gpc_sim_queue_init(struct gpc_sim_stream *stream);
void gpc_sim_queue_fini(struct gpc_sim_stream *stream);

/* Waits until there is room; without the lock of the context. */
void gpc_sim_queue_await(struct gpc_sim_stream *stream);

/* The same for every stream of the context, if its events take an entry in each. */
void gpc_sim_queue_await_all(struct gpc_sim_context *context);

/* Adds an entry that ends then; and adds one that ends no earlier to each stream of the context, as above. */
void gpc_sim_queue_add_locked(struct gpc_sim_stream *stream, uint64_t end_ns);
void gpc_sim_queue_add_to_all(struct gpc_sim_context *context, uint64_t end_ns);

#endif
