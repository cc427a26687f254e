/* SPDX-License-Identifier: Apache-2.0 */
/* A part of cuda.h, which includes it: maps names without a version to versioned symbols. */
#ifndef SIMCUDA_CUDA_NAMES_H
#define SIMCUDA_CUDA_NAMES_H

/* Each base name is a macro for its newest symbol, as in the real header. */
#ifndef SIMCUDA_NO_NAME_MACROS
#define cuGetProcAddress           cuGetProcAddress_v2
#define cuDeviceGetUuid            cuDeviceGetUuid_v2
#define cuDeviceTotalMem           cuDeviceTotalMem_v2
#define cuDevicePrimaryCtxRelease  cuDevicePrimaryCtxRelease_v2
#define cuDevicePrimaryCtxReset    cuDevicePrimaryCtxReset_v2
#define cuDevicePrimaryCtxSetFlags cuDevicePrimaryCtxSetFlags_v2
#define cuCtxCreate                cuCtxCreate_v4
#define cuCtxDestroy               cuCtxDestroy_v2
#define cuCtxPushCurrent           cuCtxPushCurrent_v2
#define cuCtxPopCurrent            cuCtxPopCurrent_v2
#define cuMemAlloc                 cuMemAlloc_v2
#define cuMemFree                  cuMemFree_v2
#define cuMemGetInfo               cuMemGetInfo_v2
#define cuMemAllocPitch            cuMemAllocPitch_v2
#define cuMemAllocHost             cuMemAllocHost_v2
#define cuMemHostRegister          cuMemHostRegister_v2
#define cuModuleGetGlobal          cuModuleGetGlobal_v2
#define cuLinkCreate               cuLinkCreate_v2
#define cuLinkAddData              cuLinkAddData_v2
#define cuLinkAddFile              cuLinkAddFile_v2
#define cuArrayCreate              cuArrayCreate_v2
#define cuArray3DCreate            cuArray3DCreate_v2
#define cuArray3DGetDescriptor     cuArray3DGetDescriptor_v2
#define cuMemHostGetDevicePointer  cuMemHostGetDevicePointer_v2
#define cuMemGetAddressRange       cuMemGetAddressRange_v2
#define cuMemAdvise                cuMemAdvise_v2
#define cuStreamDestroy            cuStreamDestroy_v2
#define cuEventDestroy             cuEventDestroy_v2
#define cuEventElapsedTime         cuEventElapsedTime_v2
#define cuIpcOpenMemHandle         cuIpcOpenMemHandle_v2
#define cuGraphInstantiate         cuGraphInstantiateWithFlags
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define cuMemcpy                     cuMemcpy_ptds
#define cuMemcpyAsync                cuMemcpyAsync_ptsz
#define cuMemcpyHtoD                 cuMemcpyHtoD_v2_ptds
#define cuMemcpyDtoH                 cuMemcpyDtoH_v2_ptds
#define cuMemcpyDtoD                 cuMemcpyDtoD_v2_ptds
#define cuMemcpyHtoDAsync            cuMemcpyHtoDAsync_v2_ptsz
#define cuMemcpyDtoHAsync            cuMemcpyDtoHAsync_v2_ptsz
#define cuMemcpyDtoDAsync            cuMemcpyDtoDAsync_v2_ptsz
#define cuMemcpy2D                   cuMemcpy2D_v2_ptds
#define cuMemcpy2DAsync              cuMemcpy2DAsync_v2_ptsz
#define cuMemsetD8                   cuMemsetD8_v2_ptds
#define cuMemsetD16                  cuMemsetD16_v2_ptds
#define cuMemsetD32                  cuMemsetD32_v2_ptds
#define cuMemsetD2D8                 cuMemsetD2D8_v2_ptds
#define cuMemsetD8Async              cuMemsetD8Async_ptsz
#define cuMemsetD16Async             cuMemsetD16Async_ptsz
#define cuMemsetD32Async             cuMemsetD32Async_ptsz
#define cuMemsetD2D8Async            cuMemsetD2D8Async_ptsz
#define cuMemPrefetchAsync           cuMemPrefetchAsync_v2_ptsz
#define cuStreamGetFlags             cuStreamGetFlags_ptsz
#define cuStreamGetPriority          cuStreamGetPriority_ptsz
#define cuStreamGetCtx               cuStreamGetCtx_ptsz
#define cuStreamGetId                cuStreamGetId_ptsz
#define cuStreamQuery                cuStreamQuery_ptsz
#define cuStreamSynchronize          cuStreamSynchronize_ptsz
#define cuStreamWaitEvent            cuStreamWaitEvent_ptsz
#define cuStreamAddCallback          cuStreamAddCallback_ptsz
#define cuStreamWriteValue32         cuStreamWriteValue32_v2_ptsz
#define cuStreamBeginCapture         cuStreamBeginCapture_v2_ptsz
#define cuStreamEndCapture           cuStreamEndCapture_ptsz
#define cuStreamIsCapturing          cuStreamIsCapturing_ptsz
#define cuStreamGetCaptureInfo       cuStreamGetCaptureInfo_v3_ptsz
#define cuEventRecord                cuEventRecord_ptsz
#define cuEventRecordWithFlags       cuEventRecordWithFlags_ptsz
#define cuLaunchKernel               cuLaunchKernel_ptsz
#define cuLaunchKernelEx             cuLaunchKernelEx_ptsz
#define cuLaunchHostFunc             cuLaunchHostFunc_ptsz
#define cuGraphInstantiateWithParams cuGraphInstantiateWithParams_ptsz
#define cuGraphLaunch                cuGraphLaunch_ptsz
#define cuGraphUpload                cuGraphUpload_ptsz
#define cuMemAllocAsync              cuMemAllocAsync_ptsz
#define cuMemFreeAsync               cuMemFreeAsync_ptsz
#define cuMemAllocFromPoolAsync      cuMemAllocFromPoolAsync_ptsz
#else
#define cuMemcpyHtoD           cuMemcpyHtoD_v2
#define cuMemcpyDtoH           cuMemcpyDtoH_v2
#define cuMemcpyDtoD           cuMemcpyDtoD_v2
#define cuMemcpyHtoDAsync      cuMemcpyHtoDAsync_v2
#define cuMemcpyDtoHAsync      cuMemcpyDtoHAsync_v2
#define cuMemcpyDtoDAsync      cuMemcpyDtoDAsync_v2
#define cuMemcpy2D             cuMemcpy2D_v2
#define cuMemcpy2DAsync        cuMemcpy2DAsync_v2
#define cuMemsetD8             cuMemsetD8_v2
#define cuMemsetD16            cuMemsetD16_v2
#define cuMemsetD32            cuMemsetD32_v2
#define cuMemsetD2D8           cuMemsetD2D8_v2
#define cuMemPrefetchAsync     cuMemPrefetchAsync_v2
#define cuStreamWriteValue32   cuStreamWriteValue32_v2
#define cuStreamBeginCapture   cuStreamBeginCapture_v2
#define cuStreamGetCaptureInfo cuStreamGetCaptureInfo_v3
#endif
#endif

#endif
