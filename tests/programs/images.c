/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers a kernel as code made by nvcc does, from a fat binary with cubins of 8.0, 8.6 and 9.0 and PTX of 9.0.  Prints
 * the kernel's versions, of PTX and of the code, or the error of its launch: by the runtime, and by the driver.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* An image without code: its header alone. */
struct image {
	uint16_t kind, unknown;
	uint32_t header_size;
	uint64_t size;
	uint32_t zeros[3];
	uint32_t arch;
	uint64_t name, flags, more[2];
};

#define IMAGE(kind_, arch_)                                                           \
	{                                                                             \
		.kind = (kind_), .header_size = sizeof(struct image), .arch = (arch_) \
	}

static const struct {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
	struct image images[4];
} fat = {
	.magic = 0xba55ed50,
	.version = 1,
	.header_size = 16,
	.size = sizeof fat.images,
	.images = { IMAGE(2, 80), IMAGE(2, 86), IMAGE(2, 90), IMAGE(1, 90) },
};

static struct {
	uint32_t magic, version;
	const void *data;
	void *more;
} wrapper = { 0x466243b1, 1, &fat, NULL };

void **__cudaRegisterFatBinary(void *fat_binary);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int thread_limit, void *tid, void *bid, dim3 *block, dim3 *grid, int *warp_size);

static void need(int error)
{
	if (error) {
		printf("error %d\n", error);
		exit(1);
	}
}

static void by_runtime(const void *kernel)
{
	struct cudaFuncAttributes attributes;
	const dim3 one = { 1, 1, 1 };
	cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);

	if (error != cudaLaunchKernel(kernel, one, one, NULL, 0, NULL))
		printf("attributes and launch differ\n");
	if (error != cudaSuccess)
		printf("runtime %d\n", error);
	else
		printf("runtime %d %d\n", attributes.ptxVersion, attributes.binaryVersion);
}

static void by_driver(void)
{
	CUmodule module;
	CUfunction kernel;
	int ptx, binary;
	CUresult res = cuModuleLoadData(&module, &wrapper);

	if (res != CUDA_SUCCESS) {
		printf("driver %d\n", res);
		return;
	}
	need(cuModuleGetFunction(&kernel, module, "kernel"));
	need(cuFuncGetAttribute(&ptx, CU_FUNC_ATTRIBUTE_PTX_VERSION, kernel));
	need(cuFuncGetAttribute(&binary, CU_FUNC_ATTRIBUTE_BINARY_VERSION, kernel));
	printf("driver %d %d\n", ptx, binary);
}

int main(void)
{
	static const char kernel;
	char name[] = "kernel";
	void **handle = __cudaRegisterFatBinary(&wrapper);

	__cudaRegisterFunction(handle, &kernel, name, name, -1, NULL, NULL, NULL, NULL, NULL);
	need(cudaSetDevice(0));
	by_runtime(&kernel);
	by_driver();
	__cudaUnregisterFatBinary(handle);
	return 0;
}
