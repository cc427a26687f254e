/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in runtime: streams, events, captures, graphs. */
#include "simcuda/runtime.h"

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

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	WITH_CONTEXT(cu.graph_instantiate(exec, graph, flags));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	WITH_CONTEXT(cu.graph_launch[0](exec, stream));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	WITH_CONTEXT(cu.graph_exec_destroy(exec));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	WITH_CONTEXT(cu.graph_destroy(graph));
}
