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

STANDIN_PLAIN_HANDLE(cusparse, 2 /* CUSPARSE_STATUS_ALLOC_FAILED */)

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
