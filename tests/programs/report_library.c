/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A third-party library for reports.py: its names have the driver's prefix, it looks up the next definition of its own
 * name, and its constructor may use CUDA.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include <cuda_runtime.h>

int cudnnCreate(void);
int cublasCreate_v2(void);
int cuinterpose(void);
void *ompt_start_tool(void);

int cudnnCreate(void)
{
	return 4711;
}

int cublasCreate_v2(void)
{
	return 4712;
}

int cuinterpose(void)
{
	return 4713;
}

/* As LLVM's OpenMP does: whoever interposed this function before us was asked first. */
void *ompt_start_tool(void)
{
	return dlsym(RTLD_NEXT, "ompt_start_tool");
}

/* With the loader's lock held. */
__attribute__((constructor)) static void start(void)
{
	void *ptr;

	for (int i = 0; getenv("REPORT_CONSTRUCTOR") && i < 200; i++) {
		if (cudaMalloc(&ptr, 5000) || cudaFree(ptr))
			abort();
	}
}
