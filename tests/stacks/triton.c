/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime_calls.h"

/* Any bytes are a module of the simulated GPU. */
static const char image[] = "a module";

int main(int argc, char **argv)
{
	CUresult (*load)(CUmodule *, const void *);
	CUresult (*get_function)(CUfunction *, CUmodule, const char *);
	CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		unsigned, CUstream, void **, void **);
	void *library = stack_open("libcuda.so.1", RTLD_LAZY);
	CUfunction function = NULL;
	CUmodule module = NULL;

	OK(cudaFree(NULL));
	*(void **)(void *)&load = dlsym(library, "cuModuleLoadData");
	*(void **)(void *)&get_function = dlsym(library, "cuModuleGetFunction");
	*(void **)(void *)&launch = dlsym(library, "cuLaunchKernel");
	OK(load(&module, image));
	OK(get_function(&function, module, "kernel"));
	if (stack_has(argc, argv, "plain"))
		runtime_plain();
	if (stack_has(argc, argv, "async"))
		runtime_async();
	OK(launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	stack_hold();
}
