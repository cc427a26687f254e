/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks before a submission of work.
 *
 * A per-thread default stream exists without a cuStreamCreate, so we learn of it at its first use.  Every function that
 * submits work checks its stream until the first such use.  Then the one-stream rule ends, and with it the checks.
 *
 * The first submission after a free raises the barrier that is due (alloc/barrier.h).
 */
#ifndef GPC_PRELOAD_PER_THREAD_H
#define GPC_PRELOAD_PER_THREAD_H

#include "preload/real.h"
#include "runtime/context/streams.h"

static inline bool is_per_thread_new(bool is_per_thread)
{
	return __builtin_expect(
		is_per_thread && !__atomic_load_n(&gpc_runtime_per_thread_seen, __ATOMIC_RELAXED),
		0);
}

static inline void per_thread_stream_used(void)
{
	INSIDE(gpc_runtime_per_thread_stream_used());
}

/* True if a block was freed whose barrier has not been raised yet. */
static inline bool is_barrier_due(void)
{
	return __builtin_expect(
		atomic_load_explicit(&gpc_runtime_duties.n_due, memory_order_acquire) > 0, 0);
}

/* Call before work is submitted to `stream`: raises the barrier that is due. */
static inline void submits(CUstream stream)
{
	if (is_barrier_due())
		INSIDE(gpc_runtime_submits(stream));
}

/* As submits, and detects per-thread default streams: pass CU_STREAM_PER_THREAD for NULL in a _ptsz function. */
static inline void note_stream(CUstream stream)
{
	if (is_per_thread_new(stream == CU_STREAM_PER_THREAD))
		per_thread_stream_used();
	submits(stream);
}

#endif
