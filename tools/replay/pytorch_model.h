/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to the model of PyTorch's allocator (policy_pytorch.c).
 *
 *      policy_pytorch.c ---> pytorch_streams.c    blocks that other streams used
 *                       '--> pytorch_ranges.c     expandable segments
 */
#ifndef GPC_REPLAY_PYTORCH_MODEL_H
#define GPC_REPLAY_PYTORCH_MODEL_H

#include "alloc/address_map.h"
#include "alloc/bin.h"
#include "tools/replay/policy.h"

#define MIN_BLOCK    UINT64_C(512)  /* kMinBlockSize */
#define SMALL_SIZE   (1 * GPC_MIB)  /* kSmallSize */
#define SMALL_BUFFER (2 * GPC_MIB)  /* kSmallBuffer */
#define LARGE_BUFFER (20 * GPC_MIB) /* kLargeBuffer */
#define MIN_LARGE    (10 * GPC_MIB) /* kMinLargeAlloc */
#define ROUND_LARGE  (2 * GPC_MIB)  /* kRoundLarge */

/* Streams that a block records as its users, one bit each.  Workloads have fewer. */
#define MAX_USERS 64

/* A freed block that waits for an event.  Once the event has passed, the struct is kept with it for reuse. */
struct awaited {
	struct awaited *next;
	struct gpc_block *block;
	gpc_event event;
};

struct stream_pools {
	struct gpc_bins pools[GPC_N_POOL_KINDS];
	struct awaited *first; /* oldest */
	struct awaited **end;
	/* Expandable segments: the first block of each range; NULL: not reserved. */
	struct gpc_block *ranges[GPC_N_POOL_KINDS];
};

struct pytorch {
	struct gpc_machine *machine;
	struct gpc_driver *driver;
	uint64_t max_split_size; /* UINT64_MAX: none */
	uint32_t roundup_divisions;
	bool is_expandable;
	struct gpc_address_map blocks; /* live, by address */
	struct awaited *spare;
	uint64_t pending_bytes;
	uint64_t peak_pending_bytes;
	uint32_t n_streams;
	struct stream_pools streams[];
};

/*
 * A block's `mark` is its stream and its `number` its pool, so segments need no objects.  UNUSED is an unmapped part of
 * an expandable segment.  `requested` holds the bits of the block's users, `fence` the number of its pending events.
 */
static inline struct gpc_bins *pool_of(struct pytorch *self, const struct gpc_block *block)
{
	return &self->streams[block->mark].pools[block->number];
}

/* Coalesces the block and puts the result into its pool.  Returns the result. */
struct gpc_block *gpc_pytorch_make_free(struct pytorch *self, struct gpc_block *block);

/* Extends `left` by its right neighbour, and frees that struct; both are in no pool. */
void gpc_pytorch_absorb_next(struct gpc_block *left);

/* Cuts a block in no pool to `size`.  Returns the remainder, in the same state and no pool. */
struct gpc_block *gpc_pytorch_cut(struct gpc_block *block, uint64_t size);

/* ---- pytorch_streams.c ---- */

/* Records an event on each stream, other than its own, that used the block. */
GPC_MUST_CHECK enum gpc_status gpc_pytorch_await_users(
	struct pytorch *self, struct gpc_block *block);

/*
 * PyTorch's process_events: empties each queue up to the first event that has not passed.  With `waits`, waits for each
 * event, and so empties all queues.
 */
void gpc_pytorch_process_events(struct pytorch *self, bool waits);
void gpc_pytorch_end_streams(struct pytorch *self);

/* ---- pytorch_ranges.c ---- */

/* Returns the best fit among the free blocks, still in its pool; NULL: none fits. */
struct gpc_block *gpc_pytorch_find_in_range(
	struct pytorch *self, uint64_t size, uint32_t stream, enum gpc_pool_kind kind);

/* Maps memory for a free block of at least `size` bytes, in no pool. */
GPC_MUST_CHECK enum gpc_status gpc_pytorch_expand(struct pytorch *self, uint64_t size,
	uint32_t stream, enum gpc_pool_kind kind, struct gpc_block **ret_block);

/* Unmaps the handles that lie wholly inside free blocks. */
void gpc_pytorch_shrink(struct pytorch *self);

/* All blocks must be free. */
void gpc_pytorch_end_ranges(struct pytorch *self);

#endif
