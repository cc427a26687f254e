/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C API of gpucache: stream-ordered allocation, limits, statistics, tags, and a handler that runs before an
 * out-of-memory error is returned.  C99 and C++.
 *
 * This header is optional: with libgpucache.so preloaded, cudaMalloc and cudaFree use the same cache.  A program that
 * names the stream of an allocation and its free need not wait for the device: memory that was freed on a stream can be
 * reused on that stream at once.
 *
 *      gpucache_free_on(p, s)            stream s can reuse p at once, other streams once the device is done
 *      gpucache_malloc_on(&p, size, s)   allocates for stream s, if possible from what s freed
 *      gpucache_record_use(p, s2)        s2 uses p, too: after its free, p is reused once all streams are done
 *
 * Link with -lgpucache before the CUDA libraries, so that the library sees the program's streams, or preload it.  The
 * library initializes itself at the first CUDA call.
 *
 * Sizes     Bytes, everywhere.  Memory is aligned to 512 bytes.
 * Errors    Every function that returns int returns 0 or a CUresult of the driver; gpucache_error_text names it.
 *           Outputs are written only on success.  All of these except the tag functions return
 *           GPUCACHE_ERROR_NOT_INITIALIZED before the program has initialized CUDA, and GPUCACHE_ERROR_INVALID_CONTEXT
 *           if they need a current context and there is none.  Like any CUDA call, each may return an error of
 *           earlier asynchronous work.
 * Threads   All functions are thread-safe.  None may be called from a host callback of a stream.
 * Limits    With GPUCACHE=0, and in a child of fork, memory comes from the driver, and functions that need the cache
 *           return GPUCACHE_ERROR_NOT_SUPPORTED.
 *
 * Every example below is compiled and run by tests/programs/api.c, where ok() exits unless its argument is 0.
 */
#ifndef GPUCACHE_H
#define GPUCACHE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUCACHE_API __attribute__((visibility("default")))

/* A CUstream or cudaStream_t; NULL is the legacy default stream.  No CUDA header is needed. */
struct CUstream_st;

/* The errors that these functions return on their own; the values are CUDA's. */
enum gpucache_error {
	GPUCACHE_SUCCESS = 0,
	GPUCACHE_ERROR_INVALID_VALUE = 1,
	GPUCACHE_ERROR_OUT_OF_MEMORY = 2,
	GPUCACHE_ERROR_NOT_INITIALIZED = 3,
	GPUCACHE_ERROR_INVALID_DEVICE = 101,
	GPUCACHE_ERROR_INVALID_CONTEXT = 201,
	GPUCACHE_ERROR_NOT_SUPPORTED = 801,
};

/*
 * Returns the name of an error, a static string; never NULL.
 *
 * Example
 *     void *memory = NULL;
 *     int error = gpucache_malloc(&memory, 0);
 *     printf("%s\n", gpucache_error_text(error));
 */
GPUCACHE_API const char *gpucache_error_text(int error);

/*
 * Allocates `size` > 0 bytes on the device of the current context, for use on any stream, like cudaMalloc.
 *
 * GPUCACHE_ERROR_INVALID_VALUE: size is 0 or ret_ptr is NULL.  GPUCACHE_ERROR_OUT_OF_MEMORY: every
 * rung of the ladder in docs/inside/FAILURES.md has failed.
 */
GPUCACHE_API int gpucache_malloc(void **ret_ptr, size_t size);

/*
 * Frees memory from any allocation function here, or from cudaMalloc.  Unlike cudaFree it does not
 * wait for the device: the memory is reused only after all work submitted so far has completed.  NULL
 * is allowed.  GPUCACHE_ERROR_INVALID_VALUE: not the start of a live allocation.
 *
 * Example
 *     void *buffer = NULL;
 *     ok(gpucache_malloc(&buffer, 1 << 20));
 *     ok(gpucache_free(buffer));
 */
GPUCACHE_API int gpucache_free(void *ptr);

/*
 * As gpucache_malloc, for one stream of the current context.  The caller promises that every use of the memory is on
 * this stream, or is ordered by events after this point of the stream.
 */
GPUCACHE_API int gpucache_malloc_on(void **ret_ptr, size_t size, struct CUstream_st *stream);

/*
 * As gpucache_free.  The caller promises that every use of the memory was on this stream, is ordered by events before
 * this point of the stream, or was declared by gpucache_record_use.  The next gpucache_malloc_on of the same stream may
 * reuse the memory at once.  Any other request may reuse it after all work submitted so far has completed.
 *
 * Acts as gpucache_free while a stream capture is open, for cudaStreamPerThread, for a stream that was created before
 * gpucache was loaded, and for NULL once the program uses per-thread default streams.
 *
 * Example
 *     void *scratch = NULL;
 *     ok(gpucache_malloc_on(&scratch, 1 << 20, stream));
 *     ok(cudaMemsetAsync(scratch, 0, 1 << 20, stream));
 *     ok(gpucache_free_on(scratch, stream));
 */
GPUCACHE_API int gpucache_free_on(void *ptr, struct CUstream_st *stream);

