/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/bytes.h"
#include "oom/plain.h"

TEST(the_driver_gives_whole_steps_and_packs_what_is_smaller)
{
	static const struct {
		uint64_t size;
		uint64_t plain;
	} wanted[] = {
		{ 0, 0 },
		{ 512, 512 },
		{ GPC_MIB, GPC_MIB },
		{ GPC_MIB + 512, 2 * GPC_MIB },
		{ 700 * GPC_KIB, 1 * GPC_MIB },
		{ 2 * GPC_MIB - 512, 2 * GPC_MIB },
		{ 2 * GPC_MIB, 2 * GPC_MIB },
		{ 2 * GPC_MIB + 1, 4 * GPC_MIB },
		{ 9 * GPC_MIB, 10 * GPC_MIB },
	};

	for (size_t i = 0; i < N_OF(wanted); i++)
		assert_int_equal(gpc_plain_bytes(wanted[i].size), wanted[i].plain);
}

TEST(only_live_blocks_of_our_segments_on_the_device_count)
{
	struct gpucache_block blocks[] = {
		{ .state = GPUCACHE_BLOCK_LIVE,
			.kind = GPUCACHE_KIND_DEVICE,
			.requested = 3 * GPC_MIB },
		{ .state = GPUCACHE_BLOCK_FREE,
			.kind = GPUCACHE_KIND_DEVICE,
			.requested = 3 * GPC_MIB },
		{ .state = GPUCACHE_BLOCK_LIVE,
			.kind = GPUCACHE_KIND_TENSOR,
			.requested = 1 * GPC_MIB },
		{ .state = GPUCACHE_BLOCK_LIVE,
			.kind = GPUCACHE_KIND_DEVICE,
			.device = 1,
			.requested = 3 * GPC_MIB },
		{ .state = GPUCACHE_BLOCK_LIVE,
			.kind = GPUCACHE_KIND_DEVICE,
			.segment = GPUCACHE_NO_SEGMENT,
			.requested = 3 * GPC_MIB },
		{ .seq = 1,
			.state = GPUCACHE_BLOCK_LIVE,
			.kind = GPUCACHE_KIND_DEVICE,
			.requested = 3 * GPC_MIB },
	};

	assert_int_equal(gpc_plain_live(blocks, N_OF(blocks), 0, 3 * GPC_MIB), 4 * GPC_MIB);
	/* The books know of more: some block has no record. */
	assert_int_equal(gpc_plain_live(blocks, N_OF(blocks), 0, 3 * GPC_MIB + 1), 4 * GPC_MIB);
	assert_true(gpc_plain_live(blocks, N_OF(blocks), 0, 4 * GPC_MIB) == GPUCACHE_UNKNOWN);
	assert_int_equal(gpc_plain_live(NULL, 0, 0, 0), 0);
}

static struct gpucache_block direct(uint64_t address, uint64_t size)
{
	return (struct gpucache_block){ .state = GPUCACHE_BLOCK_LIVE,
		.kind = GPUCACHE_KIND_DEVICE,
		.segment = GPUCACHE_NO_SEGMENT,
		.address = address,
		.size = size,
		.requested = size };
}

TEST(a_small_block_of_the_drivers_own_pins_its_step)
{
	struct gpucache_block blocks[] = {
		direct(100 * GPC_MIB, 256 * GPC_KIB),
		direct(100 * GPC_MIB + 512 * GPC_KIB, 256 * GPC_KIB), /* in the same step */
		direct(102 * GPC_MIB, GPC_MIB),
		direct(104 * GPC_MIB, 2 * GPC_MIB), /* a whole one */
		direct(106 * GPC_MIB, GPC_MIB),
		direct(108 * GPC_MIB, GPC_MIB),
	};
	uint64_t n_blocks;

	blocks[4].state = GPUCACHE_BLOCK_PENDING;
	blocks[5].segment = 3;
	assert_int_equal(
		gpc_plain_waste(blocks, N_OF(blocks), 0, &n_blocks), GPC_MIB + 1536 * GPC_KIB);
	assert_int_equal(n_blocks, 3);
	assert_int_equal(gpc_plain_waste(blocks, N_OF(blocks), 1, &n_blocks), 0);
	assert_int_equal(gpc_plain_waste(NULL, 0, 0, &n_blocks), 0);
}

TEST(a_large_block_of_the_drivers_own_is_rounded_up_to_whole_steps)
{
	struct gpucache_block blocks[] = {
		direct(100 * GPC_MIB, 2 * GPC_MIB + 1),
		direct(104 * GPC_MIB, 4 * GPC_MIB),
		direct(108 * GPC_MIB, GPC_MIB), /* shares its step */
		direct(110 * GPC_MIB, 3 * GPC_MIB),
	};

	blocks[3].segment = 3;
	assert_int_equal(gpc_plain_tails(blocks, N_OF(blocks), 0), 2 * GPC_MIB - 1);
	assert_int_equal(gpc_plain_tails(blocks, N_OF(blocks), 1), 0);
	for (size_t i = 0; i < N_OF(blocks); i++)
		if (blocks[i].kind == GPUCACHE_KIND_DEVICE)
			blocks[i].kind = GPUCACHE_KIND_PITCHED;
	assert_int_equal(gpc_plain_tails(blocks, N_OF(blocks), 0), 2 * GPC_MIB - 1);
}

static struct gpucache_block within(uint32_t segment, uint64_t address, uint64_t size)
{
	struct gpucache_block block = direct(address, size);

	block.segment = segment;
	block.flags = GPUCACHE_BLOCK_ARENA;
	return block;
}

TEST(a_larger_segment_without_a_tensor_is_idle)
{
	struct gpucache_block blocks[] = {
		within(1, 100 * GPC_MIB, 20 * GPC_MIB),
		within(2, 120 * GPC_MIB, 40 * GPC_MIB),
		within(3, 160 * GPC_MIB, 30 * GPC_MIB),
		within(4, 190 * GPC_MIB,
			2 * GPC_MIB),                /* its tensors may be too small for a record */
		direct(200 * GPC_MIB, 20 * GPC_MIB), /* no arena */
		{ .state = GPUCACHE_BLOCK_LIVE,
			.kind = GPUCACHE_KIND_TENSOR,
			.address = 158 * GPC_MIB + 512,
			.size = GPC_MIB },
	};
	uint32_t segment;

	assert_int_equal(gpc_plain_idle(blocks, N_OF(blocks), 0, &segment), 50 * GPC_MIB);
	assert_int_equal(segment, 3);
	blocks[5].state = GPUCACHE_BLOCK_UNUSED;
	assert_int_equal(gpc_plain_idle(blocks, N_OF(blocks), 0, &segment), 90 * GPC_MIB);
	assert_int_equal(segment, 2);
	assert_int_equal(gpc_plain_idle(blocks, N_OF(blocks), 1, &segment), 0);
	blocks[0].kind = GPUCACHE_KIND_PHYSICAL;
	assert_true(gpc_plain_idle(blocks, N_OF(blocks), 0, &segment) == GPUCACHE_UNKNOWN);
	assert_true(segment == GPUCACHE_NO_SEGMENT);
	assert_int_equal(gpc_plain_idle(NULL, 0, 0, &segment), 0);
}
