/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcusparse: its version, and the names of its codes.  No test uses its results: every computation
 * returns "not supported" (names.txt).
 */
#include "sim/standin/standin.h"

/* Of the last release for CUDA 12. */
#define MAJOR 12
#define MINOR 5
#define PATCH 10

#define INVALID_VALUE 3 /* CUSPARSE_STATUS_INVALID_VALUE */

#pragma GCC visibility push(default)

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
