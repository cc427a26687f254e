/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is freed in flight: a kernel of one stream still uses it when another stream's owner
 * asks for the same size and writes there.
 *
 *   in_flight OLD NEW      streams: non-blocking, blocking, per-thread, legacy
 *
 *      old stream   [ kernel, 20 ms: writes A, uses B ][ copy B to the host ]
 *      host         free A, free B, malloc C, malloc D
 *      new stream   [ fill C ][ fill D ]
 *
 * The driver's cudaFree waits for the kernel.  A cache that reuses A and B without a wait lets the kernel overwrite C
 * and D, and gives the old owner's copy bytes that it never wrote.
 */
#include "simulated.h"

#define BLOCK_BYTES (8 * MIB)
#define OLD         'o'
#define NEW         'n'

static cudaStream_t stream_of(const char *kind)
{
	cudaStream_t stream = NULL;

	if (strcmp(kind, "non-blocking") == 0)
		return make_stream();
	if (strcmp(kind, "per-thread") == 0)
		return cudaStreamPerThread;
	if (strcmp(kind, "legacy") == 0)
		return cudaStreamLegacy;
	if (strcmp(kind, "blocking") != 0) {
		fprintf(stderr, "usage: in_flight OLD NEW\n");
		exit(2);
	}
	OK(cudaStreamCreate(&stream));
	return stream;
}

static void say(const char *who, const char *bytes, int wrote)
{
	printf("%s: %s\n", who, is_all(bytes, BLOCK_BYTES, wrote) ? "right" : "wrong");
}

/* The new owner of one block; returns it. */
static void *own_anew(cudaStream_t stream)
{
	void *block = allocate(BLOCK_BYTES);

	OK(cudaMemsetAsync(block, NEW, BLOCK_BYTES, stream));
	return block;
}

int main(int argc, char **argv)
{
	cudaStream_t old = stream_of(argc > 1 ? argv[1] : "non-blocking");
	cudaStream_t new = stream_of(argc > 2 ? argv[2] : "non-blocking");
	char *bytes = allocate_pinned(BLOCK_BYTES);
	void *written = allocate(BLOCK_BYTES);
	void *used = allocate(BLOCK_BYTES);
	void *anew[2];

	OK(cudaMemsetAsync(used, OLD, BLOCK_BYTES, old));
	OK(launch(old, 20 * MS, written, BLOCK_BYTES, OLD));
	OK(cudaMemcpyAsync(bytes, used, BLOCK_BYTES, cudaMemcpyDeviceToHost, old));
	OK(cudaFree(written));
	OK(cudaFree(used));

	for (int i = 0; i < 2; i++)
		anew[i] = own_anew(new);
	OK(cudaDeviceSynchronize());
	say("old owner", bytes, OLD);
	for (int i = 0; i < 2; i++) {
		OK(cudaMemcpy(bytes, anew[i], BLOCK_BYTES, cudaMemcpyDeviceToHost));
		say("new owner", bytes, NEW);
		OK(cudaFree(anew[i]));
	}
	return 0;
}
