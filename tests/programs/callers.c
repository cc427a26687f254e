/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose libraries allocate GPU memory, each under the name of a real one.
 *
 *   callers OP...       NAME:MIB   a library in the folder callers.d beside the program takes a block of so many MiB
 *                       -N         frees block N, counted from 0
 *                       !NAME      unloads the library
 *
 * With TAKE defined, builds a library: TAKE is the call by which it allocates.  A library is loaded when it is first
 * named.
 *
 * On stdout: how many blocks were taken, until one was refused.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

int take(void **ret_ptr, size_t bytes);

#ifdef TAKE

int cuMemAlloc_v2(void **ptr, size_t bytes);

int take(void **ret_ptr, size_t bytes)
{
	return TAKE(ret_ptr, bytes);
}

#else /* the program */

#define MAX_LIBRARIES 8
#define MAX_BLOCKS    64

static struct {
	const char *name;
	size_t length;
	void *handle;
} libraries[MAX_LIBRARIES];

static void **find(const char *folder, const char *name, size_t length)
{
	char path[4096];

	for (int i = 0; i < MAX_LIBRARIES; i++) {
		if (libraries[i].name && (libraries[i].length != length ||
						 memcmp(libraries[i].name, name, length) != 0))
			continue;
		libraries[i].name = name;
		libraries[i].length = length;
		snprintf(path, sizeof path, "%s/callers.d/%.*s.so", folder, (int)length, name);
		if (!libraries[i].handle)
			libraries[i].handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (!libraries[i].handle) {
			puts(dlerror());
			exit(3);
		}
		return &libraries[i].handle;
	}
	exit(2);
}

int main(int argc, char **argv)
{
	void *blocks[MAX_BLOCKS];
	char folder[4096];
	int n = 0;

	snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
	if (cudaFree(NULL)) /* makes the context */
		return 2;
	for (int i = 1; i < argc && n < MAX_BLOCKS; i++) {
		const char *colon = strchr(argv[i], ':');
		int (*take_one)(void **, size_t) = NULL;
		void **handle;

		if (argv[i][0] == '-') {
			if (cudaFree(blocks[atoi(argv[i] + 1)]))
				return 1;
		} else if (argv[i][0] == '!') {
			handle = find(folder, argv[i] + 1, strlen(argv[i] + 1));
			if (dlclose(*handle))
				return 3;
			*handle = NULL;
		} else if (colon) {
			handle = find(folder, argv[i], (size_t)(colon - argv[i]));
			*(void **)(void *)&take_one = dlsym(*handle, "take");
			if (take_one(&blocks[n], strtoull(colon + 1, NULL, 10) << 20))
				break;
			n++;
		}
	}
	printf("%d\n", n);
	return 0;
}

#endif
