/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of the stand-in runtime share: the driver's functions, and the way in. */
#ifndef SIMCUDA_RUNTIME_H
#define SIMCUDA_RUNTIME_H

#define SIMCUDA_NO_NAME_MACROS
#include <cuda.h>
#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>

cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync_ptsz(
	void *dst, const void *src, size_t n, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemset_ptds(void *dst, int value, size_t n);
cudaError_t cudaMemsetAsync_ptsz(void *dst, int value, size_t n, cudaStream_t stream);
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);
cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaMallocAsync_ptsz(void **ptr, size_t size, cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void *ptr, cudaStream_t stream);
#pragma GCC visibility pop

/*
 * The driver's functions: the member, the symbol whose type it has, the name and the version that are
 * asked for.  DRIVER_PT rows are asked twice, the second time with the per-thread flag.
 */
#define DRIVER_TABLE                                                                          \
	DRIVER(init, cuInit, "cuInit", 2000)                                                  \
	DRIVER(version, cuDriverGetVersion, "cuDriverGetVersion", 2020)                       \
	DRIVER(error_name, cuGetErrorName, "cuGetErrorName", 6000)                            \
	DRIVER(error_string, cuGetErrorString, "cuGetErrorString", 6000)                      \
	DRIVER(device_count, cuDeviceGetCount, "cuDeviceGetCount", 2000)                      \
	DRIVER(device_get, cuDeviceGet, "cuDeviceGet", 2000)                                  \
	DRIVER(device_attribute, cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000)          \
	DRIVER(device_pci, cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", 4010)                  \
	DRIVER(retain, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000)            \
	DRIVER(reset, cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000)               \
	DRIVER(get_current, cuCtxGetCurrent, "cuCtxGetCurrent", 4000)                         \
	DRIVER(set_current, cuCtxSetCurrent, "cuCtxSetCurrent", 4000)                         \
	DRIVER(ctx_device, cuCtxGetDevice, "cuCtxGetDevice", 2000)                            \
	DRIVER(ctx_sync, cuCtxSynchronize, "cuCtxSynchronize", 2000)                          \
	DRIVER(mem_alloc, cuMemAlloc_v2, "cuMemAlloc", 3020)                                  \
	DRIVER(mem_free, cuMemFree_v2, "cuMemFree", 3020)                                     \
	DRIVER(mem_info, cuMemGetInfo_v2, "cuMemGetInfo", 3020)                               \
	DRIVER(mem_pitch, cuMemAllocPitch_v2, "cuMemAllocPitch", 3020)                        \
	DRIVER(mem_managed, cuMemAllocManaged, "cuMemAllocManaged", 6000)                     \
	DRIVER(host_alloc, cuMemHostAlloc, "cuMemHostAlloc", 2020)                            \
	DRIVER(host_free, cuMemFreeHost, "cuMemFreeHost", 2000)                               \
	DRIVER(host_register, cuMemHostRegister_v2, "cuMemHostRegister", 6050)                \
	DRIVER(host_unregister, cuMemHostUnregister, "cuMemHostUnregister", 4000)             \
	DRIVER(host_pointer, cuMemHostGetDevicePointer_v2, "cuMemHostGetDevicePointer", 3020) \
	DRIVER(pointer, cuPointerGetAttributes, "cuPointerGetAttributes", 7000)               \
	DRIVER(stream_create, cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 5050) \
	DRIVER(stream_destroy, cuStreamDestroy_v2, "cuStreamDestroy", 4000)                   \
	DRIVER(exchange_mode, cuThreadExchangeStreamCaptureMode,                              \
		"cuThreadExchangeStreamCaptureMode", 10010)                                   \
	DRIVER(event_create, cuEventCreate, "cuEventCreate", 2000)                            \
	DRIVER(event_destroy, cuEventDestroy_v2, "cuEventDestroy", 4000)                      \
	DRIVER(event_query, cuEventQuery, "cuEventQuery", 2000)                               \
	DRIVER(event_sync, cuEventSynchronize, "cuEventSynchronize", 2000)                    \
	DRIVER(event_elapsed, cuEventElapsedTime, "cuEventElapsedTime", 2000)                 \
	DRIVER(ipc_get, cuIpcGetMemHandle, "cuIpcGetMemHandle", 4010)                         \
	DRIVER(ipc_open, cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", 11000)                  \
	DRIVER(ipc_close, cuIpcCloseMemHandle, "cuIpcCloseMemHandle", 4010)                   \
	DRIVER(graph_instantiate, cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", \
		11040)                                                                        \
	DRIVER(graph_exec_destroy, cuGraphExecDestroy, "cuGraphExecDestroy", 10000)           \
	DRIVER(graph_destroy, cuGraphDestroy, "cuGraphDestroy", 10000)

#define DRIVER_PT_TABLE                                                                  \
	DRIVER_PT(copy, cuMemcpy, "cuMemcpy", 7000)                                      \
	DRIVER_PT(copy_async, cuMemcpyAsync, "cuMemcpyAsync", 7000)                      \
	DRIVER_PT(copy_2d, cuMemcpy2D_v2, "cuMemcpy2D", 7000)                            \
	DRIVER_PT(set, cuMemsetD8_v2, "cuMemsetD8", 7000)                                \
	DRIVER_PT(set_async, cuMemsetD8Async, "cuMemsetD8Async", 7000)                   \
	DRIVER_PT(stream_sync, cuStreamSynchronize, "cuStreamSynchronize", 7000)         \
	DRIVER_PT(stream_query, cuStreamQuery, "cuStreamQuery", 7000)                    \
	DRIVER_PT(stream_wait, cuStreamWaitEvent, "cuStreamWaitEvent", 7000)             \
	DRIVER_PT(record, cuEventRecord, "cuEventRecord", 7000)                          \
	DRIVER_PT(begin_capture, cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010) \
	DRIVER_PT(end_capture, cuStreamEndCapture, "cuStreamEndCapture", 10000)          \
	DRIVER_PT(is_capturing, cuStreamIsCapturing, "cuStreamIsCapturing", 10000)       \
	DRIVER_PT(launch_host, cuLaunchHostFunc, "cuLaunchHostFunc", 10000)              \
	DRIVER_PT(graph_launch, cuGraphLaunch, "cuGraphLaunch", 10000)                   \
	DRIVER_PT(alloc_async, cuMemAllocAsync, "cuMemAllocAsync", 11020)                \
	DRIVER_PT(free_async, cuMemFreeAsync, "cuMemFreeAsync", 11020)

struct driver {
#define DRIVER(member, symbol, name, version) __typeof__(&symbol) member;
	DRIVER_TABLE
#undef DRIVER
#define DRIVER_PT(member, symbol, name, version) __typeof__(&symbol) member[2];
	DRIVER_PT_TABLE
#undef DRIVER_PT
	__typeof__(&cuGetProcAddress_v2) lookup;
};

extern struct driver cu;

/* Starts the runtime once.  The error that it met, which is also the last error. */
cudaError_t rt_begin(void);

/* And makes the current device's primary context current where the thread has no context. */
cudaError_t rt_begin_with_context(void);

/* The driver's answer as the runtime's, remembered as the last error. */
cudaError_t rt_give(CUresult res);

/* A function that needs a context and does one call. */
#define WITH_CONTEXT(call)                                   \
	do {                                                 \
		cudaError_t begun = rt_begin_with_context(); \
		return begun ? begun : rt_give(call);        \
	} while (0)

#endif
