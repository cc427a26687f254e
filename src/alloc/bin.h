/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bins: the free blocks of a pool, ordered by size and then by address.
 *
 *      bitmap   0 1 0 0 1 1 0 ...            1: that bin is not empty
 *                 |     | |
 *      bins      tree  tree tree             one tree per bin, in order of (size, address)
 *
 * A search is best fit, lowest address first, so that high addresses drain and their segments become
 * idle.  The best fit is in the request's own bin, or is the first block of the next nonempty bin,
 * which the bitmap names.  The trees are shallow: a bin spans at most 12.5 % of sizes, and of the small blocks
 * of one size only the lowest of each segment is in the tree (grain_map.h).
 *
 * The trees are treaps with a hash of the address as priority, so nothing is stored for balance.
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

/* Inserts a block that is in no bin. */
void gpc_bins_insert(struct gpc_bins *bins, struct gpc_block *block);

/* Removes a block from the bin of its size. */
void gpc_bins_remove(struct gpc_bins *bins, struct gpc_block *block);

/*
 * Returns the smallest block of at least `size` bytes, the lowest among equals, or NULL.  The block
 * stays in its bin.
 */
struct gpc_block *gpc_bins_find(const struct gpc_bins *bins, uint64_t size);

/* The size of the largest block; 0: all bins are empty. */
uint64_t gpc_bins_largest(const struct gpc_bins *bins);

/* Calls visit(block, arg) for every block, in order of size and address. */
void gpc_bins_each(
	const struct gpc_bins *bins, void (*visit)(struct gpc_block *block, void *arg), void *arg);

#endif
