/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by programs that test order in time: kernels of a known duration (kernel.h), and the device's own account of
 * its memory, which only the simulated GPU has (gpusim.h): on a real one a program that needs it ends with status 77.
 */
#ifndef PROGRAMS_SIMULATED_H
#define PROGRAMS_SIMULATED_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>
#include <gpusim.h>

#include "kernel.h"

#define MIB ((size_t)1 << 20)
#define MS  UINT64_C(1000000)

/* Ends the program where a call of the runtime fails. */
#define OK(call) check(#call, call)

static inline void check(const char *call, cudaError_t status)
{
	if (status == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s (%d)\n", call, cudaGetErrorString(status), (int)status);
	exit(1);
}

static inline void find_in_driver(const char *name, void *ret_function)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	void *function = driver ? dlsym(driver, name) : NULL;

	if (!function) {
		fprintf(stderr, "%s: not found; this needs the simulated GPU\n", name);
		exit(77);
	}
	memcpy(ret_function, &function, sizeof function);
}

/* A kernel that runs for so long and, where `fill` is not -1, leaves that in every byte. */
static inline cudaError_t launch(cudaStream_t stream, uint64_t ns, void *ptr, size_t size, int fill)
{
	return (cudaError_t)kernel_launch(stream, ns, (uintptr_t)ptr, size, fill);
}

/* The bytes of device 0 that this process has taken, the cache included. */
static inline uint64_t used_bytes(void)
{
	int (*look)(int, struct gpusim_device *);
	struct gpusim_device device;

	find_in_driver("gpusim_device_info", &look);
	if (look(0, &device) != 0)
		exit(1);
	return device.own_used;
}

static inline void *allocate(size_t size)
{
	void *ptr = NULL;

	OK(cudaMalloc(&ptr, size));
	return ptr;
}

/* Host memory that an asynchronous copy does not wait for. */
static inline char *allocate_pinned(size_t size)
{
	void *ptr = NULL;

	OK(cudaMallocHost(&ptr, size));
	return ptr;
}

static inline cudaStream_t make_stream(void)
{
	cudaStream_t stream = NULL;

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	kernel_load(); /* not later, inside a capture */
	return stream;
}

static inline int is_all(const char *bytes, size_t size, int value)
{
	return bytes[0] == (char)value && memcmp(bytes, bytes + 1, size - 1) == 0;
}

#endif
