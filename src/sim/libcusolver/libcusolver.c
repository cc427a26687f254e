/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcusolver: handles of dense algebra, and their streams.  No test uses its results: every computation
 * returns "not supported".
 */
#include "sim/standin/standin.h"

const struct standin_library standin_library = {
	.name = "libcusolver",
	.not_supported = 9 /* CUSOLVER_STATUS_NOT_SUPPORTED */,
	.not_initialized = 1 /* CUSOLVER_STATUS_NOT_INITIALIZED */,
	.failed = 6 /* CUSOLVER_STATUS_EXECUTION_FAILED */,
};

#pragma GCC visibility push(default)

STANDIN_PLAIN_HANDLE(cusolverDn, 2 /* CUSOLVER_STATUS_ALLOC_FAILED */)

#pragma GCC visibility pop
