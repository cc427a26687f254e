/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of one context on memory of another, and whoever else reaches memory that no stream orders.
 *
 * Threads   Any.
 * Failure   None: what cannot be told apart is taken to reach everything.
 */
#ifndef GPC_RUNTIME_CONTEXT_REACH_H
#define GPC_RUNTIME_CONTEXT_REACH_H

#include <stdbool.h>

#include "alloc/pool.h"
#include "driver/cuda_fns.h"
#include "gpucache_format.h"
#include "stats/counters.h"

struct gpc_context;

/* The current context may work on memory of this one from now on. */
void gpc_runtime_peer_enabled(CUcontext of_memory);

/* The program makes a context beside those that the devices have. */
void gpc_runtime_context_created(void);

/*
 * Work on `stream` is about to be submitted that touches these two addresses: by unified addressing
 * a copy reaches memory of contexts that are no peers.  GPC_ANYWHERE as the first: nobody knows
 * what it touches.
 */
#define GPC_ANYWHERE ((CUdeviceptr)-1)
void gpc_runtime_reached(CUstream stream, CUdeviceptr dst, CUdeviceptr src);

/*
 * Somebody whom no stream orders is about to reach this memory: another process, a network card.  So no
 * work of an earlier owner may still run: ends the one-stream rule of its context (alloc/fence.h), and
 * waits on the host for what that rule let through.
 */
void gpc_runtime_leaves_order(CUdeviceptr ptr);

/*
 * What was reused without a fence in this context is done; from now on every free waits
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

/* The context that this stream belongs to. */
struct gpc_context *gpc_context_of_stream(CUstream stream);

#endif
