/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools: stream-ordered allocation, as by cuMemAllocAsync.
 *
 * A pool reserves slabs (slab.h) of the device's memory and cuts them into pieces.  A free is queued in its stream:
 * until the stream reaches the free, only allocations on the same stream may reuse the piece; afterwards all may.
 *
 * A synchronisation or a trim returns wholly free slabs to the device.  At least so many bytes stay reserved: after a
 * synchronisation the release threshold (0 unless set), after a trim the number that its caller gives.
 *
 * Invariants  1 reserved >= used.  2 A pool's memory belongs to no context: no context's end frees it.
 * Threads     Any; one lock for all pools, taken after that of the effects and before the device's.
 * Failure     The driver's codes.
 * Limits      A piece freed on another stream is reused only once that stream has passed the free.  The attributes that
 *             permit earlier reuse are stored without effect.  A shared pool can be imported only by its own process.
 */
#ifndef GPC_SIM_MEMPOOL_H
#define GPC_SIM_MEMPOOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "driver/cuda_abi.h"
#include "sim/gpu/config.h"
#include "sim/gpu/memory/slab.h"

struct gpc_sim;
struct gpc_sim_device;
struct gpc_sim_stream;

struct gpc_sim_mempool {
	struct gpc_list link; /* in the machine's `mempools.all` */
	struct gpc_sim_slabs slabs;
	bool is_shareable;
	bool is_default;
	bool is_imported; /* allocations from it fail */
	bool is_doomed;   /* destroyed by the program; removed when its last piece is freed */
	int reuse[3];     /* the attributes 1 to 3 (reuse policies), stored without effect */
	uint64_t threshold;
	uint64_t reserved_high;
	uint64_t used, used_high;
};

/* An imported pointer: other addresses of the same bytes. */
struct gpc_sim_import {
	struct gpc_list link;
	struct gpc_sim_device *device;
	uint64_t ptr;
	uint64_t size;
	uint64_t target; /* the piece's address in the exporting pool */
};

struct gpc_sim_mempools {
	struct gpc_list all;
	struct gpc_list imports;
	_Atomic unsigned n_imports; /* read without the lock */
	struct gpc_sim_mempool *defaults[GPC_SIM_MAX_DEVICES];
	struct gpc_sim_mempool *currents[GPC_SIM_MAX_DEVICES];
	struct gpc_sim_mempool *host; /* the default pool of host memory */
	uint64_t n_frees;             /* frees in stream order so far; the number of the last one */

	pthread_mutex_t lock;
};

/* False without memory. */
bool gpc_sim_mempools_init(struct gpc_sim *sim);
void gpc_sim_mempools_fini(struct gpc_sim *sim);

/* Call after the host waited for the device's work: returns slabs beyond the release threshold. */
void gpc_sim_mempools_synchronized(struct gpc_sim *sim, const struct gpc_sim_device *device);

/* Call when the device's primary context was reset: frees all memory of the device's pools. */
void gpc_sim_mempools_reset(struct gpc_sim *sim, const struct gpc_sim_device *device);

/* The pool with this handle; NULL if there is none. */
struct gpc_sim_mempool *gpc_sim_mempool_of(struct gpc_sim *sim, CUmemoryPool handle);

CUresult gpc_sim_mempool_create(
	struct gpc_sim *sim, const CUmemPoolProps *props, struct gpc_sim_mempool **ret_pool);
CUresult gpc_sim_mempool_destroy(struct gpc_sim *sim, struct gpc_sim_mempool *pool);

/* Sets the pool of cuMemAllocAsync on this device. */
CUresult gpc_sim_mempool_set_current(
	struct gpc_sim *sim, unsigned device, struct gpc_sim_mempool *pool);

CUresult gpc_sim_mempool_alloc(struct gpc_sim_mempool *pool, struct gpc_sim_stream *stream,
	uint64_t size, uint64_t *ret_ptr);

/* Frees in the order of `stream`.  INVALID_VALUE unless a piece in use starts at `ptr`. */
CUresult gpc_sim_mempool_free_async(struct gpc_sim_stream *stream, uint64_t ptr);

/* Frees at once, without waiting for work.  INVALID_VALUE unless a piece in use starts at `ptr`. */
CUresult gpc_sim_mempool_free(struct gpc_sim *sim, uint64_t ptr);

/* Called when the stream of the free with this number has passed it: all streams may now reuse the piece. */
void gpc_sim_mempool_finish(struct gpc_sim *sim, uint64_t number);

/* Finds the piece in use that contains `ptr`; false if there is none.  Any output may be NULL. */
bool gpc_sim_mempool_find(struct gpc_sim *sim, uint64_t ptr, uint64_t *ret_base, uint64_t *ret_size,
	struct gpc_sim_mempool **ret_pool);

/* True for an address in a pool, in use or not. */
bool gpc_sim_mempool_has(struct gpc_sim *sim, uint64_t ptr);

/* Creates a pool as another process gets it when it imports `pool`; allocations from the new pool fail. */
CUresult gpc_sim_mempool_import(
	struct gpc_sim *sim, struct gpc_sim_mempool *pool, struct gpc_sim_mempool **ret_pool);

/* Imports the piece of a shared pool that starts at `ptr`, as another process would; *ret_ptr is a new address. */
CUresult gpc_sim_mempool_import_pointer(struct gpc_sim *sim, uint64_t ptr, uint64_t *ret_ptr);

/* Ends the import at the address `ptr`; false: nothing was imported there. */
bool gpc_sim_mempool_forget_import(struct gpc_sim *sim, uint64_t ptr);

/* Translates an imported address to the address in the exporting pool; returns any other address unchanged. */
uint64_t gpc_sim_mempool_target(struct gpc_sim *sim, uint64_t ptr);

void gpc_sim_mempool_trim(struct gpc_sim *sim, struct gpc_sim_mempool *pool, uint64_t keep);

/* `value` points to an int (attributes 1 to 3) or to 64 bits. */
CUresult gpc_sim_mempool_get(struct gpc_sim *sim, const struct gpc_sim_mempool *pool,
	CUmemPool_attribute attribute, void *value);
CUresult gpc_sim_mempool_set(struct gpc_sim *sim, struct gpc_sim_mempool *pool,
	CUmemPool_attribute attribute, const void *value);

#endif
