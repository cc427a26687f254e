/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A treap.  Insertion descends until the new block has the higher priority, splits the subtree there by the new block's
 * key, and attaches both halves to the block.  Removal merges the block's two subtrees into its place.  Both are loops
 * over pointers to links; the expected depth is 1.4 log2 n (Seidel and Aragon, 1996).
 */
#include "alloc/bin.h"

#include <stddef.h>

#include "base/check.h"

/*
 * Returns a hash of the address (the finaliser of splitmix64).  Random priorities keep the tree shallow even if its
 * blocks are inserted in order.
 */
static uint64_t priority(const struct gpc_block *block)
{
	uint64_t x = block->address / GPC_GRAIN;

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static bool is_before(const struct gpc_block *a, uint64_t size, gpc_devptr address)
{
	return a->size < size || (a->size == size && a->address < address);
}

/* The first bin >= `bin` that is not empty, or GPC_N_BINS. */
static uint32_t next_bin(const struct gpc_bins *bins, uint32_t bin)
{
	uint32_t word = bin / 64;
	uint64_t bits;

	if (bin >= GPC_N_BINS)
		return GPC_N_BINS;
	bits = bins->bitmap[word] & (~UINT64_C(0) << (bin % 64));
	while (bits == 0) {
		if (++word == GPC_N_BINS / 64)
			return GPC_N_BINS;
		bits = bins->bitmap[word];
	}
	return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* Splits `tree` into the blocks before `block`, in the order of the tree, and those after it. */
static void split(struct gpc_block *tree, const struct gpc_block *block,
	struct gpc_block **ret_before, struct gpc_block **ret_after)
{
	while (tree) {
		if (is_before(tree, block->size, block->address)) {
			*ret_before = tree;
			ret_before = &tree->tree.right;
			tree = tree->tree.right;
		} else {
			*ret_after = tree;
			ret_after = &tree->tree.left;
			tree = tree->tree.left;
		}
	}
	*ret_before = NULL;
	*ret_after = NULL;
}

void gpc_bins_insert(struct gpc_bins *bins, struct gpc_block *block)
{
	uint32_t bin = gpc_size_bin(block->size);
	struct gpc_block **link = &bins->roots[bin];
	uint64_t block_priority = *link ? priority(block) : 0;

	while (*link && priority(*link) > block_priority)
		link = is_before(*link, block->size, block->address) ? &(*link)->tree.right
								     : &(*link)->tree.left;
	split(*link, block, &block->tree.left, &block->tree.right);
	*link = block;
	bins->bitmap[bin / 64] |= UINT64_C(1) << (bin % 64);
}

void gpc_bins_remove(struct gpc_bins *bins, struct gpc_block *block)
{
	uint32_t bin = gpc_size_bin(block->size);
	struct gpc_block **link = &bins->roots[bin];
	struct gpc_block *left = block->tree.left;
	struct gpc_block *right = block->tree.right;

	while (*link != block) {
		GPC_ASSERT(*link);
		if (!*link)
			return;
		link = is_before(*link, block->size, block->address) ? &(*link)->tree.right
								     : &(*link)->tree.left;
	}
	while (left && right) {
		if (priority(left) > priority(right)) {
			*link = left;
			link = &left->tree.right;
			left = left->tree.right;
		} else {
			*link = right;
			link = &right->tree.left;
			right = right->tree.left;
		}
	}
	*link = left ? left : right;
	if (!bins->roots[bin])
		bins->bitmap[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
}

struct gpc_block *gpc_bins_find(const struct gpc_bins *bins, uint64_t size)
{
	uint32_t bin = gpc_size_bin(size);
	struct gpc_block *best = NULL;
	struct gpc_block *at;

	for (at = bins->roots[bin]; at;) {
		if (is_before(at, size, 0)) {
			at = at->tree.right;
		} else {
			best = at;
			at = at->tree.left;
		}
	}
	if (best)
		return best;
	bin = next_bin(bins, bin + 1);
	if (bin == GPC_N_BINS)
		return NULL;
	for (best = bins->roots[bin]; best->tree.left; best = best->tree.left)
		;
	return best;
}

uint64_t gpc_bins_largest(const struct gpc_bins *bins)
{
	const struct gpc_block *at;

	for (uint32_t word = GPC_N_BINS / 64; word-- > 0;) {
		uint64_t bits = bins->bitmap[word];

		if (bits == 0)
			continue;
		at = bins->roots[word * 64 + 63 - (uint32_t)__builtin_clzll(bits)];
		while (at->tree.right)
			at = at->tree.right;
		return at->size;
	}
	return 0;
}

/* In order.  The recursion is a few dozen levels deep for any number of blocks that fits on a device. */
static void each_in_tree(
	struct gpc_block *tree, void (*visit)(struct gpc_block *, void *), void *arg)
{
	if (!tree)
		return;
	each_in_tree(tree->tree.left, visit, arg);
	visit(tree, arg);
	each_in_tree(tree->tree.right, visit, arg);
}

void gpc_bins_each(
	const struct gpc_bins *bins, void (*visit)(struct gpc_block *, void *), void *arg)
{
	for (uint32_t bin = next_bin(bins, 0); bin < GPC_N_BINS; bin = next_bin(bins, bin + 1))
		each_in_tree(bins->roots[bin], visit, arg);
}