/*
 * Declares that a second stream, of the same context, uses this live memory.  gpucache_free_on of the memory then acts
 * as gpucache_free: the memory is reused after all streams of the context have completed their work.
 * GPUCACHE_ERROR_INVALID_VALUE: not the start of a live allocation.
 *
 * Example
 *     void *shared = NULL;
 *     ok(gpucache_malloc_on(&shared, 1 << 20, stream));
 *     ok(gpucache_record_use(shared, other_stream));
 *     ok(cudaMemsetAsync(shared, 0, 1 << 20, other_stream));
 *     ok(gpucache_free_on(shared, stream));
 */
GPUCACHE_API int gpucache_record_use(void *ptr, struct CUstream_st *stream);

/*
 * Returns idle segments of the current device to the driver, until at least `bytes` are returned or none is left;
 * SIZE_MAX returns all.  Does not wait for the device, and keeps memory that the device may still use: synchronize
 * first to return everything.  *ret_bytes (may be NULL): bytes returned.
 *
 * Example
 *     size_t gone = 0;
 *     ok(cudaDeviceSynchronize());
 *     ok(gpucache_trim(SIZE_MAX, &gone));
 *     printf("%zu bytes went back to the driver\n", gone);
 */
GPUCACHE_API int gpucache_trim(size_t bytes, size_t *ret_bytes);

/* Statistics of one device, summed over all contexts of this process.  Later versions only add fields. */
struct gpucache_stats {
	size_t size; /* the caller sets sizeof(struct gpucache_stats), the call sets the bytes filled */
	/* Bytes now: live + pending + cached = reserved. */
	uint64_t requested_bytes; /* live, as requested */
	uint64_t live_bytes;      /* live, rounded up */
	uint64_t pending_bytes;   /* freed, but submitted work may still use it */
	uint64_t cached_bytes;    /* free in segments of the cache */
	uint64_t reserved_bytes;  /* segments taken from the driver */
	uint64_t direct_bytes;    /* device memory that is not in the cache */
	uint64_t limit_bytes;     /* as set by gpucache_set_limit; 0: none */
	/* Peaks since start or gpucache_reset_peaks.  With several contexts, their sum: an upper bound. */
	uint64_t peak_requested_bytes;
	uint64_t peak_live_bytes;
	uint64_t peak_reserved_bytes;
	/* Calls since the start. */
	uint64_t n_malloc;
	uint64_t n_free;
	uint64_t n_hit; /* served without a driver allocation */
	uint64_t n_driver_malloc;
	uint64_t n_driver_free;
	uint64_t n_oom;     /* failures returned to the program */
	uint64_t n_rescued; /* requests that succeeded only after the ladder */
};

/*
 * Reads the statistics of device `device`, a CUDA ordinal; -1: the current one.  Other threads keep
 * running, so the fields may belong to slightly different moments.
 *
 * GPUCACHE_ERROR_INVALID_VALUE: stats->size is below that of the first version.
 *
 * Example
 *     struct gpucache_stats stats;
 *     stats.size = sizeof stats;
 *     ok(gpucache_stats(-1, &stats));
 *     printf("%llu bytes live\n", (unsigned long long)stats.live_bytes);
 */
GPUCACHE_API int gpucache_stats(int device, struct gpucache_stats *stats);

/*
 * Restarts the peaks of gpucache_stats from the current values.  The recording keeps the peaks since
 * the start.
 *
 * Example
 *     ok(gpucache_reset_peaks(-1));
 */
GPUCACHE_API int gpucache_reset_peaks(int device);

/* The live memory of a stream or tag, in bytes as requested.  Later versions only add fields. */
struct gpucache_part_stats {
	size_t size; /* the caller sets sizeof(struct gpucache_part_stats), the call sets the bytes filled */
	uint64_t live_bytes;
	uint64_t n_blocks;
};

/*
 * Counts the live memory that gpucache_malloc_on, or gpucache_torch_malloc, allocated for this stream.  The result is 0
 * for a stream for which gpucache_free_on acts as gpucache_free.  Walks every block under the pool's lock, which takes
 * too long to be called in every training step.
 *
 * GPUCACHE_ERROR_INVALID_VALUE: stats->size is below that of the first version.
 *
 * Example
 *     struct gpucache_part_stats part;
 *     part.size = sizeof part;
 *     ok(gpucache_stream_stats(-1, stream, &part));
 *     printf("%llu bytes of this stream\n", (unsigned long long)part.live_bytes);
 */
GPUCACHE_API int gpucache_stream_stats(
	int device, struct CUstream_st *stream, struct gpucache_part_stats *stats);

/*
 * Counts the live memory, in the cache or not, that was allocated inside a range of this name, at any depth
 * (gpucache_tag_push).  Reads the recording, so blocks that found no slot there are not counted.
 *
 * GPUCACHE_ERROR_NOT_SUPPORTED: there is no recording.  GPUCACHE_ERROR_INVALID_VALUE: stats->size is below that of the
 * first version, or name is NULL or "".
 *
 * Example
 *     struct gpucache_part_stats part;
 *     part.size = sizeof part;
 *     ok(gpucache_tag_stats(-1, "forward", &part));
 *     printf("%llu bytes of forward\n", (unsigned long long)part.live_bytes);
 */
