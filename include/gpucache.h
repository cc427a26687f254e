/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpucache for programs that know it: memory by stream, limits, numbers, and a word before "out of
 * memory".  C99 and C++.
 *
 * Nobody needs this header: with libgpucache.so preloaded, cudaMalloc and cudaFree are answered by
 * the same cache.  A program that names the stream gets more, since memory that a stream freed may
 * go back to that stream at once, without waiting for the device:
 *
 *      gpucache_free_on(p, s)            p goes back to s at once, to others when the device is done
 *      gpucache_malloc_on(&p, size, s)   and this is how s gets it
 *      gpucache_record_use(p, s2)        s2 uses p, too: nobody gets it before the device is done
 *
 * Link with -lgpucache, before the CUDA libraries, so that it sees the program's streams; or link
 * nothing at run time but preload it.  The library starts by itself at the first CUDA call.
 *
 * Sizes     Bytes, everywhere.  Memory is aligned to 512 bytes.
 * Errors    Every function that returns int returns 0, or a CUresult of the driver;
 *           gpucache_error_text says it in words.  Outputs are written only on success.  All but
 *           those of tags return GPUCACHE_ERROR_NOT_INITIALIZED before the program initialised
 *           CUDA, and GPUCACHE_ERROR_INVALID_CONTEXT where no context is current.  An error of
 *           earlier device work may be returned by any of them, as by any CUDA call.
 * Threads   Any thread may call anything at any time, but not from a stream's host callback.
 * Limits    GPUCACHE=0 switches the cache off: then memory comes from the driver, and what cannot
 *           be answered returns GPUCACHE_ERROR_NOT_SUPPORTED.  So it is in a child of fork.
 *
 * Every example is compiled and run by the tests, as tests/programs/api.c; ok() there ends the
 * program where its argument is not 0.
 */
#ifndef GPUCACHE_H
#define GPUCACHE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUCACHE_API __attribute__((visibility("default")))

/* A CUstream or a cudaStream_t; NULL is the legacy default stream.  No header of CUDA is needed. */
struct CUstream_st;

/* The errors that the functions here return by themselves; the numbers are CUDA's. */
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
 * The name of an error of any of these functions; never NULL.  Lives for ever.
 *
 * Example
 *     void *memory = NULL;
 *     int error = gpucache_malloc(&memory, 0);
 *     printf("%s\n", gpucache_error_text(error));
 */
GPUCACHE_API const char *gpucache_error_text(int error);

/*
 * Gives `size` > 0 bytes of the current context's device, for any stream; as cudaMalloc.
 *
 * GPUCACHE_ERROR_INVALID_VALUE: size 0 or ret_ptr NULL.  GPUCACHE_ERROR_OUT_OF_MEMORY: after
 * everything that the ladder of docs/OUT-OF-MEMORY.md lists.
 */
GPUCACHE_API int gpucache_malloc(void **ret_ptr, size_t size);

/*
 * Takes back what any of the functions here, or cudaMalloc, gave; as cudaFree, but it does not wait
 * for the device: the memory is given to others after all work submitted so far is done.  NULL is
 * allowed.  GPUCACHE_ERROR_INVALID_VALUE: no memory starts there, or it was freed before.
 *
 * Example
 *     void *buffer = NULL;
 *     ok(gpucache_malloc(&buffer, 1 << 20));
 *     ok(gpucache_free(buffer));
 */
GPUCACHE_API int gpucache_free(void *ptr);

/*
 * As gpucache_malloc, for a stream of the current context.  The caller promises that every use of
 * the memory is on this stream, or ordered behind this moment of it by events.
 */
GPUCACHE_API int gpucache_malloc_on(void **ret_ptr, size_t size, struct CUstream_st *stream);

/*
 * As gpucache_free.  The caller promises that every use of the memory was on this stream, or is
 * ordered before this moment of it by events, or was told by gpucache_record_use.  The next
 * gpucache_malloc_on of the same stream may get the memory at once; anybody else gets it after all
 * work submitted so far is done.
 *
 * While a stream capture is open, for cudaStreamPerThread, and for a stream that was created where
 * gpucache could not see it, this is gpucache_free.  The same holds for NULL once the program uses
 * per-thread default streams.
 *
 * Example
 *     void *scratch = NULL;
 *     ok(gpucache_malloc_on(&scratch, 1 << 20, stream));
 *     ok(cudaMemsetAsync(scratch, 0, 1 << 20, stream));
 *     ok(gpucache_free_on(scratch, stream));
 */
