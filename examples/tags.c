/* SPDX-License-Identifier: Apache-2.0 */
/* Labels: gpumem-report shows who holds memory by range, and so can the program. */
#include <stdio.h>

#include <cuda_runtime.h>
#include <gpucache.h>

static void *allocate(const char *range, size_t bytes)
{
	void *memory = NULL;

	(void)gpucache_tag_push(range);
	(void)cudaMalloc(&memory, bytes);
	(void)gpucache_tag_pop();
	return memory;
}

int main(void)
{
	struct gpucache_part_stats part = { .size = sizeof part };
	void *weights = allocate("weights", (size_t)256 << 20);
	void *activations = allocate("forward", (size_t)64 << 20);
	int error = gpucache_tag_stats(-1, "forward", &part);

	if (!weights || !activations || error) {
		fprintf(stderr, "tags: %s\n", gpucache_error_text(error));
		return 1;
	}
	printf("forward holds %llu bytes in %llu blocks\n", (unsigned long long)part.live_bytes,
		(unsigned long long)part.n_blocks);
	return 0;
}
