/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds the recording: every block, segment, allocation and reading of the device.
 *
 * Threads   Any.  gpc_observe_device and _now call the driver and take the runtime's lock: no lock may be held.
 *           The others may run under the lock of a pool or of tensors.c, and take only locks of the recording.
 * Failure   None: what finds no room is counted as dropped.
 */
#ifndef GPC_RUNTIME_LEDGER_OBSERVE_H
#define GPC_RUNTIME_LEDGER_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpucache_format.h"
#include "model/share.h"

struct gpc_context;
struct gpc_device;
struct gpc_request;

/* The observer of the heap, and what it shares with track.c. */
extern const struct gpc_observer gpc_runtime_observer;
void gpc_observe_malloc(struct gpc_context *context, enum gpucache_kind kind, uint64_t address,
	uint64_t size, const struct gpc_request *request, struct gpc_share share);
void gpc_observe_free(struct gpc_context *context, enum gpucache_kind kind, uint64_t address,
	uint64_t size, uint64_t requested, uint32_t stack, uint64_t now_ns, struct gpc_share share);

/* A tensor in an arena: it has a block number, and belongs to no context.  gpc_context_owner(device) must exist. */
struct gpc_observed {
	struct gpc_device *device;
	enum gpucache_kind kind;
	uint32_t number;
	uint32_t stack;
	uint64_t address;
	uint64_t size;
	uint64_t now_ns;
};
void gpc_observe_piece_taken(const struct gpc_observed *piece);
void gpc_observe_piece_freed(const struct gpc_observed *piece);

/* Records an event: 1: the context is known from now on; 2: it is gone. */
void gpc_observe_context(const struct gpc_context *context, uint32_t what);

/*
 * Queries the driver for the memory of the whole device and records the answer; rate-limited unless
 * `must`.
 */
void gpc_observe_device(struct gpc_context *context, bool must);

/* As gpc_observe_device with `must`, and adds a point to the history. */
void gpc_observe_now(struct gpc_context *context);

#endif
