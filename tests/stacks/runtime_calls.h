/* SPDX-License-Identifier: Apache-2.0 */
/* For programs linked with the runtime library. */
#ifndef STACKS_RUNTIME_CALLS_H
#define STACKS_RUNTIME_CALLS_H

#include <cuda_runtime.h>

#include "stack.h"

static inline void runtime_plain(void)
{
	void *ptr = NULL;
	size_t pitch;

	OK(cudaMalloc(&ptr, 1));
	OK(cudaMalloc(&ptr, 20 * MIB));
	OK(cudaMalloc(&ptr, 3 * MIB + 5));
	OK(cudaFree(ptr));
	OK(cudaMalloc(&ptr, 512 * MIB + 1));
	OK(cudaMallocPitch(&ptr, &pitch, STACK_WIDTH, STACK_HEIGHT));
	OK(cudaMallocHost(&ptr, MIB));
}

static inline void runtime_async(void)
{
	void *ptr = NULL;

	OK(cudaMallocAsync(&ptr, 7 * MIB, NULL));
	OK(cudaMallocAsync(&ptr, 33 * MIB + 1, NULL));
	OK(cudaFreeAsync(ptr, NULL));
}

#endif
