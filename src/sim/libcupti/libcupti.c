/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for libcupti, without a profiler: all calls but the two below return "not supported". */
#include "sim/standin/standin.h"

const struct standin_library standin_library = {
	.name = "libcupti",
	.not_supported = 27 /* CUPTI_ERROR_NOT_SUPPORTED */,
	.not_initialized = 15 /* CUPTI_ERROR_NOT_INITIALIZED */,
	.failed = 999 /* CUPTI_ERROR_UNKNOWN */,
};

#pragma GCC visibility push(default)

int cuptiGetVersion(uint32_t *version);
int cuptiGetResultString(int result, const char **text);

int cuptiGetVersion(uint32_t *version)
{
	*version = 130000;
	return 0;
}

int cuptiGetResultString(int result, const char **text)
{
	*text = result == standin_library.not_supported ? "CUPTI_ERROR_NOT_SUPPORTED"
							: "CUPTI_ERROR";
	return 0;
}

#pragma GCC visibility pop
