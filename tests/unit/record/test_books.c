/* SPDX-License-Identifier: Apache-2.0 */
#include "block.h"
#include "private_record.h"

TEST(a_segment_is_stored_and_taken_away)
{
	struct gpucache_segment segment = {
		.state = 1, .pool = 1, .device = 1, .address = 512, .size = 1024, .context = 3
	};
	const struct gpucache_segment *slot = record_at(GPUCACHE_REGION_SEGMENTS, 7);

	gpc_record_segment(&rec, 7, &segment);
	assert_int_equal(slot->seq, 2);
	segment.seq = 2;
	assert_memory_equal(slot, &segment, sizeof segment);
	gpc_record_segment(&rec, 7, &(struct gpucache_segment){ .state = 0 });
	assert_int_equal(slot->state, 0);
	assert_int_equal(slot->seq, 4);
}

TEST(a_segment_beyond_the_table_is_counted)
{
	const struct gpucache_segment segment = { .state = 1 };

	gpc_record_segment(&rec, rec.n_segments, &segment);
	gpc_record_segment(&rec, rec.n_segments, &(struct gpucache_segment){ .state = 0 });
	assert_int_equal(rec.header->dropped_segments, 1);
}

TEST(the_end_of_the_blocks_is_behind_the_last_slot_in_use)
{
	const struct gpucache_block block = { .state = GPUCACHE_BLOCK_LIVE };

	assert_int_equal(gpc_record_block_end(&rec), 0);
	record_block(&rec, 9, &block);
	record_block(&rec, 4, &block);
	record_block(&rec, 9, &(struct gpucache_block){ .state = GPUCACHE_BLOCK_UNUSED });
	assert_int_equal(gpc_record_block_end(&rec), 10);
	record_block(&rec, rec.n_blocks, &block);
	assert_int_equal(gpc_record_block_end(&rec), 10);
}

TEST(a_device_keeps_its_ordinal)
{
	const struct gpucache_device device = { .ordinal = 9, .total_bytes = 80 };
	const struct gpucache_device *slot = record_at(GPUCACHE_REGION_DEVICES, 1);

	assert_int_equal(slot->ordinal, -1);
	gpc_record_device(&rec, 1, &device);
	assert_int_equal(slot->ordinal, 1);
	assert_int_equal(slot->total_bytes, 80);
	assert_int_equal(slot->seq, 2);
}

TEST(contexts_get_slots_of_their_own)
{
	uint32_t a;
	uint32_t b;
	struct gpucache_counters *first = gpc_record_counters_take(&rec, 0x10, 1, 0, &a);
	struct gpucache_counters *second = gpc_record_counters_take(&rec, 0x20, 2, 1, &b);

	assert_int_equal(a, 0);
	assert_int_equal(b, 1);
	assert_ptr_equal(first, record_at(GPUCACHE_REGION_COUNTERS, 0));
	assert_int_equal(first->context, 0x10);
	assert_int_equal(second->generation, 2);
	assert_int_equal(second->device, 1);
}

TEST(no_context_gets_no_slot)
{
	uint32_t index = 0;

	assert_null(gpc_record_counters_take(&rec, 0, 1, 0, &index));
	assert_int_equal(index, GPC_RECORD_NO_COUNTERS);
}

TEST(a_retired_context_keeps_its_calls_until_all_slots_were_used)
{
	struct gpucache_counters *counters;
	uint32_t index;

	for (uint32_t i = 0; i < GPUCACHE_MAX_CONTEXTS; i++) {
		counters = gpc_record_counters_take(&rec, 1 + i, 1, i % 2, &index);
		assert_int_equal(index, i);
		counters->n_malloc = 100 + i;
		counters->live_bytes = 5;
		counters->host_bytes = 6;
		counters->peak_live_bytes = 50;
		if (i == 4 || i == 7)
			gpc_record_counters_retire(&rec, index);
	}
	counters = record_at(GPUCACHE_REGION_COUNTERS, 7);
	assert_int_equal(counters->live_bytes, 0);
	assert_int_equal(counters->host_bytes, 0);
	assert_int_equal(counters->n_malloc, 107);
	assert_int_equal(counters->peak_live_bytes, 50);
	/* Device 1: slot 7 fits better than slot 4.  Its calls go on. */
	counters = gpc_record_counters_take(&rec, 0x99, 2, 1, &index);
	assert_int_equal(index, 7);
	assert_int_equal(counters->n_malloc, 107);
	assert_int_equal(counters->context, 0x99);
	counters = gpc_record_counters_take(&rec, 0x98, 2, 1, &index);
	assert_int_equal(index, 4);
	assert_null(gpc_record_counters_take(&rec, 0x97, 2, 1, &index));
	assert_int_equal(index, GPC_RECORD_NO_COUNTERS);
	gpc_record_counters_retire(&rec, GPC_RECORD_NO_COUNTERS);
}

/* Between the two lies what is held now, then the peaks; the calls follow. */
TEST(what_a_retired_context_held_is_gone_and_what_it_did_is_not)
{
	const size_t words = sizeof(struct gpucache_counters) / sizeof(uint64_t);
	struct gpucache_counters *counters;
	uint32_t index;

	counters = gpc_record_counters_take(&rec, 0x10, 1, 0, &index);
	for (size_t i = offsetof(struct gpucache_counters, requested_bytes) / sizeof(uint64_t);
		i < words; i++)
		((uint64_t *)(void *)counters)[i] = 5;
	gpc_record_counters_retire(&rec, index);
	for (const uint64_t *held = &counters->requested_bytes; held <= &counters->host_bytes;
		held++)
		assert_int_equal(*held, 0);
	for (unsigned kind = 0; kind < GPUCACHE_MAX_KINDS; kind++)
		assert_int_equal(counters->kind_bytes[kind], 0);
	assert_int_equal(counters->n_blocks, 0);
	assert_int_equal(counters->n_segments, 0);
	for (const uint64_t *kept = &counters->peak_requested_bytes;
		kept <= &counters->last_driver_malloc_ns; kept++)
		assert_int_equal(*kept, 5);
	for (unsigned rung = 0; rung < GPUCACHE_MAX_RUNGS; rung++)
		assert_int_equal(counters->n_rescued_by[rung], 5);
}
