/* SPDX-License-Identifier: Apache-2.0 */
/* A program that links libunwind itself and walks its own stack between two calls of CUDA. */
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <stdio.h>

#include <cuda_runtime.h>

static int count_frames(void)
{
	unw_context_t context;
	unw_cursor_t cursor;
	int n = 0;

	if (unw_getcontext(&context) || unw_init_local(&cursor, &context))
		return -1;
	while (unw_step(&cursor) > 0)
		n++;
	return n;
}

static int deeper(int levels)
{
	return levels ? deeper(levels - 1) + 0 * levels : count_frames();
}

int main(void)
{
	int before = deeper(10);
	void *ptr = NULL;

	for (int i = 0; i < 100; i++) {
		if (cudaMalloc(&ptr, 1000) || cudaFree(ptr))
			return 1;
	}
	printf("frames: %d, as before: %d\n", deeper(10), deeper(10) == before);
	return 0;
}
