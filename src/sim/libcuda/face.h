/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the stand-in libcuda.so.1: the machine, the calling thread's context, the entry of every call.
 *
 * Most entry points start with face_enter, which spends the call's cost, injects the faults that GPUSIM requests, and
 * returns the real driver's error if the process has not called cuInit (3) or is ending (4), if the thread is in a host
 * function (800), or if the call needs a current context and that is missing (201) or broken.
 *
 *      cuMemAlloc_v2 --> face_enter(cost, "cuMemAlloc_v2", &context) --> src/sim/gpu
 *
 * Invariants  1 A handle is the address of an object of src/sim/gpu or of this folder.
 *             2 The struct of a destroyed context is kept, and calls on it return 709: a stale handle is an error, not
 *               a crash.
 * Threads     Any.
 * Failure     The driver's codes.
 * Limits      After a fork of a process that called cuInit, every call in the child returns 3, as with the real driver.
 */
#ifndef SIMCUDA_FACE_H
#define SIMCUDA_FACE_H

#include <stdbool.h>

#define SIMCUDA_NO_NAME_MACROS
#pragma GCC visibility push(default)
#include <cuda.h>
#include <gpusim.h>
#pragma GCC visibility pop

#include "sim/gpu/execution/capture.h"
#include "sim/gpu/execution/stream.h"
#include "sim/gpu/memory/image.h"

/* The stream that NULL means. */
enum face_null {
	FACE_LEGACY,
	FACE_PER_THREAD
};

/*
 * Defines an entry point and its variant with `suffix`.  The expression `call` may use the parameters, `null`,
 * `entry`.
 */
#define FACE_PAIR(name, suffix, params, call)                \
	CUresult name params                                 \
	{                                                    \
		const char *const entry = #name;             \
		const enum face_null null = FACE_LEGACY;     \
		return call;                                 \
	}                                                    \
	CUresult name##suffix params                         \
	{                                                    \
		const char *const entry = #name #suffix;     \
		const enum face_null null = FACE_PER_THREAD; \
		return call;                                 \
	}

/* The machine, created on first use from GPUSIM.  Never NULL. */
struct gpc_sim *face_sim(void);

/* Begins a call.  ret_context NULL: the call needs no context. */
CUresult face_enter(
	enum gpc_sim_cost cost, const char *entry, struct gpc_sim_context **ret_context);

/* The stream of a handle in the calling thread's context; NULL if invalid. */
struct gpc_sim_stream *face_stream(
	struct gpc_sim_context *context, CUstream stream, enum face_null null);

/* True for the number of a device that the program sees. */
static inline bool face_has_device(CUdevice dev)
{
	return dev >= 0 && (unsigned)dev < face_sim()->config.n_devices;
}

/* Begins a call on a device, which needs no context. */
CUresult face_enter_device(const char *entry, CUdevice dev);

/* Like face_enter, and finds the call's stream. */
CUresult face_enter_stream(enum gpc_sim_cost cost, const char *entry, CUstream stream,
	enum face_null null, struct gpc_sim_stream **ret_stream);

/* The event of a handle; NULL if there is none. */
struct gpc_sim_event *face_event(CUevent event);

struct gpc_sim_context *face_context(CUcontext context);
CUcontext face_context_handle(struct gpc_sim_context *context);

/* The handle of a green context; NULL for other contexts. */
static inline CUgreenCtx face_green_handle(struct gpc_sim_context *context)
{
	return context->primary ? (CUgreenCtx)(void *)context : NULL;
}
struct gpc_sim_context *face_current(void);

/* Adds a reference to the primary context of a valid device. */
CUresult face_primary_retain(unsigned device, struct gpc_sim_context **ret_context);

/* Drops a reference to the primary context of a valid device. */
CUresult face_primary_release(unsigned device);

/* Pops the context off the calling thread's stack, if it is current.  Call before it ends. */
void face_leave(const struct gpc_sim_context *context);

/* Host memory known to the driver. */
enum face_host_kind {
	FACE_HOST_PINNED,
	FACE_HOST_REGISTERED,
	FACE_HOST_MANAGED
};

/* Frees the memory that a context took for modules and its heap. */
void face_loads_end(struct gpc_sim_context *context);

/* True for a loaded module or library; sets the versions of its code unless ret_image is NULL. */
bool face_is_module(const void *handle, struct gpc_sim_image *ret_image);

/* Forgets the kernels and globals of a module.  A global's device memory is freed with its context. */
void face_names_end(const void *module);

/* A kernel, or a graph that may have kernels, is launched: what is in memory may be a result from now on. */
void face_note_launch(void);
void face_note_graph(void);

/* What a copy or a fill writes is no result, until the next launch. */
void face_note_write(uint64_t ptr, uint64_t size);

/* True for memory that a copy or a fill wrote after the last launch, and for all before the first one. */
bool face_is_known(uint64_t ptr, uint64_t size);

/* The bytes of a larger copy to the host are no result on which the program branches. */
#define FACE_MAX_READ 64

/*
 * Counts a copy to the host if it reads a result, which no kernel computed.  True: the program is to read `size` bytes
 * of *ret_answer instead, as GPUSIM=reads: says; there is room for FACE_MAX_READ.
 */
bool face_note_read(uint64_t ptr, uint64_t size, char *ret_answer);

/* At the program's end: prints how many kernels were launched, and by what calls their results were read. */
void face_reads_close(void);

struct face_shape {
	unsigned int grid[3], block[3], shared;
};

/* Append a line to the log of GPUSIM=launches:FILE; do nothing without that option. */
void face_log_launch(
	const struct gpc_sim_stream *stream, CUfunction function, const struct face_shape *shape);
void face_log_copy(
	const struct gpc_sim_stream *stream, uint64_t bytes, bool to_host, bool from_host);

/* Appends the name to the log of GPUSIM=calls:FILE; does nothing without that option. */
void face_log_call(const char *entry);

/* At the program's end: prints what a GPU may have done otherwise. */
void face_close(const struct gpc_sim *sim);

/* Prints once that the private tables of cuGetExportTable are not supported. */
void face_note_export_table(void);

struct face_host {
	uint64_t base;
	uint64_t size;
	enum face_host_kind kind;
	unsigned flags;
	struct gpc_sim_context *context; /* may have ended */
	struct gpc_sim_device *device;   /* of managed memory */
};

/* Finds the host memory that contains `ptr`; false for pageable memory and device addresses. */
bool face_host_find(uint64_t ptr, struct face_host *ret_block);

/* Finds an array's rows; false if the handle is invalid, or if the array has no memory of its own. */
bool face_array_find(CUarray array, uint64_t *ret_base, uint64_t *ret_pitch);

/* Frees a buffer mapped from external memory, for cuMemFree. */
CUresult face_free_mapped(uint64_t ptr);

/* Frees pool, imported or graph memory, for cuMemFree, whose result is *ret_res.  False if `ptr` is none of these. */
bool face_pool_free(uint64_t ptr, CUresult *ret_res);

#endif
