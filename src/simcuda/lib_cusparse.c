/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcusparse: handles, and their streams.  No test uses its results: every computation returns "not
 * supported".
 */
#include "simcuda/standin.h"

const struct standin_library standin_library = {
	.name = "libcusparse",
	.not_supported = 10 /* CUSPARSE_STATUS_NOT_SUPPORTED */,
	.not_initialized = 1 /* CUSPARSE_STATUS_NOT_INITIALIZED */,
	.failed = 6 /* CUSPARSE_STATUS_EXECUTION_FAILED */,
};

#pragma GCC visibility push(default)

int cusparseCreate(struct standin_handle **handle);
int cusparseDestroy(struct standin_handle *handle);
int cusparseSetStream(struct standin_handle *handle, struct CUstream_st *stream);

int cusparseCreate(struct standin_handle **handle)
{
	*handle = standin_create(sizeof **handle);
	return *handle ? 0 : 2;
}

int cusparseDestroy(struct standin_handle *handle)
{
	return standin_destroy(handle) ? 0 : standin_library.not_initialized;
}

int cusparseSetStream(struct standin_handle *handle, struct CUstream_st *stream)
{
	if (!handle)
		return standin_library.not_initialized;
	handle->stream = stream;
	return 0;
}

const char *cusparseGetErrorString(int status);
const char *cusparseGetErrorName(int status);

const char *cusparseGetErrorString(int status)
{
	return status == standin_library.not_supported ? "operation not supported"
						       : "cuSPARSE error";
}

const char *cusparseGetErrorName(int status)
{
	return cusparseGetErrorString(status);
}

#pragma GCC visibility pop
