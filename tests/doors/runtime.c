/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the runtime library and prints its error: the test is in the lookups that this causes (spy.c). */
#include <stdio.h>

#include <cuda_runtime.h>

int main(void)
{
	void *ptr = NULL;
	int error = (int)cudaMalloc(&ptr, 1 << 20);

	printf("cudaMalloc: %d\n", error);
	return 0;
}
