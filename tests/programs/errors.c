/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one invalid or borderline call, and prints its error code: a row of errors.def.
 *
 *   errors list                   the rows: name, apis, expected code, code with the cache, seen, source; by tabs
 *   errors NAME driver|runtime    the row, by the functions of one of them
 *
 * Contexts, streams, captures and kernels, which are not under test, use the driver API in both.  Exit status 3: the
 * setup before the call failed.  Knows nothing of gpucache, except for gpucache_trim if that is present.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <gpusim.h>

#include "errors.h"

/* ---- freeing ---- */

static int case_free_null(uint64_t unused)
{
	(void)unused;
	begin();
	return take(0);
}

static int case_free_live(uint64_t unused)
{
	(void)unused;
	begin();
	return take(block());
}

static int case_free_offset(uint64_t offset)
{
	begin();
	return take(block() + offset);
}

static int case_free_stack(uint64_t unused)
{
	int on_stack = 0;

	(void)unused;
	begin();
	return take((uintptr_t)&on_stack);
}

static int case_free_number(uint64_t number)
{
	begin();
	return take(number);
}

static int case_free_twice(uint64_t between)
{
	int (*trim)(size_t bytes, size_t * ret_bytes) = NULL;
	CUdeviceptr ptr;

	begin();
	ptr = block();
	NEED(take(ptr));
	if (between & SYNC_BETWEEN)
		NEED(wait_for_all());
	*(void **)(void *)&trim = dlsym(RTLD_DEFAULT, "gpucache_trim");
	if ((between & TRIM_BETWEEN) && trim)
		(void)trim(SIZE_MAX, NULL);
	return take(ptr);
}

static int take_it(uint64_t ptr)
{
	return take(ptr);
}

static int case_free_in_thread(uint64_t unused)
{
	(void)unused;
	begin();
	return in_thread(context, take_it, block());
}

static int case_free_pinned(uint64_t unused)
{
	void *pinned;

	(void)unused;
	begin();
	NEED(cuMemAllocHost(&pinned, BLOCK_BYTES));
	return take((uintptr_t)pinned);
}

static int case_free_as_pinned(uint64_t unused)
{
	void *ptr;

	(void)unused;
	begin();
	ptr = (void *)(uintptr_t)block();
	return is_runtime ? (int)cudaFreeHost(ptr) : (int)cuMemFreeHost(ptr);
}

static int case_free_async_memory(uint64_t unused)
{
	CUdeviceptr ptr;

	(void)unused;
	begin();
	NEED(cuMemAllocAsync(&ptr, BLOCK_BYTES, NULL));
	NEED(cuStreamSynchronize(NULL));
	return take(ptr);
}

static int case_free_async(uint64_t offset)
{
	begin();
	return take_async(block() + offset);
}

static int case_free_async_then_free(uint64_t unused)
{
	CUdeviceptr ptr;

	(void)unused;
	begin();
	ptr = block();
	NEED(take_async(ptr));
	NEED(wait_for_all());
	return take(ptr);
}

/* ---- filling ---- */

#define FILL_BYTES 64

static int case_fill(uint64_t ptr)
{
	begin();
	return fill(ptr, FILL_BYTES);
}

static int case_fill_block(uint64_t how)
{
	begin();
	return fill(block(), how == BEYOND ? UINT64_C(1) << 40 : FILL_BYTES);
}

static int case_fill_host(uint64_t how)
{
	static char bytes[FILL_BYTES];
	void *host = bytes;

	begin();
	if (how & PINNED)
		NEED(cuMemAllocHost(&host, FILL_BYTES));
	return fill((uintptr_t)host, how & BEYOND ? UINT64_C(1) << 40 : FILL_BYTES);
}

/* ---- allocating ---- */

static int case_alloc(uint64_t size)
{
	begin();
	return give_any(size);
}

static int case_alloc_into_null(uint64_t size)
{
	begin();
	warm();
	return give(NULL, size);
}

static int case_alloc_after_too_much(uint64_t unused)
{
	(void)unused;
	begin();
	(void)give_any(UINT64_C(16) << 40);
	return give_any(BLOCK_BYTES);
}

/* ---- contexts ---- */

static int case_without_context(uint64_t which)
{
	CUdeviceptr ptr;

	begin();
	warm();
	ptr = block();
	warm();
	NEED(cuCtxSetCurrent(NULL));
	return call(which, ptr);
}

static int case_from_another_context(uint64_t which)
{
	CUdeviceptr ptr;

	begin();
	ptr = block();
	(void)make_context();
	return call(which, ptr);
}

