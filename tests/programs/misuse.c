/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Misuses the CUDA runtime, or uses its edge cases, as its argument says, and prints each error code.  With and without
 * gpucache the output must be the same.
 *
 *   misuse MODE      `misuse list` prints the modes, one a line
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

#define BLOCK_BYTES ((size_t)3 << 20)

/* Prints the answer of a call, and what the runtime remembers as the last error after it. */
static void say(const char *what, cudaError_t status)
{
	printf("%s: %d", what, (int)status);
	printf(" then %d\n", (int)cudaGetLastError());
	fflush(stdout);
}

static void *block(void)
{
	void *ptr = NULL;

	say("malloc", cudaMalloc(&ptr, BLOCK_BYTES));
	return ptr;
}

static void free_twice(void)
{
	void *ptr = block();

	say("free", cudaFree(ptr));
	say("free again", cudaFree(ptr));
	say("malloc after it", cudaMalloc(&ptr, BLOCK_BYTES));
	say("free after it", cudaFree(ptr));
}

static void free_garbage(void)
{
	void *ptr = block();
	int on_host = 0;

	say("free of a small number", cudaFree((void *)(uintptr_t)0x1234));
	say("free of a host address", cudaFree(&on_host));
	say("free", cudaFree(ptr));
}

static void free_interior(void)
{
	char *ptr = block();

	say("free of the middle", cudaFree(ptr + BLOCK_BYTES / 2));
	say("free of the second byte", cudaFree(ptr + 1));
	say("free", cudaFree(ptr));
}

static void *free_it(void *ptr)
{
	say("free by another thread", cudaFree(ptr));
	return NULL;
}

static void free_from_another_thread(void)
{
	void *ptr = block();
	pthread_t thread;

	if (pthread_create(&thread, NULL, free_it, ptr) == 0)
		pthread_join(thread, NULL);
	say("free again", cudaFree(ptr));
}

static void *kept;

static void free_kept(void)
{
	say("free in atexit", cudaFree(kept));
}

/* Registered after CUDA started: runs before the driver's own end. */
static void free_in_atexit(void)
{
	kept = block();
	atexit(free_kept);
}

static void *kept_for_the_end;

__attribute__((destructor)) static void free_in_destructor(void)
{
	if (!kept_for_the_end)
		return;
	/* The code differs between drivers that are gone and drivers that are not: only "no crash" is told. */
	(void)cudaFree(kept_for_the_end);
	printf("free in a destructor: returned\n");
	fflush(stdout);
}

static void free_in_static_destructor(void)
{
	kept_for_the_end = block();
}

static void never_free(void)
{
	for (int i = 0; i < 5; i++)
		(void)block();
}

static void ask_for_nothing(void)
{
	void *ptr = (void *)(uintptr_t)0x55;

	say("malloc of 0 bytes", cudaMalloc(&ptr, 0));
	printf("pointer is %s\n", ptr ? "not null" : "null");
	say("free of it", cudaFree(ptr));
}

static void free_null(void)
{
	say("free of null, first call", cudaFree(NULL));
	say("free of null", cudaFree(NULL));
	say("free host of null", cudaFreeHost(NULL));
}

static void ask_for_too_much(void)
{
	void *ptr = (void *)(uintptr_t)0x55;
	void *small = NULL;

	say("malloc of 2^62 bytes", cudaMalloc(&ptr, (size_t)1 << 62));
	say("malloc of 2^64 - 1 bytes", cudaMalloc(&ptr, SIZE_MAX));
	say("malloc of 16 TiB", cudaMalloc(&ptr, (size_t)16 << 40));
	say("malloc of 1 byte", cudaMalloc(&small, 1));
	say("free", cudaFree(small));
}

static void launch_nothing(void)
{
	say("launch without a configuration", cudaLaunchKernelExC(NULL, NULL, NULL));
}

static void ask_into_null(void)
{
	say("malloc into null", cudaMalloc(NULL, 4096));
}

static void free_host_as_device(void)
{
	void *host = NULL;
	void *device = block();

	say("malloc host", cudaMallocHost(&host, 4096));
	say("free host of device memory", cudaFreeHost(device));
	say("free host", cudaFreeHost(host));
	say("free", cudaFree(device));
}

static void use_after_reset(void)
{
	void *ptr = block();

	say("reset", cudaDeviceReset());
	say("free of memory from before", cudaFree(ptr));
	ptr = block();
	say("free", cudaFree(ptr));
}

static void no_cuda(void)
{
	printf("no CUDA call\n");
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "double-free", free_twice },
	{ "garbage", free_garbage },
	{ "interior", free_interior },
	{ "other-thread", free_from_another_thread },
	{ "atexit", free_in_atexit },
	{ "destructor", free_in_static_destructor },
	{ "never-free", never_free },
	{ "size-zero", ask_for_nothing },
	{ "free-null", free_null },
	{ "huge", ask_for_too_much },
	{ "into-null", ask_into_null },
	{ "launch-nothing", launch_nothing },
	{ "host-as-device", free_host_as_device },
	{ "reset", use_after_reset },
	{ "no-cuda", no_cuda },
};

#define N_MODES (sizeof(modes) / sizeof(modes[0]))

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "list") == 0) {
		for (size_t i = 0; i < N_MODES; i++)
			puts(modes[i].name);
		return 0;
	}
	for (size_t i = 0; argc == 2 && i < N_MODES; i++) {
		if (strcmp(argv[1], modes[i].name) == 0) {
			modes[i].run();
			return 0;
		}
	}
	fputs("usage: misuse MODE   (misuse list: the modes)\n", stderr);
	return 2;
}
