/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that leaves the order of all streams while its old owner's kernel may still run.
 *
 *   outside WAY [N]     WAY: ipc, dma-buf, sync-memops, p2p-tokens, p2p-tokens-among-others
 *
 *      legacy stream   [ kernel, 300 ms: writes A ]
 *      host            free A, malloc B of that size, give B away by WAY: is the kernel done?
 *
 * The user of B - another process, a network card - is ordered behind no stream, so the kernel must have ended.  The
 * driver's cuMemFree waits for it.  With N, exports and keeps N such blocks, and prints how many it got.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#include "kernel.h"

#define MIB ((size_t)1 << 20)
#define MS  UINT64_C(1000000)

/* Ends the program where a call fails. */
#define OK(call) check(#call, call)

static void check(const char *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("%s: %d\n", call, (int)result);
	exit(1);
}

static void give_away(const char *way, CUdeviceptr ptr, size_t size)
{
	static CUpointer_attribute some[] = { CU_POINTER_ATTRIBUTE_BUFFER_ID,
		CU_POINTER_ATTRIBUTE_P2P_TOKENS };
	uint64_t tokens[2][2];
	void *results[] = { tokens[0], tokens[1] };
	CUipcMemHandle handle;
	unsigned int one = 1;
	int fd = -1;

	if (strcmp(way, "ipc") == 0)
		OK(cuIpcGetMemHandle(&handle, ptr));
	else if (strcmp(way, "dma-buf") == 0)
		OK(cuMemGetHandleForAddressRange(&fd, ptr, size, 1, 0));
	else if (strcmp(way, "sync-memops") == 0)
		OK(cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr));
	else if (strcmp(way, "p2p-tokens") == 0)
		OK(cuPointerGetAttribute(tokens[0], CU_POINTER_ATTRIBUTE_P2P_TOKENS, ptr));
	else if (strcmp(way, "p2p-tokens-among-others") == 0)
		OK(cuPointerGetAttributes(2, some, results, ptr));
	else
		exit(2);
	if (fd >= 0)
		close(fd);
}

/* As a library does that registers each buffer with its network card. */
static void many(const char *way, int n, size_t size)
{
	int n_made = 0;
	CUdeviceptr ptr;

	while (n_made < n && cuMemAlloc(&ptr, size) == CUDA_SUCCESS) {
		give_away(way, ptr, size);
		n_made++;
	}
	printf("%d of %d blocks of %zu bytes\n", n_made, n, size);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "ipc";
	CUcontext context;
	CUdeviceptr old;
	CUdeviceptr given;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	if (argc > 2) {
		many(way, atoi(argv[2]), argc > 3 ? (size_t)atol(argv[3]) : 4096);
		return 0;
	}
	OK(cuMemAlloc(&old, 4 * MIB));
	OK((CUresult)kernel_launch(NULL, 300 * MS, old, 4 * MIB, 7));
	OK(cuMemFree(old));
	OK(cuMemAlloc(&given, 4 * MIB));
	give_away(way, given, 4 * MIB);
	printf("%s: the old owner's kernel %s\n", way,
		cuStreamQuery(NULL) == CUDA_SUCCESS ? "is done" : "RUNS");
	return 0;
}
