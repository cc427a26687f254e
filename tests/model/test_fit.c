/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that fits without us fits with us: programs that need nearly all of a device, on the plain driver and on
 * the allocator with its ladder.  Compares what each gets; where the plain driver is better, the test bounds by how
 * much, and docs/inside/MEMORY-POLICY.md says why.
 */
#include "oom/ladder.h"
#include "tests/model/random.h"
#include "tests/unit/alloc/stage.h"

#define DEVICE_BYTES (8 * GPC_GIB)
#define MAX_BLOCKS   8192

static struct stage stage;

/* A program: how it asks for memory and gives it back. */
struct side {
	const char *name;
	enum gpc_status (*alloc)(uint64_t size, gpc_devptr *ret_address);
	void (*free)(gpc_devptr address);
};

static enum gpc_status plain_alloc(uint64_t size, gpc_devptr *ret_address)
{
	return stage.drv.base.ops->mem_alloc(&stage.drv.base, size, ret_address);
}

static void plain_free(gpc_devptr address)
{
	assert_int_equal(stage.drv.base.ops->mem_free(&stage.drv.base, address), GPC_OK);
}

struct attempt {
	struct gpc_request request;
	gpc_devptr address;
};

static enum gpc_status try_again(void *arg)
{
	struct attempt *attempt = arg;

	return gpc_pool_retry(&stage.pool, &attempt->request, &attempt->address);
}

static enum gpc_status our_alloc(uint64_t size, gpc_devptr *ret_address)
{
	struct attempt attempt = { .request = stage_request(&stage, size) };
	struct gpc_pool *pools[] = { &stage.pool };
	struct gpc_ladder ladder = {
		.pool = &stage.pool,
		.pools = pools,
		.n_pools = 1,
		.wanted = gpc_size_round(size, 0),
		.attempt = try_again,
		.arg = &attempt,
	};
	enum gpc_status st = gpc_pool_alloc(&stage.pool, &attempt.request, &attempt.address);

	if (gpc_ladder_helps(st))
		st = gpc_ladder_climb(&ladder, st);
	if (!st)
		*ret_address = attempt.address;
	return st;
}

static void our_free(gpc_devptr address)
{
	stage_free(&stage, address);
}

static const struct side plain = { "plain driver", plain_alloc, plain_free };
static const struct side ours = { "gpucache", our_alloc, our_free };

/* Runs a program on a device of its own, and returns its result. */
static uint64_t run(
	const struct side *side, uint64_t (*program)(const struct side *, uint64_t), uint64_t size)
{
	struct gpc_sim_config config = stage_config();
	struct gpc_pool_params params = stage_params();
	uint64_t result;

	config.memory = DEVICE_BYTES;
	config.context_cost = 0;
	stage_open_on(&stage, &config, &params, NULL);
	result = program(side, size);
	stage_close(&stage);
	return result;
}

/* Allocates blocks of one size until that fails; returns their number. */
static uint64_t fill(const struct side *side, uint64_t size, gpc_devptr *blocks)
{
	uint64_t n = 0;

	while (n < MAX_BLOCKS && !side->alloc(size, &blocks[n]))
		n++;
	return n;
}

static void free_all(const struct side *side, const gpc_devptr *blocks, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		side->free(blocks[i]);
}

static uint64_t n_that_fit(const struct side *side, uint64_t size)
{
	static gpc_devptr blocks[MAX_BLOCKS];
	uint64_t n = fill(side, size, blocks);

	free_all(side, blocks, n);
	return n;
}

TEST(as_many_blocks_of_any_size_fit_as_on_the_plain_driver)
{
	static const uint64_t sizes[] = { 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 18, 20, 33, 100, 1000 };

	for (size_t i = 0; i < N_OF(sizes); i++) {
		uint64_t most = run(&plain, n_that_fit, sizes[i] * GPC_MIB);

		/* 6 and 8 MiB: the rests that the first segments leave (IDLE_PART). */
		assert_true(run(&ours, n_that_fit, sizes[i] * GPC_MIB) * 1000 >= most * 994);
	}
}

