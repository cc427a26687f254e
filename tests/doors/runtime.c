/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the runtime library and prints its error: all that is seen here is what it asks the driver for. */
#include <stdio.h>

#include <cuda_runtime.h>

int main(void)
{
	void *ptr = NULL;
	int error = (int)cudaMalloc(&ptr, 1 << 20);

	printf("cudaMalloc: %d\n", error);
	return 0;
}
