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

#include "alloc/barrier.h"
#include "base/thread.h"
#include "driver/cuda_fns.h"
#include "gpucache.h"
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
static inline void gpc_runtime_leave(void)
{
	gpc_thread_leave();
}

/*
 * The program called cuInit, for the first time and with success, before anything else: every
 * stream will be seen.
 */
void gpc_runtime_saw_start(void);

/* Plain device memory: cuMemAlloc, cuMemFree, cuMemFreeAsync, cuMemGetInfo. */
CUresult gpc_runtime_malloc(CUdeviceptr *ret_ptr, size_t size);
CUresult gpc_runtime_free(CUdeviceptr ptr, bool *ret_is_ours);
CUresult gpc_runtime_free_async(CUdeviceptr ptr, CUstream stream, bool *ret_is_ours);

/*
 * In a child: a block of its parent's cache.  After a raw clone, which no handler sees, the driver
 * still holds the parent's handles and would free the segment, for the parent, too.
 */
bool gpc_runtime_is_of_parent(CUdeviceptr ptr);
void gpc_runtime_adjust_free(size_t *available, size_t *total);

/*
 * The same where the program names the stream (alloc/stream_order.h).  A use by other streams than
 * the one that its free will name; not ours: memory of the driver, whose free waits for all.
 */
CUresult gpc_runtime_malloc_on(CUdeviceptr *ret_ptr, size_t size, CUstream stream);
CUresult gpc_runtime_free_on(CUdeviceptr ptr, CUstream stream, bool *ret_is_ours);
CUresult gpc_runtime_record_use(CUdeviceptr ptr, bool *ret_is_ours);

/* What the C API asks besides (gpucache.h).  A device of -1 is that of the current context. */
CUresult gpc_runtime_trim(int device, size_t bytes, size_t *ret_bytes);
CUresult gpc_runtime_stats(int device, struct gpucache_stats *ret_stats);
CUresult gpc_runtime_snapshot(char *ret_path, size_t size);
CUresult gpc_runtime_set_limit(int device, uint64_t bytes);
CUresult gpc_runtime_set_fraction(int device, double fraction);
void gpc_runtime_set_oom_handler(gpucache_oom_handler handler, void *arg);
CUresult gpc_runtime_segment_of(CUdeviceptr ptr, CUdeviceptr *ret_base, size_t *ret_size);

/*
 * Ranges that the program names (stack/tags.h), of this thread; without entering, at any time.
 * push and pop give the level of the range within its domain.
 */
uint32_t gpc_runtime_tag_push(uint32_t domain, const char *name);
bool gpc_runtime_tag_pop(uint32_t domain, uint32_t *ret_level);
uint32_t gpc_runtime_tag_domain(const char *name);
uint32_t gpc_runtime_tag_string(const char *text);
const char *gpc_runtime_tag_name(uint32_t id);
bool gpc_runtime_wants_tags(void); /* false: we are switched off */

/*
 * Makes a context of this device current where none is: its primary one.  *ret_must_pop: to be
 * undone by gpc_runtime_leave_device.
 */
CUresult gpc_runtime_enter_device(int device, bool *ret_must_pop);
void gpc_runtime_leave_device(bool must_pop);

/*
 * An allocation that the driver makes and we only track.  `call` makes it, again and again as the
 * ladder climbs, and says where it lies and how large it is.
 */
struct gpc_passed_call {
	CUresult (*make)(struct gpc_passed_call *call);
	enum gpucache_kind kind;
	uint32_t pool;        /* of gpc_runtime_pool_malloc */
	size_t size;          /* bytes asked for; 0: nothing to track */
	uint64_t ret_address; /* written by make on success, with ret_size; or a handle */
	uint64_t ret_size;
};

CUresult gpc_runtime_passed_malloc(struct gpc_passed_call *call);

/*
 * The same for what belongs to a device and to no context; -1: the current one, or the first.
 * It may come without a current context, and outlives all of them.
 */
CUresult gpc_runtime_passed_malloc_of_device(struct gpc_passed_call *call, int device);

/*
 * A tracked allocation goes: before the driver's call, and where that failed.  _key: of a kind that
 * is known by a handle, or by an address that may be another allocation's as well.
 */
struct gpc_tracked;
struct gpc_tracked *gpc_runtime_forget(uint64_t address);
struct gpc_tracked *gpc_runtime_forget_key(enum gpucache_kind kind, uint64_t key);
void gpc_runtime_forgotten(struct gpc_tracked *tracked, CUresult result);

/*
 * Physical memory lives until the last holder of its handle and the last mapping went (physical.c).
 * After the driver's call, which succeeded: the handle is new, whatever had that number before went
 * unseen; somebody retained or imported it; it was mapped.
 */
