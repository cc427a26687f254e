/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: allocations that bypass the cache, tracked by address or handle.
 *
 * Threads   Any.
 * Failure   Without metadata an allocation succeeds untracked.
 */
#ifndef GPC_RUNTIME_LEDGER_TRACK_H
#define GPC_RUNTIME_LEDGER_TRACK_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_fns.h"
#include "gpucache_format.h"

struct gpc_context;
struct gpc_device;
struct gpc_request;

/*
 * A driver allocation that we only track.  `make` calls the driver and sets address and size; it is called again after
 * each rung of the ladder.
 */
struct gpc_passed_call {
	CUresult (*make)(struct gpc_passed_call *call);
	enum gpucache_kind kind;
	uint32_t pool;        /* set by gpc_runtime_pool_malloc */
	size_t size;          /* bytes requested; 0: nothing to track */
	uint64_t ret_address; /* address or handle; `make` writes it and ret_size on success */
	uint64_t ret_size;
	uint64_t padding; /* of ret_size, what pads rows; `make` may write it */
};

CUresult gpc_runtime_passed_malloc(struct gpc_passed_call *call);

/*
 * As gpc_runtime_passed_malloc, for memory that belongs to a device but to no context.  Needs no current context; the
 * memory outlives all contexts.  Device -1: that of the current context, or the first one.
 */
CUresult gpc_runtime_passed_malloc_of_device(struct gpc_passed_call *call, int device);

/*
 * gpc_runtime_forget removes the entry of an allocation, before the driver frees it; NULL: there is none.
 * gpc_runtime_forgotten then takes the driver's answer, and restores the entry if the free failed.  _forget_key is for
 * kinds whose key is a handle, or an address that another allocation may have, too (track.c).
 */
struct gpc_tracked;
struct gpc_tracked *gpc_runtime_forget(uint64_t address);
struct gpc_tracked *gpc_runtime_forget_key(enum gpucache_kind kind, uint64_t key);
void gpc_runtime_forgotten(struct gpc_tracked *tracked, CUresult result);

/* Marks memory as an arena: from now on only the tensors in it count for sites (tensors.h).  No-op with tensors:off. */
void gpc_runtime_mark_arena(enum gpucache_kind kind, uint64_t key);

/*
 * gpc_track_remember adds an entry with the address, sizes and kind of `call`.  gpc_track_forget drops the entries of a
 * dead context, or those from the driver's pools on a device; the other argument is NULL.
 */
void gpc_track_remember(struct gpc_context *context, const struct gpc_passed_call *call,
	const struct gpc_request *request);
uint64_t gpc_track_size(const struct gpc_tracked *tracked);
bool gpc_track_is_spilled(const struct gpc_tracked *tracked); /* NULL: false */
void gpc_track_forget(const struct gpc_context *context, const struct gpc_device *device);

#endif
