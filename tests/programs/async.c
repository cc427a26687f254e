/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered memory, the driver's pools and graphs that own memory, through the runtime and the
 * driver.  It knows nothing of gpucache.
 *
 *   async MODE [STEPS]     `async list` prints the modes, one a line
 *
 * Each step prints CUDA's result and, on the simulated GPU, the device memory that this process has taken so far.  With
 * STEPS it ends after that many, without freeing anything.  Built
 * once more with the per-thread default streams, as `nvcc --default-stream per-thread` would.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime.h>

#include <gpusim.h>

#define MIB ((size_t)1 << 20)

static unsigned n_steps;
static unsigned max_steps = 1000;
static uint64_t base_bytes;
static cudaStream_t stream;

static uint64_t used_bytes(void)
{
	int (*info)(int device, struct gpusim_device *ret_info);
	struct gpusim_device device;

	*(void **)(void *)&info = dlsym(RTLD_DEFAULT, "gpusim_device_info");
	return info && info(0, &device) == 0 ? device.own_used : 0;
}

/* CUresult and cudaError_t are the same numbers. */
static void step(const char *what, int status)
{
	printf("%s: %d, used %llu\n", what, status,
		(unsigned long long)(used_bytes() - base_bytes));
	fflush(stdout);
	if (++n_steps == max_steps)
		exit(0);
}

static void *alloc(size_t size)
{
	void *ptr = NULL;

	step("cudaMallocAsync", (int)cudaMallocAsync(&ptr, size, stream));
	return ptr;
}

static CUdeviceptr address(const void *ptr)
{
	return (CUdeviceptr)(uintptr_t)ptr;
}

/* Writes the whole and reads its ends back. */
static void use(void *ptr, size_t size, int value)
{
	unsigned char seen[2] = { 0, 0 };
	int status = (int)cudaMemsetAsync(ptr, value, size, stream);

	status |= (int)cudaMemcpyAsync(&seen[0], ptr, 1, cudaMemcpyDeviceToHost, stream);
	status |= (int)cudaMemcpyAsync(
		&seen[1], (char *)ptr + size - 1, 1, cudaMemcpyDeviceToHost, stream);
	status |= (int)cudaStreamSynchronize(stream);
	step(seen[0] == value && seen[1] == value ? "written and read" : "WRONG DATA", status);
}

static void sync(void)
{
	step("cudaStreamSynchronize", (int)cudaStreamSynchronize(stream));
}

static CUmemoryPool default_pool(void)
{
	CUmemoryPool pool = NULL;

	step("cuDeviceGetDefaultMemPool", (int)cuDeviceGetDefaultMemPool(&pool, 0));
	return pool;
}

static void keep_all(CUmemoryPool pool)
{
	cuuint64_t all = UINT64_MAX;

	step("release threshold",
		(int)cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
}

/* ---- modes ---- */

static void in_order(void)
{
	void *a = alloc(1 * MIB);
	void *b = alloc(1000);
	void *c = alloc(40 * MIB);

	use(a, 1 * MIB, 1);
	use(b, 1000, 2);
	use(c, 40 * MIB, 3);
	step("cudaFreeAsync", (int)cudaFreeAsync(c, stream));
	c = alloc(30 * MIB);
	use(c, 30 * MIB, 4);
	step("cudaFreeAsync", (int)cudaFreeAsync(a, stream));
	step("cudaFreeAsync again", (int)cudaFreeAsync(a, stream));
	step("cudaFree", (int)cudaFree(b));
	step("cuMemFree", (int)cuMemFree(address(c)));
	sync();
	step("cudaFreeAsync of a host address", (int)cudaFreeAsync(&a, stream));
	step("cudaMallocAsync of nothing", (int)cudaMallocAsync(&a, 0, stream));
	step("no place for the answer", (int)cudaMallocAsync(NULL, MIB, stream));
}

/* Memory of cudaMalloc may go where memory of cudaMallocAsync goes, and the other way round. */
static void mixed(void)
{
	void *plain = NULL;
	void *ordered = alloc(3 * MIB);

	(void)cudaMalloc(&plain, 3 * MIB);
	printf("free of cudaMalloc's: %d\n", (int)cudaFreeAsync(plain, stream));
	printf("free of cudaMallocAsync's: %d\n", (int)cudaFree(ordered));
	printf("synchronize: %d\n", (int)cudaStreamSynchronize(stream));
	(void)cudaMalloc(&plain, 3 * MIB);
	printf("free: %d\n", (int)cudaFree(plain));
}

static void idle_pool(void)
{
	CUmemoryPool pool = default_pool();
	cuuint64_t bytes = 0;

	keep_all(pool);
	step("cudaFreeAsync", (int)cudaFreeAsync(alloc(100 * MIB), stream));
	sync();
	step("reserved",
		(int)cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes));
	printf("reserved %llu\n", (unsigned long long)bytes);
	step("cudaFreeAsync", (int)cudaFreeAsync(alloc(50 * MIB), stream));
	(void)alloc(8 * MIB);
	sync();
	step("trim to 64 MiB", (int)cuMemPoolTrimTo(pool, 64 * MIB));
	step("trim", (int)cuMemPoolTrimTo(pool, 0));
	step("wrong attribute",
		(int)cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes));
}

