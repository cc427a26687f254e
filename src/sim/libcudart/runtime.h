/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the stand-in runtime: its exports, the driver's functions, and the entry of every call. */
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
cudaError_t cudaMemcpy2DAsync_ptsz(void *dst, size_t dpitch, const void *src, size_t spitch,
	size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaEventRecordWithFlags_ptsz(
	cudaEvent_t event, cudaStream_t stream, unsigned int flags);
cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int *priority);
cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned int *flags);
cudaError_t cudaLaunchKernel_ptsz(
	const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream);
cudaError_t cudaLaunchCooperativeKernel_ptsz(
	const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream);
cudaError_t cudaLaunchKernelExC_ptsz(
	const cudaLaunchConfig_t *config, const void *func, void **args);

/* CUDA 12's names of functions that CUDA 13 has under the plain name. */
cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device);
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
	unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *n);
cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
	unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes,
	const cudaGraphEdgeData **edges, size_t *n);

/* Called by code that nvcc generates: to register a fat binary's contents on load, and to launch a kernel. */
void **__cudaRegisterFatBinary(void *fat_binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int thread_limit, void *tid, void *bid, dim3 *block, dim3 *grid, int *warp_size);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int is_extern,
	size_t size, int is_constant, int is_global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
	int is_extern, size_t size, int is_constant, int is_global);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(
	dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
	size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
	size_t shared, cudaStream_t stream);
#pragma GCC visibility pop

/*
 * The driver's functions: the member, the symbol with its type, and the requested name and version.  DRIVER_PT rows are
 * looked up twice, the second time with the per-thread flag.
 */
