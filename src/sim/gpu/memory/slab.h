/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs: the memory that a memory pool has reserved, cut into pieces.
 *
 *      slab of 32 MiB  | USED | FREED on stream 3 | FREE              |      reserved = all slabs
 *                                  |                 ^
 *                                  '-- the stream passes the free
 *
 * Invariants  1 The pieces of a slab cover it without gaps.  2 Two FREE pieces are never adjacent.
 * Threads     With the lock of mempool.h held.
 * Failure     The driver's codes.
 * Limits      First fit; a search looks at every piece.
 */
#ifndef GPC_SIM_SLAB_H
#define GPC_SIM_SLAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "driver/cuda_abi.h"

#define GPC_SIM_SLAB (UINT64_C(32) << 20) /* a slab's size is a multiple of this if memory allows */

struct gpc_sim_device;
struct gpc_sim_slab;

enum gpc_sim_piece_state {
	GPC_SIM_PIECE_FREE,
	GPC_SIM_PIECE_USED,
	GPC_SIM_PIECE_FREED, /* the stream has not reached the free yet */
};

struct gpc_sim_piece {
	struct gpc_list link; /* in the slab, in order of address */
	struct gpc_sim_slab *slab;
	enum gpc_sim_piece_state state;
	uint64_t ptr;
	uint64_t size;
	uint64_t free_number; /* FREED: the number of the free */
	uint64_t free_stream; /* FREED: its stream, as the `stream` of gpc_sim_slabs_take */
};

struct gpc_sim_slabs {
	struct gpc_list list;
	struct gpc_sim_device *device; /* NULL: memory of the host */
	uint64_t reserved;
	uint64_t max; /* bytes to reserve at most; 0: no limit */
};

void gpc_sim_slabs_init(struct gpc_sim_slabs *slabs, struct gpc_sim_device *device, uint64_t max);

/*
 * Adds a slab for a request of `size` bytes: in multiples of GPC_SIM_SLAB, or, if memory is short, just large enough.
 */
CUresult gpc_sim_slabs_grow(struct gpc_sim_slabs *slabs, uint64_t size);

/* Takes a piece of exactly this size; NULL if no slab has room that `stream`, a number of the caller's, may use. */
struct gpc_sim_piece *gpc_sim_slabs_take(
	struct gpc_sim_slabs *slabs, uint64_t size, uint64_t stream);

/* The piece in use that contains an address; NULL if there is none. */
struct gpc_sim_piece *gpc_sim_slabs_find(const struct gpc_sim_slabs *slabs, uint64_t ptr);

/* True for an address in any slab, in use or not. */
bool gpc_sim_slabs_have(const struct gpc_sim_slabs *slabs, uint64_t ptr);

/* Frees a piece at once, and coalesces it with its free neighbours. */
void gpc_sim_piece_free(struct gpc_sim_piece *piece);

/* Call when a stream passes the free with this number: what is left of the freed piece becomes FREE. */
void gpc_sim_slabs_finish(struct gpc_sim_slabs *slabs, uint64_t number);

/* Returns wholly free slabs as long as at least `keep` bytes stay reserved. */
void gpc_sim_slabs_trim(struct gpc_sim_slabs *slabs, uint64_t keep);

/* Returns all slabs, in use or not. */
void gpc_sim_slabs_clear(struct gpc_sim_slabs *slabs);

/* True if no piece is in use and no free is pending. */
bool gpc_sim_slabs_are_idle(const struct gpc_sim_slabs *slabs);

#endif