static void own_pool(void)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemoryPool pool = NULL;
	CUdeviceptr ptr = 0;
	CUdeviceptr more = 0;

	step("cuMemPoolCreate", (int)cuMemPoolCreate(&pool, &props));
	step("from it", (int)cuMemAllocFromPoolAsync(&ptr, 5 * MIB, pool, stream));
	keep_all(pool);
	step("cuDeviceSetMemPool", (int)cuDeviceSetMemPool(0, pool));
	(void)alloc(6 * MIB);
	step("from none", (int)cuMemAllocFromPoolAsync(&more, MIB, NULL, stream));
	step("cuMemFreeAsync", (int)cuMemFreeAsync(ptr, stream));
	sync();
	step("from it", (int)cuMemAllocFromPoolAsync(&ptr, 5 * MIB, pool, stream));
	step("cuMemFree", (int)cuMemFree(ptr));
	step("trim", (int)cuMemPoolTrimTo(pool, 0));
	step("cuMemPoolDestroy of the default one", (int)cuMemPoolDestroy(default_pool()));
	(void)alloc(7 * MIB);
}

/* A destroyed pool lives until its last allocation is freed. */
static void destroyed_pool(void)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemoryPool pool = NULL;
	CUdeviceptr ptr = 0;

	(void)cuMemPoolCreate(&pool, &props);
	(void)cuMemAllocFromPoolAsync(&ptr, 5 * MIB, pool, stream);
	(void)cuMemPoolDestroy(pool);
	use((void *)(uintptr_t)ptr, 5 * MIB, 9);
	(void)cuMemFreeAsync(ptr, stream);
	sync();
	(void)alloc(2 * MIB);
}

