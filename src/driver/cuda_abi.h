/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver's ABI, in our own words: types, numbers and layouts, under their real names.
 *
 * The library is built without a CUDA toolkit, so it cannot include <cuda.h>.  From cuda.h it needs the types in the
 * prototypes of the functions that it interposes.  Handles are pointers to the same struct tags as in cuda.h, so that a
 * prototype written with them is compatible with the real one.  Structs that we only pass on stay incomplete.
 * Enumerations that we only pass on are `unsigned int`, the type that gcc gives them.
 *
 *     cuda_results.def ---+--- cuda_abi.h                    (this file, cuda_structs.h: enumerators, asserted sizes)
 *     cuda_values.def     |
 *     cuda_layouts.def ---'--- tests/conformance/check_cuda_abi.c      (the same rows against cuda.h)
 *
 * Invariants  1 Names, tags, numbers and layouts are those of cuda.h of CUDA 13.0.  Older versions have the same ABI: a
 *               function whose parameters changed has a new suffix (_v2).
 *             2 No file includes both this header and <cuda.h>.
 * Limits      64-bit Linux.  cuda.h may extend CUmemPoolProps at its end, so we read that struct and never write one.
 */
#ifndef GPC_DRIVER_CUDA_ABI_H
#define GPC_DRIVER_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Addresses, devices, and the integers and handles that cuda.h defines as numbers. */
typedef unsigned long long CUdeviceptr;
typedef unsigned int CUdeviceptr_v1;
typedef int CUdevice;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef cuuint64_t CUgraphConditionalHandle;
typedef unsigned long long CUmemGenericAllocationHandle;

/* Handles that are pointers. */
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUgraphicsResource_st *CUgraphicsResource;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct CUextSemaphore_st *CUexternalSemaphore;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;

/* The two default streams.  NULL means PER_THREAD in a function whose name ends in _ptds or _ptsz, else LEGACY. */
#define CU_STREAM_LEGACY     ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)

#define CU_IPC_HANDLE_SIZE 64

/* Enumerations whose numbers we use. */
typedef enum cudaError_enum {
#define RESULT(name, number) name = number,
#include "driver/cuda_results.def"
#undef RESULT
} CUresult;
#define VALUE(name, number) name = number,
#define ENUM(type, values)  typedef enum type##_enum{ values } type;
#define FLAGS(tag, values) \
	enum tag {         \
		values     \
	};
#include "driver/cuda_values.def"
#undef VALUE
#undef ENUM
#undef FLAGS

/* Enumerations that we only pass on. */
typedef unsigned int CUexternalMemoryHandleType;
typedef unsigned int CUfunc_cache;
typedef unsigned int CUfunction_attribute;
typedef unsigned int CUgraphInstantiateResult;
typedef unsigned int CUjit_option;
typedef unsigned int CUlaunchAttributeID;
typedef unsigned int CUlibraryOption;
typedef unsigned int CUmemRangeHandleType;
typedef unsigned int CUmoduleLoadingMode;
typedef unsigned int CUsharedconfig;
typedef unsigned int CUdevResourceType;

/* Structs that we only pass on. */
typedef union CUstreamBatchMemOpParams_union CUstreamBatchMemOpParams;
typedef struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS;
typedef struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS;
typedef struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC_st CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
typedef struct CUDA_MEMCPY3D_PEER_st CUDA_MEMCPY3D_PEER;
typedef struct CUDA_MEMCPY3D_BATCH_OP_st CUDA_MEMCPY3D_BATCH_OP;
typedef struct CUarrayMapInfo_st CUarrayMapInfo;
typedef struct CUctxCreateParams_st CUctxCreateParams;
typedef struct CUexecAffinityParam_st CUexecAffinityParam;
typedef struct CUgraphEdgeData_st CUgraphEdgeData;
typedef struct CUmemDecompressParams_st CUmemDecompressParams;
typedef struct CUmemcpyAttributes_st CUmemcpyAttributes;
typedef struct CUdevResource_st CUdevResource;

/* Functions of the program that the driver calls back. */
typedef void (*CUhostFn)(void *userData);
typedef void (*CUstreamCallback)(CUstream hStream, CUresult status, void *userData);

#include "driver/cuda_structs.h"

#endif
