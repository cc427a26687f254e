/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: which there are, and which capture.
 *
 * Every function that copies or fills looks at its addresses, where there are several contexts:
 * memory of another one may be among them.
 */
#include "preload/per_thread.h"

/* Most processes have one context, and nothing to look for. */
static inline void reaches(CUstream stream, CUdeviceptr dst, CUdeviceptr src)
{
	if (__atomic_load_n(&gpc_runtime_many_contexts, __ATOMIC_RELAXED))
		INSIDE(gpc_runtime_reached(stream, dst, src));
}

#define DEFINE(name, params, args, is_per_thread, reach) \
	CUresult name params                             \
	{                                                \
		if (is_per_thread_new(is_per_thread))    \
			per_thread_stream_used();        \
		reach;                                   \
		return heard(real_##name args);          \
	}
#define IS_PER_THREAD(stream)         ((stream) == CU_STREAM_PER_THREAD)
#define IS_PER_THREAD_OR_NULL(stream) ((stream) == CU_STREAM_PER_THREAD || (stream) == NULL)
#define HOOK(name, since, gets, params, args)
#define HOOK_STREAM(name, since, params, args, stream) \
	DEFINE(name, params, args, IS_PER_THREAD(stream), (void)0)
#define HOOK_PER_THREAD(name, since, params, args, stream) \
	DEFINE(name, params, args, IS_PER_THREAD_OR_NULL(stream), (void)0)
#define HOOK_COPY(name, since, params, args, stream, dst, src) \
	DEFINE(name, params, args, IS_PER_THREAD(stream), reaches(stream, dst, src))
#define HOOK_COPY_PER_THREAD(name, since, params, args, stream, dst, src) \
	DEFINE(name, params, args, IS_PER_THREAD_OR_NULL(stream), reaches(stream, dst, src))
#include "preload/symbols.def"

static CUresult stream_created(CUresult result, const CUstream *stream)
{
	if (result == CUDA_SUCCESS && stream)
		INSIDE(gpc_runtime_stream_created(*stream));
	return result;
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return stream_created(real_cuStreamCreate(phStream, Flags), phStream);
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	return stream_created(real_cuStreamCreateWithPriority(phStream, flags, priority), phStream);
}

CUresult cuGreenCtxStreamCreate(
	CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
{
	return stream_created(
		real_cuGreenCtxStreamCreate(phStream, greenCtx, flags, priority), phStream);
}

static void stream_destroyed(CUstream stream)
{
	if (stream)
		INSIDE(gpc_runtime_stream_destroyed(stream));
}

CUresult cuStreamDestroy(CUstream hStream)
{
	stream_destroyed(hStream);
	return real_cuStreamDestroy(hStream);
}

CUresult cuStreamDestroy_v2(CUstream hStream)
{
	stream_destroyed(hStream);
	return real_cuStreamDestroy_v2(hStream);
}

static void capture_begins(CUstream stream)
{
	INSIDE(gpc_runtime_capture_begins(stream));
}

static void capture_ended(CUstream stream)
{
	INSIDE(gpc_runtime_capture_ended(stream));
}

/*
 * Counted before the driver is told, so that no event of ours is recorded in between; uncounted
 * where it refused. A per-thread default stream is noticed before its capture begins: the wait
 * that it needs would break the capture.
 */
#define BEGIN_CAPTURE_ON(stream, call)                                   \
	do {                                                             \
		CUresult result;                                         \
                                                                         \
		if (is_per_thread_new((stream) == CU_STREAM_PER_THREAD)) \
			per_thread_stream_used();                        \
		capture_begins(stream);                                  \
		result = call;                                           \
		if (result != CUDA_SUCCESS)                              \
			capture_ended(stream);                           \
		return result;                                           \
	} while (0)
#define BEGIN_CAPTURE(call)      BEGIN_CAPTURE_ON(hStream ? hStream : CU_STREAM_LEGACY, call)
#define BEGIN_CAPTURE_PTSZ(call) BEGIN_CAPTURE_ON(hStream ? hStream : CU_STREAM_PER_THREAD, call)

CUresult cuStreamBeginCapture(CUstream hStream)
{
	BEGIN_CAPTURE(real_cuStreamBeginCapture(hStream));
}

CUresult cuStreamBeginCapture_ptsz(CUstream hStream)
{
	BEGIN_CAPTURE_PTSZ(real_cuStreamBeginCapture_ptsz(hStream));
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
	BEGIN_CAPTURE(real_cuStreamBeginCapture_v2(hStream, mode));
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode)
{
	BEGIN_CAPTURE_PTSZ(real_cuStreamBeginCapture_v2_ptsz(hStream, mode));
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUstreamCaptureMode mode)
{
	BEGIN_CAPTURE(real_cuStreamBeginCaptureToGraph(
		hStream, hGraph, dependencies, dependencyData, numDependencies, mode));
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUstreamCaptureMode mode)
{
	BEGIN_CAPTURE_PTSZ(real_cuStreamBeginCaptureToGraph_ptsz(
		hStream, hGraph, dependencies, dependencyData, numDependencies, mode));
}

/*
 * The capture is over also where it was invalid; only a stream that does not capture, or
 * another thread's, goes on.
 */
static bool is_capture_over(CUresult result)
{
	return result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
	       result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED ||
	       result == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	CUresult result = real_cuStreamEndCapture(hStream, phGraph);

	if (is_capture_over(result))
		capture_ended(hStream);
	return result;
}

CUresult cuStreamEndCapture_ptsz(CUstream hStream, CUgraph *phGraph)
{
	CUresult result = real_cuStreamEndCapture_ptsz(hStream, phGraph);

	if (is_capture_over(result))
		capture_ended(hStream ? hStream : CU_STREAM_PER_THREAD);
	return result;
}
