/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool: the cache of one context of one device.  This is the allocator.
 *
 *      gpc_pool_alloc                                   gpc_pool_free
 *         |  search: what its own stream freed             |  one stream, or a barrier: FREE at once
 *         |     then the bins                              |  else: PENDING in the open fence
 *         |     then fences that have passed               |
 *         |  miss:                                         |  merge with free neighbours
 *         |     too much pending: a barrier                |  too much pending: wait for what was before it
 *         v     grow: a segment from the driver            v  garbage, decay: idle segments go back
 *                                                        bins, fences
 *       LIVE
 *
 * What fails here is only "no room": the ladder (oom/ladder.c) then calls the parts - reap, trim,
 * wait, retry - in its own order.  A retry may cut a block of another size class; from then on, until
 * the driver gives or takes a segment, a miss does so before it asks the driver.  The allocator never calls the ladder.
 *
 * Invariants  I1 to I9 of block.h, F1 to F4 of fence.h, S1 to S3 of stream_order.h, checked by
 *             gpc_pool_check as far as a look at the heap can.
 * Threads     Any thread may call anything; one lock a pool (rank POOL).  A hit holds it for tens
 *             of nanoseconds and makes no driver call.  Calls of the driver marked [may block] are
 *             made without it.
 * Failure     GPC_DEVICE_NO_MEMORY, GPC_LIMIT, GPC_NO_METADATA, or the driver's own code; the pool
 *             is as before.
 * Limits      A pool is bound to its context: it never serves another, and dies with it
 *             (gpc_pool_forget).
 */
#ifndef GPC_ALLOC_POOL_H
#define GPC_ALLOC_POOL_H

#include "alloc/address_map.h"
#include "alloc/bin.h"
#include "alloc/fence.h"
#include "alloc/heap.h"
#include "alloc/stream_order.h"

/* What the pools of one device may take together. */
struct gpc_budget {
	_Atomic uint64_t limit_bytes; /* 0: none */
	_Atomic uint64_t used_bytes;  /* segments and direct memory */
	uint64_t device_bytes;        /* what the device has; 0 unknown */
	/* At the last look (pool_room.c): what was free besides used_bytes, and used_bytes; 0, 0: never. */
	_Atomic uint64_t room_bytes;
	_Atomic uint64_t looked_at_bytes;
};

struct gpc_pool_params {
	uint64_t max_split_size;    /* bytes; 0: none */
	uint32_t roundup_divisions; /* 0: none */
	uint32_t gc_threshold_ppm;  /* millionths of the limit, or of the device; 0: off */
	uint64_t pending_limit;     /* bytes held back by fences before a free waits */
	uint64_t decay_ns;          /* idle segments older than this go back; 0: never */
	bool is_one_stream;         /* see gpc_fences_init */
	bool has_barriers;          /* the order of cudaFree is kept on the device (barrier.h) */
	bool is_fence_skipped; /* tests only: reuse without any fence, to show what it is for */
};

/* Peaks since the start or gpc_pool_reset_peaks; those of the counters are since the start, for policy and recording. */
struct gpc_pool_peaks {
	uint64_t requested_bytes;
	uint64_t live_bytes;
	uint64_t reserved_bytes;
};

struct gpc_pool {
	/* Fixed after init. */
	struct gpc_heap *heap;
	struct gpc_driver *drv;
	struct gpc_budget *budget;
	struct gpc_pool_params params;
	uint32_t device;
	uint32_t context; /* index into COUNTERS of the recording */

