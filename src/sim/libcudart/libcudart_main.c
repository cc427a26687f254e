/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcudart.so.12 and .13: the runtime's common functions over any driver.
 *
 * It finds the driver exactly as the real runtime does: by dlopen("libcuda.so.1"), one dlsym("cuGetProcAddress_v2"),
 * and a call of the function found with an empty name.  It then requests "cuGetProcAddress" from that function, and
 * from the result all other functions, with their versions, and with the per-thread flag for the _ptsz and _ptds
 * exports.  So a wrapper of cuGetProcAddress sees the same calls as under the real runtime.  Both files are built from
 * this source, with different symbol versions.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sim/libcudart/runtime.h"
#include "sim/standin/standin.h"

struct driver cu;

#define MAX_DEVICES 64

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t retain_lock = PTHREAD_MUTEX_INITIALIZER;
static cudaError_t start_error;
static CUcontext contexts[MAX_DEVICES];
static _Thread_local int current_device;
static _Thread_local cudaError_t last_error;

static cudaError_t note(cudaError_t error)
{
	if (error != cudaSuccess)
		last_error = error;
	return error;
}

/* Driver and runtime have the same numbers for errors. */
cudaError_t rt_give(CUresult res)
{
	/* "Not ready" answers a query, so it does not become the last error. */
	return res == CUDA_ERROR_NOT_READY ? cudaErrorNotReady : note((cudaError_t)res);
}

const struct standin_library standin_library = {
	.name = "libcudart",
	.not_supported = cudaErrorNotSupported,
	.not_initialized = cudaErrorInitializationError,
	.failed = cudaErrorUnknown,
};

int rt_not_supported(const char *name)
{
	return (int)note((cudaError_t)standin_not_supported(name));
}

static bool ask(const char *name, int version, cuuint64_t flags, void *ret_function)
{
	void *function = NULL;

	if (cu.lookup(name, &function, version, flags, NULL) != CUDA_SUCCESS || !function)
		return false;
	memcpy(ret_function, &function, sizeof function);
	return true;
}

static void start(void)
{
	void *function = NULL;
	void *first;
	bool has_all = true;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	start_error = cudaErrorInsufficientDriver;
	if (!driver)
		return;
	first = dlsym(driver, "cuGetProcAddress_v2");
	if (!first)
		return;
	memcpy(&cu.lookup, &first, sizeof first);
	(void)cu.lookup("", &function, 0, 0, NULL);
	(void)ask("cuInit", 2000, 0, &cu.init);
	(void)cu.lookup("cuGetProcAddress", &function, 11030, 0, NULL);
	if (!ask("cuGetProcAddress", 12000, 0, &cu.lookup))
		return;
#define DRIVER(member, symbol, name, version) has_all &= ask(name, version, 0, &cu.member);
	DRIVER_TABLE
#undef DRIVER
#define DRIVER_PT(member, symbol, name, version)         \
	has_all &= ask(name, version, 0, &cu.member[0]); \
	has_all &= ask(name, version, 2, &cu.member[1]);
	DRIVER_PT_TABLE
#undef DRIVER_PT
	if (has_all)
		start_error = (cudaError_t)cu.init(0);
}

cudaError_t rt_begin(void)
{
	pthread_once(&once, start);
	return note(start_error);
}

cudaError_t rt_begin_with_context(void)
{
	CUcontext context = NULL;
	CUdevice device;
	CUresult res = CUDA_SUCCESS;
	cudaError_t error = rt_begin();

	if (error != cudaSuccess)
		return error;
	error = rt_give(cu.get_current(&context));
	if (error != cudaSuccess)
		return error;
	/* A fast path, because benchmarks would see the cost of the lock in every call. */
	if (context && context == __atomic_load_n(&contexts[current_device], __ATOMIC_ACQUIRE))
		return cudaSuccess;
	pthread_mutex_lock(&retain_lock);
	/* A context that was reset stays current, but every call on it fails until it is retained again. */
	if (!context ||
		(context != contexts[current_device] && cu.ctx_device(&device) != CUDA_SUCCESS)) {
		if (!contexts[current_device]) {
			res = cu.device_get(&device, current_device);
			if (res == CUDA_SUCCESS)
				res = cu.retain(&context, device);
			if (res == CUDA_SUCCESS)
				__atomic_store_n(
					&contexts[current_device], context, __ATOMIC_RELEASE);
		}
		if (res == CUDA_SUCCESS)
			res = cu.set_current(contexts[current_device]);
	}
	pthread_mutex_unlock(&retain_lock);
	return rt_give(res);
}

