/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calls wait for a kernel?  Work is in flight before and during each:
 *
 *     1 s of work on one stream | cudaFree | an hour of work on another | the call | does the hour still run?
 *
 * Prints a line per call: its name, its code, "running" or "over"; and at the end the data that the host reads of the
 * work before the free.  For a simulated GPU with a virtual clock: a call that waits for the hour ends it at once.  A
 * program whose kernel waits for the host would hang in such a call.
 *
 *     order calls | data
 */
#include <stdbool.h>
#include <string.h>

#include <cuda.h>

#include "kernel.h"

#define SECOND UINT64_C(1000000000)
#define HOUR   (3600 * SECOND)
#define BYTES  ((size_t)4 << 20)

#define NEED(call) need((int)(call), #call)

static void need(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "%s: %d\n", what, result);
	exit(1);
}

static CUcontext context;
static CUstream before, during, other;
static CUevent event, timed[2];
static CUdeviceptr memory, old;
static CUmemoryPool pool;
static CUmodule module;
static CUgraph graph;
static CUgraphExec exec;
static CUarray array;
static char *pinned;
static char pageable[2 * 4096];

/* What each call needs is made before the hour begins. */
static CUdeviceptr async, managed;
static void *host;
static CUarray spare_array;
static CUmodule spare_module;
static CUstream spare_stream;
static CUmemGenericAllocationHandle handle;
static CUdeviceptr range;

static void do_nothing(void *arg)
{
	(void)arg;
}

static void prepare(void)
{
	const CUDA_ARRAY_DESCRIPTOR flat = {
		.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1
	};
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };

	NEED(cuMemAlloc(&old, BYTES));
	NEED(cuMemAllocAsync(&async, BYTES, other));
	NEED(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
	NEED(cuMemAllocHost(&host, 4096));
	NEED(cuArrayCreate(&spare_array, &flat));
	NEED(cuModuleLoadData(&spare_module, "a module"));
	NEED(cuStreamCreate(&spare_stream, CU_STREAM_NON_BLOCKING));
	NEED(cuMemCreate(&handle, BYTES, &prop, 0));
	NEED(cuMemAddressReserve(&range, BYTES, 0, 0, 0));
	NEED(cuMemMap(range, BYTES, 0, handle, 0));
	NEED(cuCtxSynchronize());
}

static CUresult capture(void)
{
	CUgraph captured = NULL;
	CUresult result = cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED);

	return result ? result : cuStreamEndCapture(other, &captured);
}

static const CUDA_ARRAY_DESCRIPTOR small_array = {
	.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1
};
static CUdeviceptr got;
static void *got_host;
static size_t got_size, got_total;
static CUarray got_array;
static CUmodule got_module;
static CUstream got_stream;
static CUgraphExec got_exec;
static CUmemGenericAllocationHandle got_handle;
static float got_ms;
static CUipcMemHandle got_ipc;
static CUcontext got_context;
static int one = 1;
static const CUDA_MEMCPY2D flat_copy = { .srcMemoryType = CU_MEMORYTYPE_HOST,
	.srcHost = pageable,
	.dstMemoryType = CU_MEMORYTYPE_DEVICE,
	.WidthInBytes = 64,
	.Height = 2 };

static CUresult copy_2d(void)
{
	CUDA_MEMCPY2D copy = flat_copy;

	copy.dstDevice = memory;
	return cuMemcpy2D(&copy);
}

static CUresult copy_2d_async(void)
{
	CUDA_MEMCPY2D copy = flat_copy;

	copy.srcHost = pinned;
	copy.dstDevice = memory;
	return cuMemcpy2DAsync(&copy, other);
}

static void called_back(CUstream stream, CUresult result, void *arg)
{
	(void)stream;
	(void)result;
	(void)arg;
}

static CUpointer_attribute got_attributes[] = { CU_POINTER_ATTRIBUTE_BUFFER_ID,
	CU_POINTER_ATTRIBUTE_RANGE_SIZE };
