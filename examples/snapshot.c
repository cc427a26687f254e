/* SPDX-License-Identifier: Apache-2.0 */
/* The peak of a part of the run, and where the recording is, brought up to date. */
#include <stdio.h>

#include <cuda_runtime.h>
#include <gpucache.h>

int main(void)
{
	struct gpucache_stats stats = { .size = sizeof stats };
	char path[4096] = "";
	void *kept = NULL, *spike = NULL;
	int error = cudaMalloc(&kept, (size_t)32 << 20);

	if (!error)
		error = gpucache_reset_peaks(-1);
	if (!error)
		error = cudaMalloc(&spike, (size_t)128 << 20); /* the part that is measured */
	if (!error)
		error = cudaFree(spike);
	if (!error)
		error = gpucache_stats(-1, &stats);
	if (!error)
		error = gpucache_snapshot(path, sizeof path);
	if (error) {
		fprintf(stderr, "snapshot: %s\n", gpucache_error_text(error));
		return 1;
	}
	printf("holds %llu bytes, held at most %llu\n", (unsigned long long)stats.live_bytes,
		(unsigned long long)stats.peak_live_bytes);
	printf("gpumem-report %s\n", path);
	return 0;
}
