/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool: the cache of one context of one device.  This is the allocator.
 *
 *      gpc_pool_alloc                                   gpc_pool_free
 *         |  hit: blocks that its stream freed             |  one stream, or a barrier: FREE at once
 *         |       the bins                                 |  else: PENDING in the open fence
 *         |       fences that have passed                  |
 *         |  miss (slow path):                             |  coalesce with free neighbours
 *         |     too much pending: raise a barrier          |  too much pending: wait for the oldest
 *         v     grow: a segment from the driver            v  garbage collection, decay: trim idle segments
 *                                                        bins, fences
 *       LIVE
 *
 * If there is no room, the ladder (oom/ladder.c) calls the parts (reap, trim, wait, retry) in its own
 * order; the allocator never calls the ladder.  A retry may split a block of another size class.  Until
 * the driver next allocates or frees a segment, each miss then tries such a split before it asks the driver.
 *
 * Invariants  I1 to I10 of block.h, F1 to F4 of fence.h, S1 to S3 of stream_order.h; gpc_pool_check
 *             verifies those that the heap alone can show.
 * Threads     Any; one lock per pool (rank POOL).  A hit holds it for tens of nanoseconds and makes no
 *             driver call.  Driver calls marked [may block] are made without it.
 * Failure     An allocation returns GPC_DEVICE_NO_MEMORY, GPC_LIMIT, GPC_NO_METADATA, GPC_UNSUPPORTED,
 *             GPC_INVALID (size), GPC_NOT_FOUND (the context is gone), or the driver's own code.
 * Limits      A pool serves only its context, and dies with it (gpc_pool_forget).
 */
#ifndef GPC_ALLOC_POOL_H
#define GPC_ALLOC_POOL_H

#include "alloc/address_map.h"
#include "alloc/bin.h"
#include "alloc/budget.h"
#include "alloc/fence.h"
#include "alloc/heap.h"
#include "alloc/stream_order.h"

/* When new segments for large blocks are made of pages, which can be returned one at a time (pool_holes.c). */
enum gpc_vmm {
	GPC_VMM_OFF,
	GPC_VMM_AUTO, /* once the driver, or the limit, has refused a request */
	GPC_VMM_ON,   /* from the first segment on */
};

struct gpc_pool_params {
	uint64_t max_split_size;    /* bytes; 0: none */
	uint32_t roundup_divisions; /* 0: none */
	uint32_t gc_threshold_ppm;  /* millionths of the limit, or of the device; 0: off */
	uint64_t pending_limit; /* bytes that may be pending before a free waits; 0: none waits */
	uint64_t decay_ns;      /* segments idle for longer are returned; 0: never */
	enum gpc_vmm vmm;
	bool is_one_stream; /* see gpc_fences_init */
	bool has_barriers;  /* enforce the order of cudaFree on the device (barrier.h) */
	bool is_fence_skipped; /* tests only: blocks are reused without a fence; tests must detect it */
};

/* Peaks since gpc_pool_reset_peaks.  Policy and recording use the counters' peaks, which are never reset. */
struct gpc_pool_peaks {
	uint64_t requested_bytes;
	uint64_t live_bytes;
	uint64_t reserved_bytes;
};

/* Parked blocks (pool_hit.h): the most, and the slots, which share them by size. */
#define GPC_MAX_PARKED   64u
#define GPC_PARKED_SLOTS 64u

struct gpc_pool {
	/* Fixed after init. */
	struct gpc_heap *heap;
	struct gpc_driver *drv;
	struct gpc_budget *budget;
	struct gpc_pool_params params;
	uint32_t device;
	uint32_t context; /* index into COUNTERS of the recording */
	uint64_t place;   /* device << 16 | context << 32, as the recording has them */

