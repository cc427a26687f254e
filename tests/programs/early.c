/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programmatic dependent launch: a kernel that may begin when the one ahead of it has begun, on memory that was that
 * one's until cudaFree.
 *
 *      legacy stream   [ 300 ms, then writes 7 to A ]
 *      host            free A, malloc B of that size
 *      legacy stream   [ early, 1 ms: writes 9 to B ]
 *
 *   early [streams]     streams: with a second stream from the start
 *
 * The plain cudaFree waits, so B holds 9.  For the simulated GPU (gpusim.h).
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>
#include <gpusim.h>

#define BYTES ((size_t)4 << 20)
#define MS    UINT64_C(1000000)

/* Ends the program where a call fails. */
#define OK(call) check(#call, (int)(call))

static void check(const char *call, int result)
{
	if (result == 0)
		return;
	printf("%s: %d\n", call, result);
	exit(1);
}

int main(int argc, char **argv)
{
	struct gpusim_range range = { .size = BYTES, .fill = 7 };
	__typeof__(&gpusim_launch) launch, launch_early;
	CUcontext context;
	CUstream stream;
	CUdeviceptr a, b;
	unsigned char byte = 0;

	(void)argv;
	*(void **)&launch = dlsym(RTLD_DEFAULT, "gpusim_launch");
	*(void **)&launch_early = dlsym(RTLD_DEFAULT, "gpusim_launch_early");
	if (!launch || !launch_early)
		return 77;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	if (argc > 1)
		OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&a, BYTES));
	range.ptr = a;
	OK(launch(NULL, 300 * MS, 1, &range));
	OK(cuMemFree(a));
	OK(cuMemAlloc(&b, BYTES));
	range = (struct gpusim_range){ .ptr = b, .size = BYTES, .fill = 9 };
	OK(launch_early(NULL, MS, 1, &range));
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH(&byte, b, 1));
	printf("%s block, %d\n", a == b ? "the same" : "another", byte);
	return 0;
}
