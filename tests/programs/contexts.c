/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that make, use, reset, detach and destroy contexts of two devices, all at once, and write
 * into their memory what only they know.  Prints how often they found something else, and whether
 * each device has afterwards what it had before.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

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

int main(void)
{
	pthread_t threads[N_THREADS + N_DEVICES];
	size_t before[N_DEVICES];

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
