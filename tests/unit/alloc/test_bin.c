/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc/bin.h"
#include "unit.h"

#define N_BLOCKS 2000

static struct gpc_bins bins;
static struct gpc_block blocks[N_BLOCKS];

static uint64_t random_number(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static int start_empty(void **state)
{
	memset(&bins, 0, sizeof bins);
	memset(blocks, 0, sizeof blocks);
	return 0;
}

FIXTURE(start_empty, NULL);

static void put(size_t i, uint64_t size, gpc_devptr address)
{
	blocks[i] = (struct gpc_block){ .size = size, .address = address };
	gpc_bins_insert(&bins, &blocks[i]);
}

TEST(empty_bins_have_nothing_for_anybody)
{
	assert_null(gpc_bins_find(&bins, GPC_GRAIN));
	assert_null(gpc_bins_find(&bins, GPC_SIZE_MAX));
	assert_int_equal(gpc_bins_largest(&bins), 0);
}

TEST(the_smallest_block_that_is_large_enough_is_found)
{
	put(0, 8192, 1 << 20);
	put(1, 4096, 2 << 20);
	put(2, GPC_GIB, 3 << 20);
	assert_ptr_equal(gpc_bins_find(&bins, 512), &blocks[1]);
	assert_ptr_equal(gpc_bins_find(&bins, 4608), &blocks[0]);
	assert_ptr_equal(gpc_bins_find(&bins, 8704), &blocks[2]);
	assert_null(gpc_bins_find(&bins, GPC_GIB + 512));
	assert_int_equal(gpc_bins_largest(&bins), GPC_GIB);
}

TEST(of_equal_blocks_the_lowest_is_found)
{
	put(0, 8192, 30 << 20);
	put(1, 8192, 10 << 20);
	put(2, 8192, 20 << 20);
	assert_ptr_equal(gpc_bins_find(&bins, 8192), &blocks[1]);
	gpc_bins_remove(&bins, &blocks[1]);
	assert_ptr_equal(gpc_bins_find(&bins, 8192), &blocks[2]);
}

TEST(a_block_too_small_in_the_right_bin_is_passed_over)
{
	uint64_t size = 64 * GPC_KIB;

	assert_int_equal(gpc_size_bin(size), gpc_size_bin(size + 512));
	put(0, size, 1 << 20);
	assert_null(gpc_bins_find(&bins, size + 512));
	put(1, 2 * size, 2 << 20);
	assert_ptr_equal(gpc_bins_find(&bins, size + 512), &blocks[1]);
}

TEST(a_bit_is_set_exactly_while_its_bin_holds_something)
{
	uint32_t bin = gpc_size_bin(4096);

	put(0, 4096, 1 << 20);
	put(1, 4096, 2 << 20);
	assert_true(bins.bitmap[bin / 64] >> (bin % 64) & 1);
	gpc_bins_remove(&bins, &blocks[0]);
	assert_true(bins.bitmap[bin / 64] >> (bin % 64) & 1);
	gpc_bins_remove(&bins, &blocks[1]);
	for (size_t i = 0; i < N_OF(bins.bitmap); i++)
		assert_int_equal(bins.bitmap[i], 0);
}

struct walk {
	uint64_t n;
	uint64_t size;
	gpc_devptr address;
};

static void expect_order(struct gpc_block *block, void *arg)
{
	struct walk *walk = arg;

	assert_true(block->size > walk->size ||
		    (block->size == walk->size && block->address > walk->address));
	walk->n++;
	walk->size = block->size;
	walk->address = block->address;
}

/* The obvious model: look at every block that is in. */
static struct gpc_block *find_slowly(const bool *is_in, uint64_t size)
{
	struct gpc_block *best = NULL;

	for (size_t i = 0; i < N_BLOCKS; i++) {
		struct gpc_block *at = &blocks[i];

		if (!is_in[i] || at->size < size)
			continue;
		if (!best || at->size < best->size ||
			(at->size == best->size && at->address < best->address))
			best = at;
	}
	return best;
}

TEST(random_insertions_and_removals_agree_with_a_plain_search)
{
	static bool is_in[N_BLOCKS];
	struct walk walk = { 0 };
	uint64_t n = 0;

	for (size_t i = 0; i < N_BLOCKS; i++) {
		blocks[i].address = (i + 1) * GPC_GRAIN;
		blocks[i].size = (1 + random_number() % 64) * GPC_GRAIN << (random_number() % 10);
	}
	for (int step = 0; step < 20000; step++) {
		size_t i = random_number() % N_BLOCKS;

		if (is_in[i])
			gpc_bins_remove(&bins, &blocks[i]);
		else
			gpc_bins_insert(&bins, &blocks[i]);
		is_in[i] = !is_in[i];
		n += is_in[i] ? 1 : UINT64_MAX;
		if (step % 10 == 0) {
			uint64_t size = (1 + random_number() % 40000) * GPC_GRAIN;

			assert_ptr_equal(gpc_bins_find(&bins, size), find_slowly(is_in, size));
		}
	}
	gpc_bins_each(&bins, expect_order, &walk);
	assert_int_equal(walk.n, n);
	assert_int_equal(gpc_bins_largest(&bins), walk.size);
	memset(is_in, 0, sizeof is_in);
}

static int depth(const struct gpc_block *at)
{
	int left;
	int right;

	if (!at)
		return 0;
	left = depth(at->tree.left);
	right = depth(at->tree.right);
	return 1 + (left > right ? left : right);
}

TEST(a_tree_of_equal_sizes_in_address_order_stays_shallow)
{
	for (size_t i = 0; i < N_BLOCKS; i++)
		put(i, GPC_MIB, (i + 1) * GPC_MIB);
	/* Expected about 1.4 log2(2000) = 15; a list would be 2000. */
	assert_true(depth(bins.roots[gpc_size_bin(GPC_MIB)]) < 45);
}