/* ---- memory ---- */

static CUdeviceptr address(const void *ptr)
{
	return (uintptr_t)ptr;
}

/* Stores the address *made if `res`, the result of the call that set it, is a success; returns `res`. */
static CUresult store(CUresult res, const CUdeviceptr *made, void **ret_ptr)
{
	if (res == CUDA_SUCCESS)
		*ret_ptr = (void *)(uintptr_t)*made;
	return res;
}

cudaError_t cudaMalloc(void **ptr, size_t size)
{
	CUdeviceptr made = 0;

	WITH_CONTEXT(!ptr ? CUDA_ERROR_INVALID_VALUE
			  : store(size ? cu.mem_alloc(&made, size) : CUDA_SUCCESS, &made, ptr));
}

cudaError_t cudaFree(void *ptr)
{
	cudaError_t error = rt_begin_with_context();

	return error != cudaSuccess || !ptr ? error : rt_give(cu.mem_free(address(ptr)));
}

cudaError_t cudaMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
	CUdeviceptr made = 0;

	WITH_CONTEXT(!ptr || !pitch
			     ? CUDA_ERROR_INVALID_VALUE
			     : store(cu.mem_pitch(&made, pitch, width, height, 4), &made, ptr));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent)
{
	pitched->xsize = extent.width;
	pitched->ysize = extent.height;
	return cudaMallocPitch(
		&pitched->ptr, &pitched->pitch, extent.width, extent.height * extent.depth);
}

cudaError_t cudaMallocManaged(void **ptr, size_t size, unsigned int flags)
{
	CUdeviceptr made = 0;

	WITH_CONTEXT(store(cu.mem_managed(&made, size, flags), &made, ptr));
}

cudaError_t cudaHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	WITH_CONTEXT(cu.host_alloc(ptr, size, flags));
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	return cudaHostAlloc(ptr, size, 0);
}

cudaError_t cudaFreeHost(void *ptr)
{
	WITH_CONTEXT(ptr ? cu.host_free(ptr) : CUDA_SUCCESS);
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	WITH_CONTEXT(cu.host_register(ptr, size, flags));
}

cudaError_t cudaHostUnregister(void *ptr)
{
	WITH_CONTEXT(cu.host_unregister(ptr));
}

cudaError_t cudaHostGetDevicePointer(void **ptr, void *host, unsigned int flags)
{
	CUdeviceptr made = 0;

	WITH_CONTEXT(store(cu.host_pointer(&made, host, flags), &made, ptr));
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	WITH_CONTEXT(cu.mem_info(free_bytes, total));
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
	unsigned type = 0;
	int is_managed = 0;
	int device = 0;
	void *device_pointer = NULL;
	void *host_pointer = NULL;
	CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
		CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER };
	void *data[] = { &type, &is_managed, &device, &device_pointer, &host_pointer };
	cudaError_t error = rt_begin_with_context();

	if (error == cudaSuccess)
		error = rt_give(cu.pointer(5, which, data, address(ptr)));
	if (error != cudaSuccess)
		return error;
	/* Writes only the members shared by the layouts of 12 and 13. */
	attributes->type = is_managed                     ? cudaMemoryTypeManaged
			   : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
			   : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
							  : cudaMemoryTypeUnregistered;
	attributes->device = device;
	attributes->devicePointer = device_pointer;
	attributes->hostPointer = type ? host_pointer : (void *)(uintptr_t)ptr;
	return cudaSuccess;
}

static CUresult alloc_async(void **ret_ptr, size_t size, cudaStream_t stream, int per_thread)
{
	CUdeviceptr made = 0;

	return ret_ptr ? store(cu.alloc_async[per_thread](&made, size, stream), &made, ret_ptr)
		       : CUDA_ERROR_INVALID_VALUE;
}