	/* Lock: lock. */
	struct gpc_bins pieces[GPC_N_POOL_KINDS];
	struct gpc_bins wholes;   /* idle segments of large blocks */
	struct gpc_bins exacts;   /* idle exact segments; pieces has all other FREE blocks */
	struct gpc_list segments; /* oldest first */
	struct gpc_list idle;     /* idle longest first */
	struct gpc_address_map blocks;
	struct gpc_block *slots[GPC_PARKED_SLOTS]; /* each: parked last */
	struct gpc_list parked;                    /* parked longest first */
	uint32_t n_parked;
	/* A retired block, kept for the next split: a malloc that splits often follows a free that coalesces. */
	struct gpc_block *spare;
	struct gpc_fences fences;
	struct gpc_barrier barrier;
	struct gpc_stream_order order;
	/* In the recording.  These, recent, cut_bytes and idle_segment_bytes are also read without the lock (model/counters.h). */
	struct gpucache_counters *counters;
	struct gpucache_counters own_counters; /* used if gpc_pool_init gets no counters */
	struct gpc_pool_peaks recent;
	bool is_forgotten;     /* the context died */
	atomic_bool is_closed; /* see gpc_pool_close */
	/* The driver returned memory off the grid of the segment map, and is not asked again. */
	atomic_bool is_off_grid;
	/* Memory that could not become a segment and waits for an open capture to end; 0: none. */
	_Atomic gpc_devptr unplaced;
	uint64_t unplaced_size;
	struct gpc_range *unplaced_range; /* of its pages; NULL: it is one driver allocation */
	/* What the driver did not have at once of the memory returned beside work, whose end was not seen since. */
	_Atomic uint64_t late_bytes;
	atomic_bool is_pressed;        /* see gpc_pool_note_refused */
	atomic_bool has_no_pages;      /* mapping pages failed, and is not tried again */
	_Atomic uint64_t page_devices; /* bit i: device i may access the pool's pages, too */
	/* True after gpc_pool_cut has served a request, until a segment is allocated or returned. */
	atomic_bool is_short;
	uint64_t cut_bytes; /* size of the cut segments of large blocks, except those of pages */
	uint64_t idle_segment_bytes;    /* size of the segments without a LIVE block */
	_Atomic uint64_t next_decay_ns; /* from when on decay looks for old idle segments again */
	/* Number of idle exported segments, which the next free, reap or wait returns; read without the lock. */
	_Atomic uint32_t n_leaving;

	struct gpc_lock lock;
};

/*
 * The size of the block that serves the request: for an exact one, what the driver holds for an allocation of its size.
 */
static inline uint64_t gpc_pool_rounded(
	const struct gpc_pool *pool, const struct gpc_request *request)
{
	return request->is_exact ? gpc_size_tight_segment(request->size)
				 : gpc_size_round(request->size, pool->params.roundup_divisions);
}

/* `counters` may be NULL.  The pool holds no resources until the first allocation. */
void gpc_pool_init(struct gpc_pool *pool, struct gpc_heap *heap, struct gpc_driver *drv,
	struct gpc_budget *budget, const struct gpc_pool_params *params, uint32_t device,
	uint32_t context, struct gpucache_counters *counters);

/*
 * Returns idle segments to the driver and forgets all others.  For tests and tools: the library leaves its
 * memory to the driver when a process ends.
 */
void gpc_pool_fini(struct gpc_pool *pool);

/*
 * Call after the context died with all its memory, or when its work is over and it is about to die: forgets everything.
 * Pages do not die with a context: waits for the peers that may access them, and returns the pages to the driver.
 */
void gpc_pool_forget(struct gpc_pool *pool);

/*
 * Allocates request->size > 0 bytes, aligned to GPC_GRAIN.
 * GPC_DEVICE_NO_MEMORY or GPC_LIMIT: call the ladder.  GPC_UNSUPPORTED: this driver returns memory that
 * cannot be a segment (segment_map.h), and is not asked again.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_alloc(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address);

/* The parts of gpc_pool_alloc, for the ladder. */

/*
 * Allocates from pending blocks that the request's stream freed, from free blocks, and from blocks whose fences have
 * passed.
 * GPC_NOT_FOUND: nothing fits.  Any other error is the driver's: the context is broken.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_search(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address);

/* Allocates from a new segment. */
GPC_MUST_CHECK enum gpc_status gpc_pool_grow(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address);

/*
 * Allocates from a free block of any size class, for a request that the driver has refused.  Cuts an idle segment only
 * while an open capture keeps gpc_pool_trim from returning it.  GPC_NOT_FOUND: nothing fits.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_cut(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address);

/* Tries gpc_pool_search, gpc_pool_grow and gpc_pool_cut, in this order. */
GPC_MUST_CHECK enum gpc_status gpc_pool_retry(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address);

