/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose contexts, modules and limits make the driver take memory that it never requested.
 * It knows nothing of gpucache.
 *
 *   implicit STEPS       does so many of its steps and ends where it is, without giving anything back
 *
 * On stdout: a line "STEP: USED" for each, USED the bytes that the simulated GPU counts for this
 * process.  Exit status 0; 1 when CUDA failed; 2 usage.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cuda.h>
#include <gpusim.h>

#define N_THREADS 4
#define N_LOADS   25
#define HEAP      ((size_t)64 << 20)

static const char image[] = "an image";
static CUcontext primary;
static CUcontext second;
static CUmodule modules[2];
static CUlibrary library;
static pthread_barrier_t all_loaded;

#define CHECK(call)                                                       \
	do {                                                              \
		CUresult result_ = (call);                                \
		if (result_ != CUDA_SUCCESS) {                            \
			fprintf(stderr, "%s: %d\n", #call, (int)result_); \
			exit(1);                                          \
		}                                                         \
	} while (0)

static void retain(void)
{
	CUcontext again;

	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&primary, 0));
	CHECK(cuDevicePrimaryCtxRetain(&again, 0));
	CHECK(cuCtxSetCurrent(primary));
}

static void load_module(void)
{
	CHECK(cuModuleLoadData(&modules[0], image));
}

static void load_library(void)
{
	CHECK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
}

static void create_context(void)
{
	CHECK(cuCtxCreate_v2(&second, 0, 0));
}

static void load_module_there(void)
{
	CHECK(cuModuleLoadDataEx(&modules[1], image, 0, NULL, NULL));
}

static void raise_limit(void)
{
	CHECK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, HEAP));
	CHECK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 3 * HEAP));
}

static void lower_limit(void)
{
	CHECK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 2 * HEAP));
}

static void unload_module(void)
{
	CHECK(cuModuleUnload(modules[0]));
	if (cuModuleUnload(modules[0]) == CUDA_SUCCESS)
		exit(1);
}

static void destroy_context(void)
{
	CHECK(cuCtxDestroy_v2(second));
	CHECK(cuCtxSetCurrent(primary));
}

static void unload_library(void)
{
	CHECK(cuLibraryUnload(library));
}

/* Modules at once, so that a measurement may see others; all are loaded before the first goes. */
static void *load_and_unload(void *arg)
{
	CUmodule loaded[N_LOADS];

	(void)arg;
	CHECK(cuCtxSetCurrent(primary));
	for (int i = 0; i < N_LOADS; i++)
		CHECK(cuModuleLoadData(&loaded[i], image));
	pthread_barrier_wait(&all_loaded);
	for (int i = 0; i < N_LOADS; i += 2)
		CHECK(cuModuleUnload(loaded[i]));
	return NULL;
}

static void use_threads(void)
{
	pthread_t threads[N_THREADS];

	pthread_barrier_init(&all_loaded, NULL, N_THREADS);
	for (int i = 0; i < N_THREADS; i++)
		if (pthread_create(&threads[i], NULL, load_and_unload, NULL))
			exit(1);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void reset(void)
{
	CHECK(cuDevicePrimaryCtxReset_v2(0));
}

static const struct step {
	const char *name;
	void (*make)(void);
} steps[] = {
	{ "retain", retain },
	{ "load module", load_module },
	{ "load library", load_library },
	{ "create context", create_context },
	{ "load module there", load_module_there },
	{ "raise limit", raise_limit },
	{ "lower limit", lower_limit },
	{ "unload module", unload_module },
	{ "destroy context", destroy_context },
	{ "unload library", unload_library },
	{ "use threads", use_threads },
	{ "reset", reset },
};

static unsigned long long used_bytes(void)
{
	int (*info)(int, struct gpusim_device *);
	struct gpusim_device device = { 0 };

	*(void **)(void *)&info = dlsym(RTLD_DEFAULT, "gpusim_device_info");
	if (info)
		info(0, &device);
	return device.own_used;
}

int main(int argc, char **argv)
{
	size_t n = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;

	if (n < 1 || n > sizeof steps / sizeof steps[0]) {
		fprintf(stderr, "usage: implicit STEPS   (1 to %zu)\n",
			sizeof steps / sizeof steps[0]);
		return 2;
	}
	for (size_t i = 0; i < n; i++) {
		steps[i].make();
		printf("%s: %llu\n", steps[i].name, used_bytes());
	}
	fflush(stdout);
	_exit(0);
}
