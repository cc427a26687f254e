/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Examines undocumented behaviour of the driver.  Prints a line "question: answer" for each.
 *
 *   questions list | TOPIC     each topic in its own process, so that an error in one does not end the others
 *
 * Codes are the driver's; times are host times.  A free *waits* if a concurrent kernel, on a stream that never used the
 * block, has ended by the time the free returns.
 */
#include "driver.h"

#define N_TIMES   200
#define KERNEL_NS (100 * MS)

static void answer(const char *question, int code)
{
	printf("%s: %d\n", question, code);
	fflush(stdout);
}

static CUcontext context;

/* ---- codes ---- */

static void ask_about_frees(void)
{
	CUdeviceptr ptr = block(3 * MIB);
	int result;

	answer("cuMemFreeAsync of a block of cuMemAlloc", (int)cuMemFreeAsync(ptr, streams[0]));
	NEED(cuStreamSynchronize(streams[0]));
	result = (int)cuMemFree(ptr);
	answer("and then cuMemFree of it", result);
	ptr = block(3 * MIB);
	answer("cuMemFree inside a block", (int)cuMemFree(ptr + 512));
	NEED(cuMemFree(ptr));
	answer("cuMemFree a second time", (int)cuMemFree(ptr));
	answer("cuMemFreeAsync a third time", (int)cuMemFreeAsync(ptr, streams[0]));
	NEED(cuMemAllocAsync(&ptr, 3 * MIB, streams[0]));
	NEED(cuStreamSynchronize(streams[0]));
	answer("cuMemFree of a block of cuMemAllocAsync", (int)cuMemFree(ptr));
}

/* A block's address, and again when it is free; a small one has neighbours that live on. */
static void ask_about_a_freed_address(size_t size, const char *name)
{
	CUdeviceptr neighbour = block(size);
	CUdeviceptr ptr = block(size);
	CUdeviceptr base = 0;
	unsigned kind = 0;
	size_t length = 0;
	int code;

	NEED(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr));
	printf("memory type of a live block of %s: %u\n", name, kind);
	NEED(cuMemFree(ptr));
	kind = 0;
	code = (int)cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr);
	printf("memory type of a freed block of %s: code %d, type %u\n", name, code, kind);
	code = (int)cuMemGetAddressRange(&base, &length, ptr);
	printf("address range of a freed block of %s: code %d, %zu bytes\n", name, code,
		code ? 0 : length);
	printf("a freed block of %s is given again at once: %s\n", name,
		block(size) == ptr ? "yes" : "no");
	NEED(cuMemFree(neighbour));
}

static void ask_about_memory_info(void)
{
	size_t n = 0;

	answer("cuMemGetInfo(NULL, &total)", (int)cuMemGetInfo(NULL, &n));
	answer("cuMemGetInfo(&free, NULL)", (int)cuMemGetInfo(&n, NULL));
	answer("cuMemGetInfo(NULL, NULL)", (int)cuMemGetInfo(NULL, NULL));
}

/* ---- what waits for a kernel ---- */

/* Freed in the order of a stream without work. */
static void ask_what_is_freed_beside(size_t size, const char *name)
{
	CUdeviceptr ptr = block(size);
	size_t before, after, total;
	CUstream idle;
	uint64_t start;
	uint64_t ns;

	NEED(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
	NEED(cuMemGetInfo(&before, &total));
	keep_busy(0, KERNEL_NS);
	start = now_ns();
	NEED(cuMemFreeAsync(ptr, idle));
	ns = now_ns() - start;
	NEED(cuMemGetInfo(&after, &total));
	printf("cuMemFreeAsync of %s on an idle stream beside a kernel of 100 ms: %.3f ms, %s, %zu "
	       "KiB are free at once\n",
		name, (double)ns / 1e6,
		cuStreamQuery(streams[0]) == CUDA_ERROR_NOT_READY ? "does not wait" : "waits",
		(after - before) / 1024);
	NEED(cuStreamDestroy(idle));
}

static void ask_what_waits(size_t size, const char *name)
{
	CUdeviceptr ptr = block(size);
	uint64_t start;
	uint64_t ns;
	int is_running;

	NEED(cuCtxSynchronize());
	keep_busy(0, KERNEL_NS);
	start = now_ns();
	NEED(cuMemFree(ptr));
	ns = now_ns() - start;
	is_running = cuStreamQuery(streams[0]) == CUDA_ERROR_NOT_READY;
	printf("cuMemFree of %s beside a kernel of 100 ms: %.3f ms, %s\n", name, (double)ns / 1e6,
		is_running ? "does not wait" : "waits");
	NEED(cuCtxSynchronize());
	ask_what_is_freed_beside(size, name);
	NEED(cuCtxSynchronize());
	keep_busy(0, KERNEL_NS);
	start = now_ns();
	ptr = block(size);
	ns = now_ns() - start;
	is_running = cuStreamQuery(streams[0]) == CUDA_ERROR_NOT_READY;
	printf("cuMemAlloc of %s beside a kernel of 100 ms: %.3f ms, %s\n", name, (double)ns / 1e6,
		is_running ? "does not wait" : "waits");
	NEED(cuCtxSynchronize());
	NEED(cuMemFree(ptr));
}

/* ---- pages: memory in handles that are mapped where it is needed ---- */

#define PAGE_BYTES (2 * MIB)

static CUmemAllocationProp page_prop(void)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED };

	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return prop;
}

