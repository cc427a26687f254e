/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bins: the free blocks of a pool, ordered by size and then by address.
 *
 *      bitmap   0 1 0 0 1 1 0 ...            a set bit: that bin holds something
 *                 |     | |
 *      bins      tree  tree tree             one tree a bin, in order of (size, address)
 *
 * The smallest block that is large enough is wanted, and of those the one at the lowest address,
 * so that high addresses drain and their segments become idle.  It is in the request's own bin, or
 * else it is the first of the next bin that holds anything, which the bitmap names.  A program
 * uses few sizes, so the trees are shallow; they keep the exact order when it does not.
 *
 * The trees are treaps whose priority is a hash of the address: balanced without any stored
 * balance.
 *
 * Invariants  1 A bit is set if and only if its tree is not empty.  2 In-order is ascending (size,
 *             address).
 * Threads     The pool's lock.
 * Failure     None; nothing is allocated.
 */
#ifndef GPC_ALLOC_BIN_H
#define GPC_ALLOC_BIN_H

#include "alloc/block.h"

struct gpc_bins {
	uint64_t bitmap[GPC_N_BINS / 64];
	struct gpc_block *roots[GPC_N_BINS];
};

/* Puts in a block that is not in any bin. */
void gpc_bins_insert(struct gpc_bins *bins, struct gpc_block *block);

/* Takes out a block that is in the bin of its size. */
void gpc_bins_remove(struct gpc_bins *bins, struct gpc_block *block);

/*
 * The smallest block of at least `size` bytes, the lowest among equals; NULL where there is
 * none.  It stays in.
 */
struct gpc_block *gpc_bins_find(const struct gpc_bins *bins, uint64_t size);

/* The size of the largest block, 0 where there is none. */
uint64_t gpc_bins_largest(const struct gpc_bins *bins);

/* Calls visit(block, arg) for every block, in order of size and address. */
void gpc_bins_each(
	const struct gpc_bins *bins, void (*visit)(struct gpc_block *block, void *arg), void *arg);

#endif
