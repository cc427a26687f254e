/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that loads plug-ins, each of which allocates GPU memory and is unloaded before the next is loaded.
 *
 *   plugins NAME:BYTES...        NAME is a plug-in in the folder plugins.d beside the program; its memory is not freed
 *
 * With TAKE defined, builds a plug-in: TAKE is the name of the function that allocates.  All plug-ins have the same
 * code at the same offsets, so that one in the place of another calls from the same addresses.
 *
 * On stdout: a line for each, with the address where it was.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#ifdef TAKE

static int TAKE(size_t bytes)
{
	void *ptr = NULL;

	return cudaMalloc(&ptr, bytes);
}

int take(size_t bytes);

int take(size_t bytes)
{
	return TAKE(bytes);
}

#else /* the program */

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	char path[4096];

	for (int i = 1; i < argc; i++) {
		const char *colon = strchr(argv[i], ':');
		int (*take)(size_t) = NULL;
		void *plugin;

		if (!colon)
			return 2;
		snprintf(path, sizeof path, "%.*s/plugins.d/%.*s.so", (int)(slash - argv[0]),
			argv[0], (int)(colon - argv[i]), argv[i]);
		plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (plugin)
			*(void **)(void *)&take = dlsym(plugin, "take");
		if (!take) {
			puts(dlerror());
			return 3;
		}
		if (take(strtoull(colon + 1, NULL, 10)))
			puts("failed");
		printf("%p\n", *(void **)(void *)&take);
		dlclose(plugin);
	}
	return 0;
}

#endif
