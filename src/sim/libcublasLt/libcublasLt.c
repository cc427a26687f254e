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

#include "sim/standin/standin.h"

#define VERSION 130100

const struct standin_library standin_library = {
	.name = "libcublasLt",
	.not_supported = CUBLAS_STATUS_NOT_SUPPORTED,
	.not_initialized = CUBLAS_STATUS_NOT_INITIALIZED,
	.failed = CUBLAS_STATUS_EXECUTION_FAILED,
};

/*
 * A descriptor of any kind: its attributes by number.  Nothing is computed, so they are kept only for who asks for them, as
 * XLA does.
 */
struct descriptor {
	uint64_t attributes[64];
};

/* Creates a descriptor whose first attributes have these values. */
static cublasStatus_t create(void *ret_made, const uint64_t *values, size_t n)
{
	struct descriptor *made = calloc(1, sizeof *made);

	*(struct descriptor **)ret_made = made;
	if (!made)
		return CUBLAS_STATUS_ALLOC_FAILED;
	for (size_t i = 0; i < n; i++)
		made->attributes[i] = values[i];
	return CUBLAS_STATUS_SUCCESS;
}

#define CREATE(made, ...)                                 \
	create((made), (const uint64_t[]){ __VA_ARGS__ }, \
		sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

/* The attribute of this number, if its value has `size` bytes; else NULL. */
static void *attribute_of(void *made, unsigned int number, size_t size)
{
	struct descriptor *own = made;
	size_t n = sizeof own->attributes / sizeof own->attributes[0];

	return own && number < n && size > 0 && size <= sizeof own->attributes[0]
		       ? &own->attributes[number]
		       : NULL;
}

/* Defines the functions of a descriptor but its creation. */
#define DESCRIPTOR(kind, attributes)                                                            \
	cublasStatus_t kind##Destroy(kind##_t made)                                             \
	{                                                                                       \
		free(made);                                                                     \
		return CUBLAS_STATUS_SUCCESS;                                                   \
	}                                                                                       \
	cublasStatus_t kind##SetAttribute(                                                      \
		kind##_t made, attributes attribute, const void *value, size_t size)            \
	{                                                                                       \
		void *own = attribute_of(made, attribute, size);                                \
                                                                                                \
		if (!made || !value)                                                            \
			return CUBLAS_STATUS_INVALID_VALUE;                                     \
		if (own)                                                                        \
			memcpy(own, value, size);                                               \
		return CUBLAS_STATUS_SUCCESS;                                                   \
	}                                                                                       \
	cublasStatus_t kind##GetAttribute(                                                      \
		kind##_t made, attributes attribute, void *value, size_t size, size_t *written) \
	{                                                                                       \
		const void *own = attribute_of(made, attribute, size);                          \
                                                                                                \
		if (!own || !value)                                                             \
			return CUBLAS_STATUS_INVALID_VALUE;                                     \
		memcpy(value, own, size);                                                       \
		if (written)                                                                    \
			*written = size;                                                        \
		return CUBLAS_STATUS_SUCCESS;                                                   \
	}

#pragma GCC visibility push(default)

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	void *own = standin_create(sizeof(struct standin_handle));

	*handle = own;
	return own ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
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
	return CREATE(desc, (uint64_t)compute, (uint64_t)scale);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
	uint64_t rows, uint64_t columns, int64_t ld)
{
	/* Type, order, rows, columns, leading dimension, batch. */
	return CREATE(layout, (uint64_t)type, 0, rows, columns, (uint64_t)ld, 1);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
	return CREATE(preference, 0);
}

DESCRIPTOR(cublasLtMatmulDesc, cublasLtMatmulDescAttributes_t)
DESCRIPTOR(cublasLtMatrixLayout, cublasLtMatrixLayoutAttribute_t)
DESCRIPTOR(cublasLtMatmulPreference, cublasLtMatmulPreferenceAttributes_t)

#pragma GCC visibility pop