void gpc_runtime_handle_created(uint64_t handle);
void gpc_runtime_handle_held(uint64_t handle);
void gpc_runtime_handle_mapped(uint64_t handle, uint64_t address, uint64_t size);

/* cuMemRelease and cuMemUnmap: the first before the driver's call, end_parting after it. */
struct gpc_parting {
	uint64_t handle; /* whose holder went; 0: none */
	struct gpc_tracked *tracked;
	struct gpc_mapping *mappings;
};
struct gpc_parting gpc_runtime_begin_release(uint64_t handle);
struct gpc_parting gpc_runtime_begin_unmap(uint64_t address, uint64_t size);
void gpc_runtime_end_parting(struct gpc_parting parting, CUresult result);

/*
 * Stream-ordered memory, of this pool of the driver; NULL: the current one of the stream's device.
 * Sets call->kind.  Not for a stream that is captured: there the call adds a node, and whoever
 * launches the graph gets the memory.
 */
CUresult gpc_runtime_pool_malloc(struct gpc_passed_call *call, CUmemoryPool pool, CUstream stream);
bool gpc_runtime_is_captured(CUstream stream);

/*
 * Pools: one that the program made or was given; before one is destroyed, and where the driver
 * refused that; one that a device uses.
 */
void gpc_runtime_pool_seen(CUmemoryPool pool, CUmemLocation location, CUmemAllocationType type);
void gpc_runtime_pool_destroyed(CUmemoryPool pool);
void gpc_runtime_pool_kept(CUmemoryPool pool);
void gpc_runtime_pool_made_current(CUdevice device, CUmemoryPool pool);

/* What the pools or graphs of the current device reserve has changed. */
void gpc_runtime_pools_changed(void);

/* A graph can be launched now, and may hold memory; the first launch after that looks. */
void gpc_runtime_graph_made(void);
extern bool gpc_runtime_graph_is_new;

/* Memory of another process is open at this address. */
void gpc_runtime_imported(CUdeviceptr ptr);

/*
 * A call ran out of memory, and nobody knows of how much: everything idle of the current device
 * goes back.  False: there is nothing that could be tried.
 */
bool gpc_runtime_make_room(void);

/*
 * A call for which the driver takes memory that nobody names: it is measured, and booked under the
 * handle that the call gave.  `make` as above.
 */
struct gpc_implicit_call {
	CUresult (*make)(struct gpc_implicit_call *call);
	enum gpucache_kind kind;
	int device; /* the handle will be a new context of this device; -1: for the current one */
	/* The handle is a number in the current context; the next call of it adds, or takes away. */
	bool is_limit;
	uint64_t ret_handle; /* written by make on success */
};

CUresult gpc_runtime_implicit(struct gpc_implicit_call *call);

/*
 * The driver takes or gives back memory of its own, and nobody measures it: a module is unloaded, a
 * context ends with all that it holds, a green one may begin its primary.  Until the second call
 * nothing is measured there.  NULL: the current context; -1: the device is not known.
 */
int gpc_runtime_begin_unmeasured(CUcontext context);
void gpc_runtime_begin_unmeasured_on(int device);
void gpc_runtime_end_unmeasured(int device);

/* The primary context of the device exists: a retain takes nothing. */
bool gpc_runtime_primary_is_active(CUdevice device);

/* The program waits for a whole context: NULL is the current one.  The second after its call. */
struct gpc_sync {
	void *context;
	uint64_t number;
};
struct gpc_sync gpc_runtime_begin_sync(CUcontext context);
void gpc_runtime_end_sync(struct gpc_sync sync, CUresult result);

/*
 * The driver answered a call of the program with this error: where it means that the current
 * context is broken, its cache says so from now on, as the driver does.
 */
void gpc_runtime_heard(CUresult result);

/*
 * Contexts.  Whether a release was the last only the driver knows: not every retain passes us.  So
 * it is asked after each, and retains, releases and resets of one device are made one at a time,
 * between begin and end: a retain in between would give a dead context a second life unseen.
 */
void gpc_runtime_primary_begin(CUdevice device);
void gpc_runtime_primary_end(CUdevice device);
void gpc_runtime_primary_retained(CUcontext context, CUdevice device);
void gpc_runtime_primary_released(CUdevice device);
void gpc_runtime_primary_forget(CUdevice device);
void gpc_runtime_primary_reset(CUdevice device);
void gpc_runtime_context_forget(CUcontext context);
void gpc_runtime_peer_enabled(CUcontext of_memory);

/* Deprecated, and counted: the last cuCtxDetach, also of one that was never attached, destroys. */
void gpc_runtime_context_attached(void);
void gpc_runtime_context_detached(CUcontext context);

