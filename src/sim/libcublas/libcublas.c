/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcublas: handles and their modes; names.txt lists what computes.
 *
 * A handle takes its default workspace when it is created: 32 MiB from compute capability 9.0 on, 4 MiB before
 * (reference of cublasSetWorkspace).  NVIDIA does not document when the real library takes the workspace.  So a
 * program that sets a workspace of its own may hold up to that much less per handle on a real GPU.
 */
#include <cublas_v2.h>

#include "sim/standin/standin.h"

#define VERSION           130100
#define WORKSPACE_HOPPER  ((size_t)32 << 20)
#define WORKSPACE_EARLIER ((size_t)4 << 20)

const struct standin_library standin_library = {
	.name = "libcublas",
	.not_supported = CUBLAS_STATUS_NOT_SUPPORTED,
	.not_initialized = CUBLAS_STATUS_NOT_INITIALIZED,
	.failed = CUBLAS_STATUS_EXECUTION_FAILED,
};

struct handle {
	struct standin_handle base;
	cublasPointerMode_t pointer_mode;
	cublasAtomicsMode_t atomics_mode;
	cublasMath_t math_mode;
	int sm_count;
};

static struct handle *of(cublasHandle_t handle)
{
	struct handle *own = (struct handle *)(void *)handle;

	return own && own->base.magic == STANDIN_MAGIC ? own : NULL;
}

/* Defines the body of a function that reads or writes a member of a handle. */
#define MEMBER(handle, statement)                             \
	do {                                                  \
		struct handle *own = of(handle);              \
		if (!own)                                     \
			return CUBLAS_STATUS_NOT_INITIALIZED; \
		statement;                                    \
		return CUBLAS_STATUS_SUCCESS;                 \
	} while (0)

#pragma GCC visibility push(default)

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
	struct handle *own;
	int capability = standin_capability();

	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!capability)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	own = standin_create(sizeof *own);
	if (!own)
		return CUBLAS_STATUS_ALLOC_FAILED;
	if (!standin_take(&own->base, capability >= 90 ? WORKSPACE_HOPPER : WORKSPACE_EARLIER)) {
		standin_destroy(own);
		return CUBLAS_STATUS_ALLOC_FAILED;
	}
	own->base.wants_result_on_host = true;
	*handle = (cublasHandle_t)(void *)own;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
	*version = VERSION;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t size)
{
	MEMBER(handle, (void)own);
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream)
{
	MEMBER(handle, *stream = own->base.stream);
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode)
{
	MEMBER(handle, *mode = own->pointer_mode);
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
	MEMBER(handle, (own->pointer_mode = mode,
			       own->base.wants_result_on_host = mode == CUBLAS_POINTER_MODE_HOST));
}

cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t *mode)
{
	MEMBER(handle, *mode = own->atomics_mode);
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode)
{
	MEMBER(handle, own->atomics_mode = mode);
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode)
{
	MEMBER(handle, *mode = own->math_mode);
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
	MEMBER(handle, own->math_mode = mode);
}

cublasStatus_t cublasGetSmCountTarget(cublasHandle_t handle, int *n)
{
	MEMBER(handle, *n = own->sm_count);
}

cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int n)
{
	MEMBER(handle, own->sm_count = n);
}

const char *cublasGetStatusName(cublasStatus_t status)
{
	switch ((int)status) {
	case CUBLAS_STATUS_SUCCESS:
		return "CUBLAS_STATUS_SUCCESS";
	case CUBLAS_STATUS_NOT_INITIALIZED:
		return "CUBLAS_STATUS_NOT_INITIALIZED";
	case CUBLAS_STATUS_ALLOC_FAILED:
		return "CUBLAS_STATUS_ALLOC_FAILED";
	case CUBLAS_STATUS_INVALID_VALUE:
		return "CUBLAS_STATUS_INVALID_VALUE";
	case CUBLAS_STATUS_EXECUTION_FAILED:
		return "CUBLAS_STATUS_EXECUTION_FAILED";
	case CUBLAS_STATUS_NOT_SUPPORTED:
		return "CUBLAS_STATUS_NOT_SUPPORTED";
	default:
		return "unrecognized status";
	}
}

const char *cublasGetStatusString(cublasStatus_t status)
{
	return cublasGetStatusName(status);
}

#pragma GCC visibility pop
