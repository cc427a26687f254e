/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intercepts the reports of PyTorch's allocator on each tensor that it allocates, frees or cannot allocate.
 *
 * To report, libc10_cuda calls two functions of libc10 through its procedure linkage table, whether or not a profiler
 * listens.  The names below are theirs, as mangled by the compiler.  The loader finds our functions of these names
 * first, because we are preloaded; ours call libc10's.
 *
 *      c10::reportMemoryUsageToProfiler(void *ptr, int64_t size, size_t allocated, size_t reserved, Device)
 *      c10::reportOutOfMemoryToProfiler(int64_t size, size_t allocated, size_t reserved, Device)
 *
 * `size` is negative if the tensor was freed; `allocated` and `reserved` are PyTorch's own totals afterwards.  In
 * PyTorch 1 both totals were int64_t, so the mangled names differ (USAGE_1, FAILED_1), but the call is the same.
 *
 * Neither function is told the stream.  Two functions of libc10_cuda return the thread's current one:
 *
 *      CUDAStream c10::cuda::getCurrentCUDAStream(DeviceIndex)      cudaStream_t CUDAStream::stream() const
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "preload/real.h"
#include "runtime/ledger/tensors.h"
#include "runtime/process/enter.h"

/* c10::Device */
struct device {
	int8_t type;
	int8_t index;
};

#define TYPE_CUDA 1

/* c10::cuda::CUDAStream, a c10::Stream: two words, returned in registers. */
struct stream {
	struct device device;
	int64_t id;
};

typedef void usage_fn(
	void *ptr, int64_t size, size_t allocated, size_t reserved, struct device device);
typedef void failure_fn(int64_t size, size_t allocated, size_t reserved, struct device device);

#define USAGE    "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define USAGE_1  "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"
#define FAILED   "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
#define FAILED_1 "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE"

EXPORT usage_fn gpc_torch_usage __asm__(USAGE);
EXPORT usage_fn gpc_torch_usage_1 __asm__(USAGE_1) __attribute__((alias(USAGE)));
EXPORT failure_fn gpc_torch_failure __asm__(FAILED);
EXPORT failure_fn gpc_torch_failure_1 __asm__(FAILED_1) __attribute__((alias(FAILED)));

/*
 * Looks up PyTorch's function in its own library: Python loads that locally, so a search by scope would not find it.  The
 * answer is kept, so the library must stay loaded.
 */
static void *find_own(const char *soname, const char *name)
{
	void *library = dlopen(soname, RTLD_NOLOAD | RTLD_LAZY | RTLD_NODELETE);
	void *own = library ? gpc_real_dlsym_call(library, name) : NULL;

	if (library)
		(void)dlclose(library);
	return own;
}

/* Returns the function of libc10 that has one of these names: a version of PyTorch has one of them. */
static void *own_of(const char *name, const char *name_1, void **cache)
{
	void *own = __atomic_load_n(cache, __ATOMIC_RELAXED);

	if (!own) {
		own = find_own("libc10.so", name);
		own = own ? own : find_own("libc10.so", name_1);
		__atomic_store_n(cache, own, __ATOMIC_RELAXED);
	}
	return own;
}

typedef struct stream current_stream_fn(int8_t device);
typedef CUstream handle_fn(const struct stream *stream);

static struct {
	bool is_found; /* stored after the two functions */
	void *current;
	void *handle;
} streams;

/*
 * Looks both functions up once.  The answer is final, because libc10_cuda called us and so is loaded.  No lock is held,
 * not even pthread_once's: dlsym takes the loader's lock, and a thread that runs a library's constructor holds that
 * lock when it comes here.  Concurrent threads find the same functions.
 */
static void find_streams(void)
{
	void *current = find_own("libc10_cuda.so", "_ZN3c104cuda20getCurrentCUDAStreamEa");
	void *handle = find_own("libc10_cuda.so", "_ZNK3c104cuda10CUDAStream6streamEv");

	__atomic_store_n(&streams.current, current, __ATOMIC_RELAXED);
	__atomic_store_n(&streams.handle, handle, __ATOMIC_RELAXED);
	__atomic_store_n(&streams.is_found, true, __ATOMIC_RELEASE);
}

static bool find_stream(int device, CUstream *ret_stream)
{
	current_stream_fn *current;
	handle_fn *handle;
	struct stream stream;
	void *found;

	if (!__atomic_load_n(&streams.is_found, __ATOMIC_ACQUIRE))
		find_streams();
	found = __atomic_load_n(&streams.current, __ATOMIC_RELAXED);
	memcpy(&current, &found, sizeof current);
	found = __atomic_load_n(&streams.handle, __ATOMIC_RELAXED);
	memcpy(&handle, &found, sizeof handle);
	if (!current || !handle)
		return false;
	stream = current((int8_t)device);
	*ret_stream = handle(&stream);
	return true;
}

void gpc_torch_usage(
	void *ptr, int64_t size, size_t allocated, size_t reserved, struct device device)
{
	static void *cache;
	void *found = own_of(USAGE, USAGE_1, &cache);
	usage_fn *own;

	memcpy(&own, &found, sizeof own);
	if (own)
		own(ptr, size, allocated, reserved, device);
	if (device.type == TYPE_CUDA)
		INSIDE(gpc_runtime_tensor(
			device.index, (uintptr_t)ptr, size, allocated, reserved, find_stream));
}

void gpc_torch_failure(int64_t size, size_t allocated, size_t reserved, struct device device)
{
	static void *cache;
	void *found = own_of(FAILED, FAILED_1, &cache);
	failure_fn *own;

	memcpy(&own, &found, sizeof own);
	if (own)
		own(size, allocated, reserved, device);
	if (device.type == TYPE_CUDA)
		INSIDE(gpc_runtime_tensor_failed(device.index, size, allocated, reserved));
}
