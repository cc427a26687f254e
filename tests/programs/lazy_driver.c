/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that brings functions of the driver's names, which load the driver at the first call, as TensorFlow's does.
 * lazy_devices() returns the number of GPUs, or minus an error; with `lost` cuInit comes back to itself by name, and never
 * loads the driver.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stddef.h>

#undef cuInit
#undef cuDeviceGetCount

static int is_lost;

static void *find(const char *name)
{
	static void *driver;

	if (is_lost)
		return dlsym(RTLD_DEFAULT, name);
	if (!driver)
		driver = dlopen("libcuda.so.1", RTLD_NOW);
	return driver ? dlsym(driver, name) : NULL;
}

CUresult cuInit(unsigned int flags)
{
	CUresult (*real)(unsigned int) = NULL;

	*(void **)(void *)&real = find("cuInit");
	return real ? real(flags) : CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
}

CUresult cuDeviceGetCount(int *count)
{
	CUresult (*real)(int *) = NULL;

	*(void **)(void *)&real = find("cuDeviceGetCount");
	return real ? real(count) : CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
}

int lazy_devices(int lost);
int lazy_devices(int lost)
{
	CUresult result;
	int n = 0;

	is_lost = lost;
	result = cuInit(0);
	if (result == CUDA_SUCCESS)
		result = cuDeviceGetCount(&n);
	return result == CUDA_SUCCESS ? n : -(int)result;
}
