/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for libcupti, without a profiler: all calls but the two below return "not supported" (names.txt). */
#include "sim/standin/standin.h"

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
