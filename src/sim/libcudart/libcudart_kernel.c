/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in runtime: kernels and variables that nvcc's output registers, and launches.
 *
 * Kernels are identified by the address of their host function, variables by that of their host copy.  A launch goes to
 * the driver, where it takes time and does nothing.  Of the fat binary only the versions are read (sim/gpu/memory/image.h): a
 * kernel without code for the GPU is not launched.  A variable gets device memory when its address is first requested.
 * The real runtime loads each kernel at its first launch, with a size that is not published: here only PyTorch's
 * kernels take device memory, as measured (code.def).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/libcudart/runtime.h"
#include "sim/standin/standin.h"

#define N_BUCKETS   (1u << 15)
#define MAX_DEVICES 64
#define MAX_NESTED  64
#define MAX_THREADS 1024

/* Of the code that the driver would load; `error`: there is none for this GPU. */
struct versions {
	cudaError_t error;
	int ptx, binary;
};

/* What __cudaRegisterFatBinary returns.  Never freed, because the symbols of a binary stay. */
struct binary {
	const void *fat; /* NULL once it is unregistered: its library may be unmapped */
	bool is_read;
	struct versions versions; /* set if is_read */
};

/* A kernel, or a variable, which has a size and addresses. */
struct symbol {
	const void *host;
	struct binary *binary;
	const char *code; /* its name in code.def; "": not looked up yet; NULL: none */
	const char *name;
	size_t size;
	CUdeviceptr *addresses; /* one per device, 0 if there is none yet; NULL for a kernel */
	struct symbol *next;
};

struct configuration {
	dim3 grid, block;
	size_t shared;
	struct CUstream_st *stream;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct symbol *buckets[N_BUCKETS];
static _Thread_local struct configuration nested[MAX_NESTED];
static _Thread_local unsigned n_nested;

static struct symbol **bucket_of(const void *host)
{
	return &buckets[((uintptr_t)host >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 49];
}

static void add(void **handle, const void *host, const char *name, size_t size, bool is_variable)
{
	struct symbol *symbol = calloc(1, sizeof *symbol);
	struct symbol **bucket = bucket_of(host);

	if (!symbol)
		return;
	symbol->host = host;
	symbol->binary = (struct binary *)(void *)handle;
	symbol->name = name;
	symbol->code = "";
	symbol->size = size;
	symbol->addresses = is_variable ? calloc(MAX_DEVICES, sizeof *symbol->addresses) : NULL;
	pthread_mutex_lock(&lock);
	symbol->next = *bucket;
	*bucket = symbol;
	pthread_mutex_unlock(&lock);
}

static struct symbol *find(const void *host)
{
	struct symbol *symbol;

	pthread_mutex_lock(&lock);
	for (symbol = *bucket_of(host); symbol && symbol->host != host; symbol = symbol->next)
		;
	pthread_mutex_unlock(&lock);
	return symbol;
}

void **__cudaRegisterFatBinary(void *fat_binary)
{
	struct binary *binary = calloc(1, sizeof *binary);

	if (binary)
		binary->fat = fat_binary;
	return (void **)(void *)binary;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
}

/* The registrations stay, also after a dlclose(). */
void __cudaUnregisterFatBinary(void **handle)
{
	struct binary *binary = (struct binary *)(void *)handle;

	pthread_mutex_lock(&lock);
	if (binary)
		binary->fat = NULL;
	pthread_mutex_unlock(&lock);
}

/* Of a kernel that nobody registered, the versions are those of the GPU. */
static struct versions versions_of(const struct symbol *symbol)
{
	struct binary unknown = { .fat = NULL };
	struct binary *binary = symbol && symbol->binary ? symbol->binary : &unknown;

