/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sticky errors: after one, every call of the context returns the same error.
 *
 * Source   cuda.h says of most of them that "the process must be terminated and relaunched", and of ASSERT that the
 *          context must be destroyed; tests/lint/check_abi.sh finds these sentences in cuda.h and compares.  It says
 *          neither of the uncorrectable ECC and NVLINK errors, after which the memory may have wrong contents.
 */
#ifndef GPC_DRIVER_STICKY_H
#define GPC_DRIVER_STICKY_H

#include <stdbool.h>

#include "driver/cuda_abi.h"

static inline bool gpc_cuda_is_sticky(CUresult result)
{
	switch ((int)result) {
#define RESULT(name, number)
#define STICKY(name, number) case name:
#include "driver/cuda_results.def"
#undef RESULT
		return true;
	default:
		return false;
	}
}

#endif
