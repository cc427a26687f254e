/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many allocations whose sum goes up and down, with one peak as short as a single call, which thinning must not lose.
 *
 *   waves [CALLS]      default: 1000000 calls of cudaMalloc and cudaFree together
 *
 * Prints the most bytes that were live.
 */
#include "simulated.h"

#define N_SLOTS 2048
#define SPIKE   ((size_t)777 << 20)
#define WAVES   12

static size_t live;
static size_t most;

static void *take(size_t size)
{
	void *block = allocate(size);

	live += size;
	most = live > most ? live : most;
	return block;
}

/* Call sites that differ. */
#define SITE(name, size)                                              \
	static __attribute__((noinline)) void *name(size_t *ret_size) \
	{                                                             \
		void *block = take(size);                             \
                                                                      \
		*ret_size = size;                                     \
		return block;                                         \
	}
SITE(activation, (size_t)640 << 10)
SITE(gradient, (size_t)384 << 10)
SITE(workspace, (size_t)96 << 10)
SITE(scratch, (size_t)8 << 10)

static __attribute__((noinline)) void spike(void)
{
	void *block = take(SPIKE);

	live -= SPIKE;
	OK(cudaFree(block));
}

int main(int argc, char **argv)
{
	static void *(*const sites[])(size_t *) = { activation, gradient, workspace, scratch };
	static void *blocks[N_SLOTS];
	static size_t sizes[N_SLOTS];
	long n_calls = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;
	long done = 0;

	for (long i = 0; done < n_calls; i++) {
		long half = n_calls / WAVES / 2 + 1;
		long up = labs(done % (2 * half) - half);
		size_t wanted = (size_t)(N_SLOTS + 1 - up * N_SLOTS / half);
		size_t slot = (size_t)(i * 1103515245 + 12345) % N_SLOTS;

		if (blocks[slot]) {
			OK(cudaFree(blocks[slot]));
			live -= sizes[slot];
			blocks[slot] = NULL;
			done++;
		}
		if (slot < wanted) {
			blocks[slot] = sites[slot % 4](&sizes[slot]);
			done++;
		}
		if (i == n_calls / 3)
			spike();
	}
	printf("most live bytes: %zu\n", most);
	return 0;
}
