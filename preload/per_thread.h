/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work done before a submission.
 *
 * Per-thread default streams come without a cuStreamCreate and are detected at their first use: every function that
 * submits work checks its stream until the first such use is seen.  From then on fences are needed, and nothing checks
 * any more.
 *
 * After a free, the first submission puts the context in order (alloc/barrier.h).
 */
#ifndef GPC_PRELOAD_PER_THREAD_H
#define GPC_PRELOAD_PER_THREAD_H

#include "preload/real.h"
#include "runtime/context/barrier.h"
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

/* A free is not in order yet. */
static inline bool is_barrier_due(void)
{
	return __builtin_expect(
		atomic_load_explicit(&gpc_runtime_duties.n_due, memory_order_acquire) > 0, 0);
}

/* Work goes to this stream, and must not overtake what was before a free. */
static inline void submits(CUstream stream)
{
	if (is_barrier_due())
		INSIDE(gpc_runtime_submits(stream));
}

/* Work goes to this stream.  A NULL stream of a _ptsz function is CU_STREAM_PER_THREAD here. */
static inline void note_stream(CUstream stream)
{
	if (is_per_thread_new(stream == CU_STREAM_PER_THREAD))
		per_thread_stream_used();
	submits(stream);
}

#endif