/* Fills the device with blocks of 4 MiB, frees every other one; then allocates 3 GiB in blocks of `size`. */
static uint64_t after_stripes(const struct side *side, uint64_t size)
{
	static gpc_devptr blocks[MAX_BLOCKS];
	static gpc_devptr others[MAX_BLOCKS];
	uint64_t n = fill(side, 4 * GPC_MIB, blocks);
	uint64_t wanted = 3 * GPC_GIB / size;
	uint64_t n_others = 0;

	for (uint64_t i = 0; i < n; i += 2)
		side->free(blocks[i]);
	if (wanted > MAX_BLOCKS)
		wanted = MAX_BLOCKS;
	while (n_others < wanted && !side->alloc(size, &others[n_others]))
		n_others++;
	free_all(side, others, n_others);
	for (uint64_t i = 1; i < n; i += 2)
		side->free(blocks[i]);
	return n_others;
}

TEST(small_requests_fit_into_gaps_of_large_blocks)
{
	static const uint64_t sizes[] = { 1000, 300000, GPC_MIB, 2 * GPC_MIB, 2 * GPC_MIB + 300000,
		4 * GPC_MIB };

	for (size_t i = 0; i < N_OF(sizes); i++)
		assert_int_equal(
			run(&ours, after_stripes, sizes[i]), run(&plain, after_stripes, sizes[i]));
}

/*
 * Blocks that share segments of 20 MiB since the device was empty keep these: up to 2/7 of the device, by the rule of
 * pool_room.c.
 */
TEST(large_requests_reuse_memory_that_was_not_shared)
{
	static const uint64_t sizes[] = { 10 * GPC_MIB, 64 * GPC_MIB, 640 * GPC_MIB };

	for (size_t i = 0; i < N_OF(sizes); i++) {
		uint64_t most = run(&plain, after_stripes, sizes[i]);

		assert_true(run(&ours, after_stripes, sizes[i]) * 7 >= most * 5 - 7);
	}
}

/*
 * Frees half of the device, in one block of `size` or in several; then allocates 7/8 of the device in blocks of 1 GiB,
 * and a last block, sized to leave only what uncut blocks may waste.
 */
static uint64_t after_large(const struct side *side, uint64_t size)
{
	gpc_devptr blocks[64];
	uint64_t n = 0;
	bool fits;

	for (uint64_t bytes = 0; bytes < 5 * GPC_GIB; bytes += size)
		assert_int_equal(side->alloc(size, &blocks[n++]), GPC_OK);
	free_all(side, blocks, n);
	for (n = 0; n < 7; n++)
		assert_int_equal(side->alloc(GPC_GIB, &blocks[n]), GPC_OK);
	fits = !side->alloc(GPC_GIB - DEVICE_BYTES / 50, &blocks[n]);
	free_all(side, blocks, n + fits);
	return fits;
}

TEST(freed_large_blocks_serve_other_large_requests)
{
	static const uint64_t sizes[] = { 100, 640, 1030, 2500, 5200 };

	for (size_t i = 0; i < N_OF(sizes); i++)
		assert_int_equal(run(&ours, after_large, sizes[i] * GPC_MIB), 1);
}

/* Frees one of two large blocks, keeps a small one instead, then fills the device with large ones. */
static uint64_t after_a_small_one(const struct side *side, uint64_t size)
{
	static gpc_devptr blocks[MAX_BLOCKS];
	gpc_devptr small;
	uint64_t n = 0;

	while (n < 2)
		assert_int_equal(side->alloc(size, &blocks[n++]), GPC_OK);
	side->free(blocks[--n]);
	assert_int_equal(side->alloc(8 * GPC_MIB, &small), GPC_OK);
	n += fill(side, size, blocks + n);
	free_all(side, blocks, n);
	side->free(small);
	return n;
}

TEST(a_small_block_pins_no_large_segment)
{
	static const uint64_t sizes[] = { 500, 1030, 1500 };

	for (size_t i = 0; i < N_OF(sizes); i++)
		assert_int_equal(run(&ours, after_a_small_one, sizes[i] * GPC_MIB),
			run(&plain, after_a_small_one, sizes[i] * GPC_MIB));
}

/* A family of sizes, and the part of the device that is live. */
struct churn {
	const char *name;
	uint64_t (*draw)(struct random *random);
	uint64_t live_percent;
	uint64_t n; /* requests; 0: N_CHURN */
};

static uint64_t draw_to_30(struct random *random)
{
	return (1 + random_below(random, 15)) * 2 * GPC_MIB;
}

static uint64_t draw_to_200(struct random *random)
{
	return GPC_MIB + random_below(random, 199 * GPC_MIB);
}

static uint64_t draw_with_large(struct random *random)
{
	return random_below(random, 20) ? draw_to_30(random)
					: (100 + random_below(random, 500)) * 2 * GPC_MIB;
}

static uint64_t draw_with_small(struct random *random)
{
	return random_below(random, 2) ? draw_to_30(random)
				       : 512 + random_below(random, 2 * GPC_MIB);
}

