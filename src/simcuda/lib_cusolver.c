/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcusolver: handles of dense algebra, and their streams.  No test uses its results: every computation
 * returns "not supported".
 */
#include "simcuda/standin.h"

const struct standin_library standin_library = {
	.name = "libcusolver",
	.not_supported = 9 /* CUSOLVER_STATUS_NOT_SUPPORTED */,
	.not_initialized = 1 /* CUSOLVER_STATUS_NOT_INITIALIZED */,
	.failed = 6 /* CUSOLVER_STATUS_EXECUTION_FAILED */,
};

#pragma GCC visibility push(default)

int cusolverDnCreate(struct standin_handle **handle);
int cusolverDnDestroy(struct standin_handle *handle);
int cusolverDnSetStream(struct standin_handle *handle, struct CUstream_st *stream);

int cusolverDnCreate(struct standin_handle **handle)
{
	*handle = standin_create(sizeof **handle);
	standin_load_code(standin_library.name);
	return *handle ? 0 : 2;
}

int cusolverDnDestroy(struct standin_handle *handle)
{
	return standin_destroy(handle) ? 0 : standin_library.not_initialized;
}

int cusolverDnSetStream(struct standin_handle *handle, struct CUstream_st *stream)
{
	if (!handle)
		return standin_library.not_initialized;
	handle->stream = stream;
	return 0;
}

#pragma GCC visibility pop
