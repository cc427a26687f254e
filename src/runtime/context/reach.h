/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses to memory that no stream of its context orders: by other contexts, processes and devices.
 *
 * Threads   Any.
 * Failure   None: unknown work is assumed to access everything.
 */
#ifndef GPC_RUNTIME_CONTEXT_REACH_H
#define GPC_RUNTIME_CONTEXT_REACH_H

#include <stdbool.h>

#include "alloc/pool.h"
#include "driver/cuda_fns.h"
#include "gpucache_format.h"
#include "stats/counters.h"

struct gpc_context;

/* Call after the program enabled peer access: the current context may access memory of `of_memory` from now on. */
void gpc_runtime_peer_enabled(CUcontext of_memory);

/* Call when the program creates a context besides the primary ones. */
void gpc_runtime_context_created(void);

/* Call if the context may have accessed memory of all others; is_mutual: and the others its memory. */
void gpc_reach_join_all(struct gpc_context *reaching, bool is_mutual);

/*
 * Call before submitting work on `stream` that touches these addresses: through unified addressing a
 * copy reaches memory of contexts that are not peers.  GPC_ANYWHERE as `dst`: unknown.
 */
#define GPC_ANYWHERE ((CUdeviceptr)-1)
void gpc_runtime_reached(CUstream stream, CUdeviceptr dst, CUdeviceptr src);

/*
 * Call before another process or a network card, which no stream orders, gets access to this memory: no work
 * of an earlier owner may still run.  Ends the one-stream rule of its context (alloc/fence.h), and waits on
 * the host for work on blocks that the rule let be reused.
 */
void gpc_runtime_leaves_order(CUdeviceptr ptr);

/*
 * Ends the one-stream rule: waits on the host for work on blocks that were reused without a fence.  The
 * recording keeps the first reason.
 */
void gpc_reach_end_one_stream(struct gpc_context *owner, enum gpucache_one_stream_end why);

/* As gpc_reach_end_one_stream, but for later work of this context only: if possible the device waits, not the host. */
void gpc_reach_order_one_stream(struct gpc_context *owner, enum gpucache_one_stream_end why);

/* Notes the reason only, for a caller that ends the rule itself.  Lock: the pool's. */
static inline void gpc_reach_note_end_locked(
	struct gpc_pool *pool, enum gpucache_one_stream_end why)
{
	if (gpc_counter_get(&pool->counters->one_stream_end) == GPUCACHE_ONE_STREAM_HOLDS)
		gpc_counter_set(&pool->counters->one_stream_end, why);
}

/* The context that this stream belongs to. */
struct gpc_context *gpc_context_of_stream(CUstream stream);

#endif