GPUCACHE_API int gpucache_free_on(void *ptr, struct CUstream_st *stream);

/*
 * `stream` uses this live memory, too, beside the stream that its gpucache_free_on will name.  From
 * then on its free waits for the device's work on all streams of the context, as gpucache_free; so
 * `stream` must be one of the same context.  GPUCACHE_ERROR_INVALID_VALUE: no memory starts there.
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
 * Gives cached memory of the current device back to the driver, until at least `bytes` went or
 * nothing is idle; SIZE_MAX: all.  Does not wait for the device: what it may still use stays, so
 * synchronise first to give all.  *ret_bytes (may be NULL): what went.
 *
 * Example
 *     size_t gone = 0;
 *     ok(cudaDeviceSynchronize());
 *     ok(gpucache_trim(SIZE_MAX, &gone));
 *     printf("%zu bytes went back to the driver\n", gone);
 */
GPUCACHE_API int gpucache_trim(size_t bytes, size_t *ret_bytes);

/* The numbers of one device, all contexts of this process together.  Fields are only ever added. */
struct gpucache_stats {
	size_t size; /* set by the caller to sizeof(struct gpucache_stats); on return what was filled */
	/* Bytes at this moment: live + pending + cached = reserved. */
	uint64_t requested_bytes; /* what the program asked for and holds */
	uint64_t live_bytes;      /* the same, rounded */
	uint64_t pending_bytes;   /* freed, but work of the device may still use it */
	uint64_t cached_bytes;    /* free, kept by gpucache */
	uint64_t reserved_bytes;  /* taken from the driver by the cache */
	uint64_t direct_bytes;    /* device memory given by the driver and not cached */
	uint64_t limit_bytes;     /* as gpucache_set_limit; 0: none */
	/* Peaks since the start or gpucache_reset_peaks; of several contexts the sum, then only a bound. */
	uint64_t peak_requested_bytes;
	uint64_t peak_live_bytes;
	uint64_t peak_reserved_bytes;
	/* Calls since the start. */
	uint64_t n_malloc;
	uint64_t n_free;
	uint64_t n_hit; /* answered without a driver allocation */
	uint64_t n_driver_malloc;
	uint64_t n_driver_free;
	uint64_t n_oom;     /* failures given to the program */
	uint64_t n_rescued; /* requests that only the ladder made succeed */
};

/*
 * The numbers of a device, as CUDA counts them; -1: the current one.  Read without stopping other
 * threads, so they may be of slightly different moments.
 *
 * GPUCACHE_ERROR_INVALID_VALUE: stats->size is below that of its first version.
 *
 * Example
 *     struct gpucache_stats stats;
 *     stats.size = sizeof stats;
 *     ok(gpucache_stats(-1, &stats));
 *     printf("%llu bytes live\n", (unsigned long long)stats.live_bytes);
 */
GPUCACHE_API int gpucache_stats(int device, struct gpucache_stats *stats);

/*
 * The peaks of gpucache_stats start anew from what is held now.  The recording keeps those since the
 * start.
 *
 * Example
 *     ok(gpucache_reset_peaks(-1));
 */
GPUCACHE_API int gpucache_reset_peaks(int device);

/* What is live of one part of a device's memory, as asked for.  Fields are only ever added. */
struct gpucache_part_stats {
	size_t size; /* set by the caller to sizeof(struct gpucache_part_stats); on return what was filled */
	uint64_t live_bytes;
	uint64_t n_blocks;
};

/*
 * What gpucache_malloc_on, or PyTorch's pluggable allocator, gave for this stream; nothing for one whose
 * order cannot be kept (gpucache_free_on).  Looks at every block while others wait: not for each step.
 *
 * GPUCACHE_ERROR_INVALID_VALUE: stats->size is below that of its first version.
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
 * What was allocated inside a range with this name, at any depth, by the cache or the driver; see
 * gpucache_tag_push.  Read from the recording, so GPUCACHE_ERROR_NOT_SUPPORTED without one; blocks
 * beyond those that it has room for are not counted.  GPUCACHE_ERROR_INVALID_VALUE: as above, or name
 * is NULL or "".
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
 * Brings the recording up to date: asks the driver what is free on each device and adds a point to
 * the history.  Writes the path of the recording, to be copied or given to gpumem-report; "" where
 * there is none.  ret_path may be NULL.  GPUCACHE_ERROR_INVALID_VALUE: the path with its end does
 * not fit into `size` bytes (4096 are enough).
 *
 * Example
 *     char path[4096];
 *     ok(gpucache_snapshot(path, sizeof path));
 *     printf("gpumem-report summary %s\n", path);
 */