static int destroy(uint64_t handle)
{
	return (int)cuCtxDestroy((CUcontext)(uintptr_t)handle);
}

/* Another thread destroys the context that is current here. */
static int case_destroyed_elsewhere(uint64_t which)
{
	CUcontext doomed;
	CUdeviceptr other;
	CUdeviceptr ptr;

	begin();
	other = block();
	doomed = make_context();
	warm();
	ptr = block();
	NEED(in_thread(context, destroy, (uintptr_t)doomed));
	return call(which, which == CALL_FREE_OTHER ? other : ptr);
}

static int case_after_destroy(uint64_t n_threads)
{
	CUcontext doomed;

	begin();
	warm();
	doomed = make_context();
	allocate_in_threads(doomed, n_threads);
	NEED(cuCtxDestroy(doomed));
	NEED(cuCtxSetCurrent(context));
	return take_of_threads(n_threads);
}

static int case_after_reset(uint64_t which)
{
	CUdeviceptr ptr;

	begin();
	warm();
	ptr = block();
	NEED(cuDevicePrimaryCtxReset(0));
	return call(which, ptr);
}

static void reset_and_retain(void)
{
	if (is_runtime) {
		NEED(cudaDeviceReset());
		NEED(cudaFree(NULL));
	} else {
		NEED(cuDevicePrimaryCtxReset(0));
		NEED(cuDevicePrimaryCtxRetain(&context, 0));
		NEED(cuCtxSetCurrent(context));
	}
}

static int case_after_reset_and_retain(uint64_t n_threads)
{
	begin();
	allocate_in_threads(context, n_threads);
	reset_and_retain();
	return take_of_threads(n_threads);
}

static int case_alloc_after_reset_and_retain(uint64_t unused)
{
	(void)unused;
	begin();
	warm();
	reset_and_retain();
	return give_any(BLOCK_BYTES);
}

static CUdeviceptr release(uint64_t n)
{
	CUdeviceptr ptr;

	begin();
	NEED(cuDevicePrimaryCtxRetain(&context, 0));
	warm();
	ptr = block();
	for (uint64_t i = 0; i < n; i++)
		NEED(cuDevicePrimaryCtxRelease(0));
	return ptr;
}

static int case_after_release(uint64_t n)
{
	return take(release(n));
}

static int case_alloc_after_release(uint64_t n)
{
	(void)release(n);
	return give_any(BLOCK_BYTES);
}

static int case_destroy_primary(uint64_t which)
{
	CUdeviceptr ptr;

	begin();
	ptr = block();
	if (which != CALL_DESTROY)
		(void)cuCtxDestroy(context);
	return call(which, ptr);
}

/* ---- captures ---- */

static CUdeviceptr captured_block;

static int call_in_capture(uint64_t how)
{
	if (how & FREE)
		return take(captured_block);
	return give_any(how & MISS ? MISS_BYTES : BLOCK_BYTES);
}

static int case_capture(uint64_t how)
{
	CUgraph graph = NULL;
	CUstream stream;
	int result;
	int end;

	begin();
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	NEED(give(&captured_block, BLOCK_BYTES));
	warm();
	NEED(cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)(how & MODE_BITS)));
	result = how & OTHER ? in_thread(context, call_in_capture, how) : call_in_capture(how);
	end = (int)cuStreamEndCapture(stream, &graph);
	return how & END ? end : result;
}

/* ---- broken contexts ---- */

static const char ptx[] =
	".version 6.4\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .entry wild()\n{\n"
	".reg .b32 %r<2>;\n.reg .b64 %a<2>;\n"
	"mov.u32 %r1, 1;\nmov.u64 %a1, 64;\n"
	"st.global.u32 [%a1], %r1;\nret;\n}\n"
	".visible .entry stop()\n{\ntrap;\nret;\n}\n";

static CUfunction function_of(const char *name)
{
	CUfunction function;
	CUmodule module;

	NEED(cuModuleLoadData(&module, ptx));
	NEED(cuModuleGetFunction(&function, module, name));
	return function;
}

