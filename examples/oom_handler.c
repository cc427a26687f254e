/* SPDX-License-Identifier: Apache-2.0 */
/* A cache that the program can do without goes before the program is told "out of memory". */
#include <stdio.h>

#include <cuda_runtime.h>
#include <gpucache.h>

struct cache {
	void *memory;
};

/* Returns whether it freed anything: then the request is tried again. */
static int drop(void *arg, size_t wanted, int device)
{
	struct cache *cache = arg;

	printf("%zu bytes are wanted of device %d\n", wanted, device);
	if (!cache->memory)
		return 0;
	(void)gpucache_free(cache->memory);
	cache->memory = NULL;
	return 1;
}

int main(void)
{
	struct cache cache = { NULL };
	void *needed = NULL;
	size_t free_bytes = 0, total_bytes = 0;
	int error = cudaMemGetInfo(&free_bytes, &total_bytes);

	gpucache_set_oom_handler(drop, &cache);
	if (!error)
		error = gpucache_malloc(&cache.memory, free_bytes / 2);
	if (!error)
		error = cudaMalloc(&needed, free_bytes / 4 * 3); /* does not fit beside the cache */
	if (error) {
		fprintf(stderr, "oom_handler: %s\n", gpucache_error_text(error));
		return 1;
	}
	printf("the cache is %s, and what was needed is there\n", cache.memory ? "kept" : "gone");
	return 0;
}
