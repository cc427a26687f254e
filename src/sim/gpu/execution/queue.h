/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of a stream: how much work it takes before the host has to wait.
 *
 * A driver puts work into a ring of fixed size.  If the ring is full, even an asynchronous call blocks until
 * the oldest entry has ended.
 *
 *      ends   | 3 ms | 5 ms | 9 ms |     full: the next entry goes in at 3 ms
 *               '-- oldest
 *
 * Threads     Any.  Functions that end in _locked are called with the lock of the stream's context, the others without.
 * Failure     Without memory for the ring the queue is unbounded.
 * Limits      If several threads wait for the same entry, all continue when it ends and each adds an entry, so more
 *             than `room` entries may be in flight.  A full ring delays only its own stream; a real driver's may delay
 *             others.
 */
#ifndef GPC_SIM_QUEUE_H
#define GPC_SIM_QUEUE_H

#include <stdint.h>

struct gpc_sim_context;
struct gpc_sim_stream;

struct gpc_sim_queue {
	uint64_t *ends; /* end times of the last `room` entries; NULL: unbounded */
	uint64_t room;
	uint64_t n; /* entries added so far */
};

/* Creates the queue with the configured length. */
void gpc_sim_queue_init(struct gpc_sim_stream *stream);
void gpc_sim_queue_fini(struct gpc_sim_stream *stream);

/* Waits until there is room. */
void gpc_sim_queue_await(struct gpc_sim_stream *stream);

/* Waits until every stream of the context has room; does nothing unless is_event_queued is configured. */
void gpc_sim_queue_await_all(struct gpc_sim_context *context);

/* Adds an entry that ends at `end_ns`. */
void gpc_sim_queue_add_locked(struct gpc_sim_stream *stream, uint64_t end_ns);

/*
 * Adds an entry to each stream of the context.  The entry ends at `end_ns` or with the stream's earlier work,
 * whichever is later.  Does nothing unless is_event_queued is configured.
 */
void gpc_sim_queue_add_to_all(struct gpc_sim_context *context, uint64_t end_ns);

#endif
