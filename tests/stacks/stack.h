/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that look up the driver's functions like popular stacks, and allocate the kinds of memory that those use.
 *
 *   PROGRAM [plain] [async] [mapped]     allocates these kinds, prints "live bytes: N", and holds
 *
 * N is the device memory that this process has taken.  None of the programs knows of gpucache.
 *
 *   nvcc.c         static runtime library
 *   torch.c        shared runtime library by its PLT; mapped memory by cudaGetDriverEntryPointByVersion
 *   xla.c          hidden stubs that look one symbol up at their first call
 *   cuda_python.c  cuGetProcAddress_v2 by dlsym, then the whole table at the versions of introduction
 *   nccl.c         static runtime library, and cudaGetDriverEntryPoint
 *   cumem.c        vLLM's allocator: mapped memory by the PLT of a library linked with libcuda
 *   triton.c       libcuda by dlopen, for kernels; its memory is PyTorch's
 *   ucx.c          memory of others, told apart by attributes
 *   *.py           CuPy, numba, vLLM: by ctypes
 */
#ifndef STACKS_STACK_H
#define STACKS_STACK_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#include <gpusim.h>

#define MIB ((size_t)1 << 20)

/* Whole pages at the driver's pitch, because our accounting does not know how the driver rounds up. */
#define STACK_WIDTH  4000
#define STACK_HEIGHT 1024

/* Ends the program where CUDA fails; the results of both APIs are the same numbers. */
#define OK(call) stack_check(#call, (int)(call))

static inline void stack_check(const char *call, int status)
{
	if (status == 0)
		return;
	fprintf(stderr, "%s: %d\n", call, status);
	exit(1);
}

/* What is taken of the driver: the symbol, the name and version that cuGetProcAddress is asked for. */
#define STACK_TABLE(X)                                                                           \
	X(cuInit, "cuInit", 2000, (unsigned))                                                    \
	X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, (CUcontext *, CUdevice))   \
	X(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, (CUcontext))                                 \
	X(cuMemAlloc_v2, "cuMemAlloc", 3020, (CUdeviceptr *, size_t))                            \
	X(cuMemFree_v2, "cuMemFree", 3020, (CUdeviceptr))                                        \
	X(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020,                                           \
		(CUdeviceptr *, size_t *, size_t, size_t, unsigned))                             \
	X(cuMemHostAlloc, "cuMemHostAlloc", 2020, (void **, size_t, unsigned))                   \
	X(cuMemAllocAsync, "cuMemAllocAsync", 11020, (CUdeviceptr *, size_t, CUstream))          \
	X(cuMemFreeAsync, "cuMemFreeAsync", 11020, (CUdeviceptr, CUstream))                      \
	X(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", 11020,                         \
		(CUmemoryPool *, CUdevice))                                                      \
	X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020,                             \
		(CUdeviceptr *, size_t, CUmemoryPool, CUstream))                                 \
	X(cuMemAddressReserve, "cuMemAddressReserve", 10020,                                     \
		(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))                \
	X(cuMemCreate, "cuMemCreate", 10020,                                                     \
		(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,            \
			unsigned long long))                                                     \
	X(cuMemRelease, "cuMemRelease", 10020, (CUmemGenericAllocationHandle))                   \
	X(cuMemMap, "cuMemMap", 10020,                                                           \
		(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long)) \
	X(cuMemSetAccess, "cuMemSetAccess", 10020,                                               \
		(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t))                          \
	X(cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020,                                 \
		(CUdeviceptr *, size_t *, CUdeviceptr))                                          \
	X(cuPointerGetAttribute, "cuPointerGetAttribute", 4000,                                  \
		(void *, CUpointer_attribute, CUdeviceptr))

struct stack_driver {
#define X(symbol, name, version, parameters) CUresult(*symbol) parameters;
	STACK_TABLE(X)
#undef X
};

static inline void *stack_open(const char *library, int flags)
{
	void *handle = dlopen(library, flags);

	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return handle;
}

/* Prints the simulated device's bytes of this process, and holds until killed. */
static inline void stack_hold(void)
{
	int (*info)(int device, struct gpusim_device *ret_info);
	struct gpusim_device device;

	*(void **)(void *)&info = dlsym(stack_open("libcuda.so.1", RTLD_NOW), "gpusim_device_info");
	OK(info ? info(0, &device) : 1);
	printf("live bytes: %llu\n", (unsigned long long)device.own_used);
	fflush(stdout);
	for (;;)
		pause();
}

static inline bool stack_has(int argc, char **argv, const char *kind)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], kind) == 0)
			return true;
	return false;
}

/* ---- bodies for those that have the driver's functions as a table ---- */

static inline void stack_start(const struct stack_driver *cu)
{
	CUcontext context;

	OK(cu->cuInit(0));
	OK(cu->cuDevicePrimaryCtxRetain(&context, 0));
	OK(cu->cuCtxSetCurrent(context));
}

static inline void stack_plain(const struct stack_driver *cu)
{
	static const size_t sizes[] = { 1, 512, 3 * MIB + 1, 700000, 24 * MIB + 513, 100 * MIB };
	CUdeviceptr ptr = 0;
	size_t pitch;
	void *host;

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		OK(cu->cuMemAlloc_v2(&ptr, sizes[i]));
		if (i % 3 == 2)
			OK(cu->cuMemFree_v2(ptr));
	}
	OK(cu->cuMemAllocPitch_v2(&ptr, &pitch, STACK_WIDTH, STACK_HEIGHT, 4));
	OK(cu->cuMemHostAlloc(&host, 5 * MIB, 0));
}

static inline void stack_async(const struct stack_driver *cu)
{
	CUmemoryPool pool = NULL;
	CUdeviceptr ptr = 0;

	OK(cu->cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cu->cuMemAllocFromPoolAsync(&ptr, 9 * MIB, pool, NULL));
	OK(cu->cuMemAllocAsync(&ptr, 5000, NULL));
	OK(cu->cuMemAllocAsync(&ptr, 40 * MIB + 1, NULL));
	OK(cu->cuMemFreeAsync(ptr, NULL));
}

/* Expandable segments: addresses for much, memory for a part. */
static inline void stack_mapped(const struct stack_driver *cu)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
	const CUmemAccessDesc access = { .location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	const size_t page = 20 * MIB;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr base = 0;

	OK(cu->cuMemAddressReserve(&base, 64 * page, 0, 0, 0));
	for (size_t i = 0; i < 3; i++) {
		OK(cu->cuMemCreate(&handle, page, &prop, 0));
		OK(cu->cuMemMap(base + i * page, page, 0, handle, 0));
		if (i != 1)
			OK(cu->cuMemRelease(handle));
	}
	OK(cu->cuMemSetAccess(base, 3 * page, &access, 1));
}

static inline void stack_take(const struct stack_driver *cu, int argc, char **argv)
{
	if (stack_has(argc, argv, "plain"))
		stack_plain(cu);
	if (stack_has(argc, argv, "async"))
		stack_async(cu);
	if (stack_has(argc, argv, "mapped"))
		stack_mapped(cu);
}

#endif
