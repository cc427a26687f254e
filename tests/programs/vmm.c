/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management as PyTorch's expandable segments do it: a reserved range that grows and shrinks by
 * chunks, each created, mapped, opened and released on its own; and what goes beyond that.
 *
 *     vmm SCENE [N]   (scenes.h)
 */
#include <unistd.h>

#include "scenes.h"

#define CHUNK    ((size_t)2 << 20)
#define N_CHUNKS 4

static CUmemGenericAllocationHandle handles[N_CHUNKS];
static CUmemGenericAllocationHandle more;
static CUdeviceptr range;
static int fd = -1;

static CUmemAllocationProp on_device(void)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, device_number },
	};
}

static void create(int i, size_t size)
{
	CUmemAllocationProp prop = on_device();

	say("create", cuMemCreate(&handles[i], size, &prop, 0));
}

static void open_range(CUdeviceptr at, size_t size)
{
	CUmemAccessDesc desc = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, device_number },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};

	say("set access", cuMemSetAccess(at, size, &desc, 1));
}

static void look_at(CUdeviceptr at, int expected)
{
	unsigned char bytes[64] = { 0 };
	CUresult result = cuMemcpyDtoH(bytes, at, sizeof bytes);

	if (!result && (bytes[0] != expected || bytes[63] != expected))
		result = CUDA_ERROR_UNKNOWN;
	say("look", result);
}

/* Grows by chunks; frees the middle in both orders; grows again in the hole. */
static void expandable(void)
{
	say("reserve", cuMemAddressReserve(&range, 64 * CHUNK, 0, 0, 0));
	for (int i = 0; i < N_CHUNKS; i++) {
		create(i, CHUNK);
		say("map", cuMemMap(range + (size_t)i * CHUNK, CHUNK, 0, handles[i], 0));
		open_range(range + (size_t)i * CHUNK, CHUNK);
	}
	say("fill", cuMemsetD8(range, 0x41, N_CHUNKS * CHUNK));
	look_at(range + 2 * CHUNK - 32, 0x41); /* across two mappings */
	say("unmap 1", cuMemUnmap(range + CHUNK, CHUNK));
	say("release 1", cuMemRelease(handles[1]));
	say("release 2", cuMemRelease(handles[2]));
	say("unmap 2", cuMemUnmap(range + 2 * CHUNK, CHUNK));
	create(1, 2 * CHUNK);
	say("map", cuMemMap(range + CHUNK, 2 * CHUNK, 0, handles[1], 0));
	open_range(range + CHUNK, 2 * CHUNK);
	look_at(range, 0x41);
	look_at(range + CHUNK, 0);
	say("release 0", cuMemRelease(handles[0]));
	say("release 1", cuMemRelease(handles[1]));
	say("release 3", cuMemRelease(handles[3]));
	say("unmap all", cuMemUnmap(range, 4 * CHUNK));
	say("free addresses", cuMemAddressFree(range, 64 * CHUNK));
}

