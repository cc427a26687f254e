/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the conformance suite on driver_cuda, over a libcuda.so.1:
 *
 *   test_conformance_cuda             the simulated one of the same build folder
 *   test_conformance_cuda LIBRARY     LIBRARY; "libcuda.so.1" is the machine's own driver
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance.h"
#include "driver/driver_cuda.h"

static void *lookup(void *library, const char *name)
{
	return dlsym(library, name);
}

/* build/<variant>/simcuda/libcuda.so.1, from build/<variant>/tests/conformance/<this program>. */
static void *open_simulated(void)
{
	char path[PATH_MAX + 32];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

	if (n <= 0)
		return NULL;
	path[n] = '\0';
	for (int i = 0; i < 3; i++) {
		char *slash = strrchr(path, '/');

		if (!slash)
			return NULL;
		*slash = '\0';
	}
	strcat(path, "/simcuda/libcuda.so.1");
	return dlopen(path, RTLD_NOW);
}

/* The primary context of device 0, made current. */
static CUcontext start(void *library)
{
	CUresult (*init)(unsigned int);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*set)(CUcontext);
	CUcontext context = NULL;

	*(void **)&init = dlsym(library, "cuInit");
	*(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	*(void **)&set = dlsym(library, "cuCtxSetCurrent");
	if (!init || !retain || !set || init(0) || retain(&context, 0) || set(context))
		return NULL;
	return context;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : open_simulated();
	struct gpc_cuda_driver driver;
	struct gpc_cuda_fns fns;
	CUcontext context;

	if (!library) {
		printf("not ok - no library: %s\n", dlerror());
		return 1;
	}
	context = start(library);
	if (!context || gpc_cuda_fns_fill(&fns, lookup, library)) {
		printf("not ok - the driver did not start, or lacks a function\n");
		return 1;
	}
	gpc_cuda_driver_init(&driver, &fns, context);
	(void)gpc_cuda_driver_use_pages(&driver, 0);
	return gpc_conformance_run(&driver.base, argc > 1 ? argv[1] : "simulated libcuda.so.1") !=
	       0;
}
