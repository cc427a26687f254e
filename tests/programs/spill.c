/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that need more memory than a simulated GPU has, for the option spill.
 *
 *   spill random SEED COUNT   COUNT random programs, one after another: blocks of 2 to 64 MiB are taken, written, read and
 *                             freed on three streams, with up to three times the device's memory live
 *   spill what SIZE           takes SIZE MiB, and prints what the driver says of the last block and does with it
 *   spill hold SIZE           takes SIZE MiB in blocks of 64, prints "held", and waits for a line
 *
 * Prints how many requests there were, how many were refused, how many got managed memory, and how many of both would
 * have fitted beside what the program held of the device.  Exit status 1 if a byte is wrong, or if the device keeps memory at the end.
 */
#include "simulated.h"

#define BLOCKS  40
#define STEPS   300
#define EDGE    ((size_t)4096)
#define STREAMS 3

struct block {
	char *at;
	size_t size;
	int value;
	int is_managed;
};

static struct block blocks[BLOCKS];
static cudaStream_t streams[STREAMS];
static uint64_t state;
static size_t on_device, total;
static unsigned long n_requests, n_refused, n_managed, n_early, n_wrong;

static unsigned draw(unsigned below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state >> 33) % below;
}

static int is_managed(const void *ptr)
{
	struct cudaPointerAttributes attributes;

	OK(cudaPointerGetAttributes(&attributes, ptr));
	return attributes.type == cudaMemoryTypeManaged;
}

static void fill(struct block *block)
{
	cudaStream_t stream = streams[draw(STREAMS)];

	block->value = (int)draw(255) + 1;
	OK(cudaDeviceSynchronize()); /* an earlier fill may be on another stream */
	OK(cudaMemsetAsync(block->at, block->value, EDGE, stream));
	OK(cudaMemsetAsync(block->at + block->size - EDGE, block->value, EDGE, stream));
}

static void take(struct block *block)
{
	size_t size = (1 + draw(32)) * 2 * MIB;
	void *ptr = NULL;

	n_requests++;
	if (cudaMalloc(&ptr, size) != cudaSuccess) {
		n_refused++;
		n_early += on_device + size <= total;
		(void)cudaGetLastError();
		return;
	}
	*block = (struct block){ .at = ptr, .size = size, .is_managed = is_managed(ptr) };
	if (!block->is_managed)
		on_device += size;
	n_managed += (unsigned)block->is_managed;
	n_early += block->is_managed && on_device + size <= total;
	fill(block);
}

static void verify(const struct block *block)
{
	static char bytes[2 * EDGE];

	OK(cudaMemcpy(bytes, block->at, EDGE, cudaMemcpyDeviceToHost));
	OK(cudaMemcpy(bytes + EDGE, block->at + block->size - EDGE, EDGE, cudaMemcpyDeviceToHost));
	n_wrong += !is_all(bytes, sizeof bytes, block->value);
}

static void drop(struct block *block)
{
	if (draw(2)) /* work on it may still be queued */
		OK(cudaMemsetAsync(block->at, 0, EDGE, streams[draw(STREAMS)]));
	else
		verify(block);
	OK(cudaFree(block->at));
	if (!block->is_managed)
		on_device -= block->size;
	*block = (struct block){ 0 };
}

static void play(uint64_t seed)
{
	unsigned n = 4 + draw(BLOCKS - 4);

	state = seed;
	for (unsigned i = 0; i < STEPS; i++) {
		struct block *block = &blocks[draw(n)];

		if (!block->at)
			take(block);
		else if (draw(3) == 0)
			drop(block);
		else if (draw(2))
			verify(block);
		else
			fill(block);
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		if (blocks[i].at)
			drop(&blocks[i]);
}

static int play_all(uint64_t seed, unsigned count)
{
	size_t before = 0;
	size_t after = 0;

	OK(cudaMemGetInfo(&before, &total));
	for (unsigned i = 0; i < STREAMS; i++)
		OK(cudaStreamCreate(&streams[i])); /* cudaMemcpy waits for them */
	for (unsigned i = 0; i < count; i++)
		play(seed + i);
	OK(cudaDeviceSynchronize());
	OK(cudaMemGetInfo(&after, &total));
	printf("%lu requests, %lu refused, %lu managed, %lu early, %lu wrong, %s\n", n_requests,
		n_refused, n_managed, n_early, n_wrong,
		after == before ? "all given back" : "not all given back");
	return n_wrong || after != before;
}

static void *take_last(size_t mib)
{
	void *ptr = NULL;

	for (; mib > 0; mib -= mib < 64 ? mib : 64)
		ptr = allocate((mib < 64 ? mib : 64) * MIB);
	return ptr;
}

static int tell(size_t mib)
{
	void *ptr = take_last(mib);
	void *base = NULL;
	size_t size = 0;
	cudaIpcMemHandle_t handle;
	int (*range)(void **base, size_t *size, void *ptr);
	int status;

	find_in_driver("cuMemGetAddressRange_v2", &range);
	status = range(&base, &size, ptr);
	printf("managed %d\nrange %d %d %zu\n", is_managed(ptr), status, base == ptr, size / MIB);
	printf("export %d\n", (int)cudaIpcGetMemHandle(&handle, ptr));
	(void)cudaGetLastError();
	OK(cudaMemset(ptr, 7, EDGE));
	printf("free in order %d\n", (int)cudaFreeAsync(ptr, 0));
	OK(cudaDeviceSynchronize());
	printf("free again %d\n", (int)cudaFree(ptr));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "random") == 0)
		return play_all(strtoull(argv[2], NULL, 10), (unsigned)atoi(argv[3]));
	if (argc == 3 && strcmp(argv[1], "what") == 0)
		return tell((size_t)atoi(argv[2]));
	if (argc == 3 && strcmp(argv[1], "hold") == 0) {
		(void)take_last((size_t)atoi(argv[2]));
		puts("held");
		fflush(stdout);
		return getchar() == EOF;
	}
	fputs("usage: spill random SEED COUNT | what SIZE | hold SIZE\n", stderr);
	return 2;
}
