/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first call finds the simulated driver by dlsym.  A call that does work submits one kernel without effect to its
 * stream.  A function that is not simulated reports its name once.
 */
#include "sim/standin/standin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIMCUDA_NO_NAME_MACROS
#include <cuda.h>
#include <gpusim.h>

#define MAX_TOLD 256

/* What stand-ins call of any driver. */
#define DRIVER_TABLE                              \
	DRIVER(launch, cuLaunchKernel)            \
	DRIVER(alloc, cuMemAlloc_v2)              \
	DRIVER(free, cuMemFree_v2)                \
	DRIVER(copy, cuMemcpyDtoDAsync_v2)        \
	DRIVER(device, cuCtxGetDevice)            \
	DRIVER(attribute, cuDeviceGetAttribute)   \
	DRIVER(load, cuLibraryLoadData)           \
	DRIVER(call, cuLaunchHostFunc)            \
	DRIVER(is_capturing, cuStreamIsCapturing) \
	DRIVER(wait, cuStreamSynchronize)         \
	DRIVER(init, cuInit)                      \
	DRIVER(current, cuCtxGetCurrent)          \
	DRIVER(push, cuCtxPushCurrent_v2)         \
	DRIVER(pop, cuCtxPopCurrent_v2)           \
	DRIVER(retain, cuDevicePrimaryCtxRetain)  \
	DRIVER(event, cuEventCreate)              \
	DRIVER(forget, cuEventDestroy_v2)         \
	DRIVER(record, cuEventRecord)             \
	DRIVER(wait_for, cuStreamWaitEvent)

static struct {
#define DRIVER(member, function) __typeof__(&function) member;
	DRIVER_TABLE
#undef DRIVER
	__typeof__(&gpusim_code) code;
	__typeof__(&gpusim_copy) bytes;
	__typeof__(&gpusim_device_info) info;
	__typeof__(&gpusim_image) image;
} driver;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_driver;

/* Copies dlsym()'s pointer into a function pointer: POSIX allows that, ISO C has no such conversion. */
static bool find(void *library, const char *name, void *ret_function)
{
	void *found = dlsym(library, name);

	memcpy(ret_function, &found, sizeof found);
	return found;
}

/* Optional: only the simulated driver has these functions, and only some of its GPUs charge for code. */
static void find_simulated(void *library)
{
	__typeof__(&gpusim_has_code) has_code;

	if (find(library, "gpusim_has_code", &has_code) && has_code())
		(void)find(library, "gpusim_code", &driver.code);
	(void)find(library, "gpusim_copy", &driver.bytes);
	(void)find(library, "gpusim_image", &driver.image);
	(void)find(library, "gpusim_device_info", &driver.info);
}