static void host_pool(void)
{
	CUmemLocation location = { CU_MEM_LOCATION_TYPE_HOST, 0 };
	CUmemoryPool pool = NULL;
	CUdeviceptr ptr = 0;

	step("cuMemGetDefaultMemPool",
		(int)cuMemGetDefaultMemPool(&pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
	step("from it", (int)cuMemAllocFromPoolAsync(&ptr, 5 * MIB, pool, stream));
	use((void *)(uintptr_t)ptr, 5 * MIB, 7);
	step("cuMemFreeAsync", (int)cuMemFreeAsync(ptr, stream));
	sync();
	step("from it", (int)cuMemAllocFromPoolAsync(&ptr, 9 * MIB, pool, stream));
}

/* A pool that is shared, with this process itself. */
static void shared_pool(void)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemPoolPtrExportData data;
	CUmemoryPool pool = NULL;
	CUmemoryPool same = NULL;
	CUdeviceptr ptr = 0;
	CUdeviceptr imported = 0;
	unsigned char seen = 0;
	int fd = -1;

	step("cuMemPoolCreate", (int)cuMemPoolCreate(&pool, &props));
	step("from it", (int)cuMemAllocFromPoolAsync(&ptr, 5 * MIB, pool, stream));
	step("export", (int)cuMemPoolExportToShareableHandle(
			       &fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	step("import", (int)cuMemPoolImportFromShareableHandle(&same, (void *)(intptr_t)fd,
			       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	step("export of a pointer", (int)cuMemPoolExportPointer(&data, ptr));
	step("import of a pointer", (int)cuMemPoolImportPointer(&imported, same, &data));
	use((void *)(uintptr_t)ptr, 5 * MIB, 6);
	step("read", (int)cudaMemcpy(&seen, (void *)(uintptr_t)(imported + 5 * MIB - 1), 1,
			     cudaMemcpyDeviceToHost));
	step(seen == 6 ? "the same bytes" : "WRONG DATA", imported == ptr);
	step("memory of an imported pool", (int)cuMemAllocFromPoolAsync(&ptr, MIB, same, stream));
	step("free", (int)cuMemFreeAsync(imported, stream));
	step("free again", (int)cuMemFreeAsync(imported, stream));
	step("free", (int)cuMemFreeAsync(ptr, stream));
	sync();
}

static CUgraphExec instantiate(CUgraph graph)
{
	CUgraphExec exec = NULL;

	step("instantiate", (int)cuGraphInstantiateWithFlags(&exec, graph, 0));
	(void)cuGraphDestroy(graph);
	return exec;
}

/* A graph that allocates, writes and frees. */
static CUgraph capture_graph(size_t size)
{
	CUgraph graph = NULL;
	void *ptr = NULL;

	step("begin", (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	step("cudaMallocAsync", (int)cudaMallocAsync(&ptr, size, stream));
	step("write", (int)cudaMemsetAsync(ptr, 5, size, stream));
	step("cudaFreeAsync", (int)cudaFreeAsync(ptr, stream));
	step("end", (int)cudaStreamEndCapture(stream, &graph));
	return graph;
}

static void captured(void)
{
	CUgraphExec exec = instantiate(capture_graph(20 * MIB));

	step("launch", (int)cuGraphLaunch(exec, stream));
	sync();
	step("launch", (int)cuGraphLaunch(exec, stream));
	sync();
	step("cuGraphExecDestroy", (int)cuGraphExecDestroy(exec));
	step("cuDeviceGraphMemTrim", (int)cuDeviceGraphMemTrim(0));
}

/* Memory that a graph allocates and the program frees. */
static void handed_over(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
		.bytesize = 6 * MIB,
	};
	CUgraphNode node = NULL;
	CUgraph graph = NULL;
	CUgraphExec exec;

	step("cuGraphCreate", (int)cuGraphCreate(&graph, 0));
	step("node", (int)cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	exec = instantiate(graph);
	step("launch", (int)cuGraphLaunch(exec, stream));
	use((void *)(uintptr_t)params.dptr, 6 * MIB, 8);
	step("launch of what was not freed", (int)cuGraphLaunch(exec, stream));
	step("cuMemFreeAsync", (int)cuMemFreeAsync(params.dptr, stream));
	step("launch", (int)cuGraphLaunch(exec, stream));
	sync();
	step("cuMemFree", (int)cuMemFree(params.dptr));
	step("cuGraphExecDestroy", (int)cuGraphExecDestroy(exec));
	step("cuDeviceGraphMemTrim", (int)cuDeviceGraphMemTrim(0));
}

/* What another stream does while one is captured; the capture must live. */
static void beside_a_capture(void)
{
	cudaStream_t other = NULL;
	CUgraph graph = NULL;
	void *ptr = NULL;

	(void)cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
	(void)alloc(3 * MIB);
	step("begin", (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	for (int i = 0; i < 3; i++) {
		step("cudaMallocAsync", (int)cudaMallocAsync(&ptr, 60 * MIB, other));
		step("cudaFreeAsync", (int)cudaFreeAsync(ptr, other));
	}
	step("end", (int)cudaStreamEndCapture(stream, &graph));
	step("instantiate", instantiate(graph) == NULL);
}

/* ---- modes for a device of 1 GiB ---- */

static void print_malloc(size_t size)
{
	void *ptr = NULL;

	printf("cudaMalloc of %zu MiB: %d\n", size / MIB, (int)cudaMalloc(&ptr, size));
	(void)cudaGetLastError();
}

/* The driver keeps it for cudaMallocAsync alone. */
static void full_pool(void)
{
	void *ptr = NULL;

	keep_all(default_pool());
	(void)cudaMallocAsync(&ptr, 700 * MIB, stream);
	(void)cudaFreeAsync(ptr, stream);
	print_malloc(600 * MIB);
}

static void full_graph(void)
{
	CUgraphExec exec = instantiate(capture_graph(700 * MIB));

	(void)cuGraphLaunch(exec, stream);
	(void)cudaStreamSynchronize(stream);
	(void)cuGraphExecDestroy(exec);
	print_malloc(600 * MIB);
}

/* A program that gave its memory back has it for anything else. */
static void give_back(void)
{
	void *ptr = NULL;

	(void)cudaMalloc(&ptr, 700 * MIB);
	(void)cudaFree(ptr);
}

static void after_free(void)
{
	void *ptr = NULL;

	give_back();
	printf("cudaMallocAsync: %d\n", (int)cudaMallocAsync(&ptr, 600 * MIB, stream));
	printf("too much: %d\n", (int)cudaMallocAsync(&ptr, 600 * MIB, stream));
}

static void graph_after_free(void)
{
	CUgraphExec exec = instantiate(capture_graph(600 * MIB));

	give_back();
	printf("launch: %d\n", (int)cuGraphLaunch(exec, stream));
	printf("synchronize: %d\n", (int)cudaStreamSynchronize(stream));
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "in-order", in_order },
	{ "mixed", mixed },
	{ "idle-pool", idle_pool },
	{ "own-pool", own_pool },
	{ "destroyed-pool", destroyed_pool },
	{ "host-pool", host_pool },
	{ "shared-pool", shared_pool },
	{ "captured", captured },
	{ "handed-over", handed_over },
	{ "beside-a-capture", beside_a_capture },
	{ "full-pool", full_pool },
	{ "full-graph", full_graph },
	{ "after-free", after_free },
	{ "graph-after-free", graph_after_free },
};

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "list";

	if (argc > 2)
		max_steps = (unsigned)strtoul(argv[2], NULL, 10);
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		if (strcmp(mode, "list") == 0) {
			puts(modes[i].name);
		} else if (strcmp(mode, modes[i].name) == 0) {
			(void)cudaFree(NULL);
			(void)cudaStreamCreate(&stream);
			base_bytes = used_bytes();
			modes[i].run();
			return 0;
		}
	}
	return strcmp(mode, "list") != 0;
}
