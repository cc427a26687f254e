/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests beside work that began after the program had freed enough: plain cudaMalloc does not wait for that work.
 *
 *   beside WORK      on a GPU of 1 GiB
 *
 *   stream       a kernel of an hour on a non-blocking stream
 *   synced       the same, after a cudaDeviceSynchronize
 *   legacy       a kernel of an hour on the legacy stream, behind one that used the freed memory and has ended
 *   flag         a host function, which stands for a kernel, that waits until the host sets a flag after its requests
 *
 * Prints how many requests succeeded, and whether the work still runs.  For a virtual clock, which a wait for the hour
 * moves at once.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "simulated.h"

#define HOUR     (3600000 * MS)
#define N_FREED  30
#define N_WANTED 8

static cudaStream_t stream;
static atomic_bool flag, is_over;

/* Waits for the flag, but not so long that a request that waits for this function never ends. */
static void wait_for_flag(void *arg)
{
	(void)arg;
	for (int i = 0; i < 1000 && !atomic_load(&flag); i++)
		usleep(10000);
	atomic_store(&is_over, true);
}

static void begin_kernel(cudaStream_t on)
{
	OK(launch(on, HOUR, NULL, 0, -1));
}

static bool is_kernel_over(cudaStream_t on)
{
	return cudaStreamQuery(on) != cudaErrorNotReady;
}

static void free_all(void **blocks)
{
	for (int i = 0; i < N_FREED; i++)
		OK(cudaFree(blocks[i]));
}

int main(int argc, char **argv)
{
	const char *work = argc > 1 ? argv[1] : "";
	bool is_legacy = strcmp(work, "legacy") == 0;
	bool is_flag = strcmp(work, "flag") == 0;
	void *blocks[N_FREED];
	int n_served = 0;

	kernel_load();
	if (!is_legacy)
		stream = make_stream();
	for (int i = 0; i < N_FREED; i++)
		blocks[i] = allocate(32 * MIB);
	OK(launch(stream, MS, blocks[0], 32 * MIB, 'a'));
	if (is_flag || strcmp(work, "synced") == 0)
		OK(cudaDeviceSynchronize());
	free_all(blocks);
	if (is_flag || strcmp(work, "synced") == 0)
		OK(cudaDeviceSynchronize());
	if (is_flag)
		OK(cudaLaunchHostFunc(stream, wait_for_flag, NULL));
	else
		begin_kernel(stream);
	for (int i = 0; i < N_WANTED; i++) {
		void *block = NULL;

		n_served += cudaMalloc(&block, 100 * MIB) == cudaSuccess;
	}
	is_over = is_flag ? is_over : is_kernel_over(stream);
	printf("%d of %d, and the work is %s\n", n_served, N_WANTED, is_over ? "over" : "running");
	atomic_store(&flag, true);
	return 0;
}
