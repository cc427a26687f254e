/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metamem.h"
#include "block.h"
#include "private_record.h"

static uint32_t n_slots;

static void put(uint32_t tag, uint64_t requested, unsigned device, unsigned kind, unsigned what)
{
	const struct gpucache_block block = { .state = (uint8_t)what,
		.kind = (uint8_t)kind,
		.device = (uint16_t)device,
		.requested = requested,
		.tag = tag };

	record_block(&rec, n_slots++, &block);
}

static void live(uint32_t tag, uint64_t requested)
{
	put(tag, requested, 0, GPUCACHE_KIND_DEVICE, GPUCACHE_BLOCK_LIVE);
}

TEST(live_blocks_of_the_device_count_by_tag_biggest_first)
{
	struct gpucache_tag_holder holders[8];
	uint64_t rest = 1;

	n_slots = 0;
	live(5, 100);
	live(0, 30);
	live(7, 500);
	live(5, 200);
	put(9, 1000, 1, GPUCACHE_KIND_DEVICE, GPUCACHE_BLOCK_LIVE);
	put(9, 1000, 0, GPUCACHE_KIND_HOST, GPUCACHE_BLOCK_LIVE);
	put(9, 1000, 0, GPUCACHE_KIND_DEVICE, GPUCACHE_BLOCK_PENDING);
	live(99, 1000);
	assert_int_equal(gpc_record_top_tags(&rec, 0, 10, holders, 8, &rest), 3);
	assert_int_equal(rest, 0);
	assert_int_equal(holders[0].tag, 7);
	assert_int_equal(holders[0].bytes, 500);
	assert_int_equal(holders[1].tag, 5);
	assert_int_equal(holders[1].n_blocks, 2);
	assert_int_equal(holders[1].bytes, 300);
	assert_int_equal(holders[2].tag, 0);
	assert_int_equal(gpc_record_top_tags(&rec, 1, 10, holders, 8, &rest), 1);
	assert_int_equal(holders[0].tag, 9);
}

TEST(what_is_not_among_the_biggest_is_the_rest)
{
	struct gpucache_tag_holder holders[2];
	uint64_t rest;

	n_slots = 0;
	for (uint32_t tag = 1; tag <= 6; tag++)
		live(tag, 10 * (tag % 2 ? tag : 7 - tag));
	assert_int_equal(gpc_record_top_tags(&rec, 0, 7, holders, 2, &rest), 2);
	assert_true(holders[0].bytes == 50 && holders[1].bytes == 50);
	assert_int_equal(rest, 10 + 30 + 30 + 10);
	assert_int_equal(gpc_record_top_tags(&rec, 0, 7, NULL, 0, &rest), 0);
	assert_int_equal(rest, 180);
}

TEST(a_block_that_is_being_changed_is_left_out)
{
	struct gpucache_tag_holder holders[2];
	uint64_t rest;

	n_slots = 0;
	live(1, 10);
	live(2, 20);
	rec.blocks[1].seq |= 1;
	assert_int_equal(gpc_record_top_tags(&rec, 0, 3, holders, 2, &rest), 1);
	assert_int_equal(holders[0].tag, 1);
}

TEST(what_the_driver_took_for_itself_is_in_no_range)
{
	struct gpucache_tag_holder holders[2];
	uint64_t rest;

	n_slots = 0;
	live(1, 10);
	put(1, 300, 0, GPUCACHE_KIND_CONTEXT, GPUCACHE_BLOCK_LIVE);
	put(1, 200, 0, GPUCACHE_KIND_MODULE, GPUCACHE_BLOCK_LIVE);
	assert_int_equal(gpc_record_top_tags(&rec, 0, 3, holders, 2, &rest), 1);
	assert_int_equal(holders[0].bytes, 10);
}

TEST(without_tags_memory_or_a_recording_there_is_none)
{
	static struct gpc_record closed;
	struct gpucache_tag_holder holders[2];
	uint64_t rest = 1;

	n_slots = 0;
	live(1, 10);
	assert_int_equal(gpc_record_top_tags(&rec, 0, 0, holders, 2, &rest), 0);
	assert_int_equal(rest, 0);
	gpc_metamem_fail_at(1);
	assert_int_equal(gpc_record_top_tags(&rec, 0, 2, holders, 2, &rest), 0);
	gpc_metamem_fail_at(0);
	assert_int_equal(gpc_record_top_tags(&closed, 0, 2, holders, 2, &rest), 0);
}

TEST(tags_are_appended_and_drops_are_in_the_header)
{
	const struct gpucache_tag tag = { .size = sizeof tag, .id = 3 };
	const struct gpucache_append_head *head = record_at(GPUCACHE_REGION_TAGS, 0);

	assert_true(gpc_record_append(&rec, GPUCACHE_REGION_TAGS, &tag, sizeof tag));
	assert_int_equal(head->used, sizeof tag);
	gpc_record_tags_dropped(&rec, 12);
	assert_int_equal(rec.header->dropped_tags, 12);
}
