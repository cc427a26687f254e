/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs each test of the runtime in a process of its own, with the simulated driver of the same build folder.
 *
 * The runtime is one object per process and starts once.  So a test forks; the child loads the driver, starts the
 * runtime and makes the calls of preload/'s hooks.  The parent gets the child's stderr as text.
 *
 *	static void gives_memory(void) { CHECK(world_malloc(&p, 512) == 0); }
 *	...
 *	world_run("memory:1GiB", "stacks:off", gives_memory);      fails the cmocka test where a CHECK did
 *
 * Threads   The parent has one.
 * Failure   CHECK: the child prints the place and ends with 99.
 */
#ifndef GPC_TESTS_UNIT_RUNTIME_WORLD_H
#define GPC_TESTS_UNIT_RUNTIME_WORLD_H

#include "driver/cuda_fns.h"
#include "model/counters.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "unit.h"

#define WORLD_FUNCTIONS(X)                                                              \
	X(cuInit, CUresult, (unsigned flags))                                           \
	X(cuDevicePrimaryCtxRetain, CUresult, (CUcontext * context, CUdevice device))   \
	X(cuDevicePrimaryCtxReset_v2, CUresult, (CUdevice device))                      \
	X(cuDevicePrimaryCtxRelease_v2, CUresult, (CUdevice device))                    \
	X(cuCtxCreate_v2, CUresult, (CUcontext * context, unsigned flags, CUdevice d))  \
	X(cuCtxDestroy_v2, CUresult, (CUcontext context))                               \
	X(cuCtxSetCurrent, CUresult, (CUcontext context))                               \
	X(cuCtxAttach, CUresult, (CUcontext * context, unsigned flags))                 \
	X(cuCtxDetach, CUresult, (CUcontext context))                                   \
	X(cuGreenCtxCreate, CUresult,                                                   \
		(CUgreenCtx * green, CUdevResourceDesc parts, CUdevice d, unsigned f))  \
	X(cuGreenCtxDestroy, CUresult, (CUgreenCtx green))                              \
	X(cuGreenCtxStreamCreate, CUresult,                                             \
		(CUstream * stream, CUgreenCtx green, unsigned flags, int priority))    \
	X(cuStreamCreate, CUresult, (CUstream * stream, unsigned flags))                \
	X(cuStreamDestroy_v2, CUresult, (CUstream stream))                              \
	X(cuStreamQuery, CUresult, (CUstream stream))                                   \
	X(cuStreamSynchronize, CUresult, (CUstream stream))                             \
	X(cuStreamBeginCapture_v2, CUresult, (CUstream s, CUstreamCaptureMode mode))    \
	X(cuStreamEndCapture, CUresult, (CUstream stream, CUgraph * graph))             \
	X(cuMemAllocPitch_v2, CUresult,                                                 \
		(CUdeviceptr * ptr, size_t * pitch, size_t w, size_t h, unsigned e))    \
	X(cuMemAllocManaged, CUresult, (CUdeviceptr * ptr, size_t size, unsigned f))    \
	X(cuMemHostAlloc, CUresult, (void **ptr, size_t size, unsigned flags))          \
	X(cuMemFreeHost, CUresult, (void *ptr))                                         \
	X(cuMemAllocAsync, CUresult, (CUdeviceptr * ptr, size_t size, CUstream stream)) \
	X(cuMemAllocFromPoolAsync, CUresult,                                            \
		(CUdeviceptr * ptr, size_t size, CUmemoryPool pool, CUstream stream))   \
	X(cuMemFreeAsync, CUresult, (CUdeviceptr ptr, CUstream stream))                 \
	X(cuMemPoolCreate, CUresult, (CUmemoryPool * pool, const CUmemPoolProps *p))    \
	X(cuMemPoolDestroy, CUresult, (CUmemoryPool pool))                              \
	X(cuMemPoolSetAttribute, CUresult,                                              \
		(CUmemoryPool pool, CUmemPool_attribute attribute, void *value))        \
	X(cuGraphInstantiateWithFlags, CUresult,                                        \
		(CUgraphExec * exec, CUgraph graph, unsigned long long flags))          \
	X(cuGraphLaunch, CUresult, (CUgraphExec exec, CUstream stream))                 \
	X(cuMemCreate, CUresult,                                                        \
		(CUmemGenericAllocationHandle * handle, size_t size,                    \
			const CUmemAllocationProp *prop, unsigned long long flags))     \
	X(cuMemRelease, CUresult, (CUmemGenericAllocationHandle handle))                \
	X(cuModuleLoadData, CUresult, (CUmodule * module, const void *image))           \
	X(cuModuleUnload, CUresult, (CUmodule module))                                  \
	X(cuCtxSetLimit, CUresult, (CUlimit limit, size_t value))                       \
	X(cuPointerGetAttribute, CUresult, (void *data, int what, CUdeviceptr ptr))     \
	X(cuMemsetD8_v2, CUresult, (CUdeviceptr ptr, unsigned char value, size_t n))    \
	X(cuMemcpyDtoH_v2, CUresult, (void *dst, CUdeviceptr src, size_t n))            \
	X(cuIpcGetMemHandle, CUresult, (CUipcMemHandle * handle, CUdeviceptr ptr))      \
	X(cuIpcOpenMemHandle_v2, CUresult,                                              \
		(CUdeviceptr * ptr, CUipcMemHandle handle, unsigned int flags))         \
	X(cuIpcCloseMemHandle, CUresult, (CUdeviceptr ptr))                             \
	X(gpusim_launch, int,                                                           \
		(CUstream stream, uint64_t duration_ns, unsigned n, const void *ranges))

