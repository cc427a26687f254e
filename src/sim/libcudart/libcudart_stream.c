/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in runtime: streams, events, captures. */
#include <string.h>

#include "sim/libcudart/runtime.h"

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
	WITH_CONTEXT(cu.stream_create(stream, flags, priority));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithPriority(stream, 0, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	WITH_CONTEXT(cu.stream_destroy(stream));
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	WITH_CONTEXT(cu.begin_capture[0](stream, (CUstreamCaptureMode)mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	WITH_CONTEXT(cu.end_capture[0](stream, graph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	CUstreamCaptureStatus seen = CU_STREAM_CAPTURE_STATUS_NONE;
	cudaError_t error = rt_begin_with_context();

	if (error == cudaSuccess)
		error = rt_give(cu.is_capturing[0](stream, &seen));
	if (error == cudaSuccess)
		*status = (enum cudaStreamCaptureStatus)seen;
	return error;
}

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
	unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *n)
{
	CUstreamCaptureStatus seen = CU_STREAM_CAPTURE_STATUS_NONE;
	cuuint64_t number = 0;
	cudaError_t error = rt_begin_with_context();

	if (error == cudaSuccess)
		error = rt_give(cu.capture_info[0](stream, &seen, &number, graph, nodes, n));
	if (error == cudaSuccess) {
		*status = (enum cudaStreamCaptureStatus)seen;
		if (id)
			*id = number;
	}
	return error;
}

cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
	unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes,
	const cudaGraphEdgeData **edges, size_t *n)
{
	if (edges)
		*edges = NULL;
	return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, n);
}

/* CUDA 12 has a shorter function of this name, without the parameters after the third. */
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
	unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes,
	const cudaGraphEdgeData **edges, size_t *n)
{
	if (rt_version() < 13000)
		return cudaStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
	return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, edges, n);
}

cudaError_t cudaStreamAddCallback(
	cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned int flags)
{
	CUstreamCallback same;

	/* Both status types have the same values. */
	memcpy(&same, &callback, sizeof same);
	WITH_CONTEXT(cu.add_callback[0](stream, same, data, flags));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	CUstreamCaptureMode exchanged = (CUstreamCaptureMode)*mode;
	cudaError_t error = rt_begin();

	if (error == cudaSuccess)
		error = rt_give(cu.exchange_mode(&exchanged));
	if (error == cudaSuccess)
		*mode = (enum cudaStreamCaptureMode)exchanged;
	return error;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg)
{
	WITH_CONTEXT(cu.launch_host[0](stream, fn, arg));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	WITH_CONTEXT(cu.event_create(event, flags));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	WITH_CONTEXT(cu.event_destroy(event));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	WITH_CONTEXT(cu.event_query(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	WITH_CONTEXT(cu.event_sync(event));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	WITH_CONTEXT(cu.event_elapsed(ms, from, to));
}