static void map_pages(CUdeviceptr ptr, unsigned n)
{
	CUmemAccessDesc access = { .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemAllocationProp prop = page_prop();

	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	for (unsigned i = 0; i < n; i++) {
		CUmemGenericAllocationHandle handle;

		NEED(cuMemCreate(&handle, PAGE_BYTES, &prop, 0));
		NEED(cuMemMap(ptr + i * PAGE_BYTES, PAGE_BYTES, 0, handle, 0));
		NEED(cuMemRelease(handle));
	}
	NEED(cuMemSetAccess(ptr, n * PAGE_BYTES, &access, 1));
}

/* The kernel on stream 0 never touches these pages. */
static void ask_what_waits_of_pages(unsigned n)
{
	CUdeviceptr ptr;
	uint64_t start;
	uint64_t ns;

	NEED(cuMemAddressReserve(&ptr, n * PAGE_BYTES, 0, 0, 0));
	NEED(cuCtxSynchronize());
	keep_busy(0, KERNEL_NS);
	start = now_ns();
	map_pages(ptr, n);
	ns = now_ns() - start;
	printf("%u pages made, mapped and opened beside a kernel of 100 ms: %.3f ms, %s\n", n,
		(double)ns / 1e6,
		cuStreamQuery(streams[0]) == CUDA_ERROR_NOT_READY ? "does not wait" : "waits");
	NEED(cuCtxSynchronize());
	keep_busy(0, KERNEL_NS);
	start = now_ns();
	NEED(cuMemUnmap(ptr, n * PAGE_BYTES));
	ns = now_ns() - start;
	printf("%u pages unmapped in one call beside a kernel of 100 ms: %.3f ms, %s\n", n,
		(double)ns / 1e6,
		cuStreamQuery(streams[0]) == CUDA_ERROR_NOT_READY ? "does not wait" : "waits");
	NEED(cuCtxSynchronize());
	NEED(cuMemAddressFree(ptr, n * PAGE_BYTES));
}

/* Is the rest of a range usable after an unmap in its middle, and is that memory free at once? */
static void ask_about_holes(void)
{
	CUmemAccessDesc access = { .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	size_t before, between, after, total;
	CUresult unmapped;
	CUipcMemHandle handle;
	CUdeviceptr ptr, base;
	size_t size;

	NEED(cuMemAddressReserve(&ptr, 8 * PAGE_BYTES, 0, 0, 0));
	NEED(cuMemGetInfo(&before, &total));
	map_pages(ptr, 8);
	NEED(cuMemGetInfo(&between, &total));
	answer("cuMemUnmap of the middle of 8 pages",
		(int)cuMemUnmap(ptr + 2 * PAGE_BYTES, 4 * PAGE_BYTES));
	NEED(cuMemGetInfo(&after, &total));
	printf("bytes that 8 pages took, and 4 gave back: %zu, %zu\n", before - between,
		after - between);
	answer("cuMemsetD8 of what is left", (int)cuMemsetD8(ptr, 1, 2 * PAGE_BYTES));
	answer("cuMemsetD8 across two pages at the end",
		(int)cuMemsetD8(ptr + 7 * PAGE_BYTES - 512, 1, 1024));
	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	answer("cuMemSetAccess across a hole",
		(int)cuMemSetAccess(ptr, 8 * PAGE_BYTES, &access, 1));
	answer("cuMemSetAccess of a hole alone",
		(int)cuMemSetAccess(ptr + 2 * PAGE_BYTES, 4 * PAGE_BYTES, &access, 1));
	unmapped = cuMemUnmap(ptr + PAGE_BYTES, 6 * PAGE_BYTES);
	answer("cuMemUnmap across a hole", (int)unmapped);
	if (!unmapped) {
		map_pages(ptr + PAGE_BYTES, 1);
		map_pages(ptr + 6 * PAGE_BYTES, 1);
	}
	NEED(cuMemGetAddressRange(&base, &size, ptr + PAGE_BYTES));
	printf("cuMemGetAddressRange of the second page: from %llu, %zu bytes\n",
		(unsigned long long)(base - ptr), size);
	answer("cuIpcGetMemHandle of a page", (int)cuIpcGetMemHandle(&handle, ptr));
	NEED(cuMemUnmap(ptr, 2 * PAGE_BYTES));
	NEED(cuMemUnmap(ptr + 6 * PAGE_BYTES, 2 * PAGE_BYTES));
	NEED(cuMemAddressFree(ptr, 8 * PAGE_BYTES));
}

/* ---- events of a whole context ---- */

static void ask_about_fences(unsigned n, int is_busy)
{
	uint64_t record = 0;
	uint64_t query = 0;
	CUevent event;

	make_streams(n);
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < N_TIMES; i++) {
		uint64_t start, between;

		for (unsigned s = 0; is_busy && i % 20 == 0 && s < n; s++)
			keep_busy(s, MS / 10);
		start = now_ns();
		NEED(cuCtxRecordEvent(context, event));
		between = now_ns();
		(void)cuEventQuery(event);
		query += now_ns() - between;
		record += between - start;
	}
	NEED(cuCtxSynchronize());
	NEED(cuEventDestroy(event));
	printf("cuCtxRecordEvent with %u streams, %s: %llu ns, cuEventQuery of it %llu ns\n", n,
		is_busy ? "busy" : "idle", (unsigned long long)(record / N_TIMES),
		(unsigned long long)(query / N_TIMES));
}

/* Does an event of the context wait for a kernel on another stream? */
static void ask_whether_a_fence_covers(void)
{
	CUevent event;

	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	keep_busy(0, KERNEL_NS);
	NEED(cuCtxRecordEvent(context, event));
	answer("cuEventQuery after cuCtxRecordEvent beside a kernel", (int)cuEventQuery(event));
	NEED(cuEventSynchronize(event));
	answer("cuStreamQuery of the kernel when the event has passed",
		(int)cuStreamQuery(streams[0]));
	NEED(cuEventDestroy(event));
}

/* ---- the end of the process ---- */

static void say_at_exit(const char *when)
{
	CUcontext current;
	size_t available, total;

	printf("in a handler registered %s cuInit: cuCtxGetCurrent %d, cuMemGetInfo %d\n", when,
		(int)cuCtxGetCurrent(&current), (int)cuMemGetInfo(&available, &total));
	fflush(stdout);
}

static void before(void)
{
	say_at_exit("before");
}

static void after(void)
{
	say_at_exit("after");
}

/* ---- the topics ---- */

static void ask_about_freed_addresses(void)
{
	ask_about_a_freed_address(4 * KIB, "4 KiB");
	ask_about_a_freed_address(3 * MIB, "3 MiB");
	ask_about_a_freed_address(64 * MIB, "64 MiB");
}

static void ask_about_waits(void)
{
	ask_what_waits(512, "512 B");
	ask_what_waits(2 * MIB, "2 MiB");
	ask_what_waits(64 * MIB, "64 MiB");
}

static void ask_about_pages(void)
{
	CUmemAllocationProp prop = page_prop();
	size_t least = 0;

	NEED(cuMemGetAllocationGranularity(&least, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	printf("least page: %zu bytes\n", least);
	ask_about_holes();
	ask_what_waits_of_pages(1);
	ask_what_waits_of_pages(64);
}

static void ask_about_events(void)
{
	static const unsigned counts[] = { 1, 4, 16, 64, MAX_STREAMS };

	ask_whether_a_fence_covers();
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		ask_about_fences(counts[i], 0);
		ask_about_fences(counts[i], 1);
	}
}

static void ask_about_the_end(void)
{
	NEED(atexit(after));
}

static const struct topic topics[] = {
	{ "frees", ask_about_frees },
	{ "addresses", ask_about_freed_addresses },
	{ "info", ask_about_memory_info },
	{ "waits", ask_about_waits },
	{ "pages", ask_about_pages },
	{ "events", ask_about_events },
	{ "end", ask_about_the_end },
};

#define N_TOPICS (sizeof topics / sizeof topics[0])

static void begin(const struct topic *topic)
{
	if (topic->ask == ask_about_the_end)
		NEED(atexit(before));
	context = open_device();
	make_streams(1);
}

int main(int argc, char **argv)
{
	return ask_topic(argc, argv, topics, N_TOPICS, begin);
}