/*
 * Frees memory of this pool; `request` has the time, the thread and the stream (its size is not used).
 * GPC_NOT_FOUND: the address is not, or no longer, in this pool.  GPC_INVALID: it is, but no live block
 * starts there: an interior pointer or a double free.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_free(
	struct gpc_pool *pool, gpc_devptr address, const struct gpc_request *request);

/*
 * Marks a live block as used by streams that its free will not name: no request of the stream that it names gets
 * the block before its fence has passed.  Fails as gpc_pool_free.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_record_use(struct gpc_pool *pool, gpc_devptr address);

/*
 * The program suballocates from this live block, and the pieces are accounted to their own stacks: clears
 * block->mark.  Fails as gpc_pool_free.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_lend(struct gpc_pool *pool, gpc_devptr address);

/*
 * Closes the open fence if possible and frees the blocks of passed fences.  Returns the bytes freed.
 */
uint64_t gpc_pool_reap(struct gpc_pool *pool);

/*
 * Calls gpc_pool_settle, then waits on the host for pending memory: for the oldest fence that frees a block of
 * `size` bytes, or, if there is none or size is 0, for all fences.  Returns the bytes that became FREE; 0 if
 * nothing was pending or a capture forbids the wait.
 */
uint64_t gpc_pool_wait(struct gpc_pool *pool, uint64_t size);

/*
 * As gpc_pool_wait, for at most *left_ms milliseconds, from which it subtracts the time it took; sleeps between
 * queries.  Skips fences without an event: before CUDA 12.5, all of them.
 */
uint64_t gpc_pool_wait_within(struct gpc_pool *pool, uint64_t size, uint64_t *left_ms);

/* Bytes that are idle here: free in a segment, pending, or returned beside work and not at the driver yet. */
uint64_t gpc_pool_idle(struct gpc_pool *pool);

/*
 * Waits until as many bytes have arrived as now move between the driver and the pools of this device (budget.h), or
 * none move; for at most *left_ms milliseconds, from which it subtracts the time it took.  New moves cannot prolong it.
 */
void gpc_pool_wait_for_moves(struct gpc_pool *pool, uint64_t *left_ms);

/*
 * Call before a driver call that may end the context: from now on no memory moves between the pool and the driver, and
 * requests that need more are GPC_NOT_FOUND.  Memory that the pool returns later may be another owner's by then.  Waits
 * for what is on the move, as gpc_pool_wait_for_moves.  Call gpc_pool_reopen if the context lives on.
 */
void gpc_pool_close(struct gpc_pool *pool, uint64_t *left_ms);
void gpc_pool_reopen(struct gpc_pool *pool);

/*
 * Returns idle memory to the driver until at least `wanted` bytes are returned: a single segment if one is
 * large enough, else the segments that are idle longest, and then idle pages.  Skips memory that work may still use.
 * While other work runs it returns only what goes back without a wait for that work; if this driver can return no
 * segment so, `may_wait` allows the wait.  Returns the bytes returned.
 */
uint64_t gpc_pool_trim(struct gpc_pool *pool, uint64_t wanted, bool may_wait);

/*
 * Call before a capture begins, during which less can go back to the driver: returns idle segments if one of them is
 * exact (pool_exact.c).  A caller with a cache of its own may be about to fill it from that memory.
 */
void gpc_pool_return_exact(struct gpc_pool *pool);

/*
 * Waits until no work of the context runs, for at most *left_ms milliseconds, from which it subtracts the time it took.
 * GPC_DEVICE_NOT_READY: some still runs.  Any other error: that cannot be known now, so it did not wait.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_wait_idle(struct gpc_pool *pool, uint64_t *left_ms);

/* Calls gpc_pool_wait_idle, and returns true, if the driver did not have at once what was returned beside running work. */
bool gpc_pool_wait_late(struct gpc_pool *pool, uint64_t *left_ms);

/* Waits, however long, for the work of the context that is submitted already.  No-op while a capture forbids it. */
void gpc_pool_wait_out(struct gpc_pool *pool);

