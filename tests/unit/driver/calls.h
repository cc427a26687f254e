/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by fake functions of libcuda, which log their calls and fail on demand. */
#ifndef GPC_TESTS_UNIT_DRIVER_CALLS_H
#define GPC_TESTS_UNIT_DRIVER_CALLS_H

#include "driver/driver_cuda.h"
#include "unit.h"

static struct {
	char log[512];
	const char *failing; /* by its name in the log */
	CUresult code;
} calls;

static CUresult called(const char *name)
{
	strncat(calls.log, name, sizeof calls.log - strlen(calls.log) - 1);
	strncat(calls.log, " ", sizeof calls.log - strlen(calls.log) - 1);
	return calls.failing && !strcmp(calls.failing, name) ? calls.code : CUDA_SUCCESS;
}

#endif
