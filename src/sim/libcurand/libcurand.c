/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for libcurand.  No test uses its numbers: every call returns "not supported". */
#include "sim/standin/standin.h"

const struct standin_library standin_library = {
	.name = "libcurand",
	.not_supported = 999 /* CURAND_STATUS_INTERNAL_ERROR: cuRAND has no "not supported" */,
	.not_initialized = 101 /* CURAND_STATUS_NOT_INITIALIZED */,
	.failed = 201 /* CURAND_STATUS_LAUNCH_FAILURE */,
};
