/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a long recording: many N_LIVE N_PAIRS.
 *
 * Allocates N_LIVE blocks from 1024 call sites and keeps them; then N_PAIRS times allocates and frees one more: 2 *
 * N_PAIRS events.  The call sites are the paths down a tree of two functions.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#define DEPTH 10

static void *right(unsigned way, unsigned depth, size_t size);

static void *take(size_t size)
{
	void *ptr = NULL;

	if (cudaMalloc(&ptr, size) != cudaSuccess) {
		fprintf(stderr, "no memory\n");
		exit(1);
	}
	return ptr;
}

/* Each call keeps a frame of its own. */
static __attribute__((noinline)) void *left(unsigned way, unsigned depth, size_t size)
{
	void *ptr;

	if (depth == 0)
		ptr = take(size);
	else if (way & 1)
		ptr = right(way >> 1, depth - 1, size);
	else
		ptr = left(way >> 1, depth - 1, size);
	__asm__ volatile("" ::: "memory");
	return ptr;
}

static __attribute__((noinline)) void *right(unsigned way, unsigned depth, size_t size)
{
	void *ptr;

	if (depth == 0)
		ptr = take(size);
	else if (way & 1)
		ptr = right(way >> 1, depth - 1, size);
	else
		ptr = left(way >> 1, depth - 1, size);
	__asm__ volatile("" ::: "memory");
	return ptr;
}

int main(int argc, char **argv)
{
	unsigned n_live = argc == 3 ? (unsigned)atoi(argv[1]) : 0;
	unsigned n_pairs = argc == 3 ? (unsigned)atoi(argv[2]) : 0;

	if (argc != 3)
		return 2;
	for (unsigned i = 0; i < n_live; i++)
		left(i, DEPTH, 512 * (1 + i % 20));
	for (unsigned i = 0; i < n_pairs; i++)
		if (cudaFree(left(i, DEPTH, 4096)) != cudaSuccess)
			return 1;
	printf("%u live, %u pairs\n", n_live, n_pairs);
	return 0;
}
