/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime: the one object of the process, and all that the hooks call.
 *
 *     hooks --> enter --> malloc, free, ... --> leave
 *                |             |
 *                |             +--> contexts.h   the pool of the current context
 *                |             +--> track.h      what is not cached
 *                |             +--> observe.h    the recording hears of every block
 *                |             '--> rescue.h     the ladder, and the report when it did not help
 *                '-- false: this call is not for us: straight to the driver
 *
 *      ARMED --first CUDA call--> RUNNING --broken, switched off--> PASS
 *                                    '--fork--> the child passes everything to the driver
 *
 * Threads   Any.  enter/leave guard against ourselves: what the driver calls back while we are
 *           inside passes.
 * Failure   Results are CUresult, the driver's own wherever the driver was asked.  Nothing here
 *           ends or hangs the process.
 */
#ifndef GPC_RUNTIME_RUNTIME_H
#define GPC_RUNTIME_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_fns.h"
#include "gpucache_format.h"

/* What the preload layer lends: the real entry points, and the real loader. */
struct gpc_runtime_loader {
	const struct gpc_cuda_fns *fns;
	void *(*open)(const char *library);                  /* dlopen, local */
	void *(*lookup)(const char *name);                   /* dlsym(RTLD_DEFAULT, name) */
	void *(*lookup_in)(void *library, const char *name); /* dlsym */
};

/*
 * Enters.  True: the call is ours, and gpc_runtime_leave follows.  Starts the library at the first
 * call, for which `loader` is asked; it may return NULL: no driver yet, then the answer is false.
 */
bool gpc_runtime_enter(const struct gpc_runtime_loader *(*loader)(void));
void gpc_runtime_leave(void);

/*
 * The program called cuInit, for the first time and with success, before anything else: every
 * stream will be seen.
 */
void gpc_runtime_saw_start(void);

/* Plain device memory: cuMemAlloc, cuMemFree, cuMemFreeAsync, cuMemGetInfo. */
CUresult gpc_runtime_malloc(CUdeviceptr *ret_ptr, size_t size);
CUresult gpc_runtime_free(CUdeviceptr ptr, bool *ret_is_ours);
void gpc_runtime_adjust_free(size_t *available, size_t *total);

/*
 * An allocation that the driver makes and we only track.  `call` makes it, again and again as the
 * ladder climbs, and says where it lies and how large it is.
 */
struct gpc_passed_call {
	CUresult (*make)(struct gpc_passed_call *call);
	enum gpucache_kind kind;
	size_t size;          /* bytes asked for */
	uint64_t ret_address; /* written by make on success, with ret_size */
	uint64_t ret_size;
};

CUresult gpc_runtime_passed_malloc(struct gpc_passed_call *call);

/* A tracked allocation goes: before the driver's call, and where that failed. */
struct gpc_tracked;
struct gpc_tracked *gpc_runtime_forget(uint64_t address);
void gpc_runtime_forgotten(struct gpc_tracked *tracked, CUresult result);

/* The program waits for a whole context: NULL is the current one.  The second after its call. */
struct gpc_sync {
	void *context;
	uint64_t number;
};
struct gpc_sync gpc_runtime_begin_sync(CUcontext context);
void gpc_runtime_end_sync(struct gpc_sync sync, CUresult result);

/* Contexts. */
void gpc_runtime_primary_retained(CUcontext context, CUdevice device);
void gpc_runtime_primary_released(CUdevice device);
void gpc_runtime_primary_forget(CUdevice device);
void gpc_runtime_context_forget(CUcontext context);
void gpc_runtime_peer_enabled(CUcontext of_memory);

/* Streams and captures.  A new stream is not yet in anybody's hands. */
void gpc_runtime_stream_created(CUstream stream);
void gpc_runtime_stream_destroyed(CUstream stream);
void gpc_runtime_per_thread_stream_used(void);
void gpc_runtime_capture_begins(CUstream stream);
void gpc_runtime_capture_ended(CUstream stream);

/*
 * cuIpcGetMemHandle of this address: true where the driver may be asked.  False: the address lies
 * inside one of our segments, and a handle would lead the importer to other memory; said in one
 * line.
 */
bool gpc_runtime_may_export(CUdeviceptr ptr);

/*
 * True from the first use of a per-thread default stream on; read by the stream hooks without
 * entering.
 */
extern bool gpc_runtime_per_thread_seen;

#endif