/* Holders beyond the creator: retained by address, imported, and two mappings of one piece. */
static void references(void)
{
	say("reserve", cuMemAddressReserve(&range, 8 * CHUNK, 0, 0, 0));
	create(0, CHUNK);
	say("map", cuMemMap(range, CHUNK, 0, handles[0], 0));
	say("map again", cuMemMap(range + CHUNK, CHUNK, 0, handles[0], 0));
	open_range(range, 2 * CHUNK);
	say("fill", cuMemsetD8(range, 0x42, CHUNK));
	look_at(range + CHUNK, 0x42);
	say("retain", cuMemRetainAllocationHandle(&more, (void *)(uintptr_t)(range + 100)));
	say("same handle", more == handles[0] ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
	say("export", cuMemExportToShareableHandle(
			      &fd, handles[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	say("import", cuMemImportFromShareableHandle(&more, (void *)(uintptr_t)fd,
			      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	say("release", cuMemRelease(handles[0]));
	say("unmap", cuMemUnmap(range, CHUNK));
	say("release the retained", cuMemRelease(handles[0]));
	say("unmap again", cuMemUnmap(range + CHUNK, CHUNK));
	say("release the imported", cuMemRelease(more));
	say("release once more", cuMemRelease(more));
	say("free addresses", cuMemAddressFree(range, 8 * CHUNK));
}

static void host(void)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_HOST_NUMA, 0 },
	};
	CUmemAccessDesc desc = {
		.location = { CU_MEM_LOCATION_TYPE_HOST_NUMA, 0 },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};

	host_bytes = 3 * CHUNK;
	say("create", cuMemCreate(&handles[0], 3 * CHUNK, &prop, 0));
	say("reserve", cuMemAddressReserve(&range, 4 * CHUNK, 0, 0, 0));
	say("map", cuMemMap(range, 3 * CHUNK, 0, handles[0], 0));
	say("set access", cuMemSetAccess(range, 3 * CHUNK, &desc, 1));
	memset((void *)(uintptr_t)range, 0x43, 64);
	open_range(range, 3 * CHUNK);
	look_at(range, 0x43);
	say("release", cuMemRelease(handles[0]));
	host_bytes = 0;
	say("unmap", cuMemUnmap(range, 3 * CHUNK));
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
	host_bytes = CHUNK;
	say("create", cuMemCreate(&handles[0], CHUNK, &prop, 0));
	host_bytes = 0;
	say("release", cuMemRelease(handles[0]));
}

static void misuse(void)
{
	CUmemAllocationProp prop = on_device();
	CUdeviceptr nowhere = 0x1000;

	say("create of 1 byte", cuMemCreate(&handles[0], 1, &prop, 0));
	say("create of nothing", cuMemCreate(&handles[0], 0, &prop, 0));
	say("create into null", cuMemCreate(NULL, CHUNK, &prop, 0));
	say("create without properties", cuMemCreate(&handles[0], CHUNK, NULL, 0));
	prop.location.id = 99;
	say("create on device 99", cuMemCreate(&handles[0], CHUNK, &prop, 0));
	say("release of no handle", cuMemRelease(0x123456));
	say("unmap of nothing", cuMemUnmap(nowhere, CHUNK));
	say("reserve", cuMemAddressReserve(&range, 4 * CHUNK, 0, 0, 0));
	create(0, 2 * CHUNK);
	say("map outside", cuMemMap(range + 8 * CHUNK, CHUNK, 0, handles[0], 0));
	say("map too much", cuMemMap(range, 3 * CHUNK, 0, handles[0], 0));
	say("map", cuMemMap(range, 2 * CHUNK, 0, handles[0], 0));
	say("map over it", cuMemMap(range + CHUNK, CHUNK, 0, handles[0], 0));
	say("fill without access", cuMemsetD8(range, 1, CHUNK));
	say("unmap of a half", cuMemUnmap(range, CHUNK));
	say("unmap of the other half", cuMemUnmap(range + CHUNK, CHUNK));
	say("free the addresses", cuMemAddressFree(range, 4 * CHUNK));
	say("free as memory", cuMemFree(range));
	say("release", cuMemRelease(handles[0]));
	say("release again", cuMemRelease(handles[0]));
	say("retain", cuMemRetainAllocationHandle(&more, (void *)(uintptr_t)range));
	say("retain nothing", cuMemRetainAllocationHandle(&more, (void *)&more));
	say("unmap", cuMemUnmap(range, 2 * CHUNK));
	say("unmap again", cuMemUnmap(range, 2 * CHUNK));
	say("release the retained", cuMemRelease(handles[0]));
	say("free the addresses", cuMemAddressFree(range, 4 * CHUNK));
}

/* All that a cache holds is in the way of physical memory, too. */
static void after_a_cache(void)
{
	CUdeviceptr big = 0;
	size_t available = 0;
	size_t total = 0;

	(void)cuMemGetInfo(&available, &total);
	available -= available % CHUNK;
	say("alloc", cuMemAlloc(&big, available - 64 * CHUNK));
	say("free", cuMemFree(big));
	create(0, available - 32 * CHUNK);
	say("create too much",
		cuMemCreate(&handles[1], available,
			&(CUmemAllocationProp){ .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
			0));
}

/* Physical memory is of no context: it comes without one, and survives one. */
static void contexts(void)
{
	CUcontext context = NULL;

	(void)cuCtxSetCurrent(NULL);
	create(0, CHUNK);
	say("context", cuCtxCreate_v2(&context, 0, device_number));
	create(1, 2 * CHUNK);
	say("destroy", cuCtxDestroy(context));
	say("release", cuMemRelease(handles[0]));
	say("release", cuMemRelease(handles[1]));
	device_number = 1;
	used_before = device_used();
	create(2, CHUNK);
}

static void multicast(void)
{
	CUmulticastObjectProp prop = { .numDevices = 1, .size = 2 * CHUNK };

	say("multicast", cuMulticastCreate(&more, &prop));
	say("add device", cuMulticastAddDevice(more, device_number));
	create(0, 2 * CHUNK);
	say("bind", cuMulticastBindMem(more, 0, handles[0], 0, 2 * CHUNK, 0));
	say("unbind", cuMulticastUnbind(more, device_number, 0, 2 * CHUNK));
	say("release", cuMemRelease(handles[0]));
	say("release the object", cuMemRelease(more));
}

static const struct scene scenes[] = {
	{ "expandable", expandable },
	{ "references", references },
	{ "host", host },
	{ "misuse", misuse },
	{ "after-a-cache", after_a_cache },
	{ "contexts", contexts },
	{ "multicast", multicast },
};

int main(int argc, char **argv)
{
	return run_scene(scenes, sizeof scenes / sizeof scenes[0], argc, argv);
}
