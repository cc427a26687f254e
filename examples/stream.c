/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch memory of one stream: freed in the order of the stream, it is there for the next step at once. */
#include <stdio.h>

#include <cuda_runtime.h>
#include <gpucache.h>

static int step(cudaStream_t stream, size_t bytes)
{
	void *scratch = NULL;
	int error = gpucache_malloc_on(&scratch, bytes, stream);

	if (error)
		return error;
	(void)cudaMemsetAsync(scratch, 0, bytes, stream); /* the step's work */
	return gpucache_free_on(scratch, stream); /* without a wait: the next step gets it */
}

int main(void)
{
	struct gpucache_stats stats = { .size = sizeof stats };
	cudaStream_t stream;
	int error = cudaStreamCreate(&stream);

	for (int i = 0; i < 100 && !error; i++)
		error = step(stream, (size_t)64 << 20);
	if (!error)
		error = gpucache_stats(-1, &stats);
	if (error) {
		fprintf(stderr, "stream: %s\n", gpucache_error_text(error));
		return 1;
	}
	printf("%llu allocations, %llu of the driver\n", (unsigned long long)stats.n_malloc,
		(unsigned long long)stats.n_driver_malloc);
	return 0;
}