/* ---- functions in two variants: stream NULL is the legacy stream, or the per-thread one ---- */

#define PAIR(name, suffix, params, call) \
	cudaError_t name params          \
	{                                \
		enum {                   \
			PT = 0           \
		};                       \
		WITH_CONTEXT(call);      \
	}                                \
	cudaError_t name##suffix params  \
	{                                \
		enum {                   \
			PT = 1           \
		};                       \
		WITH_CONTEXT(call);      \
	}

PAIR(cudaMallocAsync, _ptsz, (void **ptr, size_t size, cudaStream_t stream),
	alloc_async(ptr, size, stream, PT))
PAIR(cudaFreeAsync, _ptsz, (void *ptr, cudaStream_t stream),
	cu.free_async[PT](address(ptr), stream))
PAIR(cudaMemcpy, _ptds, (void *dst, const void *src, size_t n, enum cudaMemcpyKind kind),
	cu.copy[PT](address(dst), address(src), n))
PAIR(cudaMemcpyAsync, _ptsz,
	(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind, cudaStream_t stream),
	cu.copy_async[PT](address(dst), address(src), n, stream))
PAIR(cudaMemset, _ptds, (void *dst, int value, size_t n),
	cu.set[PT](address(dst), (unsigned char)value, n))
PAIR(cudaMemsetAsync, _ptsz, (void *dst, int value, size_t n, cudaStream_t stream),
	cu.set_async[PT](address(dst), (unsigned char)value, n, stream))
PAIR(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), cu.stream_sync[PT](stream))
PAIR(cudaStreamQuery, _ptsz, (cudaStream_t stream), cu.stream_query[PT](stream))
PAIR(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
	cu.stream_wait[PT](stream, event, flags))
PAIR(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
	cu.record_flags[PT](event, stream, flags))
PAIR(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int *priority),
	cu.stream_priority[PT](stream, priority))
PAIR(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned int *flags),
	cu.stream_flags[PT](stream, flags))
PAIR(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream), cu.record[PT](event, stream))

static CUDA_MEMCPY2D rows(
	void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height)
{
	return (CUDA_MEMCPY2D){
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = address(src),
		.srcPitch = spitch,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = address(dst),
		.dstPitch = dpitch,
		.WidthInBytes = width,
		.Height = height,
	};
}

cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
	size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY2D copy = rows(dst, dpitch, src, spitch, width, height);

	WITH_CONTEXT(cu.copy_2d[0](&copy));
}

PAIR(cudaMemcpy2DAsync, _ptsz,
	(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
		enum cudaMemcpyKind kind, cudaStream_t stream),
	cu.copy_2d_async[PT](
		(CUDA_MEMCPY2D[]){ rows(dst, dpitch, src, spitch, width, height) }, stream))

cudaError_t cudaMemcpyPeerAsync(
	void *dst, int dst_device, const void *src, int src_device, size_t n, cudaStream_t stream)
{
	WITH_CONTEXT(cu.copy_async[0](address(dst), address(src), n, stream));
}

/* ---- devices ---- */

cudaError_t cudaDeviceSynchronize(void)
{
	WITH_CONTEXT(cu.ctx_sync());
}

cudaError_t cudaDeviceReset(void)
{
	cudaError_t error = rt_begin();
	CUdevice device;

	if (error == cudaSuccess)
		error = rt_give(cu.device_get(&device, current_device));
	if (error == cudaSuccess) {
		pthread_mutex_lock(&retain_lock);
		__atomic_store_n(&contexts[current_device], NULL, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&retain_lock);
		error = rt_give(cu.reset(device));
	}
	return error;
}

cudaError_t cudaGetDeviceCount(int *n)
{
	WITH_RUNTIME(cu.device_count(n));
}

cudaError_t cudaSetDevice(int device)
{
	int n = 0;
	cudaError_t error = cudaGetDeviceCount(&n);

	if (error != cudaSuccess)
		return error;
	if (device < 0 || device >= n || device >= MAX_DEVICES)
		return note(cudaErrorInvalidDevice);
	if (device != current_device) {
		current_device = device;
		(void)cu.set_current(NULL);
	}
	return rt_begin_with_context();
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
	int before = current_device;
	cudaError_t error;

	error = cudaSetDevice(device);
	if (error == cudaSuccess && before != device)
		error = cudaSetDevice(before);
	return error;
}

