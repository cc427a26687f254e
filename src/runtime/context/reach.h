/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses to memory by other contexts, processes and devices: no stream of the memory's own context orders them.
 *
 * Threads   Any.
 * Failure   None: work whose addresses are unknown is assumed to access all memory.
 */
#ifndef GPC_RUNTIME_CONTEXT_REACH_H
#define GPC_RUNTIME_CONTEXT_REACH_H

#include <stdbool.h>

#include "alloc/pool.h"
#include "driver/cuda_fns.h"
#include "gpucache_format.h"
#include "model/counters.h"

struct gpc_context;

/* Call after the program enabled peer access: the current context may access memory of `of_memory` from now on. */
void gpc_runtime_peer_enabled(CUcontext of_memory);

/* Call when the program creates a context besides the primary ones. */
void gpc_runtime_context_created(void);

/* Call if `reaching` may have accessed memory of all other contexts; is_mutual: the others its memory, too. */
void gpc_reach_join_all(struct gpc_context *reaching, bool is_mutual);

/*
 * Call before work is submitted to `stream` that accesses these addresses: by unified addressing, a copy may access
 * memory of contexts that are not peers.  `dst` is GPC_ANYWHERE if the addresses are unknown.
 */
#define GPC_ANYWHERE ((CUdeviceptr)-1)
void gpc_runtime_reached(CUstream stream, CUdeviceptr dst, CUdeviceptr src);

/*
 * Call before another process or a network card gets access to this memory.  No stream orders their accesses, so no
 * work of an earlier owner of the block may still run.  Ends the one-stream rule (alloc/fence.h) of the memory's
 * context, waits on the host for work on blocks that were reused under that rule, and ends the use of pages.
 */
void gpc_runtime_leaves_order(CUdeviceptr ptr);

/*
 * Ends the one-stream rule: waits on the host for work on blocks that were reused without a fence.  Of several reasons
 * `why`, the recording keeps the first.
 */
void gpc_reach_end_one_stream(struct gpc_context *owner, enum gpucache_one_stream_end why);

/* As gpc_reach_end_one_stream, but only later work of this context must wait, so the device waits if it can. */
void gpc_reach_order_one_stream(struct gpc_context *owner, enum gpucache_one_stream_end why);

/* Records only the reason, for a caller that ends the rule itself.  Lock: that of the pool. */
static inline void gpc_reach_note_end_locked(
	struct gpc_pool *pool, enum gpucache_one_stream_end why)
{
	if (gpc_counter_get(&pool->counters->one_stream_end) == GPUCACHE_ONE_STREAM_HOLDS)
		gpc_counter_set(&pool->counters->one_stream_end, why);
}

/* The context that this stream belongs to. */
struct gpc_context *gpc_context_of_stream(CUstream stream);

#endif
