/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that submit work to a stream or wait for it, and the life of streams and captures.
 *
 * Once the process has several contexts, every function that copies or fills checks its addresses, which may be memory
 * of another context.
 */
#include "preload/per_thread.h"
#include "runtime/context/contexts.h"
#include "runtime/context/reach.h"
#include "runtime/context/streams.h"

/* False in most processes: with one context there is nothing to check. */
static inline bool has_many_contexts(void)
{
	return __builtin_expect(
		__atomic_load_n(&gpc_runtime_many_contexts, __ATOMIC_RELAXED), false);
}

static inline void reaches(CUstream stream, CUdeviceptr dst, CUdeviceptr src)
{
	if (has_many_contexts())
		INSIDE(gpc_runtime_reached(stream, dst, src));
}

/* True if the kernel may overlap its predecessor.  False once the first such launch has been seen. */
static bool may_overlap(const CUlaunchConfig *config)
{
	if (!config || !config->attrs ||
		__atomic_load_n(&gpc_runtime_overlap_seen, __ATOMIC_RELAXED))
		return false;
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttribute *attribute = &config->attrs[i];

		if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
			(attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
				attribute->value.first != 0))
			return true;
	}
	return false;
}

static void overlaps(const CUlaunchConfig *config)
{
	if (may_overlap(config))
		INSIDE(gpc_runtime_overlap_used());
}

/*
 * name_slowly does what must happen before the driver's call.  It is a cold function of its own, so a submission that
 * needs none of it costs a few loads, and keeps its arguments in registers.
 */
#define DEFINE(name, gets, params, args, stream, is_reaching, reach, is_due, then)          \
	static __attribute__((noinline, cold)) CUresult name##_slowly params                \
	{                                                                                   \
		if (is_per_thread_new(IS_PER_THREAD_##gets(stream)))                        \
			per_thread_stream_used();                                           \
		reach;                                                                      \
		then(stream);                                                               \
		return answered(real_##name args);                                          \
	}                                                                                   \
	CUresult name params                                                                \
	{                                                                                   \
		CUresult(*real) params = __atomic_load_n(&gpc_real.name, __ATOMIC_RELAXED); \
                                                                                            \
		if (__builtin_expect(!real, 0) ||                                           \
			is_per_thread_new(IS_PER_THREAD_##gets(stream)) || is_due() ||      \
			is_reaching)                                                        \
			return name##_slowly args;                                          \
		return answered(real args);                                                 \
	}
#define IS_PER_THREAD_SUBMIT(stream) ((stream) == CU_STREAM_PER_THREAD)
#define IS_PER_THREAD_THREAD(stream) ((stream) == CU_STREAM_PER_THREAD || (stream) == NULL)
#define HOOK(name, since, gets, params, args)
#define HOOK_STREAM(name, since, gets, params, args, stream) \
	DEFINE(name, gets, params, args, stream, false, (void)0, is_barrier_due, submits)
#define HOOK_LAUNCH(name, since, gets, params, args, stream)                            \
	DEFINE(name, gets, params, args, stream, may_overlap(config), overlaps(config), \
		is_barrier_due, submits)
#define HOOK_COPY(name, since, gets, params, args, stream, dst, src)                             \
	DEFINE(name, gets, params, args, stream, has_many_contexts(), reaches(stream, dst, src), \
		is_barrier_due, submits)
#define HOOK_QUERY(name, since, gets, params, args, stream) \
	DEFINE(name, gets, params, args, stream, false, (void)0, is_unsettled, queries)
#include "preload/symbols.def"

/* clang-format off */
NOTED(cuStreamCreate, gpc_runtime_stream_created(*stream),
	(CUstream *stream, unsigned int flags), (stream, flags))
NOTED(cuStreamCreateWithPriority, gpc_runtime_stream_created(*stream),
	(CUstream *stream, unsigned int flags, int priority), (stream, flags, priority))
NOTED(cuGreenCtxStreamCreate, gpc_runtime_stream_created(*stream),
	(CUstream *stream, CUgreenCtx context, unsigned int flags, int priority),
	(stream, context, flags, priority))
/* clang-format on */

#define DESTROYED(name)                                               \
	CUresult name(CUstream stream)                                \
	{                                                             \
		if (stream)                                           \
			INSIDE(gpc_runtime_stream_destroyed(stream)); \
		return real_##name(stream);                           \
	}

DESTROYED(cuStreamDestroy)
DESTROYED(cuStreamDestroy_v2)

/*
 * Counts a capture before the driver begins it, because an event of ours recorded in between would break the capture.
 * If the driver refuses, the capture counts no longer.  note_stream comes first, because a barrier that it raises would
 * break the capture, too.  `none` is the stream that NULL means.
 */
#define CAPTURE_BEGINS(name, none, params, args)               \
	CUresult name params                                   \
	{                                                      \
		CUstream on = stream ? stream : none;          \
		CUresult result;                               \
                                                               \
		note_stream(on);                               \
		INSIDE(gpc_runtime_capture_begins(on));        \
		result = real_##name args;                     \
		if (result != CUDA_SUCCESS)                    \
			INSIDE(gpc_runtime_capture_ended(on)); \
		return result;                                 \
	}
#define TO_GRAPH                                                                                 \
	(CUstream stream, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *edges, \
		size_t n, CUstreamCaptureMode mode)

CAPTURE_BEGINS(cuStreamBeginCapture, CU_STREAM_LEGACY, (CUstream stream), (stream))
CAPTURE_BEGINS(cuStreamBeginCapture_ptsz, CU_STREAM_PER_THREAD, (CUstream stream), (stream))
CAPTURE_BEGINS(cuStreamBeginCapture_v2, CU_STREAM_LEGACY,
	(CUstream stream, CUstreamCaptureMode mode), (stream, mode))
CAPTURE_BEGINS(cuStreamBeginCapture_v2_ptsz, CU_STREAM_PER_THREAD,
	(CUstream stream, CUstreamCaptureMode mode), (stream, mode))
CAPTURE_BEGINS(cuStreamBeginCaptureToGraph, CU_STREAM_LEGACY, TO_GRAPH,
	(stream, graph, nodes, edges, n, mode))
CAPTURE_BEGINS(cuStreamBeginCaptureToGraph_ptsz, CU_STREAM_PER_THREAD, TO_GRAPH,
	(stream, graph, nodes, edges, n, mode))

/* An invalidated capture is over, too.  After other errors, such as a call by the wrong thread, the capture goes on. */
static bool is_capture_over(CUresult result)
{
	return result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
	       result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED ||
	       result == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
}

#define CAPTURE_ENDS(name, none)                                                   \
	CUresult name(CUstream stream, CUgraph *graph)                             \
	{                                                                          \
		CUresult result = real_##name(stream, graph);                      \
                                                                                   \
		if (is_capture_over(result))                                       \
			INSIDE(gpc_runtime_capture_ended(stream ? stream : none)); \
		return result;                                                     \
	}

CAPTURE_ENDS(cuStreamEndCapture, NULL)
CAPTURE_ENDS(cuStreamEndCapture_ptsz, CU_STREAM_PER_THREAD)