static uint64_t got_values[2];
static void *got_results[] = { &got_values[0], &got_values[1] };

static CUresult create_handle(void)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };

	return cuMemCreate(&got_handle, BYTES, &prop, 0);
}

/* It may begin before the kernel ahead of it has ended. */
static CUresult launch_overlapping(void)
{
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
		.value.first = 1 };
	CUlaunchConfig config = { .gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = other,
		.attrs = &attribute,
		.numAttrs = 1 };
	CUfunction function;
	CUresult result = cuModuleGetFunction(&function, module, "kernel");

	return result ? result : cuLaunchKernelEx(&config, function, NULL, NULL);
}

/* CALL(name of symbols.def without its version, what is done) */
#define CALLS(CALL)                                                                         \
	CALL(cuMemAlloc, cuMemAlloc(&got, BYTES))                                           \
	CALL(cuMemAlloc_other_size, cuMemAlloc(&got, 3 * BYTES))                            \
	CALL(cuMemAlloc_too_large, cuMemAlloc(&got, (size_t)1 << 45))                       \
	CALL(cuMemAllocPitch, cuMemAllocPitch(&got, &got_size, 1000, 100, 16))              \
	CALL(cuMemAllocManaged, cuMemAllocManaged(&got, BYTES, CU_MEM_ATTACH_GLOBAL))       \
	CALL(cuMemGetInfo, cuMemGetInfo(&got_size, &got_total))                             \
	CALL(cuMemAllocAsync, cuMemAllocAsync(&got, BYTES, other))                          \
	CALL(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync(&got, BYTES, pool, other))    \
	CALL(cuMemFreeAsync, cuMemFreeAsync(async, other))                                  \
	CALL(cuMemPoolTrimTo, cuMemPoolTrimTo(pool, 0))                                     \
	CALL(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags(&got_exec, graph, 0)) \
	CALL(cuGraphLaunch, cuGraphLaunch(exec, other))                                     \
	CALL(cuGraphUpload, cuGraphUpload(exec, other))                                     \
	CALL(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim(0))                                 \
	CALL(cuMemHostAlloc, cuMemHostAlloc(&got_host, 4096, 0))                            \
	CALL(cuMemAllocHost, cuMemAllocHost(&got_host, 4096))                               \
	CALL(cuMemFreeHost, cuMemFreeHost(host))                                            \
	CALL(cuMemHostRegister, cuMemHostRegister(pageable, 4096, 0))                       \
	CALL(cuMemHostUnregister, cuMemHostUnregister(pageable))                            \
	CALL(cuArrayCreate, cuArrayCreate(&got_array, &small_array))                        \
	CALL(cuArrayDestroy, cuArrayDestroy(spare_array))                                   \
	CALL(cuMemCreate, create_handle())                                                  \
	CALL(cuMemRelease, cuMemRelease(handle))                                            \
	CALL(cuMemUnmap, cuMemUnmap(range, BYTES))                                          \
	CALL(cuIpcGetMemHandle, cuIpcGetMemHandle(&got_ipc, memory))                        \
	CALL(cuPointerSetAttribute,                                                         \
		cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory))      \
	CALL(cuMemGetAddressRange, cuMemGetAddressRange(&got, &got_size, memory))           \
	CALL(cuPointerGetAttribute,                                                         \
		cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory)) \
	CALL(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain(&got_context, 0))           \
	CALL(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease(0))                       \
	CALL(cuCtxSetLimit, cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20))              \
	CALL(cuModuleLoadData, cuModuleLoadData(&got_module, "another"))                    \
	CALL(cuModuleUnload, cuModuleUnload(spare_module))                                  \
	CALL(cuStreamCreate, cuStreamCreate(&got_stream, CU_STREAM_NON_BLOCKING))           \
	CALL(cuStreamCreateWithPriority,                                                    \
		cuStreamCreateWithPriority(&got_stream, CU_STREAM_NON_BLOCKING, 0))         \
	CALL(cuStreamDestroy, cuStreamDestroy(spare_stream))                                \
	CALL(cuStreamBeginCapture, capture())                                               \
	CALL(cuLaunchHostFunc, cuLaunchHostFunc(other, do_nothing, NULL))                   \
	CALL(cuLaunchKernelEx, launch_overlapping())                                        \
	CALL(cuLaunchKernel, (CUresult)kernel_launch(other, 1000, memory, 4096, 5))         \
	CALL(cuLaunchKernel_legacy, (CUresult)kernel_launch(NULL, 1000, memory, 4096, 5))   \
	CALL(cuMemcpyAsync, cuMemcpyAsync(memory, memory + 4096, 4096, other))              \
	CALL(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync(memory, memory + 4096, 4096, other))      \
	CALL(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync(pinned, memory, 4096, other))             \
	CALL(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync(memory, pinned, 4096, other))             \
	CALL(cuMemsetD8Async, cuMemsetD8Async(memory, 1, 4096, other))                      \
	CALL(cuMemsetD32Async, cuMemsetD32Async(memory, 1, 1024, other))                    \
	CALL(cuMemsetD16Async, cuMemsetD16Async(memory, 1, 1024, other))                    \
	CALL(cuMemsetD2D8Async, cuMemsetD2D8Async(memory, 64, 1, 64, 2, other))             \
	CALL(cuMemcpy2DAsync, copy_2d_async())                                              \
	CALL(cuMemsetD16, cuMemsetD16(memory, 1, 1024))                                     \
	CALL(cuMemsetD2D8, cuMemsetD2D8(memory, 64, 1, 64, 2))                              \
	CALL(cuStreamAddCallback, cuStreamAddCallback(other, called_back, NULL, 0))         \
	CALL(cuEventRecordWithFlags, cuEventRecordWithFlags(event, other, 0))               \
	CALL(cuPointerGetAttributes,                                                        \
		cuPointerGetAttributes(2, got_attributes, got_results, memory))             \
	CALL(cuModuleLoad, cuModuleLoad(&got_module, "/dev/null"))                          \
	CALL(cuModuleLoadDataEx, cuModuleLoadDataEx(&got_module, "a third", 0, NULL, NULL)) \
	CALL(cuMemcpy, cuMemcpy(memory, memory + 4096, 4096))                               \
	CALL(cuMemcpyDtoD, cuMemcpyDtoD(memory, memory + 4096, 4096))                       \
	CALL(cuMemcpyDtoH, cuMemcpyDtoH(pageable, memory, 4096))                            \
	CALL(cuMemcpyHtoD, cuMemcpyHtoD(memory, pageable, 4096))                            \
	CALL(cuMemcpy2D, copy_2d())                                                         \
	CALL(cuMemsetD8, cuMemsetD8(memory, 1, 4096))                                       \
	CALL(cuMemsetD32, cuMemsetD32(memory, 1, 1024))                                     \
	CALL(cuEventRecord, cuEventRecord(event, other))                                    \
	CALL(cuStreamSynchronize, cuStreamSynchronize(other))                               \
	CALL(cuStreamSynchronize_before, cuStreamSynchronize(before))                       \
	CALL(cuStreamQuery, cuStreamQuery(other))                                           \
	CALL(cuStreamQuery_before, cuStreamQuery(before))                                   \
	CALL(cuEventSynchronize, cuEventSynchronize(timed[1]))                              \
	CALL(cuEventQuery, cuEventQuery(timed[1]))                                          \
	CALL(cuEventElapsedTime, cuEventElapsedTime(&got_ms, timed[0], timed[1]))           \
	CALL(cuCtxSynchronize, cuCtxSynchronize())                                          \
	CALL(cuMemFree, cuMemFree(got))

