/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads gpucache by dlopen, keeps a pointer to one of its functions, closes it, and calls the function.
 *
 *   unload LIBRARY
 */
#include <dlfcn.h>
#include <stdio.h>

#include <cuda_runtime.h>

static int (*take)(void **, size_t);
static int (*give)(void *);

static int use(void)
{
	void *ptr = NULL;
	int result = take(&ptr, 1000);

	return result ? result : give(ptr);
}

int main(int argc, char **argv)
{
	void *library;

	if (argc < 2 || cudaFree(NULL))
		return 2;
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		puts(dlerror());
		return 3;
	}
	*(void **)(void *)&take = dlsym(library, "gpucache_malloc");
	*(void **)(void *)&give = dlsym(library, "gpucache_free");
	printf("before: %d\n", use());
	printf("dlclose: %d\n", dlclose(library));
	fflush(stdout);
	printf("after: %d\n", use());
	return 0;
}
