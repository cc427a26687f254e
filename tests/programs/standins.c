/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the tables of the simulated libraries: every WORK function submits work to its handle's stream, every NOT
 * function reports that; and the kernels of a module.  Opens the libraries by a full path that does not exist, because
 * with the auditor the path is irrelevant.
 *
 * Run with GPUSIM=clock:virtual,kernel_us:1000, which makes work last until somebody waits.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind {
	OWN,
	WORK,
	RESULT,
	NOT
};

struct function {
	enum kind kind;
	const char *name;
};

#define CODES(...)
#define OWN(name)     { OWN, #name },
#define CREATE(name)  OWN(name)
#define DESTROY(name) OWN(name)
#define STREAM(name)  OWN(name)
#define WORK(name)    { WORK, #name },
#define RESULT(name)  { RESULT, #name },
#define NOT(name)     { NOT, #name },

/* clang-format off */
static const struct function cublas[] = {
#include "sim/libcublas/names.def"
};
static const struct function cudnn[] = {
#include "sim/libcudnn/names.def"
};
static const struct function cusolver[] = {
#include "sim/libcusolver/names.def"
};
/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct library {
	const char *file;
	const char *create, *set_stream;
	int not_supported;
	const struct function *functions;
	size_t n;
} libraries[] = {
	{ "libcublas.so.12", "cublasCreate_v2", "cublasSetStream_v2", 15, cublas, COUNT(cublas) },
	{ "libcublas.so.13", "cublasCreate_v2", "cublasSetStream_v2", 15, cublas, COUNT(cublas) },
	{ "libcudnn.so.9", "cudnnCreate", "cudnnSetStream", 3000, cudnn, COUNT(cudnn) },
	{ "libcusolver.so.12", "cusolverDnCreate", "cusolverDnSetStream", 9, cusolver,
		COUNT(cusolver) },
};

static void fail(const char *what, const char *name)
{
	printf("%s: %s\n", name, what);
	exit(1);
}

static int (*find(void *library, const char *name))(void *)
{
	int (*function)(void *);
	void *found = dlsym(library, name);

	if (!found)
		fail("is not there", name);
	memcpy(&function, &found, sizeof function);
	return function;
}

static void check(const struct library *library, const struct function *function, void *opened,
	void *handle, CUstream stream)
{
	int (*call)(void *) = find(opened, function->name);

	if (function->kind == NOT && call(handle) != library->not_supported)
		fail("does not say that it is not supported", function->name);
	/* A result belongs on the host, unless the handle is told otherwise. */
	if (function->kind == RESULT && call(handle) != library->not_supported)
		fail("gives a result to the host", function->name);
	if (function->kind != WORK)
		return;
	if (call(handle) != 0)
		fail("fails", function->name);
	if (cuStreamQuery(stream) != CUDA_ERROR_NOT_READY)
		fail("puts no work on the stream", function->name);
	if (cuStreamSynchronize(stream) != CUDA_SUCCESS)
		fail("breaks the stream", function->name);
}

static void run(const struct library *library, CUstream stream)
{
	char path[64];
	unsigned n[4] = { 0 };
	int (*set_stream)(void *, CUstream);
	void *handle;
	uint64_t no_handle[16] = { 0 };

	snprintf(path, sizeof path, "/nowhere/%s", library->file);
	void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!opened)
		fail(dlerror(), library->file);
	if (find(opened, library->create)(&handle))
		fail("no handle", library->file);
	void *found = dlsym(opened, library->set_stream);
	memcpy(&set_stream, &found, sizeof set_stream);
	if (set_stream(handle, stream))
		fail("takes no stream", library->set_stream);
	if (!set_stream(NULL, stream) || !set_stream(no_handle, stream))
		fail("takes a stream for what is no handle", library->set_stream);
	for (size_t i = 0; i < library->n; i++) {
		check(library, &library->functions[i], opened, handle, stream);
		n[library->functions[i].kind]++;
	}
	printf("%s: %u with a body, %u that work, %u with a result, %u not supported\n",
		library->file, n[OWN], n[WORK], n[RESULT], n[NOT]);
}

/* In a thread that has no context, as PyTorch's of a backward pass that begins with a convolution. */
static void *create_without_context(void *arg)
{
	const struct library *library = arg;
	char path[64];
	void *handle;
	void *opened;

	snprintf(path, sizeof path, "/nowhere/%s", library->file);
	opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!opened || find(opened, library->create)(&handle))
		fail("no handle in a thread without a context", library->file);
	for (size_t i = 0; i < library->n; i++)
		if (library->functions[i].kind == WORK &&
			find(opened, library->functions[i].name)(handle))
			fail("fails in a thread without a context", library->functions[i].name);
	return NULL;
}

static void run_in_thread(const struct library *library)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, create_without_context, (void *)library))
		fail("no thread", library->file);
	pthread_join(thread, NULL);
}

#define NEED(call) ((call) ? fail("is not so", #call) : (void)0)

/* Kernels and globals of a module that was linked, by name; each is one, and gone with the module. */
static void check_kernels(void)
{
	char ptx[] = ".version 8.0";
	const char *name;
	CUlinkState linker;
	CUmodule module;
	CUfunction first, second, same;
	CUdeviceptr global, again;
	size_t size;
	void *code;
	int n;

	NEED(cuLinkCreate(0, NULL, NULL, &linker));
	NEED(cuLinkAddData(linker, 1, ptx, sizeof ptx, "ptx", 0, NULL, NULL));
	NEED(cuLinkComplete(linker, &code, &size));
	NEED(cuModuleLoadData(&module, code));
	NEED(cuLinkDestroy(linker));
	NEED(cuModuleGetFunction(&first, module, "first"));
	NEED(cuModuleGetFunction(&second, module, "second"));
	NEED(cuModuleGetFunction(&same, module, "first"));
	NEED(first == second || first != same);
	NEED(cuFuncGetName(&name, second) || strcmp(name, "second") != 0);
	NEED(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, first, 256, 0) || n != 8);
	NEED(cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_BINARY_VERSION, first) || n != 90);
	NEED(cuModuleGetGlobal(&global, &size, module, "table") || !size);
	NEED(cuModuleGetGlobal(&again, NULL, module, "table") || again != global);
	NEED(cuMemsetD8_v2(global, 1, size));
	NEED(cuModuleGetFunction(&first, module, "") != CUDA_ERROR_NOT_FOUND);
	NEED(cuModuleUnload(module));
	NEED(cuFuncGetName(&name, second) != CUDA_ERROR_INVALID_VALUE);
	NEED(cuModuleGetFunction(&first, module, "first") != CUDA_ERROR_INVALID_HANDLE);
}

int main(void)
{
	CUcontext context;
	CUstream stream;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
		cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
		fail("does not start", "the driver");
	check_kernels();
	for (size_t i = 0; i < COUNT(libraries); i++)
		run(&libraries[i], stream);
	for (size_t i = 0; i < COUNT(libraries); i++)
		run_in_thread(&libraries[i]);
	return 0;
}