/*
 * Returns false if the device cannot enforce the order of cudaFree in this context (barrier.h); then the host must
 * wait in cudaFree.
 */
bool gpc_pool_keeps_order(struct gpc_pool *pool);

/* Call before work is submitted to the context, if gpc_duties says that a barrier is due. */
void gpc_pool_raise_barrier(struct gpc_pool *pool);

/*
 * Waits on the host, as cudaFree would have, until all work before the last free has completed.
 * Returns the driver's error if the context is broken.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_settle(struct gpc_pool *pool);

/*
 * Call after the one-stream rule has ended: waits on the host for all work of the context, so that the earlier owners
 * of blocks reused under that rule are done.  Invalidates an open capture; if there is none, none begins meanwhile.
 */
void gpc_pool_wait_for_one_stream(struct gpc_pool *pool);

/*
 * Call before a capture begins: if gpc_pool_wait_for_one_stream is due, calls it now, because during the capture it
 * would invalidate the capture.
 */
void gpc_pool_settle_one_stream(struct gpc_pool *pool);

/*
 * Call gpc_pool_begin_sync before the program's own synchronization of the context, and gpc_pool_end_sync, with what
 * it returned, after it succeeded: the blocks freed before it become FREE, and their work is known to be complete.
 */
struct gpc_pool_sync {
	uint64_t fence; /* of the pool's fences, the last one that the synchronization covers */
	uint64_t frees; /* the same for the barrier's frees */
};
struct gpc_pool_sync gpc_pool_begin_sync(struct gpc_pool *pool);
void gpc_pool_end_sync(struct gpc_pool *pool, struct gpc_pool_sync sync, uint64_t now_ns);

/* The bytes that can be returned to the driver now, or once the device is done with them. */
uint64_t gpc_pool_returnable(struct gpc_pool *pool);

/* Gives a device access to this pool's pages, present and future. */
void gpc_pool_open_pages(struct gpc_pool *pool, uint32_t device);

/* Call after setting heap->is_paging_over: returns idle segments, and withdraws all pages, which go back once free. */
void gpc_pool_end_pages(struct gpc_pool *pool);

/* Restarts the peaks of `recent` from the current values. */
void gpc_pool_reset_peaks(struct gpc_pool *pool);

/*
 * Adds the LIVE blocks requested for `stream` (> 0) to *n_blocks, and the bytes requested to *bytes.  Walks every
 * block under the lock.
 */
void gpc_pool_count_stream(
	struct gpc_pool *pool, gpc_stream stream, uint64_t *bytes, uint64_t *n_blocks);

/* The size of the largest free block. */
uint64_t gpc_pool_largest_free(struct gpc_pool *pool);

/*
 * Marks the segment that contains this address as exported: other processes may hold it from now on.
 * It is returned to the driver once its last block is free, after that block's fence.  *ret_base is its
 * start.  GPC_NOT_FOUND: not in this pool.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_export(
	struct gpc_pool *pool, gpc_devptr address, gpc_devptr *ret_base);

/* The start and size of the segment that contains this address.  GPC_NOT_FOUND: not in this pool. */
GPC_MUST_CHECK enum gpc_status gpc_pool_segment_of(
	struct gpc_pool *pool, gpc_devptr address, gpc_devptr *ret_base, uint64_t *ret_size);

/* The segment and block around an address. */
struct gpc_span {
	gpc_devptr segment;
	gpc_devptr block; /* its start */
	uint64_t size;    /* of the block */
	enum gpc_block_view view;
};

/*
 * Finds the segment and block around this address, and decides the program's view of the block if it
 * is still open (GPC_VIEW_OPEN: leaves it open).  A block on pages is always GPC_VIEW_OWN, because its
 * segment may split; any other that starts its segment is always GPC_VIEW_SEGMENT, as both views are the
 * same.  GPC_NOT_FOUND: not in this pool.  GPC_INVALID: in this pool, but not in a live block.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_decide_view(struct gpc_pool *pool, gpc_devptr address,
	enum gpc_block_view view, struct gpc_span *ret_span);

/* Verifies the invariants and counters of the whole pool.  Returns NULL, or the name of the first violated. */
const char *gpc_pool_check(struct gpc_pool *pool);

#endif