#define DRIVER_TABLE                                                                             \
	DRIVER(init, cuInit, "cuInit", 2000)                                                     \
	DRIVER(version, cuDriverGetVersion, "cuDriverGetVersion", 2020)                          \
	DRIVER(error_name, cuGetErrorName, "cuGetErrorName", 6000)                               \
	DRIVER(error_string, cuGetErrorString, "cuGetErrorString", 6000)                         \
	DRIVER(device_count, cuDeviceGetCount, "cuDeviceGetCount", 2000)                         \
	DRIVER(device_get, cuDeviceGet, "cuDeviceGet", 2000)                                     \
	DRIVER(device_attribute, cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000)             \
	DRIVER(device_name, cuDeviceGetName, "cuDeviceGetName", 2000)                            \
	DRIVER(device_uuid, cuDeviceGetUuid_v2, "cuDeviceGetUuid", 11040)                        \
	DRIVER(device_memory, cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020)                     \
	DRIVER(can_access_peer, cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", 4000)            \
	DRIVER(default_pool, cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", 11020)      \
	DRIVER(current_pool, cuDeviceGetMemPool, "cuDeviceGetMemPool", 11020)                    \
	DRIVER(pool_get, cuMemPoolGetAttribute, "cuMemPoolGetAttribute", 11020)                  \
	DRIVER(pool_set, cuMemPoolSetAttribute, "cuMemPoolSetAttribute", 11020)                  \
	DRIVER(pool_trim, cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020)                             \
	DRIVER(pool_access, cuMemPoolSetAccess, "cuMemPoolSetAccess", 11020)                     \
	DRIVER(graph_memory_get, cuDeviceGetGraphMemAttribute, "cuDeviceGetGraphMemAttribute",   \
		11040)                                                                           \
	DRIVER(graph_memory_set, cuDeviceSetGraphMemAttribute, "cuDeviceSetGraphMemAttribute",   \
		11040)                                                                           \
	DRIVER(graph_memory_trim, cuDeviceGraphMemTrim, "cuDeviceGraphMemTrim", 11040)           \
	DRIVER(enable_peer, cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", 4000)                \
	DRIVER(disable_peer, cuCtxDisablePeerAccess, "cuCtxDisablePeerAccess", 4000)             \
	DRIVER(priority_range, cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", 5050) \
	DRIVER(graph_nodes, cuGraphGetNodes, "cuGraphGetNodes", 10000)                           \
	DRIVER(device_pci, cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", 4010)                     \
	DRIVER(retain, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000)               \
	DRIVER(reset, cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000)                  \
	DRIVER(get_current, cuCtxGetCurrent, "cuCtxGetCurrent", 4000)                            \
	DRIVER(set_current, cuCtxSetCurrent, "cuCtxSetCurrent", 4000)                            \
	DRIVER(ctx_device, cuCtxGetDevice, "cuCtxGetDevice", 2000)                               \
	DRIVER(ctx_sync, cuCtxSynchronize, "cuCtxSynchronize", 2000)                             \
	DRIVER(mem_alloc, cuMemAlloc_v2, "cuMemAlloc", 3020)                                     \
	DRIVER(mem_free, cuMemFree_v2, "cuMemFree", 3020)                                        \
	DRIVER(mem_info, cuMemGetInfo_v2, "cuMemGetInfo", 3020)                                  \
	DRIVER(mem_pitch, cuMemAllocPitch_v2, "cuMemAllocPitch", 3020)                           \
	DRIVER(mem_managed, cuMemAllocManaged, "cuMemAllocManaged", 6000)                        \
	DRIVER(host_alloc, cuMemHostAlloc, "cuMemHostAlloc", 2020)                               \
	DRIVER(host_free, cuMemFreeHost, "cuMemFreeHost", 2000)                                  \
	DRIVER(host_register, cuMemHostRegister_v2, "cuMemHostRegister", 6050)                   \
	DRIVER(host_unregister, cuMemHostUnregister, "cuMemHostUnregister", 4000)                \
	DRIVER(host_pointer, cuMemHostGetDevicePointer_v2, "cuMemHostGetDevicePointer", 3020)    \
	DRIVER(pointer, cuPointerGetAttributes, "cuPointerGetAttributes", 7000)                  \
	DRIVER(stream_create, cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 5050)    \
	DRIVER(stream_destroy, cuStreamDestroy_v2, "cuStreamDestroy", 4000)                      \
	DRIVER(exchange_mode, cuThreadExchangeStreamCaptureMode,                                 \
		"cuThreadExchangeStreamCaptureMode", 10010)                                      \
	DRIVER(event_create, cuEventCreate, "cuEventCreate", 2000)                               \
	DRIVER(event_destroy, cuEventDestroy_v2, "cuEventDestroy", 4000)                         \
	DRIVER(event_query, cuEventQuery, "cuEventQuery", 2000)                                  \
	DRIVER(event_sync, cuEventSynchronize, "cuEventSynchronize", 2000)                       \
	DRIVER(event_elapsed, cuEventElapsedTime, "cuEventElapsedTime", 2000)                    \
	DRIVER(ipc_get, cuIpcGetMemHandle, "cuIpcGetMemHandle", 4010)                            \
	DRIVER(ipc_open, cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", 11000)                     \
	DRIVER(ipc_close, cuIpcCloseMemHandle, "cuIpcCloseMemHandle", 4010)                      \
	DRIVER(graph_instantiate, cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags",    \
		11040)                                                                           \
	DRIVER(graph_exec_destroy, cuGraphExecDestroy, "cuGraphExecDestroy", 10000)              \
	DRIVER(graph_destroy, cuGraphDestroy, "cuGraphDestroy", 10000)

#define DRIVER_PT_TABLE                                                                     \
	DRIVER_PT(copy, cuMemcpy, "cuMemcpy", 7000)                                         \
	DRIVER_PT(copy_async, cuMemcpyAsync, "cuMemcpyAsync", 7000)                         \
	DRIVER_PT(copy_2d, cuMemcpy2D_v2, "cuMemcpy2D", 7000)                               \
	DRIVER_PT(set, cuMemsetD8_v2, "cuMemsetD8", 7000)                                   \
	DRIVER_PT(set_async, cuMemsetD8Async, "cuMemsetD8Async", 7000)                      \
	DRIVER_PT(stream_sync, cuStreamSynchronize, "cuStreamSynchronize", 7000)            \
	DRIVER_PT(stream_query, cuStreamQuery, "cuStreamQuery", 7000)                       \
	DRIVER_PT(stream_wait, cuStreamWaitEvent, "cuStreamWaitEvent", 7000)                \
	DRIVER_PT(record, cuEventRecord, "cuEventRecord", 7000)                             \
	DRIVER_PT(begin_capture, cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010)    \
	DRIVER_PT(end_capture, cuStreamEndCapture, "cuStreamEndCapture", 10000)             \
	DRIVER_PT(is_capturing, cuStreamIsCapturing, "cuStreamIsCapturing", 10000)          \
	DRIVER_PT(launch_host, cuLaunchHostFunc, "cuLaunchHostFunc", 10000)                 \
	DRIVER_PT(launch, cuLaunchKernel, "cuLaunchKernel", 7000)                           \
	DRIVER_PT(copy_2d_async, cuMemcpy2DAsync_v2, "cuMemcpy2DAsync", 7000)               \
	DRIVER_PT(record_flags, cuEventRecordWithFlags, "cuEventRecordWithFlags", 11010)    \
	DRIVER_PT(stream_priority, cuStreamGetPriority, "cuStreamGetPriority", 7000)        \
	DRIVER_PT(stream_flags, cuStreamGetFlags, "cuStreamGetFlags", 7000)                 \
	DRIVER_PT(add_callback, cuStreamAddCallback, "cuStreamAddCallback", 7000)           \
	DRIVER_PT(capture_info, cuStreamGetCaptureInfo_v2, "cuStreamGetCaptureInfo", 11030) \
	DRIVER_PT(graph_launch, cuGraphLaunch, "cuGraphLaunch", 10000)                      \
	DRIVER_PT(alloc_async, cuMemAllocAsync, "cuMemAllocAsync", 11020)                   \
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

/* Starts the runtime on the first call.  Returns the error of the start, which becomes the last error. */
cudaError_t rt_begin(void);

/* Starts the runtime, and makes the current device's primary context current if the thread has no context. */
cudaError_t rt_begin_with_context(void);

/* The runtime's version, 12080 or 13000: told by the library's file name, because both are built from one source. */
int rt_version(void);

/* The device chosen by the calling thread. */
int rt_device(void);

/* Converts the driver's result to the runtime's.  An error other than "not ready" becomes the last error. */
cudaError_t rt_give(CUresult res);

/* The body of a function that is not simulated: prints its name once, and returns cudaErrorNotSupported. */
int rt_not_supported(const char *name);

/* The body of a function that makes one call of the driver, which needs no context. */
#define WITH_RUNTIME(call)                            \
	do {                                          \
		cudaError_t begun = rt_begin();       \
		return begun ? begun : rt_give(call); \
	} while (0)

/* The body of a function that makes one call of the driver, which needs a context. */
#define WITH_CONTEXT(call)                                   \
	do {                                                 \
		cudaError_t begun = rt_begin_with_context(); \
		return begun ? begun : rt_give(call);        \
	} while (0)

#endif