#define FUNCTION(name, call)              \
	static CUresult call_##name(void) \
	{                                 \
		return call;              \
	}
CALLS(FUNCTION)

#define ROW(name, call) { #name, call_##name },
static const struct {
	const char *name;
	CUresult (*call)(void);
} calls[] = { CALLS(ROW) };

static bool is_running(CUstream stream)
{
	return cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
}

static void ask_all(void)
{
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		CUresult result;

		prepare();
		if (!strcmp(calls[i].name, "cuMemHostUnregister"))
			NEED(cuMemHostRegister(pageable, 4096, 0));
		if (!strcmp(calls[i].name, "cuMemFree"))
			NEED(cuMemAlloc(&got, BYTES));
		NEED(cuEventRecord(timed[0], before));
		NEED(kernel_launch(before, SECOND, old, BYTES, 3));
		NEED(cuEventRecord(timed[1], before));
		NEED(cuMemFree(old));
		NEED(kernel_launch(during, HOUR, 0, 0, -1));
		result = calls[i].call();
		printf("%s: %d, %s\n", calls[i].name, (int)result,
			is_running(during) ? "running" : "over");
		fflush(stdout);
		NEED(cuCtxSynchronize());
		(void)cuMemHostUnregister(pageable);
	}
}

/* Results that plain cudaFree has put in place before anybody can look. */
static void ask_data(void)
{
	CUdeviceptr out, tmp;
	char bytes[4096] = { 0 };

	for (int way = 0; way < 5; way++) {
		memset(bytes, 0, sizeof bytes);
		memset(pinned, 0, 4096);
		NEED(cuMemAlloc(&out, 4096));
		NEED(cuMemAlloc(&tmp, BYTES));
		NEED(cuMemsetD8(out, 0, 4096));
		NEED(cuCtxSynchronize());
		NEED(kernel_launch(before, SECOND, out, 4096, 7));
		if (way > 1)
			NEED(cuMemcpyDtoHAsync(pinned, out, 4096, before));
		NEED(cuMemFree(tmp));
		if (way == 0)
			NEED(cuMemcpyDtoH(bytes, out, 4096));
		if (way == 1) {
			NEED(cuMemcpyDtoHAsync(pinned, out, 4096, other));
			NEED(cuStreamSynchronize(other));
		}
		if (way == 2)
			NEED(cuStreamSynchronize(other)); /* one that did nothing */
		if (way == 3)
			(void)cuStreamQuery(other);
		if (way == 4) {
			NEED(cuEventRecord(event, other));
			NEED(cuEventSynchronize(event));
		}
		printf("way %d: %d\n", way, way == 0 ? bytes[0] : pinned[0]);
		NEED(cuMemFree(out));
		NEED(cuCtxSynchronize());
	}
}

int main(int argc, char **argv)
{
	NEED(cuInit(0));
	NEED(cuDevicePrimaryCtxRetain(&context, 0));
	NEED(cuCtxSetCurrent(context));
	NEED(cuStreamCreate(&before, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&during, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&event, 0));
	NEED(cuEventCreate(&timed[0], 0));
	NEED(cuEventCreate(&timed[1], 0));
	NEED(cuMemAlloc(&memory, BYTES));
	NEED(cuMemAllocHost((void **)(void *)&pinned, 4096));
	NEED(cuDeviceGetDefaultMemPool(&pool, 0));
	NEED(cuModuleLoadData(&module, "a module"));
	NEED(cuArrayCreate(&array, &small_array));
	NEED(cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED));
	NEED(cuMemsetD8Async(memory, 1, 4096, other));
	NEED(cuStreamEndCapture(other, &graph));
	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	if (argc == 2 && !strcmp(argv[1], "calls"))
		ask_all();
	else if (argc == 2 && !strcmp(argv[1], "data"))
		ask_data();
	else
		return 2;
	return 0;
}
