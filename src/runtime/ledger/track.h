/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger of what the driver gives for one request and we never cache.
 *
 * Threads   Any.
 * Failure   Without metadata an allocation is not tracked; it is made all the same.
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

/* Physical memory that PyTorch's allocator made: an arena, whose tensors hold its bytes (tensors.h). */
void gpc_runtime_arena_created(CUmemGenericAllocationHandle handle);

/*
 * Into the books, with the address, sizes and kind of `call`; and what an entry has there.
 * The context died, and with it all that was tracked in it; or the pools of a device.
 */
void gpc_track_remember(struct gpc_context *context, const struct gpc_passed_call *call,
	const struct gpc_request *request);
uint64_t gpc_track_size(const struct gpc_tracked *tracked);
void gpc_track_forget_context(struct gpc_context *context);
void gpc_track_forget_pools(const struct gpc_device *device);

/* As gpc_memory_lend, of what this handle names. */
void gpc_track_lend(enum gpucache_kind kind, uint64_t key);

#endif