static void start(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	has_driver = library;
#define DRIVER(member, function) \
	has_driver = has_driver && find(library, #function, &driver.member);
	DRIVER_TABLE
#undef DRIVER
	if (has_driver)
		find_simulated(library);
}

static bool begin(void)
{
	pthread_once(&once, start);
	return has_driver;
}

/* As the runtime that NVIDIA's libraries begin with: a thread without a context gets that of device 0. */
static bool begin_work(void)
{
	CUcontext context = NULL;

	if (!begin())
		return false;
	(void)driver.current(&context);
	if (!context && driver.init(0) == CUDA_SUCCESS &&
		driver.retain(&context, 0) == CUDA_SUCCESS)
		(void)driver.push(context);
	return true;
}

void *standin_create(size_t size)
{
	struct standin_handle *handle = calloc(1, size);

	if (handle)
		handle->magic = STANDIN_MAGIC;
	return handle;
}

static bool is_good(const struct standin_handle *handle)
{
	return handle && handle->magic == STANDIN_MAGIC;
}

bool standin_destroy(void *ptr)
{
	struct standin_handle *handle = ptr;

	if (!is_good(handle))
		return false;
	/* Ignores errors: at exit the driver may be shut down already. */
	if (handle->taken)
		(void)driver.free(handle->taken);
	handle->magic = 0;
	free(handle);
	return true;
}

int standin_plain(struct standin_handle **ret_handle)
{
	*ret_handle = standin_create(sizeof **ret_handle);
	standin_load_code(standin_library.name);
	return *ret_handle ? 0 : standin_library.no_memory;
}

int standin_set_stream(struct standin_handle *handle, struct CUstream_st *stream)
{
	if (!is_good(handle))
		return standin_library.not_initialized;
	handle->stream = stream;
	return 0;
}

bool standin_take(struct standin_handle *handle, size_t size)
{
	CUdeviceptr ptr;

	if (!begin_work() || driver.alloc(&ptr, size) != CUDA_SUCCESS)
		return false;
	handle->taken = ptr;
	return true;
}

bool standin_has_code(void)
{
	return begin() && driver.code;
}

void standin_load_code(const char *library)
{
	const void *image = begin() && driver.code ? driver.code(library) : NULL;
	CUlibrary loaded;

	if (image)
		(void)driver.load(&loaded, image, NULL, NULL, 0, NULL, NULL, 0);
}

int standin_work(const struct standin_handle *handle)
{
	static char kernel;
	CUresult res;

	if (!is_good(handle) || !begin_work())
		return standin_library.not_initialized;
	standin_load_code(standin_library.name);
	res = driver.launch(
		(CUfunction)(void *)&kernel, 1, 1, 1, 1, 1, 1, 0, handle->stream, NULL, NULL);
	return res == CUDA_SUCCESS ? 0 : standin_library.failed;
}

int standin_result(const struct standin_handle *handle)
{
	if (is_good(handle) && handle->wants_result_on_host)
		return standin_not_supported("a result on the host");
	return standin_work(handle);
}

int standin_copy(struct CUstream_st *stream, void *dst, const void *src, size_t size)
{
	if (!begin_work())
		return standin_library.not_initialized;
	standin_load_code(standin_library.name);
	return driver.copy((uintptr_t)dst, (uintptr_t)src, size, stream) == CUDA_SUCCESS
		       ? 0
		       : standin_library.failed;
}

struct CUctx_st *standin_primary(int device)
{
	CUcontext context = NULL;

	return begin() && driver.init(0) == CUDA_SUCCESS &&
			       driver.retain(&context, device) == CUDA_SUCCESS
		       ? context
		       : NULL;
}

struct CUctx_st *standin_context(void)
{
	CUcontext context = NULL;

	if (begin())
		(void)driver.current(&context);
	return context ? context : standin_primary(0);
}

bool standin_enter(struct CUctx_st *context)
{
	return begin() && driver.push(context) == CUDA_SUCCESS;
}

void standin_exit(void)
{
	CUcontext context;

	(void)driver.pop(&context);
}

/* What comes later at `then` begins when what was earlier at `first` is over. */
static bool order(const struct standin_place *first, const struct standin_place *then)
{
	CUevent event = NULL;
	bool is_done = false;

	if (standin_enter(first->context)) {
		is_done = driver.event(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
			  driver.record(event, first->stream) == CUDA_SUCCESS;
		standin_exit();
	}
	if (is_done && standin_enter(then->context)) {
		is_done = driver.wait_for(then->stream, event, 0) == CUDA_SUCCESS;
		standin_exit();
	}
	if (event)
		(void)driver.forget(event);
	return is_done;
}

int standin_call_together(
	const struct standin_place *places, size_t n, void (*fn)(void *arg), void *arg)
{
	bool is_done = true;

	if (!begin() || !driver.bytes)
		return standin_library.not_initialized;
	for (size_t i = 1; i < n && is_done; i++)
		is_done = order(&places[i], &places[0]);
	if (is_done && standin_enter(places[0].context)) {
		standin_load_code(standin_library.name);
		is_done = driver.call(places[0].stream, fn, arg) == CUDA_SUCCESS;
		standin_exit();
	}
	if (!is_done)
		return standin_library.failed;
	for (size_t i = 1; i < n; i++)
		(void)order(&places[0], &places[i]);
	return 0;
}

bool standin_bytes(void *dst, const void *src, size_t size)
{
	return driver.bytes((uintptr_t)dst, (uintptr_t)src, size) == CUDA_SUCCESS;
}

bool standin_is_captured(const struct standin_place *place)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	if (standin_enter(place->context)) {
		(void)driver.is_capturing(place->stream, &status);
		standin_exit();
	}
	return status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

void standin_wait(const struct standin_place *place)
{
	if (standin_enter(place->context)) {
		(void)driver.wait(place->stream);
		standin_exit();
	}
}

void standin_settle(void)
{
	struct gpusim_device info;

	if (begin() && driver.info)
		(void)driver.info(0, &info);
}

/* True the first time for a name, up to MAX_TOLD names. */
static bool is_news(const char *name)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static const char *told[MAX_TOLD];
	static unsigned n_told;
	bool is_new = true;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < n_told; i++)
		is_new &= told[i] != name;
	is_new &= n_told < MAX_TOLD;
	if (is_new)
		told[n_told++] = name;
	pthread_mutex_unlock(&lock);
	return is_new;
}

int standin_not_supported(const char *name)
{
	if (is_news(name))
		fprintf(stderr,
			"gpusim: %s of %s is not simulated: it answers \"not supported\" (%d); "
			"docs/inside/SIMULATED-GPU.md says what is, and what to do\n",
			name, standin_library.name, standin_library.not_supported);
	return standin_library.not_supported;
}

int standin_capability(void)
{
	CUdevice device;
	int major = 0;
	int minor = 0;

	if (!begin_work() || driver.device(&device) != CUDA_SUCCESS)
		return 0;
	(void)driver.attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
	(void)driver.attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
	return major * 10 + minor;
}

int standin_image(const void *image, int *ret_ptx, int *ret_binary)
{
	if (image && begin() && driver.image)
		return driver.image(image, ret_ptx, ret_binary);
	*ret_ptx = *ret_binary = standin_capability();
	return CUDA_SUCCESS;
}