/*
 * A green context is about to be made; and about to end, with a reference to the primary context of
 * the device that is returned (-1: not known).
 */
void gpc_runtime_green_begins(void);
CUdevice gpc_runtime_green_ends(CUgreenCtx green);

/* The program makes a context beside those that the devices have. */
void gpc_runtime_context_created(void);

/*
 * Work on `stream` is about to be submitted that touches these two addresses: by unified addressing
 * a copy reaches memory of contexts that are no peers.  GPC_ANYWHERE as the first: nobody knows
 * what it touches.
 */
#define GPC_ANYWHERE ((CUdeviceptr)-1)
void gpc_runtime_reached(CUstream stream, CUdeviceptr dst, CUdeviceptr src);

/*
 * Before work is submitted to this stream, and before the program looks how far the device is: where
 * gpc_runtime_duties says that there is something to do (alloc/barrier.h).
 */
void gpc_runtime_submits(CUstream stream);
void gpc_runtime_looks(CUstream stream);

/* Streams and captures.  A new stream is not yet in anybody's hands. */
void gpc_runtime_stream_created(CUstream stream);
void gpc_runtime_stream_destroyed(CUstream stream);
void gpc_runtime_per_thread_stream_used(void);

/*
 * A kernel is about to be launched that may overlap the one before it in its stream: that is no order, and
 * the one-stream rule (alloc/fence.h) ends in every context.  What it let through is put behind a barrier,
 * or, without barriers, waited for.
 */
void gpc_runtime_overlap_used(void);
void gpc_runtime_capture_begins(CUstream stream);
void gpc_runtime_capture_ended(CUstream stream);

/*
 * Memory that other processes open by handle.  The real functions are the driver's.
 *
 * A block that starts its segment has the driver's handle; one further inside gets a tag
 * (ipc_registry.h), or, where that cannot be, an error and a line on stderr.
 */
CUresult gpc_runtime_ipc_export(CUipcMemHandle *ret_handle, CUdeviceptr ptr,
	CUresult (*real)(CUipcMemHandle *, CUdeviceptr));
CUresult gpc_runtime_ipc_open(CUdeviceptr *ret_ptr, CUipcMemHandle handle, unsigned int flags,
	CUresult (*real)(CUdeviceptr *, CUipcMemHandle, unsigned int),
	CUresult (*real_close)(CUdeviceptr));
CUresult gpc_runtime_ipc_close(CUdeviceptr ptr, CUresult (*real_close)(CUdeviceptr));

/*
 * The program asks in which allocation `ptr` lies.  The truth is the driver's, and a base that it tells
 * binds us: false, ask it.  True: this is a block with a handle of its own, or what such a handle
 * opened, and everybody takes it for an allocation.
 */
bool gpc_runtime_ipc_range(
	CUdeviceptr ptr, bool is_base_told, CUdeviceptr *ret_base, size_t *ret_size);

/*
 * tensors.c: PyTorch's allocator handed out `size` bytes, or took -size back, and says what it then has
 * on that device; it could not hand out so many; physical memory that it made is an arena of its own.
 */
void gpc_runtime_tensor(int device, uint64_t address, int64_t size, uint64_t allocated_bytes,
	uint64_t reserved_bytes);
void gpc_runtime_tensor_failed(
	int device, int64_t size, uint64_t allocated_bytes, uint64_t reserved_bytes);
void gpc_runtime_arena_created(CUmemGenericAllocationHandle handle);

/*
 * Somebody whom no stream orders is about to reach this memory: another process, a network card.  So no
 * work of an earlier owner may still run: ends the one-stream rule of its context (alloc/fence.h), and
 * waits on the host for what that rule let through.
 */
void gpc_runtime_leaves_order(CUdeviceptr ptr);

/* The same, and others will hold the memory: its segment is never recycled from here on. */
void gpc_runtime_exported(CUdeviceptr ptr);

/*
 * True from the first use of a per-thread default stream on; read by the stream hooks without
 * entering.
 */
extern bool gpc_runtime_per_thread_seen;

/* The same from the first launch on whose kernel may overlap the one before it in its stream. */
extern bool gpc_runtime_overlap_seen;

/*
 * True where the process may have more than one context: only then work can touch another one's
 * memory.  Read by the hooks of copies without entering.
 */
extern bool gpc_runtime_many_contexts;

/* What the contexts owe for frees; read by the hooks without entering. */
extern struct gpc_duties gpc_runtime_duties;

/*
 * The process ends and no handler will run.  Takes no lock, so that it may be called in a signal
 * handler; does nothing in a child of fork or vfork.
 */
void gpc_runtime_at_exit_without_handlers(void);

#endif