cudaError_t cudaGetDevice(int *device)
{
	cudaError_t error = rt_begin();

	if (error == cudaSuccess)
		*device = current_device;
	return error;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	WITH_RUNTIME(cu.device_attribute(value, (CUdevice_attribute)attribute, device));
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int len, int device)
{
	WITH_RUNTIME(cu.device_pci(text, len, device));
}

/* ---- errors, versions, the driver's functions ---- */

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last_error;

	last_error = cudaSuccess;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

/* The runtime's own words.  For other errors the driver's are given; texts are the same, names differ from NVIDIA's. */
static const struct words {
	cudaError_t error;
	const char *name, *text;
} words[] = {
#define WORDS(error, text)          \
	{                           \
		error, #error, text \
	}
	WORDS(cudaSuccess, "no error"),
	WORDS(cudaErrorMemoryAllocation, "out of memory"),
	WORDS(cudaErrorInvalidConfiguration, "invalid configuration argument"),
	WORDS(cudaErrorInvalidSymbol, "invalid device symbol"),
	WORDS(cudaErrorInsufficientDriver,
		"CUDA driver version is insufficient for CUDA runtime version"),
	WORDS(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
	WORDS(cudaErrorInvalidDeviceFunction, "invalid device function"),
	WORDS(cudaErrorNoKernelImageForDevice,
		"no kernel image is available for execution on the device"),
#undef WORDS
};

static const struct words *words_of(cudaError_t error)
{
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (words[i].error == error)
			return &words[i];
	return NULL;
}

const char *cudaGetErrorName(cudaError_t error)
{
	const struct words *own = words_of(error);
	const char *text = NULL;

	if (own)
		return own->name;
	(void)rt_begin();
	return cu.error_name && cu.error_name((CUresult)error, &text) == CUDA_SUCCESS
		       ? text
		       : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
	const struct words *own = words_of(error);
	const char *text = NULL;

	if (own)
		return own->text;
	(void)rt_begin();
	return cu.error_string && cu.error_string((CUresult)error, &text) == CUDA_SUCCESS
		       ? text
		       : "unrecognized error code";
}

int rt_version(void)
{
	static _Atomic int version;
	Dl_info info;

	if (!version)
		version = dladdr(&start_error, &info) && info.dli_fname &&
					  strstr(info.dli_fname, ".so.12")
				  ? 12080
				  : 13000;
	return version;
}

int rt_device(void)
{
	return current_device;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = rt_version();
	return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
	WITH_RUNTIME(cu.version(version));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
	unsigned int version, unsigned long long flags,
	enum cudaDriverEntryPointQueryResult *status)
{
	CUdriverProcAddressQueryResult seen = CU_GET_PROC_ADDRESS_SUCCESS;
	cudaError_t error = rt_begin();

	if (error != cudaSuccess)
		return error;
	CUresult res = cu.lookup(symbol, function, (int)version, flags, &seen);
	if (status)
		*status = (enum cudaDriverEntryPointQueryResult)seen;
	/* If the caller asks for the status, that reports a missing name, which is then no error. */
	return res == CUDA_ERROR_NOT_FOUND && status ? cudaSuccess : rt_give(res);
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
	enum cudaDriverEntryPointQueryResult *status)
{
	return cudaGetDriverEntryPointByVersion(
		symbol, function, (unsigned)rt_version(), flags, status);
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
	WITH_CONTEXT(cu.ipc_get((CUipcMemHandle *)(void *)handle, address(ptr)));
}

cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned int flags)
{
	CUipcMemHandle same;
	CUdeviceptr made = 0;

	memcpy(&same, &handle, sizeof same);
	WITH_CONTEXT(store(cu.ipc_open(&made, same, flags), &made, ptr));
}

cudaError_t cudaIpcCloseMemHandle(void *ptr)
{
	WITH_CONTEXT(cu.ipc_close(address(ptr)));
}
