/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests on a full GPU, each of which needs memory to be returned first.
 *
 *   rescue MODE      on a GPU of 1 GiB
 *
 *   cached       the room is in freed memory of another size
 *   neighbours   the room is in two freed halves, of which one was just used
 *   context      the room is in what another context freed
 *   pending      the room is in memory that a kernel still uses, for 50 ms on a non-blocking stream
 *   pool         the room is in a memory pool of the driver
 *   busy-pool    the same, and a kernel still uses it, for an hour
 *   graph        the room is in memory that a graph had of the driver
 *   handler      the room is in the program's own cache, which its OOM handler empties (gpucache.h)
 *   again        the driver refuses (GPUSIM=fail:...), and then no more
 *
 * The plain driver has no cache that could be in the way, except for its pools and graphs, and no handler.  Ends with
 * status 77 if the driver lacks the feature.
 */
#include <stdint.h>

#include "simulated.h"

/* So much that nothing else is left, in blocks that do not fit the request. */
static void hold(int n_blocks, size_t size)
{
	for (int i = 0; i < n_blocks; i++)
		(void)allocate(size);
}

static void fill_and_free(int n_blocks, size_t size)
{
	void *blocks[64];

	for (int i = 0; i < n_blocks; i++)
		blocks[i] = allocate(size);
	for (int i = 0; i < n_blocks; i++)
		OK(cudaFree(blocks[i]));
}

static size_t cached(void)
{
	fill_and_free(32, 30 * MIB);
	return 500 * MIB;
}

static size_t neighbours(void)
{
	const size_t half = 10 * MIB - MIB / 16; /* of a segment of 20 MiB */
	void *left;
	void *right;

	(void)make_stream();
	left = allocate(half);
	right = allocate(half);
	hold(25, 40 * MIB);
	OK(cudaFree(left));
	OK(cudaDeviceSynchronize());
	OK(cudaFree(right));
	return 2 * half;
}

static size_t context(void)
{
	int (*create)(void **context, unsigned flags, int device);
	int (*pop)(void **context);
	void *other = NULL;

	find_in_driver("cuCtxCreate_v2", &create);
	find_in_driver("cuCtxPopCurrent_v2", &pop);
	OK(cudaSetDevice(0));
	OK((cudaError_t)create(&other, 0, 0));
	fill_and_free(1, 600 * MIB);
	OK((cudaError_t)pop(&other));
	return 600 * MIB;
}

static size_t pending(void)
{
	cudaStream_t stream = make_stream();
	void *block = allocate(600 * MIB);

	OK(launch(stream, 50 * MS, block, 600 * MIB, -1));
	OK(cudaFree(block));
	return 600 * MIB;
}

#define RELEASE_THRESHOLD 4 /* CU_MEMPOOL_ATTR_RELEASE_THRESHOLD */

/* The driver is done with its own memory, and must have kept it. */
static size_t kept_by_driver(size_t size)
{
	if (used_bytes() < size)
		exit(77);
	return size;
}

static size_t pool_behind(uint64_t kernel_ns)
{
	int (*find)(void **pool, int device);
	int (*set)(void *pool, int attribute, void *value);
	uint64_t all = UINT64_MAX;
	cudaStream_t stream = make_stream();
	void *found = NULL;
	void *block = NULL;

	find_in_driver("cuDeviceGetDefaultMemPool", &find);
	find_in_driver("cuMemPoolSetAttribute", &set);
	OK((cudaError_t)find(&found, 0));
	OK((cudaError_t)set(found, RELEASE_THRESHOLD, &all));
	OK(cudaMallocAsync(&block, 600 * MIB, stream));
	if (kernel_ns)
		OK(launch(stream, kernel_ns, block, 600 * MIB, -1));
	OK(cudaFreeAsync(block, stream));
	if (!kernel_ns)
		OK(cudaStreamSynchronize(stream));
	return kept_by_driver(600 * MIB);
}

static size_t pool(void)
{
	return pool_behind(0);
}

static size_t busy_pool(void)
{
	return pool_behind(3600000 * MS);
}

static size_t graph(void)
{
	cudaStream_t stream = make_stream();
	cudaGraph_t captured = NULL;
	cudaGraphExec_t exec = NULL;
	void *block = NULL;

	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	if (cudaMallocAsync(&block, 600 * MIB, stream) == cudaErrorNotSupported)
		exit(77);
	OK(cudaMemsetAsync(block, 'g', 4096, stream));
	OK(cudaFreeAsync(block, stream));
	OK(cudaStreamEndCapture(stream, &captured));
	OK(cudaGraphInstantiate(&exec, captured, 0));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	return kept_by_driver(600 * MIB);
}

static int empty(void *own_cache, size_t wanted, int device)
{
	(void)wanted;
	(void)device;
	OK(cudaFree(own_cache));
	return 1;
}

static size_t handler(void)
{
	void (*set)(int (*)(void *, size_t, int), void *);
	void *function = dlsym(RTLD_DEFAULT, "gpucache_set_oom_handler");
	void *own_cache = allocate(600 * MIB);

	if (function) {
		memcpy(&set, &function, sizeof set);
		set(empty, own_cache);
	}
	return 600 * MIB;
}

static size_t again(void)
{
	hold(1, 100 * MIB);
	return 100 * MIB;
}

static const struct {
	const char *name;
	size_t (*prepare)(void);
} modes[] = {
	{ "cached", cached },
	{ "neighbours", neighbours },
	{ "context", context },
	{ "pending", pending },
	{ "pool", pool },
	{ "busy-pool", busy_pool },
	{ "graph", graph },
	{ "handler", handler },
	{ "again", again },
};

int main(int argc, char **argv)
{
	static char bytes[4096];
	size_t size = 0;
	char *block;

	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		if (argc > 1 && strcmp(argv[1], modes[i].name) == 0)
			size = modes[i].prepare();
	}
	if (size == 0) {
		fprintf(stderr, "usage: rescue MODE\n");
		return 2;
	}
	block = allocate(size);
	OK(cudaMemset(block + size - sizeof bytes, 'x', sizeof bytes));
	OK(cudaMemcpy(bytes, block + size - sizeof bytes, sizeof bytes, cudaMemcpyDeviceToHost));
	printf("%s\n", is_all(bytes, sizeof bytes, 'x') ? "got it" : "got what is not memory");
	return 0;
}
