/* SPDX-License-Identifier: Apache-2.0 */
/* A <cufftXt.h> for machines without a toolkit: the part that the stand-in implements. */
#ifndef SIMCUDA_CUFFTXT_H
#define SIMCUDA_CUFFTXT_H

#include <cuda_runtime_api.h>

typedef enum cufftResult_t {
	CUFFT_SUCCESS = 0,
	CUFFT_INVALID_PLAN = 1,
	CUFFT_ALLOC_FAILED = 2,
	CUFFT_INVALID_VALUE = 4,
	CUFFT_EXEC_FAILED = 6,
	CUFFT_NOT_SUPPORTED = 16
} cufftResult;

typedef enum cudaDataType_t {
	CUDA_R_32F = 0,
	CUDA_R_64F = 1,
	CUDA_R_16F = 2,
	CUDA_C_32F = 4,
	CUDA_C_64F = 5,
	CUDA_C_16F = 6
} cudaDataType;

typedef int cufftHandle;

cufftResult cufftCreate(cufftHandle *handle);
cufftResult cufftDestroy(cufftHandle plan);
cufftResult cufftGetVersion(int *version);
cufftResult cufftGetSize(cufftHandle handle, size_t *size);
cufftResult cufftSetAutoAllocation(cufftHandle plan, int allocates);
cufftResult cufftSetWorkArea(cufftHandle plan, void *area);
cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream);
cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long int *n,
	long long int *inembed, long long int istride, long long int idist, cudaDataType input,
	long long int *onembed, long long int ostride, long long int odist, cudaDataType output,
	long long int batch, size_t *size, cudaDataType execution);
cufftResult cufftXtExec(cufftHandle plan, void *input, void *output, int direction);

#endif
