/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcusparse: handles, their streams, and the version.  No test uses its results: every computation returns "not
 * supported".
 */
#include "sim/standin/standin.h"

/* Of the last release for CUDA 12. */
#define MAJOR 12
#define MINOR 5
#define PATCH 10

#define INVALID_VALUE 3 /* CUSPARSE_STATUS_INVALID_VALUE */

const struct standin_library standin_library = {
	.name = "libcusparse",
	.not_supported = 10 /* CUSPARSE_STATUS_NOT_SUPPORTED */,
	.not_initialized = 1 /* CUSPARSE_STATUS_NOT_INITIALIZED */,
	.failed = 6 /* CUSPARSE_STATUS_EXECUTION_FAILED */,
};

#pragma GCC visibility push(default)

STANDIN_PLAIN_HANDLE(cusparse, 2 /* CUSPARSE_STATUS_ALLOC_FAILED */)

int cusparseGetProperty(int type, int *value);
int cusparseGetVersion(const struct standin_handle *handle, int *version);
const char *cusparseGetErrorString(int status);
const char *cusparseGetErrorName(int status);

int cusparseGetProperty(int type, int *value)
{
	static const int version[] = { MAJOR, MINOR, PATCH };

	if (type < 0 || type > 2 || !value)
		return INVALID_VALUE;
	*value = version[type];
	return 0;
}

int cusparseGetVersion(const struct standin_handle *handle, int *version)
{
	if (!handle || !version)
		return INVALID_VALUE;
	*version = MAJOR * 1000 + MINOR * 100 + PATCH;
	return 0;
}

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
