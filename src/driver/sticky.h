/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sticky errors: after one, every call of the context returns it.
 *
 * Source   cuda.h: after most of them "the process must be terminated and relaunched", after ASSERT the context must be
 *          destroyed; tests/lint/check_abi.sh compares.  ECC and NVLINK errors are uncorrectable: the memory cannot be
 *          trusted.
 */
#ifndef GPC_DRIVER_STICKY_H
#define GPC_DRIVER_STICKY_H

#include <stdbool.h>

#include "driver/cuda_abi.h"

static inline bool gpc_cuda_is_sticky(CUresult result)
{
	switch ((int)result) {
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_NVLINK_UNCORRECTABLE:
	case CUDA_ERROR_CONTAINED:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_TENSOR_MEMORY_LEAK:
	case CUDA_ERROR_MPS_CLIENT_TERMINATED:
	case CUDA_ERROR_EXTERNAL_DEVICE:
		return true;
	default:
		return false;
	}
}

#endif
