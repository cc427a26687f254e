/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random program that frees blocks in flight, and checks the data of each owner.
 *
 *   reuse [ROUNDS [SEED]]      defaults: 40 rounds, seed 1
 *
 *     stream a   [ spin, fill block with 7 ][ copy block to the host ]      is all of it 7?
 *     host        free                        (at once, or some steps later)
 *     stream b        [ fill block with 9 ][ copy ]                         a 7 or a 9 in the wrong place is the bug
 *
 * Blocks have few sizes, so that they are reused; kernels take 0 to 200 us on 4 streams.  Prints wrong bytes.
 */
#include "driver.h"

#define N_STREAMS 4
#define N_LIVE    6
#define N_STEPS   200
#define MOST      (2 * MIB)

struct step {
	size_t size;
	int value;
	unsigned char *copy; /* pinned */
};

static struct step steps[N_STEPS];
static CUdeviceptr live[N_LIVE];
static uint64_t state;

static unsigned below(unsigned n)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state >> 33) % n;
}

static void take_step(struct step *step, int number)
{
	static const size_t sizes[] = { 4 * KIB, 64 * KIB, 600 * KIB, MOST };
	CUdeviceptr *mine = &live[below(N_LIVE)];
	CUstream stream = streams[below(N_STREAMS)];

	/* Its kernel may still run, and its copy may still wait. */
	if (*mine)
		NEED(cuMemFree(*mine));
	step->size = sizes[below(4)];
	step->value = number % 251 + 1;
	*mine = block(step->size);
	NEED(kernel_launch(stream, below(200) * 1000, *mine, step->size, step->value));
	NEED(cuMemcpyDtoHAsync(step->copy, *mine, step->size, stream));
	if (below(2)) {
		NEED(cuMemFree(*mine));
		*mine = 0;
	}
}

static int is_right(const struct step *step)
{
	return step->copy[0] == step->value &&
	       memcmp(step->copy, step->copy + 1, step->size - 1) == 0;
}

int main(int argc, char **argv)
{
	long n_rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 40;
	long n_wrong = 0;

	state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	(void)open_device();
	make_streams(N_STREAMS);
	for (int i = 0; i < N_STEPS; i++) {
		void *pinned;

		NEED(cuMemAllocHost(&pinned, MOST));
		steps[i].copy = pinned;
	}
	for (long round = 0; round < n_rounds; round++) {
		for (int i = 0; i < N_STEPS; i++)
			take_step(&steps[i], i);
		NEED(cuCtxSynchronize());
		for (int i = 0; i < N_STEPS; i++)
			n_wrong += !is_right(&steps[i]);
	}
	for (int i = 0; i < N_LIVE; i++) {
		if (live[i])
			NEED(cuMemFree(live[i]));
	}
	printf("blocks: %ld, wrong: %ld\n", n_rounds * N_STEPS, n_wrong);
	return n_wrong != 0;
}
