/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that allocates GPU memory on a thread of its own, unknown to any interpreter.  Called by stacks.py.
 *
 *   foreign_alloc(n)   one thread, one cudaMalloc of n bytes, joined; the CUDA error, or -1
 *   foreign_churn(n)   a thread that allocates and frees n bytes until the process ends; 0 or -1
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

int foreign_alloc(size_t size);
int foreign_churn(size_t size);

static void *take(void *arg)
{
	void *ptr;

	return (void *)(intptr_t)cudaMalloc(&ptr, (size_t)arg);
}

static void *churn(void *arg)
{
	void *ptr;

	while (cudaMalloc(&ptr, (size_t)arg) == cudaSuccess && cudaFree(ptr) == cudaSuccess)
		;
	return NULL;
}

int foreign_alloc(size_t size)
{
	pthread_t thread;
	void *status;

	if (pthread_create(&thread, NULL, take, (void *)size) || pthread_join(thread, &status))
		return -1;
	return (int)(intptr_t)status;
}

int foreign_churn(size_t size)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, churn, (void *)size) || pthread_detach(thread) ? -1
											    : 0;
}
