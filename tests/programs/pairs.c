/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pair of cudaMalloc and cudaFree costs, in a program that knows nothing of gpucache.
 *
 *   pairs [SIZE [COUNT [STREAMS]]]    defaults: 1048576 bytes, 2000 pairs, 0 streams
 *
 * STREAMS other streams exist, idle, while the pairs run, so a cache must prove that freed memory is safe.  Prints one
 * line: nanoseconds per pair, the mean over all pairs and over the fastest tenth.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cuda_runtime.h>

#define MAX_STREAMS 64
#define N_GROUPS    10

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void check(const char *what, cudaError_t status)
{
	if (status == cudaSuccess)
		return;
	fprintf(stderr, "%s failed: %s (%d)\n", what, cudaGetErrorString(status), (int)status);
	exit(1);
}

static uint64_t time_pairs(size_t size, long count)
{
	uint64_t start = now_ns();

	for (long i = 0; i < count; i++) {
		void *ptr = NULL;

		check("cudaMalloc", cudaMalloc(&ptr, size));
		check("cudaFree", cudaFree(ptr));
	}
	return now_ns() - start;
}

int main(int argc, char **argv)
{
	size_t size = argc > 1 ? strtoull(argv[1], NULL, 10) : (size_t)1 << 20;
	long count = argc > 2 ? strtol(argv[2], NULL, 10) : 2000;
	long n_streams = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
	uint64_t all = 0;
	uint64_t fastest = UINT64_MAX;

	if (size == 0 || count < N_GROUPS || n_streams < 0 || n_streams > MAX_STREAMS) {
		fprintf(stderr, "usage: pairs [SIZE [COUNT [STREAMS]]]\n");
		return 2;
	}
	for (long i = 0; i < n_streams; i++) {
		cudaStream_t stream;

		check("cudaStreamCreate",
			cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	}
	(void)time_pairs(size, N_GROUPS);
	for (int i = 0; i < N_GROUPS; i++) {
		uint64_t ns = time_pairs(size, count / N_GROUPS);

		all += ns;
		if (ns < fastest)
			fastest = ns;
	}
	count = count / N_GROUPS * N_GROUPS;
	printf("pairs: size %zu streams %ld mean_ns %llu fastest_ns %llu\n", size, n_streams,
		(unsigned long long)(all / (uint64_t)count),
		(unsigned long long)(fastest / (uint64_t)(count / N_GROUPS)));
	return 0;
}