	/* Lock: lock. */
	struct gpc_bins pieces[GPC_N_POOL_KINDS];
	struct gpc_bins wholes;   /* the idle segments of large blocks, as pieces has all others */
	struct gpc_list segments; /* oldest first */
	struct gpc_list idle;     /* idle longest first */
	struct gpc_address_map blocks;
	/* Retired last, its number kept: a pair of free and malloc often needs one again at once. */
	struct gpc_block *spare;
	struct gpc_fences fences;
	struct gpc_barrier barrier;
	struct gpc_stream_order order;
	/* of the recording; written under the lock, read by anybody */
	struct gpucache_counters *counters;
	struct gpucache_counters own_counters; /* used where nobody gives others */
	struct gpc_pool_peaks recent;          /* the same */
	bool is_forgotten;                     /* the context died */
	/* The driver gave memory that the segment map has no place for, and will again. */
	atomic_bool is_off_grid;
	/* Memory that could not become a segment, while a capture forbids its return; 0: none. */
	_Atomic gpc_devptr unplaced;
	uint64_t unplaced_size;
	/* The driver refused, and a block was cut across classes; until it gives or takes a segment. */
	atomic_bool is_short;
	/* Written under the lock, read by anybody (stats/counters.h): segments of large blocks in more than one block. */
	uint64_t cut_bytes;
	/* The same: segments without a LIVE block, idle or about to be. */
	uint64_t unheld_bytes;
	_Atomic uint64_t next_decay_ns; /* when to look for old idle segments again */
	/* exported segments that are idle: to go back at the next call; read without the lock */
	_Atomic uint32_t n_leaving;

	struct gpc_lock lock;
};

/* `counters` may be NULL.  The pool holds no resources until the first allocation. */
void gpc_pool_init(struct gpc_pool *pool, struct gpc_heap *heap, struct gpc_driver *drv,
	struct gpc_budget *budget, const struct gpc_pool_params *params, uint32_t device,
	uint32_t context, struct gpucache_counters *counters);

/*
 * Gives every idle segment back and forgets the rest.  For tests and tools; a process at its
 * end leaves that to the driver.
 */
void gpc_pool_fini(struct gpc_pool *pool);

/* The context died, and all its memory with it: forget everything, without any driver call. */
void gpc_pool_forget(struct gpc_pool *pool);

/*
 * Gives memory of request->size > 0 bytes, aligned to GPC_GRAIN.
 * GPC_DEVICE_NO_MEMORY or GPC_LIMIT: ask the ladder.  GPC_UNSUPPORTED: this driver places memory where it
 * cannot be a segment (segment_map.h); it was asked once, and is not asked again.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_alloc(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address);

/* The parts of gpc_pool_alloc, for the ladder. */

/* From what is free, or passed since.  GPC_NOT_FOUND: nothing fits. */
GPC_MUST_CHECK enum gpc_status gpc_pool_search(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address);

/* From a new segment of the driver. */
GPC_MUST_CHECK enum gpc_status gpc_pool_grow(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address);

/*
 * From a free block of whatever size class, for a request that the driver has refused.  An idle
 * segment is left to gpc_pool_trim, unless an open capture forbids that.  GPC_NOT_FOUND: nothing fits.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_cut(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address);

/* Once more from each of these, in this order. */
GPC_MUST_CHECK enum gpc_status gpc_pool_retry(
	struct gpc_pool *pool, const struct gpc_request *request, gpc_devptr *ret_address);

/* What a program asks of one pool; pool_numbers.c. */

/* The peaks of `recent` start anew from what is held now. */
void gpc_pool_reset_peaks(struct gpc_pool *pool);

/* Adds what is LIVE and was asked for by `stream` (> 0).  Looks at every block, under the lock. */
void gpc_pool_count_stream(
	struct gpc_pool *pool, gpc_stream stream, uint64_t *bytes, uint64_t *n_blocks);

/*
 * Takes back memory that this pool gave; `request` says when and who (its size is not used).
 * GPC_NOT_FOUND: the address is not, or no longer, of this pool.  GPC_INVALID: it is, but no live
 * block starts there: an interior pointer or a double free.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_free(
	struct gpc_pool *pool, gpc_devptr address, const struct gpc_request *request);

/*
 * Work of streams that the free of this live block will not name uses it, too: it will be freed by
 * fence only.  Fails as gpc_pool_free.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_record_use(struct gpc_pool *pool, gpc_devptr address);

/*
 * The program hands out pieces of this live block, and somebody else counts who holds them: from here on
 * the block has no mark.  Fails as gpc_pool_free.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_lend(struct gpc_pool *pool, gpc_devptr address);

/*
 * Closes the open fence where possible and frees what has passed.  Returns the bytes that
 * became free.
 */