GPUCACHE_API int gpucache_snapshot(char *ret_path, size_t size);

/*
 * The most that this process may take of a device (-1: the current one) from here on; 0: no limit.
 * Idle memory above it goes back to the driver; memory that the program holds stays, and requests
 * fail until it holds less.
 *
 * Example
 *     ok(gpucache_set_limit(-1, (uint64_t)2 << 30));
 */
GPUCACHE_API int gpucache_set_limit(int device, uint64_t bytes);

/*
 * Called when a request for `wanted` bytes of `device` would fail, after gpucache gave back what it
 * could.  Frees what the program can do without, and returns other than 0 if it freed something.
 * Then the request is tried again, once.  May call everything of gpucache and CUDA; requests of its
 * own that fail do not call it again.  Runs in the thread that asks, in several at once where
 * several ask; must return (no longjmp, no exception).
 */
typedef int (*gpucache_oom_handler)(void *arg, size_t wanted, int device);

/*
 * Sets the handler of the process, in place of the one before; NULL: none.  Another thread may be
 * in the old one still.  Works at any time, also before CUDA is initialised.
 *
 * Example
 *     gpucache_set_oom_handler(drop_caches, &caches);
 */
GPUCACHE_API void gpucache_set_oom_handler(gpucache_oom_handler handler, void *arg);

/*
 * From here to gpucache_tag_pop, what this thread allocates is labelled with `name` in the
 * recording, by whichever function it does.  Ranges nest: "train/step" is step inside train.  NVTX
 * ranges of the same thread do the same, see docs/API.md, and both may be nested in each other.
 *
 * Works at any time, also before CUDA is initialised; with GPUCACHE=0 it changes nothing.  Of
 * `name`, UTF-8, 76 bytes are kept.  32 ranges deep, and beyond some thousand names in all, the
 * label is that of the range around; where many names differ in numbers only ("step 412"), further
 * ones share "step *".  GPUCACHE_ERROR_INVALID_VALUE: name is NULL or "".
 *
 * Example
 *     void *activations = NULL;
 *     ok(gpucache_tag_push("forward"));
 *     ok(cudaMalloc(&activations, 1 << 20));
 *     ok(gpucache_tag_pop());
 */
GPUCACHE_API int gpucache_tag_push(const char *name);

/* The innermost range of this thread ends.  GPUCACHE_ERROR_INVALID_VALUE: it is in none. */
GPUCACHE_API int gpucache_tag_pop(void);

/*
 * For torch.cuda.memory.CUDAPluggableAllocator("libgpucache.so.0", "gpucache_torch_malloc",
 * "gpucache_torch_free"), and its optional functions.  As PyTorch calls them: size 0 gives NULL,
 * NULL is freed without a word.  A failure is torch.OutOfMemoryError where PyTorch called (or
 * RuntimeError, for another error of the driver), NULL for anybody else.  `device` is made current for
 * the call where it is not.  Preload the library as well: loaded later, it sees neither streams, whose memory then
 * waits for the device, nor stream captures, which its events would break.
 *
 * Example
 *     void *tensor = gpucache_torch_malloc(1 << 20, 0, stream);
 *     gpucache_torch_record_stream(tensor, other_stream);
 *     gpucache_torch_free(tensor, 1 << 20, 0, stream);
 */
GPUCACHE_API void *gpucache_torch_malloc(size_t size, int device, struct CUstream_st *stream);
GPUCACHE_API void gpucache_torch_free(
	void *ptr, size_t size, int device, struct CUstream_st *stream);

/* set_record_stream_fn: as gpucache_record_use. */
GPUCACHE_API void gpucache_torch_record_stream(void *ptr, struct CUstream_st *stream);

/* set_reset_fn: as gpucache_trim of everything. */
GPUCACHE_API void gpucache_torch_reset(void);

/* set_memory_fraction_fn: as gpucache_set_limit, in parts of the device, 0 to 1. */
GPUCACHE_API void gpucache_torch_memory_fraction(double fraction, int device);

/*
 * set_base_alloc_fn: the segment of the driver that ptr lies in, and its size; ptr itself and 0
 * where it is not of the cache.
 */
GPUCACHE_API void *gpucache_torch_base_alloc(void *ptr, size_t *ret_size);

#ifdef __cplusplus
}
#endif

#endif