	pthread_mutex_lock(&lock);
	struct versions *found = &binary->versions;
	if (!binary->is_read)
		found->error = (cudaError_t)standin_image(binary->fat, &found->ptx, &found->binary);
	binary->is_read = true;
	struct versions versions = *found;
	pthread_mutex_unlock(&lock);
	return versions;
}

char __cudaInitModule(void **handle)
{
	return handle != NULL;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int thread_limit, void *tid, void *bid, dim3 *block, dim3 *grid, int *warp_size)
{
	add(handle, host, name, 0, false);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int is_extern,
	size_t size, int is_constant, int is_global)
{
	add(handle, host, name, size, true);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
	int is_extern, size_t size, int is_constant, int is_global)
{
	__cudaRegisterVar(
		handle, (char *)host, device, name, is_extern, size, is_constant, is_global);
}

unsigned __cudaPushCallConfiguration(
	dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
	if (n_nested == MAX_NESTED)
		return 1;
	nested[n_nested++] = (struct configuration){
		.grid = grid, .block = block, .shared = shared, .stream = stream
	};
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	if (!n_nested)
		return cudaErrorMissingConfiguration;
	const struct configuration *last = &nested[--n_nested];
	*grid = last->grid;
	*block = last->block;
	*shared = last->shared;
	memcpy(stream, &last->stream, sizeof last->stream);
	return cudaSuccess;
}

/* The row of code.def for a kernel, by the names of its library and of the kernel; NULL if it is not PyTorch's. */
static const char *code_of(const struct symbol *symbol)
{
	const char *name = symbol->name ? symbol->name : "";
	Dl_info info;

	if (!dladdr(symbol->host, &info) || !info.dli_fname ||
		!strstr(info.dli_fname, "libtorch_cuda"))
		return NULL;
	return strstr(name, "flash") || strstr(name, "fmha") ? "attention" : "torch";
}

static void load_code(struct symbol *symbol)
{
	if (symbol && symbol->code && !*symbol->code)
		symbol->code = code_of(symbol);
	if (symbol && symbol->code)
		standin_load_code(symbol->code);
}

/* `kernel` may be any address: the simulated driver runs no code.  If `symbol` is NULL, finds it by `kernel`. */
static cudaError_t launch(const void *kernel, struct symbol *symbol, dim3 grid, dim3 block,
	size_t shared, cudaStream_t stream, int per_thread)
{
	uint64_t threads = (uint64_t)block.x * block.y * block.z;
	cudaError_t error = rt_begin_with_context();

	if (error != cudaSuccess)
		return error;
	if (!kernel)
		return rt_give((CUresult)cudaErrorInvalidDeviceFunction);
	if (!grid.x || !grid.y || !grid.z || !threads || threads > MAX_THREADS)
		return rt_give((CUresult)cudaErrorInvalidConfiguration);
	if (!symbol)
		symbol = find(kernel);
	error = symbol ? versions_of(symbol).error : cudaSuccess;
	if (error != cudaSuccess)
		return rt_give((CUresult)error);
	if (standin_has_code())
		load_code(symbol);
	return rt_give(cu.launch[per_thread]((CUfunction)(uintptr_t)kernel, grid.x, grid.y, grid.z,
		block.x, block.y, block.z, (unsigned)shared, stream, NULL, NULL));
}

#define LAUNCH_PAIR(name, params, call)   \
	cudaError_t name params           \
	{                                 \
		const int per_thread = 0; \
		return call;              \
	}                                 \
	cudaError_t name##_ptsz params    \
	{                                 \
		const int per_thread = 1; \
		return call;              \
	}

LAUNCH_PAIR(cudaLaunchKernel,
	(const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream),
	launch(func, NULL, grid, block, shared, stream, per_thread))
LAUNCH_PAIR(cudaLaunchCooperativeKernel,
	(const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream),
	launch(func, NULL, grid, block, shared, stream, per_thread))
LAUNCH_PAIR(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *func, void **args),
	config ? launch(func, NULL, config->gridDim, config->blockDim, config->dynamicSmemBytes,
			 config->stream, per_thread)
	       : rt_give(CUDA_ERROR_INVALID_VALUE))
LAUNCH_PAIR(__cudaLaunchKernel,
	(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
		cudaStream_t stream),
	launch(kernel, (struct symbol *)(void *)kernel, grid, block, shared, stream, per_thread))

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
	struct symbol *symbol = find(host);

