/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks before a submission of work.
 *
 * Per-thread default streams exist without a cuStreamCreate and are detected at their first use: every function that
 * submits work checks its stream until the first such use is seen.  From then on fences are needed, and the checks end.
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

/* True if a free still lacks its barrier. */
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

/*
 * The same, and detects per-thread default streams; pass CU_STREAM_PER_THREAD for the NULL stream of a _ptsz function.
 */
static inline void note_stream(CUstream stream)
{
	if (is_per_thread_new(stream == CU_STREAM_PER_THREAD))
		per_thread_stream_used();
	submits(stream);
}

#endif
