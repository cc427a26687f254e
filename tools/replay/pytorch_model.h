/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the model of PyTorch's allocator share (policy_pytorch.c).  Nobody else includes this.
 *
 *      policy_pytorch.c ---> pytorch_streams.c    blocks that other streams used
 *                       '--> pytorch_ranges.c     expandable segments
 */
#ifndef GPC_REPLAY_PYTORCH_MODEL_H
#define GPC_REPLAY_PYTORCH_MODEL_H

#include "alloc/address_map.h"
#include "alloc/bin.h"
#include "tools/replay/policy_pytorch.h"

#define MIN_BLOCK    UINT64_C(512)  /* kMinBlockSize */
#define SMALL_SIZE   (1 * GPC_MIB)  /* kSmallSize */
#define SMALL_BUFFER (2 * GPC_MIB)  /* kSmallBuffer */
#define LARGE_BUFFER (20 * GPC_MIB) /* kLargeBuffer */
#define MIN_LARGE    (10 * GPC_MIB) /* kMinLargeAlloc */
#define ROUND_LARGE  (2 * GPC_MIB)  /* kRoundLarge */

/* Streams that a block remembers as its users: a bit each.  Workloads have fewer. */
#define MAX_USERS 64

/* A freed block that waits for a stream; kept with its event when that has passed. */
struct awaited {
	struct awaited *next;
	struct gpc_block *block;
	gpc_event event;
};

struct stream_pools {
	struct gpc_bins pools[GPC_N_POOL_KINDS];
	struct awaited *first; /* oldest */
	struct awaited **end;
	struct gpc_block *ranges
		[GPC_N_POOL_KINDS]; /* expandable: the first block of each; NULL: not reserved */
};

struct pytorch {
	struct gpc_machine *machine;
	struct gpc_driver *driver;
	struct gpc_policy_settings settings;
	bool is_expandable;
	struct gpc_address_map blocks; /* live, by address */
	struct awaited *spare;
	uint64_t pending_bytes;
	uint64_t peak_pending_bytes;
	uint32_t n_streams;
	struct stream_pools streams[];
};

/*
 * `mark` of a block is its stream, `number` its pool: segments need no object of their own.
 * A block in state UNUSED is a part of an expandable segment that no memory is mapped to.
 * `requested` has the bits of its users, `fence` the number of their events that are awaited.
 */
static inline struct gpc_bins *pool_of(struct pytorch *self, const struct gpc_block *block)
{
	return &self->streams[block->mark].pools[block->number];
}

/* Merges the block with its free neighbours and puts the whole into its pool.  Returns it. */
struct gpc_block *gpc_pytorch_make_free(struct pytorch *self, struct gpc_block *block);

/* `left` and `right` are neighbours, in no pool: `left` becomes both. */
void gpc_pytorch_absorb(struct gpc_block *left, struct gpc_block *right);

/* Cuts a block in no pool to `size`; the rest, in the same state and no pool, follows it.  NULL: no memory. */
struct gpc_block *gpc_pytorch_cut(struct gpc_block *block, uint64_t size);

/* ---- pytorch_streams.c ---- */

/* An event on each stream that used the block besides its own. */
GPC_MUST_CHECK enum gpc_status gpc_pytorch_await_users(
	struct pytorch *self, struct gpc_block *block);

/* process_events: each queue up to the first event that has not passed. */
void gpc_pytorch_process_events(struct pytorch *self);
void gpc_pytorch_wait_for_events(struct pytorch *self);
void gpc_pytorch_end_streams(struct pytorch *self);

/* ---- pytorch_ranges.c ---- */

/* The best of the free blocks that are large enough, in its pool; NULL: none is. */
struct gpc_block *gpc_pytorch_find_in_range(
	struct pytorch *self, uint64_t size, uint32_t stream, enum gpc_pool_kind kind);

/* A free block of at least `size` bytes, in no pool, for which memory was mapped. */
GPC_MUST_CHECK enum gpc_status gpc_pytorch_expand(struct pytorch *self, uint64_t size,
	uint32_t stream, enum gpc_pool_kind kind, struct gpc_block **ret_block);

/* Unmaps what lies wholly in free blocks. */
void gpc_pytorch_shrink(struct pytorch *self);

/* Every block is free. */
void gpc_pytorch_end_ranges(struct pytorch *self);

#endif
