/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose libraries allocate GPU memory in different ways.  It knows nothing of gpucache.
 *
 * With TAKE defined, builds such a library: TAKE is its function, WAY how it reaches the driver:
 *   WAY_SHARED   cudaMalloc of libcudart.so
 *   WAY_DRIVER   cuMemAlloc of libcuda.so.1
 *   WAY_STATIC   a cudaMalloc of its own, as with a libcudart that is linked statically
 *   WAY_LIBRARY  through cuBLAS, as a framework does
 *
 * On stdout: a line "LIBRARY BYTES BLOCKS" for each, of what was not freed.
 *
 *   libraries N  only the framework takes memory, N times
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#ifdef TAKE

#ifdef WAY_STATIC
#define cudaMalloc cudaMalloc_of_my_own
static int cudaMalloc_of_my_own(void **ptr, size_t bytes)
{
	static CUresult (*alloc)(CUdeviceptr *, size_t);
	CUdeviceptr address = 0;
	CUresult result;

	if (!alloc)
		*(void **)&alloc = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2");
	result = alloc ? alloc(&address, bytes) : CUDA_ERROR_NOT_FOUND;
	*ptr = (void *)(size_t)address;
	return (int)result;
}
#endif

bool TAKE(size_t bytes, void **ret_ptr);
bool take_cublas(size_t bytes, void **ret_ptr);

bool TAKE(size_t bytes, void **ret_ptr)
{
#if defined WAY_LIBRARY
	bool is_done = take_cublas(bytes, ret_ptr);

	return is_done;
#elif defined WAY_DRIVER
	CUdeviceptr address = 0;
	bool is_done = cuMemAlloc_v2(&address, bytes) == CUDA_SUCCESS;

	*ret_ptr = (void *)(size_t)address;
	return is_done;
#else
	return cudaMalloc(ret_ptr, bytes) == 0;
#endif
}

#else /* the program */

bool take_nccl(size_t bytes, void **ret_ptr);
bool take_cublas(size_t bytes, void **ret_ptr);
bool take_cudnn(size_t bytes, void **ret_ptr);
bool take_onnx(size_t bytes, void **ret_ptr);

static bool take_myself(size_t bytes, void **ret_ptr)
{
	return cudaMalloc(ret_ptr, bytes) == cudaSuccess;
}

/* Takes a few blocks of different sizes, and frees the first. */
static void take(const char *library, bool (*take_one)(size_t, void **), size_t bytes, size_t n)
{
	size_t total = 0;
	void *first = NULL;

	for (size_t i = 0; i < n; i++) {
		void *ptr = NULL;

		if (!take_one(bytes + i * 1000, &ptr)) {
			fprintf(stderr, "%s got no memory\n", library);
			exit(1);
		}
		if (i == 0)
			first = ptr;
		else
			total += bytes + i * 1000;
	}
	if (cudaFree(first) != cudaSuccess)
		exit(1);
	printf("%s %zu %zu\n", library, total, n - 1);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		(void)cudaFree(NULL); /* makes the context */
		take("cuBLAS", take_onnx, 2000000, strtoul(argv[1], NULL, 10));
		return 0;
	}
	take("libraries", take_myself, 3000000, 3);
	take("NCCL", take_nccl, 2000000, 7);
	take("cuBLAS", take_cublas, 500, 40);
	take("cuDNN", take_cudnn, 1000000, 4);
	return 0;
}

#endif
