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
#include "model/torch.h"
#include "tools/replay/policy.h"

#define MIN_BLOCK UINT64_C(512) /* kMinBlockSize */

/* The first address of the model, above those of the simulated driver. */
#define GPC_PYTORCH_START UINT64_C(0x400000000000)

/* A block records its users as bits, so streams from this number on are not recorded. */
#define MAX_USERS 64

/* A freed block that waits for an event.  After the event has passed, `spare` keeps the struct and its event. */
struct awaited {
	struct awaited *next;
	struct gpc_block *block;
	gpc_event event;
};

struct stream_pools {
	struct gpc_bins pools[GPC_N_POOL_KINDS];
	struct awaited *first; /* the queue, oldest first */
	struct awaited **end;  /* where the next element is linked */
	/* With expandable segments: the first block of each address range; NULL: not reserved yet. */
	struct gpc_block *ranges[GPC_N_POOL_KINDS];
	struct gpc_block *gaps[GPC_N_POOL_KINDS]; /* the first unmapped block of each; NULL: none */
};

struct pytorch {
	struct gpc_machine *machine;
	struct gpc_driver *driver;
	uint64_t max_split_size; /* UINT64_MAX: none */
	uint32_t roundup_divisions;
	bool is_expandable;
	uint64_t next_address;         /* of the next segment */
	struct gpc_address_map blocks; /* live, by address */
	struct awaited *spare;
	uint64_t pending_bytes;
	uint64_t peak_pending_bytes;
	uint32_t n_streams;
	struct stream_pools streams[];
};

/*
 * The model uses some members of struct gpc_block for values of its own:
 *
 *      mark         the stream           requested    the streams that use the block, one bit each
 *      number       the kind of pool     fence        the number of events that the block waits for
 *      segment      of which only `address` is used, the driver's; NULL in an address range
 *
 * `address` is not the driver's, either: each new segment begins where the one before it ended, so bins, which are in
 * order of address, are in order of age.  A block in state GPC_BLOCK_UNUSED is an unmapped part of an address range.
 */
static inline struct gpc_bins *pool_of(struct pytorch *self, const struct gpc_block *block)
{
	return &self->streams[block->mark].pools[block->number];
}

/* Makes the block free, coalesces it, and puts the result into its pool.  Returns the result. */
struct gpc_block *gpc_pytorch_make_free(struct pytorch *self, struct gpc_block *block);

/* Extends `left` by its right neighbour, and frees the neighbour's struct; both are in no pool. */
void gpc_pytorch_absorb_next(struct gpc_block *left);

/* Cuts a block that is in no pool to `size`.  Returns the remainder, in the same state and in no pool. */
struct gpc_block *gpc_pytorch_cut(struct gpc_block *block, uint64_t size);

/* ---- pytorch_streams.c ---- */

/* Records an event on each stream that used the block besides its own, and queues the block for these events. */
GPC_MUST_CHECK enum gpc_status gpc_pytorch_await_users(
	struct pytorch *self, struct gpc_block *block);

/*
 * As PyTorch's process_events, empties each queue up to the first event that has not passed.  With `waits`, the host
 * waits for each event, so all queues become empty.
 */
void gpc_pytorch_process_events(struct pytorch *self, bool waits);
void gpc_pytorch_end_streams(struct pytorch *self);

/* ---- pytorch_ranges.c ---- */

/* Returns the free block that PyTorch would choose, which stays in its pool; NULL: none fits. */
struct gpc_block *gpc_pytorch_find_in_range(
	struct pytorch *self, uint64_t size, uint32_t stream, enum gpc_pool_kind kind);

/* Maps memory until there is a free block of at least `size` bytes, and takes the block out of its pool. */
GPC_MUST_CHECK enum gpc_status gpc_pytorch_expand(struct pytorch *self, uint64_t size,
	uint32_t stream, enum gpc_pool_kind kind, struct gpc_block **ret_block);

/* Unmaps and releases all handles that lie wholly inside free blocks. */
void gpc_pytorch_shrink(struct pytorch *self);

/* All blocks must be free. */
void gpc_pytorch_end_ranges(struct pytorch *self);

#endif
