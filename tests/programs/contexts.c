/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that concurrently create, use, reset, detach and destroy contexts of two devices, each with its own data.
 *         Prints
 * how often they found other data, and whether each device has all its memory back at the end.
 *
 * contexts ends: one thread ends a context with live memory by every possible call, twice.  If the driver refuses, the
 * memory must still be the program's.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#define N_DEVICES 2
#define N_THREADS 8
#define N_ROUNDS  12
#define N_BLOCKS  24

static atomic_int n_bad;

static bool expect_at(int line, bool condition)
{
	if (condition)
		return true;
	fprintf(stderr, "line %d\n", line);
	atomic_fetch_add(&n_bad, 1);
	return false;
}
#define expect(condition) expect_at(__LINE__, condition)

/* Blocks of many sizes, each filled with a number of its own; half of them are given back. */
static void use(unsigned seed)
{
	CUdeviceptr blocks[N_BLOCKS];
	unsigned found;

	for (unsigned i = 0; i < N_BLOCKS; i++) {
		size_t size = (size_t)512 << (rand_r(&seed) % 13);

		if (!expect(!cuMemAlloc_v2(&blocks[i], size)))
			continue;
		expect(!cuMemsetD32_v2(blocks[i], seed ^ i, size / 4));
		if (i % 2 == 1) {
			expect(!cuMemcpyDtoH_v2(&found, blocks[i], sizeof found));
			expect(found == (seed ^ i));
			expect(!cuMemFree_v2(blocks[i]));
		}
	}
}

static void make_and_destroy(CUdevice device, unsigned seed)
{
	CUcontext context;
	CUcontext again;

	if (!expect(!cuCtxCreate_v2(&context, 0, device)))
		return;
	use(seed);
	if (seed % 3 == 0) {
		expect(!cuCtxAttach(&again, 0) && again == context);
		expect(!cuCtxDetach(context));
		use(seed + 1);
		expect(!cuCtxDetach(context));
	} else {
		expect(!cuCtxDestroy_v2(context));
	}
}

static void *live(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;

	for (unsigned i = 0; i < N_ROUNDS; i++)
		make_and_destroy((CUdevice)(rand_r(&seed) % N_DEVICES), seed);
	return NULL;
}

/* The primary context of a device that nobody else uses by that way. */
static void *reset(void *arg)
{
	CUdevice device = (CUdevice)(size_t)arg;
	CUcontext context;

	for (unsigned i = 0; i < N_ROUNDS; i++) {
		if (!expect(!cuDevicePrimaryCtxRetain(&context, device)))
			continue;
		expect(!cuCtxSetCurrent(context));
		use(i);
		if (i % 2)
			expect(!cuDevicePrimaryCtxReset_v2(device));
		expect(!cuDevicePrimaryCtxRelease_v2(device));
		expect(!cuCtxSetCurrent(NULL));
	}
	return NULL;
}

static size_t free_bytes(CUdevice device)
{
	CUcontext context;
	size_t available = 0;
	size_t total;

	if (!expect(!cuCtxCreate_v2(&context, 0, device)))
		return 0;
	expect(!cuMemGetInfo_v2(&available, &total));
	expect(!cuCtxDestroy_v2(context));
	return available;
}

static void say(const char *what, CUresult result)
{
	printf("%s: %d\n", what, (int)result);
}

static CUresult end_primary(CUcontext context)
{
	CUdevice device;

	(void)context;
	return cuCtxGetDevice(&device) ? CUDA_ERROR_INVALID_CONTEXT
				       : cuDevicePrimaryCtxReset_v2(device);
}

static CUresult release(CUcontext context)
{
	CUdevice device;

	(void)context;
	return cuCtxGetDevice(&device) ? CUDA_ERROR_INVALID_CONTEXT
				       : cuDevicePrimaryCtxRelease_v2(device);
}

/* Two blocks in the current context; the second time what is there now. */
static void end(const char *name, CUresult (*call)(CUcontext), CUcontext context)
{
	CUdeviceptr blocks[2] = { 0 };
	unsigned found = 0;
	CUresult result;

	say("alloc", cuMemAlloc_v2(&blocks[0], 1 << 20));
	say("alloc", cuMemAlloc_v2(&blocks[1], 1 << 20));
	say("fill", cuMemsetD32_v2(blocks[1], 7, 1 << 18));
	result = call(context);
	say(name, result);
	if (!result)
		return;
	say("free", cuMemFree_v2(blocks[0]));
	say("alloc", cuMemAlloc_v2(&blocks[0], 1 << 20));
	say("look", cuMemcpyDtoH_v2(&found, blocks[1], sizeof found));
	printf("found: %u\n", found);
	say("free", cuMemFree_v2(blocks[0]));
	say("free", cuMemFree_v2(blocks[1]));
	say("again", call(context));
}

static int end_by_each(void)
{
	CUcontext context = NULL;
	size_t before;

	say("start", cuInit(0));
	before = free_bytes(0);
	say("make", cuCtxCreate_v2(&context, 0, 0));
	end("destroy", cuCtxDestroy_v2, context);
	say("make", cuCtxCreate_v2(&context, 0, 0));
	end("detach", cuCtxDetach, context);
	say("retain", cuDevicePrimaryCtxRetain(&context, 0));
	say("current", cuCtxSetCurrent(context));
	end("reset", end_primary, context);
	say("retain", cuDevicePrimaryCtxRetain(&context, 0));
	say("current", cuCtxSetCurrent(context));
	say("one", cuDevicePrimaryCtxRelease_v2(0));
	end("release", release, context);
	say("none", cuCtxSetCurrent(NULL));
	printf("the device has what it had: %d\n", free_bytes(0) == before);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t threads[N_THREADS + N_DEVICES];
	size_t before[N_DEVICES];

	if (argc > 1 && strcmp(argv[1], "ends") == 0)
		return end_by_each();
	expect(!cuInit(0));
	for (CUdevice d = 0; d < N_DEVICES; d++)
		before[d] = free_bytes(d);
	for (size_t i = 0; i < N_THREADS + N_DEVICES; i++)
		pthread_create(&threads[i], NULL, i < N_THREADS ? live : reset,
			(void *)(i < N_THREADS ? i + 1 : i - N_THREADS));
	for (size_t i = 0; i < N_THREADS + N_DEVICES; i++)
		pthread_join(threads[i], NULL);
	printf("bad: %d\n", atomic_load(&n_bad));
	for (CUdevice d = 0; d < N_DEVICES; d++)
		printf("device %d has what it had: %d\n", d, free_bytes(d) == before[d]);
	return 0;
}