static uint64_t draw_gib(struct random *random)
{
	return 64 * GPC_MIB + random_below(random, 2 * GPC_GIB - 64 * GPC_MIB);
}

#define N_CHURN 10000

static const struct churn *churn;

/* Random lifetimes with the device nearly full, as the plain driver counts it; returns how many requests fit. */
static uint64_t come_and_go(const struct side *side, uint64_t seed)
{
	static gpc_devptr blocks[MAX_BLOCKS];
	static uint64_t sizes[MAX_BLOCKS];
	struct random random = random_start(seed, 1);
	uint64_t live = 0;
	uint64_t n_blocks = 0;
	uint64_t n = 0;

	for (uint64_t i = 0; i < (churn->n ? churn->n : N_CHURN); i++) {
		uint64_t size = churn->draw(&random);
		uint64_t held = gpc_round_up(size, 2 * GPC_MIB);

		while (live + held > DEVICE_BYTES / 100 * churn->live_percent) {
			uint64_t victim = random_below(&random, n_blocks);

			side->free(blocks[victim]);
			live -= sizes[victim];
			blocks[victim] = blocks[--n_blocks];
			sizes[victim] = sizes[n_blocks];
		}
		if (side->alloc(size, &blocks[n_blocks]))
			continue;
		sizes[n_blocks++] = held;
		live += held;
		n++;
	}
	free_all(side, blocks, n_blocks);
	return n;
}

/*
 * Half of the device in stripes of `size`; then requests 90 %, and all, of the free and returnable bytes in one piece.
 */
static uint64_t in_one_piece(const struct side *side, uint64_t size)
{
	static gpc_devptr blocks[MAX_BLOCKS];
	uint64_t n = DEVICE_BYTES / 2 / size;
	uint64_t available = 0;
	uint64_t total = 0;
	gpc_devptr one;

	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(side->alloc(size, &blocks[i]), GPC_OK);
	for (uint64_t i = 0; i < n; i += 3)
		side->free(blocks[i]);
	assert_int_equal(stage.drv.base.ops->mem_info(&stage.drv.base, &available, &total), GPC_OK);
	available += gpc_pool_returnable(&stage.pool);
	assert_int_equal(side->alloc(available / 10 * 9, &one), GPC_OK);
	side->free(one);
	assert_int_equal(side->alloc(available, &one), GPC_OK);
	side->free(one);
	for (uint64_t i = 0; i < n; i++)
		if (i % 3 != 0)
			side->free(blocks[i]);
	return available;
}

TEST(the_reported_free_memory_is_available_in_one_piece)
{
	static const uint64_t sizes[] = { 2, 6, 7, 64, 300 };

	for (size_t i = 0; i < N_OF(sizes); i++)
		(void)run(&ours, in_one_piece, sizes[i] * GPC_MIB);
}

/* The plain driver fails none.  Ours fails until segments that were shared before the device was full have drained. */
TEST(blocks_of_random_lifetime_fit_on_a_nearly_full_device)
{
	static const struct churn churns[] = {
		{ "2 to 30 MiB", draw_to_30, 97, 0 },
		{ "2 to 30 MiB", draw_to_30, 98, 0 },
		{ "2 to 30 MiB", draw_to_30, 99, 0 },
		{ "1 to 200 MiB", draw_to_200, 98, 0 },
		{ "1 to 200 MiB", draw_to_200, 99, 0 },
		{ "with large ones", draw_with_large, 98, 0 },
		{ "with large ones", draw_with_large, 99, 0 },
		{ "with small ones", draw_with_small, 99, 0 },
	};

	for (size_t i = 0; i < N_OF(churns); i++) {
		uint64_t failures = 0;

		churn = &churns[i];
		for (uint64_t seed = 1; seed <= 4; seed++)
			failures += run(&plain, come_and_go, seed) - run(&ours, come_and_go, seed);
		if (failures > 4 * N_CHURN / 100)
			fail_msg("%s, %llu %%: %llu failures", churn->name,
				(unsigned long long)churn->live_percent,
				(unsigned long long)failures);
	}
}

TEST(gib_blocks_of_varying_size_fit_on_a_nearly_full_device)
{
	static const struct churn gib = { "64 MiB to 2 GiB", draw_gib, 97, 1000 };

	churn = &gib;
	for (uint64_t seed = 1; seed <= 8; seed++)
		assert_int_equal(run(&ours, come_and_go, seed), gib.n);
}