	if (!symbol)
		return rt_give((CUresult)cudaErrorInvalidDeviceFunction);
	*kernel = (cudaKernel_t)(void *)symbol;
	return cudaSuccess;
}

/* The driver's handle of a kernel is its address here, as in launch(). */
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *host)
{
	cudaError_t error = rt_begin_with_context();

	if (error != cudaSuccess)
		return error;
	if (!function)
		return rt_give(CUDA_ERROR_INVALID_VALUE);
	if (!find(host))
		return rt_give((CUresult)cudaErrorInvalidDeviceFunction);
	*function = (cudaFunction_t)(uintptr_t)host;
	return cudaSuccess;
}

/* ---- attributes of a kernel: those of a small one, because none is compiled ---- */

static int attribute(CUdevice_attribute which)
{
	int value = 0;
	CUdevice device;

	if (cu.device_get(&device, rt_device()) == CUDA_SUCCESS)
		(void)cu.device_attribute(&value, which, device);
	return value;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *func)
{
	cudaError_t error = rt_begin_with_context();

	if (error != cudaSuccess)
		return error;
	if (!attributes || !func)
		return rt_give(CUDA_ERROR_INVALID_VALUE);
	struct versions versions = versions_of(find(func));
	if (versions.error != cudaSuccess)
		return rt_give((CUresult)versions.error);
	memset(attributes, 0, sizeof *attributes);
	attributes->maxThreadsPerBlock = MAX_THREADS;
	attributes->numRegs = 32;
	attributes->ptxVersion = versions.ptx;
	attributes->binaryVersion = versions.binary;
	attributes->maxDynamicSharedSizeBytes =
		attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
	return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute which, int value)
{
	WITH_CONTEXT(func ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

cudaError_t cudaKernelSetAttributeForDevice(
	cudaKernel_t kernel, enum cudaFuncAttribute which, int value, int device)
{
	return cudaFuncSetAttribute(kernel, which, value);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
	int *n, const void *func, int block, size_t shared)
{
	cudaError_t error = rt_begin_with_context();

	if (error != cudaSuccess)
		return error;
	if (!n || !func || block <= 0)
		return rt_give(CUDA_ERROR_INVALID_VALUE);
	int by_threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / block;
	int by_blocks = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
	*n = by_threads < by_blocks ? by_threads : by_blocks;
	return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *n, const void *func, int block, size_t shared, unsigned int flags)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessor(n, func, block, shared);
}

/* ---- variables ---- */

static cudaError_t find_variable(const void *host, struct symbol **ret_symbol)
{
	cudaError_t error = rt_begin_with_context();
	struct symbol *symbol = find(host);

	if (error != cudaSuccess)
		return error;
	if (!symbol || !symbol->addresses || rt_device() >= MAX_DEVICES)
		return rt_give((CUresult)cudaErrorInvalidSymbol);
	*ret_symbol = symbol;
	return cudaSuccess;
}

cudaError_t cudaGetSymbolAddress(void **ptr, const void *host)
{
	struct symbol *symbol;
	CUresult res = CUDA_SUCCESS;
	cudaError_t error = find_variable(host, &symbol);

	if (error != cudaSuccess)
		return error;
	pthread_mutex_lock(&lock);
	CUdeviceptr *address = &symbol->addresses[rt_device()];
	if (!*address)
		res = cu.mem_alloc(address, symbol->size ? symbol->size : 1);
	if (res == CUDA_SUCCESS)
		*ptr = (void *)(uintptr_t)*address;
	pthread_mutex_unlock(&lock);
	return rt_give(res);
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *host)
{
	struct symbol *symbol;
	cudaError_t error = find_variable(host, &symbol);

	if (error == cudaSuccess)
		*size = symbol->size;
	return error;
}

cudaError_t cudaMemcpyToSymbol(
	const void *host, const void *src, size_t n, size_t offset, enum cudaMemcpyKind kind)
{
	void *ptr;
	cudaError_t error = cudaGetSymbolAddress(&ptr, host);

	return error == cudaSuccess ? cudaMemcpy((char *)ptr + offset, src, n, kind) : error;
}