uint64_t gpc_pool_reap(struct gpc_pool *pool);

/*
 * Waits on the host until pending memory has passed: the oldest fence that frees a block of `size`
 * bytes, or, size 0, all of it.  Returns the bytes that became free; 0 where nothing was pending
 * or a capture forbids the wait.
 */
uint64_t gpc_pool_wait(struct gpc_pool *pool, uint64_t size);

/*
 * The same, as far as it can be had within *left_ms milliseconds, of which those that it took are taken off; it
 * sleeps, and asks in between.  What no event stands for is not waited for: all fences before CUDA 12.5.
 */
uint64_t gpc_pool_wait_within(struct gpc_pool *pool, uint64_t size, uint64_t *left_ms);

/*
 * Gives idle segments back to the driver until at least `wanted` bytes went: one that is large
 * enough alone where there is one, else those idle longest first.  Returns the bytes that went.
 */
uint64_t gpc_pool_trim(struct gpc_pool *pool, uint64_t wanted);

/*
 * Barriers (barrier.h).  False: the device cannot keep the order of cudaFree in this context, and the host
 * must, where it is wanted.
 */
bool gpc_pool_keeps_order(struct gpc_pool *pool);

/* Before work is submitted to the context, where gpc_duties says that one is due. */
void gpc_pool_raise_barrier(struct gpc_pool *pool);

/*
 * Puts all later work of the context behind all earlier, whether a barrier is due or not.  False: here no
 * barrier can do that.
 */
bool gpc_pool_order_all(struct gpc_pool *pool);

/*
 * Waits on the host, as cudaFree would have, until the work before the last free is over.  The
 * driver's error where the context is broken.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_settle(struct gpc_pool *pool);

/* The program synchronises the whole context itself: before its call, and after it succeeded. */
uint64_t gpc_pool_begin_sync(struct gpc_pool *pool);
void gpc_pool_end_sync(struct gpc_pool *pool, uint64_t number, uint64_t now_ns);

/* The bytes that can go back to the driver now, or as soon as the device is done with them. */
uint64_t gpc_pool_returnable(const struct gpc_pool *pool);

/* The size of the largest free block. */
uint64_t gpc_pool_largest_free(struct gpc_pool *pool);

/*
 * Marks the segment that contains this address as exported: others hold its memory from now on.  It
 * goes back to the driver when its last block is free, behind the fence of that.  Says where the
 * segment starts.  GPC_NOT_FOUND: not of this pool.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_export(
	struct gpc_pool *pool, gpc_devptr address, gpc_devptr *ret_base);

/* What lies around an address. */
struct gpc_span {
	gpc_devptr segment;
	gpc_devptr block; /* its start */
	uint64_t size;    /* of the block */
	enum gpc_block_view view;
};

/*
 * Says what lies around this address, and makes `view` the program's view of the block, where it is
 * still open (GPC_VIEW_OPEN: leaves it open); that of a block that starts its segment is always
 * GPC_VIEW_SEGMENT, for both are the same.  GPC_NOT_FOUND: not of this pool.  GPC_INVALID: it is,
 * and not in a live block.
 */
GPC_MUST_CHECK enum gpc_status gpc_pool_decide_view(struct gpc_pool *pool, gpc_devptr address,
	enum gpc_block_view view, struct gpc_span *ret_span);

/*
 * Verifies the invariants and the counters over the whole pool.  NULL: all hold; else the name of
 * the first that does not.
 */
const char *gpc_pool_check(struct gpc_pool *pool);

#endif
