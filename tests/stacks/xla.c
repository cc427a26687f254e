/* SPDX-License-Identifier: Apache-2.0 */
#include "stack.h"

static void *library(void)
{
	static void *handle;

	if (!handle)
		handle = stack_open("libcuda.so.1", RTLD_LAZY);
	return handle;
}

/* One hidden function for each of the driver, which finds it when it is first called. */
static void *lazy(void **function, const char *symbol)
{
	if (!*function)
		*function = dlsym(library(), symbol);
	if (!*function) {
		fprintf(stderr, "%s: not found\n", symbol);
		exit(1);
	}
	return *function;
}

#define STUB(symbol, parameters, arguments)                                       \
	static CUresult symbol##_stub parameters                                  \
	{                                                                         \
		static void *found;                                               \
		return (*(CUresult(*) parameters)lazy(&found, #symbol))arguments; \
	}
STUB(cuInit, (unsigned flags), (flags))
STUB(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), (context, device))
STUB(cuCtxSetCurrent, (CUcontext context), (context))
STUB(cuMemAlloc_v2, (CUdeviceptr * ptr, size_t size), (ptr, size))
STUB(cuMemFree_v2, (CUdeviceptr ptr), (ptr))
STUB(cuMemHostAlloc, (void **ptr, size_t size, unsigned flags), (ptr, size, flags))
STUB(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device), (pool, device))
STUB(cuMemAllocFromPoolAsync, (CUdeviceptr * ptr, size_t size, CUmemoryPool pool, CUstream stream),
	(ptr, size, pool, stream))

int main(int argc, char **argv)
{
	CUmemoryPool pool = NULL;
	CUcontext context;
	CUdeviceptr ptr;
	void *host;

	OK(cuInit_stub(0));
	OK(cuDevicePrimaryCtxRetain_stub(&context, 0));
	OK(cuCtxSetCurrent_stub(context));
	if (stack_has(argc, argv, "plain")) {
		/* One big piece, which XLA cuts itself, and scratch. */
		OK(cuMemAlloc_v2_stub(&ptr, 1536 * MIB + 12345));
		OK(cuMemAlloc_v2_stub(&ptr, 65536));
		OK(cuMemFree_v2_stub(ptr));
		OK(cuMemHostAlloc_stub(&host, MIB, 0));
	}
	if (stack_has(argc, argv, "async")) {
		OK(cuDeviceGetDefaultMemPool_stub(&pool, 0));
		OK(cuMemAllocFromPoolAsync_stub(&ptr, 300 * MIB, pool, NULL));
	}
	stack_hold();
}
