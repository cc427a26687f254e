/* SPDX-License-Identifier: Apache-2.0 */
/* Sampled stacks: estimates from the samples, with fixed seeds. */
#include "unit.h"

#include "model/share.h"
#include "stack/sample.h"

#define N_SITES  6
#define N_ROUNDS 400000

/* Sizes of a site: from `least` on, `span` different ones. */
static const struct {
	uint64_t least, span;
} sites[N_SITES] = {
	{ 512, 1 },              /* very small ones, all alike */
	{ 256 * GPC_KIB, 1 },    /* a divisor of the step */
	{ 1, 4096 },             /* odd ones */
	{ 100000, 800000 },      /* a wide range */
	{ GPC_MIB - 1, 1 },      /* the last sampled size */
	{ GPC_MIB, 4 * GPC_MIB } /* never sampled */
};

struct sums {
	double bytes, blocks;
};

/* What the sites asked for, and what sampling says of it. */
static void sample(uint64_t seed, struct sums *asked, struct sums *told)
{
	struct gpc_sampler sampler = { seed }, sizes = { seed + 1 };

	for (uint64_t i = 0; i < N_ROUNDS; i++) {
		unsigned site = (unsigned)(i % N_SITES); /* they alternate */
		uint64_t size = sites[site].least + gpc_sampler_next(&sizes) % sites[site].span;
		uint64_t address = 512 * (gpc_sampler_next(&sizes) % 1000000);
		bool taken = gpc_sampler_takes(&sampler, size);
		struct gpc_share share = gpc_share_of(GPC_SAMPLE_BYTES, taken, address, size);

		asked[site].bytes += (double)size;
		asked[site].blocks += 1;
		told[site].bytes += (double)share.bytes;
		told[site].blocks += (double)share.blocks;
	}
}

static void assert_near(double told, double asked, double variance)
{
	double off = told - asked;

	/* Four standard deviations: with the seeds below, as with 99.99 % of others. */
	assert_true(off * off <= 16 * variance);
}

TEST(sums_by_site_are_right_in_the_mean)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct sums asked[N_SITES] = { 0 }, told[N_SITES] = { 0 };

		sample(seed, asked, told);
		for (unsigned i = 0; i < N_SITES; i++) {
			/* Of one request: bytes size * MiB, blocks at most MiB / size + 1. */
			double most = (double)GPC_SAMPLE_BYTES / (double)sites[i].least + 1;

			assert_near(told[i].bytes, asked[i].bytes,
				asked[i].bytes * (double)GPC_SAMPLE_BYTES);
			assert_near(told[i].blocks, asked[i].blocks, asked[i].blocks * most);
		}
	}
}

TEST(all_seeds_together_have_no_bias)
{
	struct sums asked[N_SITES] = { 0 }, told[N_SITES] = { 0 };

	for (uint64_t seed = 100; seed < 140; seed++)
		sample(seed << 32, asked, told);
	for (unsigned i = 0; i < N_SITES; i++) {
		double bytes = told[i].bytes / asked[i].bytes;
		double blocks = told[i].blocks / asked[i].blocks;

		/* The smallest site asked for 1.3 GiB in all: 3 % is a standard deviation there. */
		assert_true(bytes > 0.9 && bytes < 1.1);
		assert_true(blocks > 0.9 && blocks < 1.1);
		if (i == N_SITES - 1)
			assert_true(bytes == 1 && blocks == 1);
	}
}

TEST(what_is_not_sampled_counts_as_it_is)
{
	struct gpc_share share = gpc_share_of(0, 0, 512, 100);

	assert_true(share.bytes == 100 && share.blocks == 1);
	share = gpc_share_of(GPC_MIB, 7, 512, GPC_MIB);
	assert_true(share.bytes == GPC_MIB && share.blocks == 1);
	share = gpc_share_of(GPC_MIB, 7, 512, 0);
	assert_true(share.bytes == 0 && share.blocks == 1);
	share = gpc_share_of(GPC_MIB, 0, 512, 100);
	assert_true(share.bytes == 0 && share.blocks == 0);
}

TEST(the_same_block_always_counts_the_same)
{
	for (uint64_t address = 0; address < 1000; address++) {
		struct gpc_share a = gpc_share_of(GPC_MIB, 1, address * 512, 300000);
		struct gpc_share b = gpc_share_of(GPC_MIB, 1, address * 512, 300000);

		assert_true(a.bytes == GPC_MIB && a.bytes == b.bytes && a.blocks == b.blocks);
		assert_in_range(a.blocks, 3, 4); /* 3.495 in the mean */
	}
}