#define WORLD_FUNCTION(name, result, params) result(*name) params;
struct world {
	struct gpc_cuda_fns fns; /* what the runtime calls; a test may put another function in */
	WORLD_FUNCTIONS(WORLD_FUNCTION)
	CUcontext context; /* the primary one of device 0, current */
	unsigned n_loader; /* times that the runtime asked for the loader */
};
#undef WORLD_FUNCTION

extern struct world world;

/* Runs `body` in a child after setting GPUSIM and GPUCACHE_CONF (NULL: unset).  It must end with 0, by exit. */
void world_run(const char *gpusim, const char *conf, void (*body)(void));

/* The same, for a child that ends with `status`. */
void world_run_to(const char *gpusim, const char *conf, void (*body)(void), int status);

/* What the last child wrote to stderr. */
extern char world_text[16384];
void world_assert_says(const char *part);
void world_assert_is_silent(void);
unsigned world_count(const char *part); /* how often it said that */

/* Checks in the child.  A check inside a helper reports the line of its caller, as in unit.h. */
#define CHECK(condition) ((condition) ? (void)0 : world_fail(__FILE__, __LINE__, #condition))
void world_fail(const char *file, int line, const char *condition) __attribute__((noreturn));

const struct gpc_runtime_loader *world_loader(void);
bool world_enter(void);

/* The driver alone: loaded, cuInit, the primary context current. */
void world_init(void);

/* Like world_init, but through the hooks: the runtime has started. */
void world_start(void);

/* The calls of the hooks. */
CUresult world_malloc(CUdeviceptr *ret_ptr, size_t size);
CUresult world_free(CUdeviceptr ptr);
CUresult world_info(size_t *available, size_t *total);
CUresult world_sync(void);
CUstream world_stream(void);
void world_reset(void);

/* cuCtxDestroy, as its hook does it. */
CUresult world_destroy(CUcontext handle);

/* A new context of device `device`, current, which reaches the memory of the first one. */
CUcontext world_peer(CUdevice device);

/* The pool of the current context. */
struct gpc_context *world_context(void);
struct gpucache_counters world_counters(void);
#define COUNTER(name) (world_counters().name)

/* The i-th OOM of the recording, from 0. */
const struct gpucache_oom *world_oom(unsigned i);

#define MIB ((size_t)1 << 20)

/* Checks in these helpers report the line of the test: unit.h. */
#ifndef WORLD_ITSELF
#define world_run(...)           AT(world_run(__VA_ARGS__))
#define world_run_to(...)        AT(world_run_to(__VA_ARGS__))
#define world_assert_says(...)   AT(world_assert_says(__VA_ARGS__))
#define world_assert_is_silent() AT(world_assert_is_silent())
#define world_init()             AT(world_init())
#define world_start()            AT(world_start())
#define world_sync()             AT(world_sync())
#define world_stream()           AT(world_stream())
#define world_reset()            AT(world_reset())
#define world_context()          AT(world_context())
#define world_counters()         AT(world_counters())
#define world_oom(...)           AT(world_oom(__VA_ARGS__))
#endif

#endif