static int launch(CUfunction function)
{
	return (int)cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

/* A kernel writes where nothing is.  The simulated GPU has no kernels, and is told what one would touch. */
static void go_wild(CUdeviceptr near)
{
	struct gpusim_range range = { .ptr = near + NOBODY_BYTES, .size = 4, .fill = 1 };
	__typeof__(&gpusim_launch) sim;

	*(void **)(void *)&sim = dlsym(RTLD_DEFAULT, "gpusim_launch");
	if (sim)
		NEED(sim(NULL, 0, 1, &range));
	else
		NEED(launch(function_of("wild")));
}

struct broken {
	CUfunction function;
	CUevent event;
	CUdeviceptr ptr;
};

static int look(const struct broken *broken, uint64_t by)
{
	int word;

	switch (by) {
	case BY_LAUNCH:
		return launch(broken->function);
	case BY_STREAM:
		return (int)cuStreamSynchronize(NULL);
	case BY_QUERY:
		return (int)cuStreamQuery(NULL);
	case BY_EVENT:
		return (int)cuEventQuery(broken->event);
	case BY_COPY:
		return (int)cuMemcpyDtoH(&word, broken->ptr, sizeof word);
	case BY_ASYNC_COPY:
		return (int)cuMemcpyDtoDAsync(broken->ptr, broken->ptr + 512, 512, NULL);
	case BY_INFO:
		return ask();
	case BY_MISS:
		return give_any(MISS_BYTES);
	default:
		return wait_for_all();
	}
}

/* Asks until the error shows: the kernel takes its time. */
static void find_out(const struct broken *broken, uint64_t by, int code)
{
	for (int i = 0; i < 5000; i++) {
		if (look(broken, by) == code)
			return;
		usleep(1000);
	}
	fprintf(stderr, "errors.c: the kernel never failed\n");
	_exit(3);
}

static int break_context(const char *kernel, int code, uint64_t how)
{
	struct broken broken;

	begin();
	broken.ptr = block();
	broken.function = function_of(kernel);
	NEED(cuEventCreate(&broken.event, CU_EVENT_DISABLE_TIMING));
	warm();
	if (code == CUDA_ERROR_ILLEGAL_ADDRESS)
		go_wild(broken.ptr);
	else
		(void)launch(broken.function);
	(void)cuEventRecord(broken.event, NULL);
	find_out(&broken, how & BY_BITS, code);
	return call(how, broken.ptr);
}

static int case_fault(uint64_t how)
{
	return break_context("wild", CUDA_ERROR_ILLEGAL_ADDRESS, how);
}

static int case_trap(uint64_t how)
{
	setenv("GPUSIM", "memory:4GiB,fail:cuLaunchKernel/1/719", 1);
	return break_context("stop", CUDA_ERROR_LAUNCH_FAILED, how);
}

static int case_fault_elsewhere(uint64_t unused)
{
	CUdeviceptr ptr;

	(void)unused;
	begin();
	ptr = block();
	(void)make_context();
	go_wild(block());
	(void)wait_for_all();
	NEED(cuCtxSetCurrent(context));
	return take(ptr);
}

/* ---- before and after ---- */

static int case_before_init(uint64_t which)
{
	return call(which, 0);
}

static uint64_t late_call;
static CUdeviceptr late_block;

static void late(void)
{
	printf("%d\n", call(late_call, late_block));
	fflush(stdout);
}

/* Registered before the driver starts, and so called after its end. */
static int case_after_the_end(uint64_t which)
{
	late_call = which;
	NEED(atexit(late));
	begin();
	warm();
	late_block = block();
	exit(0);
}

/* ---- the table ---- */

#define D       "driver"
#define R       "runtime"
#define B       "driver,runtime"
#define SAME    (-1)
#define ON_GPU  "gpu"
#define NOT_YET "not yet seen on a GPU"

static const struct row {
	const char *name;
	const char *apis;
	int (*run)(uint64_t argument);
	uint64_t argument;
	int expected;
	int cached;
	const char *seen;
	const char *source;
} rows[] = {
#define ROW(name, api, run, argument, expected, cached, seen, source) \
	{ #name, api, run, argument, expected, cached, seen, source },
#include "errors.def"
#undef ROW
};

#define N_ROWS (sizeof rows / sizeof rows[0])

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "list") == 0) {
		for (size_t i = 0; i < N_ROWS; i++)
			printf("%s\t%s\t%d\t%d\t%s\t%s\n", rows[i].name, rows[i].apis,
				rows[i].expected,
				rows[i].cached == SAME ? rows[i].expected : rows[i].cached,
				rows[i].seen, rows[i].source);
		return 0;
	}
	for (size_t i = 0; argc == 3 && i < N_ROWS; i++) {
		if (strcmp(argv[1], rows[i].name) == 0) {
			is_runtime = strcmp(argv[2], R) == 0;
			printf("%d\n", rows[i].run(rows[i].argument));
			return 0;
		}
	}
	fputs("usage: errors NAME driver|runtime   (errors list: the names)\n", stderr);
	return 2;
}