GPUCACHE_API int gpucache_tag_stats(
	int device, const char *name, struct gpucache_part_stats *stats);

/*
 * Updates the recording: queries the free memory of each device with a context, and adds a point to its history.
 * Writes the path of the recording, which may be copied or given to gpumem-report, or "" if there is no recording.
 * ret_path may be NULL.  GPUCACHE_ERROR_INVALID_VALUE: the path and its NUL do not fit into `size` bytes (4096
 * suffice).
 *
 * Example
 *     char path[4096];
 *     ok(gpucache_snapshot(path, sizeof path));
 *     printf("gpumem-report summary %s\n", path);
 */
GPUCACHE_API int gpucache_snapshot(char *ret_path, size_t size);

/*
 * Limits the memory that this process takes from a device (-1: the current one); 0: no limit.  Idle memory above the
 * limit is returned to the driver.  Live memory is kept; while it exceeds the limit, requests fail.
 *
 * Example
 *     ok(gpucache_set_limit(-1, (uint64_t)2 << 30));
 */
GPUCACHE_API int gpucache_set_limit(int device, uint64_t bytes);

/*
 * Called when a request for `wanted` bytes of `device` is about to fail, after gpucache has trimmed its cache.  The
 * handler frees what the program can spare, and returns nonzero if it freed anything; the request is then retried once.
 * It may call gpucache and CUDA; if a request of the handler fails, the handler is not called again.  It runs in the
 * requesting thread, concurrently if several threads fail, and must return (no longjmp, no exception).
 */
typedef int (*gpucache_oom_handler)(void *arg, size_t wanted, int device);

/*
 * Replaces the handler of the process; NULL removes it.  Another thread may still be running the old handler.  Works at
 * any time, also before CUDA is initialized.
 *
 * Example
 *     gpucache_set_oom_handler(drop_caches, &caches);
 */
GPUCACHE_API void gpucache_set_oom_handler(gpucache_oom_handler handler, void *arg);

/*
 * Begins a range: until gpucache_tag_pop, all allocations of this thread have the tag `name` in the recording.  Ranges
 * nest: "train/step" is step inside train.  NVTX ranges of the thread have the same effect (docs/user/API.md), and both
 * kinds may nest in each other.
 *
 * Works at any time, also before CUDA is initialized; with GPUCACHE=0 it has no effect.  The first 76 bytes of `name`
 * (UTF-8) are kept.  Beyond 32 levels, or some thousand names in all, allocations get the tag of the enclosing range.
 * If many names differ only in digits ("step 412"), later ones share "step *".  GPUCACHE_ERROR_INVALID_VALUE: name is
 * NULL or "".
 *
 * Example
 *     void *activations = NULL;
 *     ok(gpucache_tag_push("forward"));
 *     ok(cudaMalloc(&activations, 1 << 20));
 *     ok(gpucache_tag_pop());
 */
GPUCACHE_API int gpucache_tag_push(const char *name);

/* Ends the innermost range of this thread.  GPUCACHE_ERROR_INVALID_VALUE: there is none. */
GPUCACHE_API int gpucache_tag_pop(void);

/*
 * The functions for torch.cuda.memory.CUDAPluggableAllocator("libgpucache.so.0", "gpucache_torch_malloc",
 * "gpucache_torch_free").  They follow PyTorch's conventions: size 0 yields NULL, and freeing NULL is a no-op.  In
 * PyTorch a failure raises torch.OutOfMemoryError (RuntimeError for any other driver error); any other caller gets
 * NULL. `device` is made current for the call.
 *
 * Preload the library, too.  If it is loaded later, it misses streams and stream captures: memory of such a stream is
 * reused only when the device is done, and our events would break such a capture.
 *
 * Example
 *     void *tensor = gpucache_torch_malloc(1 << 20, 0, stream);
 *     gpucache_torch_record_stream(tensor, other_stream);
 *     gpucache_torch_free(tensor, 1 << 20, 0, stream);
 */
GPUCACHE_API void *gpucache_torch_malloc(size_t size, int device, struct CUstream_st *stream);
GPUCACHE_API void gpucache_torch_free(
	void *ptr, size_t size, int device, struct CUstream_st *stream);

/* For set_record_stream_fn: as gpucache_record_use. */
GPUCACHE_API void gpucache_torch_record_stream(void *ptr, struct CUstream_st *stream);

/* For set_reset_fn: as gpucache_trim(SIZE_MAX) on every device. */
GPUCACHE_API void gpucache_torch_reset(void);

/* For set_memory_fraction_fn: as gpucache_set_limit, with a fraction of the device's memory, 0 to 1; 1: no limit. */
GPUCACHE_API void gpucache_torch_memory_fraction(double fraction, int device);

/*
 * For set_base_alloc_fn: returns the base of the segment that contains ptr, and its size in *ret_size.  If ptr is not
 * in the cache, returns ptr and size 0.
 */
GPUCACHE_API void *gpucache_torch_base_alloc(void *ptr, size_t *ret_size);

#ifdef __cplusplus
}
#endif

#endif
