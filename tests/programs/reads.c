/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads back what kernels should have computed: reads MODE [N].
 *
 *   loop N       N reads in one line
 *   growing N    the same, with new memory before every 600th
 *   known        what was copied there after the last kernel, through a second block
 *   values       reads of 1, 2, 4, 8, 12 and 16 bytes, in hexadecimal; the memory holds 0x55 in every byte
 *   nonzero      a read that is a size: functions are known by their names (steers.def)
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *memory;

static void need(cudaError_t error)
{
	if (error != cudaSuccess) {
		printf("error %d\n", error);
		exit(1);
	}
}

static void compute(void)
{
	static char kernel;
	const dim3 one = { 1, 1, 1 };

	need(cudaLaunchKernel(&kernel, one, one, NULL, 0, NULL));
}

static int is_done(void)
{
	char done = 0;

	need(cudaMemcpy(&done, memory, 1, cudaMemcpyDeviceToHost));
	return done;
}

static void loop(int n, int step)
{
	void *more;

	for (int i = 0; i < n; i++) {
		if (step && i % step == 0)
			need(cudaMalloc(&more, 4 << 20));
		compute();
		(void)is_done();
	}
}

static void known(void)
{
	int value = 42;
	int back = 0;
	char *copy;

	need(cudaMalloc((void **)&copy, 512));
	compute();
	need(cudaMemcpy(memory, &value, sizeof value, cudaMemcpyHostToDevice));
	need(cudaMemcpy(copy + 8, memory, sizeof value, cudaMemcpyDeviceToDevice));
	need(cudaMemset(copy, 7, 4));
	for (int at = 0; at < 12; at += 4) {
		need(cudaMemcpy(&back, copy + at, sizeof back, cudaMemcpyDeviceToHost));
		printf("%d ", back);
	}
	compute();
	need(cudaMemcpy(&back, copy + 8, sizeof back, cudaMemcpyDeviceToHost));
	printf("%d\n", back);
}

static void values(void)
{
	static const size_t sizes[] = { 1, 2, 4, 8, 12, 16 };
	unsigned char back[16];

	compute();
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		need(cudaMemcpy(back, memory, sizes[i], cudaMemcpyDeviceToHost));
		for (size_t k = 0; k < sizes[i]; k++)
			printf("%02x", back[k]);
		printf(i < 5 ? " " : "\n");
	}
}

/* Exported, so that its name is found. */
__attribute__((visibility("default"))) void nonzero(void);
void nonzero(void)
{
	compute();
	(void)is_done();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	need(cudaMalloc(&memory, 512));
	need(cudaMemset(memory, 0x55, 512));
	if (strcmp(mode, "loop") == 0)
		loop(n, 0);
	else if (strcmp(mode, "growing") == 0)
		loop(n, 600);
	else if (strcmp(mode, "known") == 0)
		known();
	else if (strcmp(mode, "values") == 0)
		values();
	else
		nonzero();
	return 0;
}
