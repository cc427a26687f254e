/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop that a cache must not make worse: malloc, launch, free.
 *
 *   loop [BYTES [COUNT]]      defaults: 8388608 bytes, 10000 times
 *
 * The kernel runs for 1 ms on a non-blocking stream, and a second stream exists.  The driver's cudaFree waits for the
 * kernel each time, so one block suffices.  Prints the process's peak of device memory, and the total time by the
 * device's clock.
 */
#include "simulated.h"

int main(int argc, char **argv)
{
	size_t size = argc > 1 ? strtoull(argv[1], NULL, 10) : 8 * MIB;
	long count = argc > 2 ? strtol(argv[2], NULL, 10) : 10000;
	cudaStream_t work = make_stream();
	cudaEvent_t start, end;
	uint64_t before;
	uint64_t peak = 0;
	float ms = 0;

	(void)make_stream();
	OK(cudaEventCreate(&start));
	OK(cudaEventCreate(&end));
	before = used_bytes();
	OK(cudaEventRecord(start, work));
	for (long i = 0; i < count; i++) {
		void *block = allocate(size);
		uint64_t used = used_bytes() - before;

		peak = used > peak ? used : peak;
		OK(launch(work, 1 * MS, block, size, -1));
		OK(cudaFree(block));
	}
	OK(cudaDeviceSynchronize());
	OK(cudaEventRecord(end, work));
	OK(cudaEventSynchronize(end));
	OK(cudaEventElapsedTime(&ms, start, end));
	printf("peak bytes: %llu\n", (unsigned long long)peak);
	printf("total ms: %.3f\n", (double)ms);
	return 0;
}
