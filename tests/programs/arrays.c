/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of every shape, registered host memory, imported memory, and exported memory.
 *
 *     arrays SCENE [N]   (scenes.h)
 *
 * Every array is a multiple of the device's granularity, so that our accounting can be compared to the byte.
 */
#include <stdbool.h>
#include <unistd.h>

#include "scenes.h"

#define MIB    ((size_t)1 << 20)
#define WIDTH  1024
#define HEIGHT 512

/* 2 MiB. */
static const CUDA_ARRAY_DESCRIPTOR flat = {
	.Width = WIDTH, .Height = HEIGHT, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1
};

static CUresult copy_2d(CUarray array, void *host, bool is_into_array)
{
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = is_into_array ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY,
		.srcHost = host,
		.srcArray = array,
		.dstMemoryType = is_into_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST,
		.dstHost = host,
		.dstArray = array,
		.WidthInBytes = WIDTH * sizeof(float),
		.Height = HEIGHT,
	};

	return cuMemcpy2D(&copy);
}

static CUresult there_and_back(CUarray array)
{
	static float sent[HEIGHT][WIDTH];
	static float received[HEIGHT][WIDTH];
	CUresult result;

	for (int i = 0; i < HEIGHT * WIDTH; i++)
		sent[i / WIDTH][i % WIDTH] = (float)i;
	result = copy_2d(array, sent, true);
	if (!result)
		result = copy_2d(array, received, false);
	return result || !memcmp(sent, received, sizeof sent) ? result : CUDA_ERROR_UNKNOWN;
}

/* The first version, which a program can only reach by name. */
static CUresult create_v1(CUarray *array)
{
	const CUDA_ARRAY_DESCRIPTOR_v1 desc = {
		.Width = WIDTH, .Height = HEIGHT, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1
	};
	CUresult (*create)(CUarray *, const CUDA_ARRAY_DESCRIPTOR_v1 *) = NULL;

	*(void **)(void *)&create = dlsym(RTLD_DEFAULT, "cuArrayCreate");
	return create ? create(array, &desc) : CUDA_ERROR_NOT_FOUND;
}

static CUresult create_3d_v1(CUarray *array)
{
	const CUDA_ARRAY3D_DESCRIPTOR_v1 desc = { .Width = 256,
		.Height = 64,
		.Depth = 64,
		.Format = CU_AD_FORMAT_HALF,
		.NumChannels = 2 };
	CUresult (*create)(CUarray *, const CUDA_ARRAY3D_DESCRIPTOR_v1 *) = NULL;

	*(void **)(void *)&create = dlsym(RTLD_DEFAULT, "cuArray3DCreate");
	return create ? create(array, &desc) : CUDA_ERROR_NOT_FOUND;
}

static void shapes(void)
{
	CUDA_ARRAY3D_DESCRIPTOR layered = { .Width = 512,
		.Height = 256,
		.Depth = 8,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 4,
		.Flags = CUDA_ARRAY3D_LAYERED };
	CUDA_ARRAY3D_DESCRIPTOR sparse = layered;
	CUmipmappedArray mipmapped = NULL;
	CUarray level = NULL;
	CUarray arrays[5] = { 0 };

	sparse.Flags = CUDA_ARRAY3D_SPARSE;
	say("array", cuArrayCreate(&arrays[0], &flat));
	say("copy", there_and_back(arrays[0]));
	say("layers", cuArray3DCreate(&arrays[1], &layered));
	say("first version", create_v1(&arrays[2]));
	say("first version, 3D", create_3d_v1(&arrays[3]));
	say("sparse", cuArray3DCreate(&arrays[4], &sparse));
	say("one level", cuMipmappedArrayCreate(&mipmapped, &layered, 1));
	say("its level", cuMipmappedArrayGetLevel(&level, mipmapped, 0));
	say("destroy the level", cuArrayDestroy(level));
	say("destroy the levels", cuMipmappedArrayDestroy(mipmapped));
	for (int i = 0; i < 5; i++)
		say("destroy", cuArrayDestroy(arrays[i]));
}

