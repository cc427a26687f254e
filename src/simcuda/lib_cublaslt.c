/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcublasLt: descriptors, and products computed by a single algorithm.
 *
 * The caller provides the workspace, and the heuristic here requests none.  The real heuristic requests what shape and
 * GPU need, up to the size that the caller offers (PyTorch: 1 MiB before compute capability 9.0, then 32 MiB).
 * Callers allocate the offered size in either case.
 */
#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/standin.h"

#define VERSION 130100

const struct standin_library standin_library = {
	.name = "libcublasLt",
	.not_supported = CUBLAS_STATUS_NOT_SUPPORTED,
	.not_initialized = CUBLAS_STATUS_NOT_INITIALIZED,
	.failed = CUBLAS_STATUS_EXECUTION_FAILED,
};

static cublasStatus_t create(void **ret, size_t size)
{
	*ret = calloc(1, size);
	return *ret ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

/* Defines the functions of a descriptor but its creation.  Attributes are ignored: nothing is computed. */
#define DESCRIPTOR(kind, attributes)                                                        \
	cublasStatus_t kind##Destroy(kind##_t made)                                         \
	{                                                                                   \
		free(made);                                                                 \
		return CUBLAS_STATUS_SUCCESS;                                               \
	}                                                                                   \
	cublasStatus_t kind##SetAttribute(                                                  \
		kind##_t made, attributes attribute, const void *value, size_t size)        \
	{                                                                                   \
		return made && value ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE; \
	}

#pragma GCC visibility push(default)

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	void *own = standin_create(sizeof(struct standin_handle));

	*handle = own;
	return own ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	return standin_destroy(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

size_t cublasLtGetVersion(void)
{
	return VERSION;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
	const void *a, cublasLtMatrixLayout_t a_desc, const void *b, cublasLtMatrixLayout_t b_desc,
	const void *beta, const void *c, cublasLtMatrixLayout_t c_desc, void *d,
	cublasLtMatrixLayout_t d_desc, const cublasLtMatmulAlgo_t *algo, void *workspace,
	size_t workspace_size, cudaStream_t stream)
{
	/* Not `handle`, which may be cuBLAS's, with a stream other than the parameter. */
	const struct standin_handle work = { .magic = STANDIN_MAGIC, .stream = stream };

	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!desc || !alpha || !a_desc || !b_desc || !c_desc || !d_desc)
		return CUBLAS_STATUS_INVALID_VALUE;
	return (cublasStatus_t)standin_work(&work);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
	cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
	cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int wanted,
	cublasLtMatmulHeuristicResult_t results[], int *n)
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!desc || !a || !b || !c || !d || !preference || wanted < 1 || !results || !n)
		return CUBLAS_STATUS_INVALID_VALUE;
	memset(results, 0, sizeof *results);
	*n = 1;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(
	cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale)
{
	return create((void **)desc, sizeof **desc);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
	uint64_t rows, uint64_t columns, int64_t ld)
{
	return create((void **)layout, sizeof **layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
	return create((void **)preference, sizeof **preference);
}

DESCRIPTOR(cublasLtMatmulDesc, cublasLtMatmulDescAttributes_t)
DESCRIPTOR(cublasLtMatrixLayout, cublasLtMatrixLayoutAttribute_t)
DESCRIPTOR(cublasLtMatmulPreference, cublasLtMatmulPreferenceAttributes_t)

#pragma GCC visibility pop
