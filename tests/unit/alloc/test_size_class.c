/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc/size_class.h"
#include "unit.h"

TEST(a_request_is_rounded_to_whole_grains)
{
	assert_int_equal(gpc_size_round(1, 0), 512);
	assert_int_equal(gpc_size_round(512, 0), 512);
	assert_int_equal(gpc_size_round(513, 0), 1024);
	assert_int_equal(gpc_size_round(GPC_MIB + 1, 1), GPC_MIB + 512);
	assert_int_equal(gpc_size_round(GPC_SIZE_MAX, 0), GPC_SIZE_MAX);
}

TEST(divisions_round_to_steps_between_two_powers_of_two)
{
	/* The documented example of PyTorch: 1200 with 4 divisions; in bytes large enough for the grain. */
	assert_int_equal(gpc_size_round(1200 * GPC_KIB, 4), 1280 * GPC_KIB);
	assert_int_equal(gpc_size_round(1024 * GPC_KIB, 4), 1024 * GPC_KIB);
	assert_int_equal(gpc_size_round(1024 * GPC_KIB + 1, 4), 1280 * GPC_KIB);
	assert_int_equal(gpc_size_round(1793 * GPC_KIB, 4), 2048 * GPC_KIB);
	assert_int_equal(gpc_size_round(GPC_SIZE_MAX, 4), GPC_SIZE_MAX);
}

TEST(steps_finer_than_a_grain_are_grains)
{
	assert_int_equal(gpc_size_round(600, 8), 1024);
	assert_int_equal(gpc_size_round(4097, 16), 4608);
	assert_int_equal(gpc_size_round(5000, 8), 5120);
}

TEST(rounding_never_shrinks_and_stays_on_the_grain)
{
	static const uint32_t divisions[] = { 0, 1, 2, 3, 4, 7, 8, 16, 63, 64 };

	for (uint64_t size = 1; size < 300 * GPC_MIB; size += size / 7 + 1) {
		for (size_t i = 0; i < N_OF(divisions); i++) {
			uint64_t rounded = gpc_size_round(size, divisions[i]);

			assert_true(rounded >= size);
			assert_int_equal(rounded % GPC_GRAIN, 0);
			assert_int_equal(gpc_size_round(rounded, divisions[i]), rounded);
		}
	}
}

TEST(the_pool_and_the_segment_follow_from_the_size)
{
	static const struct {
		uint64_t rounded;
		enum gpc_pool_kind kind;
		uint64_t segment;
		uint64_t whole; /* where rests lie idle: a whole number of blocks */
		uint64_t tight;
	} rows[] = {
		{ 512, GPC_POOL_SMALL, 2 * GPC_MIB, 2 * GPC_MIB, 2 * GPC_MIB },
		{ GPC_MIB, GPC_POOL_SMALL, 2 * GPC_MIB, 2 * GPC_MIB, 2 * GPC_MIB },
		{ GPC_MIB + 512, GPC_POOL_LARGE, 20 * GPC_MIB, 20 * GPC_MIB, 2 * GPC_MIB },
		{ 3 * GPC_MIB, GPC_POOL_LARGE, 20 * GPC_MIB, 18 * GPC_MIB, 4 * GPC_MIB },
		{ 8 * GPC_MIB, GPC_POOL_LARGE, 20 * GPC_MIB, 16 * GPC_MIB, 8 * GPC_MIB },
		{ 10 * GPC_MIB - 512, GPC_POOL_LARGE, 20 * GPC_MIB, 20 * GPC_MIB, 10 * GPC_MIB },
		{ 10 * GPC_MIB, GPC_POOL_LARGE, 10 * GPC_MIB, 10 * GPC_MIB, 10 * GPC_MIB },
		{ 10 * GPC_MIB + 512, GPC_POOL_LARGE, 12 * GPC_MIB, 12 * GPC_MIB, 12 * GPC_MIB },
		{ 201 * GPC_MIB, GPC_POOL_LARGE, 202 * GPC_MIB, 202 * GPC_MIB, 202 * GPC_MIB },
	};

	for (size_t i = 0; i < N_OF(rows); i++) {
		assert_int_equal(gpc_size_pool(rows[i].rounded), rows[i].kind);
		assert_int_equal(gpc_size_segment(rows[i].rounded, false), rows[i].segment);
		assert_int_equal(gpc_size_segment(rows[i].rounded, true), rows[i].whole);
		assert_int_equal(gpc_size_tight_segment(rows[i].rounded), rows[i].tight);
	}
}

TEST(bins_grow_with_the_size_and_cover_every_size)
{
	uint32_t before = 0;

	for (uint64_t size = GPC_GRAIN; size <= GPC_SIZE_MAX;
		size += gpc_round_up(size / 40 + 1, GPC_GRAIN)) {
		uint32_t bin = gpc_size_bin(size);

		assert_true(bin >= before);
		assert_true(bin < GPC_N_BINS);
		before = bin;
	}
	assert_true(gpc_size_bin(2 * GPC_SIZE_MAX) < GPC_N_BINS);
}

TEST(no_bin_is_left_out_and_none_is_wider_than_an_eighth)
{
	uint64_t first = GPC_GRAIN;

	for (uint64_t size = GPC_GRAIN; size < 8 * GPC_MIB; size += GPC_GRAIN) {
		uint32_t bin = gpc_size_bin(size);

		if (bin != gpc_size_bin(first)) {
			assert_int_equal(bin, gpc_size_bin(first) + 1);
			first = size;
		}
		assert_true((size - first) * 8 <= first);
		if (size <= 4 * GPC_KIB)
			assert_int_equal(size, first);
	}
}

TEST(small_blocks_are_cut_wherever_a_grain_is_left)
{
	assert_true(gpc_size_should_split(GPC_POOL_SMALL, 1024, 512, 0));
	assert_false(gpc_size_should_split(GPC_POOL_SMALL, 1024, 1024, 0));
	assert_true(gpc_size_should_split(GPC_POOL_SMALL, GPC_MIB, 512, 512));
}

TEST(large_blocks_are_cut_where_the_rest_is_useful_and_the_limit_allows)
{
	assert_false(gpc_size_should_split(GPC_POOL_LARGE, 5 * GPC_MIB, 4 * GPC_MIB, 0));
	assert_true(gpc_size_should_split(GPC_POOL_LARGE, 5 * GPC_MIB + 512, 4 * GPC_MIB, 0));
	assert_true(
		gpc_size_should_split(GPC_POOL_LARGE, 64 * GPC_MIB, 31 * GPC_MIB, 32 * GPC_MIB));
	assert_false(
		gpc_size_should_split(GPC_POOL_LARGE, 64 * GPC_MIB, 32 * GPC_MIB, 32 * GPC_MIB));
}