static void misuse(void)
{
	CUDA_ARRAY_DESCRIPTOR bad = flat;
	CUarray array = NULL;

	say("create into null", cuArrayCreate(NULL, &flat));
	say("create of nothing", cuArrayCreate(&array, NULL));
	bad.NumChannels = 3;
	say("three channels", cuArrayCreate(&array, &bad));
	bad.NumChannels = 1;
	bad.Width = (size_t)1 << 40;
	say("too wide", cuArrayCreate(&array, &bad));
	say("destroy null", cuArrayDestroy(NULL));
	say("no levels", cuMipmappedArrayCreate((CUmipmappedArray *)&array,
				 &(CUDA_ARRAY3D_DESCRIPTOR){ .Width = 64 }, 0));
	say("unregister", cuMemHostUnregister(&bad));
	say("register null", cuMemHostRegister(NULL, 4096, 0));
	say("register nothing", cuMemHostRegister(&bad, 0, 0));
}

static CUresult alloc_host_v1(void **host)
{
	CUresult (*alloc)(void **, unsigned int) = NULL;

	*(void **)(void *)&alloc = dlsym(RTLD_DEFAULT, "cuMemAllocHost");
	return alloc ? alloc(host, 3 * MIB) : CUDA_ERROR_NOT_FOUND;
}

/* Memory of the C library is registered; the driver's own may lie at an address of it later. */
static void host(void)
{
	char *mine = aligned_alloc(4096, 5 * MIB);
	void *pinned = NULL;

	host_bytes = 5 * MIB;
	say("register", cuMemHostRegister(mine, 5 * MIB, 0));
	say("register again", cuMemHostRegister(mine, 5 * MIB, 0));
	host_bytes += 3 * MIB;
	say("first version", alloc_host_v1(&pinned));
	say("free host of registered", cuMemFreeHost(mine));
	say("unregister pinned", cuMemHostUnregister(pinned));
	host_bytes -= 5 * MIB;
	say("unregister", cuMemHostUnregister(mine));
	say("unregister again", cuMemHostUnregister(mine));
	host_bytes = 0;
	say("free host", cuMemFreeHost(pinned));
	free(mine);
}

/* Counts nothing of ours, and its buffer is freed as any memory. */
static void external(void)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = { .type = 1, .size = 4 * MIB };
	/* Offset, size, flags, reserved: read by the driver only. */
	unsigned long long buffer_desc[12] = { 0, 4 * MIB };
	CUexternalMemory imported = NULL;
	CUdeviceptr buffer = 0;

	desc.handle.fd = dup(STDIN_FILENO);
	say("import", cuImportExternalMemory(&imported, &desc));
	say("map", cuExternalMemoryGetMappedBuffer(&buffer, imported, (const void *)buffer_desc));
	say("fill", cuMemsetD8(buffer, 1, 4 * MIB));
	say("free", cuMemFree(buffer));
	say("destroy", cuDestroyExternalMemory(imported));
}

/* Memory that others hold is never reused; SYNC_MEMOPS alone gives nobody a hold. */
static void shown(void)
{
	CUdeviceptr dma = 0;
	CUdeviceptr synced = 0;
	CUdeviceptr other = 0;
	unsigned int one = 1;
	int fd = -1;

	say("alloc", cuMemAlloc(&dma, 4 * MIB));
	say("handle of a range", cuMemGetHandleForAddressRange(&fd, dma, 4 * MIB, 1, 0));
	say("alloc", cuMemAlloc(&synced, 8 * MIB));
	say("sync memops", cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, synced));
	say("free", cuMemFree(dma));
	say("free", cuMemFree(synced));
	say("wait", cuCtxSynchronize());
	say("alloc", cuMemAlloc(&other, 8 * MIB));
	close(fd);
}

/* The cache must be trimmed for an array, too. */
static void after_a_cache(void)
{
	CUDA_ARRAY3D_DESCRIPTOR big = { .Width = 1024,
		.Height = 1024,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 4,
		.Flags = CUDA_ARRAY3D_LAYERED };
	CUdeviceptr block = 0;
	CUarray array = NULL;
	size_t available = 0;

	(void)cuMemGetInfo(&available, NULL);
	say("alloc", cuMemAlloc(&block, available - 64 * MIB));
	say("free", cuMemFree(block));
	big.Depth = (available - 32 * MIB) / (16 * MIB);
	say("array", cuArray3DCreate(&array, &big));
	say("another", cuArray3DCreate(&array, &big));
}

static const struct scene scenes[] = {
	{ "shapes", shapes },
	{ "misuse", misuse },
	{ "host", host },
	{ "external", external },
	{ "shown", shown },
	{ "after-a-cache", after_a_cache },
};

int main(int argc, char **argv)
{
	return run_scene(scenes, sizeof scenes / sizeof scenes[0], argc, argv);
}
