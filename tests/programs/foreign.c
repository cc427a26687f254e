/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that allocates GPU memory on a thread of its own, unknown to any interpreter.  Called by stacks.py and depth.py.
 *
 *   foreign_alloc(n)   one thread, one cudaMalloc of n bytes, joined; the CUDA error, or -1
 *   foreign_churn(n)   a thread that allocates and frees n bytes until the process ends; 0 or -1
 *   foreign_depth(n)   one cudaMalloc of n bytes on the calling thread; the bytes of its stack that it used
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cuda_runtime_api.h"

int foreign_alloc(size_t size);
int foreign_churn(size_t size);
size_t foreign_depth(size_t size);

#define PAINT   0xa5
#define PAINTED ((size_t)128 << 10)

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

/* Fills the stack below its caller, and returns the lowest address of that. */
static uintptr_t paint(void)
{
	unsigned char area[PAINTED];
	uintptr_t start;

	memset(area, PAINT, sizeof area);
	__asm__ volatile("" : "=r"(start) : "0"(area) : "memory");
	return start;
}

size_t foreign_depth(size_t size)
{
	const volatile unsigned char *start = (const volatile unsigned char *)paint();
	size_t unused = 0;
	void *ptr;

	(void)cudaMalloc(&ptr, size);
	while (unused < PAINTED && start[unused] == PAINT)
		unused++;
	return PAINTED - unused;
}
