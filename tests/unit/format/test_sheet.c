/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "format/sheet.h"
#include "tests/unit/format/built.h"

#define GIB (UINT64_C(1) << 30)

/* A device of 16 GiB, of which 10 were free and 4 ours at the look. */
static void fill(struct recording_builder *b)
{
	builder_init(b);
	b->devices[0] = (struct gpucache_device){ .seq = 2,
		.total_bytes = 16 * GIB,
		.look_ns = builder_ns(1),
		.free_bytes = 10 * GIB,
		.ours_bytes = 4 * GIB };
	b->counters[0] = (struct gpucache_counters){ .context = 1,
		.requested_bytes = 3 * GIB,
		.live_bytes = 4 * GIB,
		.pending_bytes = GIB,
		.cached_bytes = GIB,
		.reserved_bytes = 6 * GIB,
		.n_malloc = 5 };
	b->counters[1] =
		(struct gpucache_counters){ .context = 2, .direct_bytes = GIB, .n_malloc = 7 };
	b->counters[2] = (struct gpucache_counters){
		.context = 3, .device = 1, .requested_bytes = 99 * GIB
	};
	b->counters[3] = (struct gpucache_counters){ .context = 0, .requested_bytes = 99 * GIB };
}

static bool balance_of(struct recording_builder *b, struct gpucache_balance *ret_balance)
{
	struct gpc_recording *rec = open_built(b);
	struct gpucache_device device;
	bool is_known;

	assert_true(gpc_recording_read_device(rec, 0, &device));
	is_known = gpc_recording_balance(rec, &device, ret_balance);
	assert_int_equal(gpc_recording_totals(rec, 0).sum.n_malloc, 12);
	assert_int_equal(gpc_recording_totals(rec, 0).n_contexts, 2);
	gpc_recording_close(rec);
	return is_known;
}

TEST(free_now_follows_our_books_since_the_last_look)
{
	struct gpucache_balance balance;
	struct recording_builder b;

	fill(&b);
	assert_true(balance_of(&b, &balance));
	assert_int_equal(balance.requested, 3 * GIB);
	assert_int_equal(balance.rounding, GIB);
	assert_int_equal(balance.direct, GIB);
	/* 10 free and 4 ours then; 6 reserved and 1 direct now. */
	assert_int_equal(balance.device_free, 7 * GIB);
	assert_int_equal(gpc_balance_difference(&balance), 0);
}

TEST(without_nvml_the_remainder_is_unattributed)
{
	struct gpucache_balance balance;
	struct recording_builder b;

	fill(&b);
	assert_true(balance_of(&b, &balance));
	assert_int_equal(balance.unattributed, 2 * GIB);
	assert_true(balance.process_outside == GPUCACHE_UNKNOWN);
	assert_true(balance.other_processes == GPUCACHE_UNKNOWN);
}

TEST(with_nvml_the_rest_is_divided_and_adds_up)
{
	struct gpucache_balance balance;
	struct recording_builder b;

	fill(&b);
	b.devices[0].nvml = 1;
	b.devices[0].process_bytes = 5 * GIB;
	b.devices[0].others_bytes = GIB / 2;
	b.devices[0].driver_bytes = GIB / 4;
	assert_true(balance_of(&b, &balance));
	assert_int_equal(balance.process_outside, GIB);
	assert_int_equal(balance.other_processes, GIB / 2);
	assert_int_equal(balance.driver_reserve, GIB / 4);
	assert_int_equal(balance.unattributed, GIB / 4);
	assert_int_equal(gpc_balance_difference(&balance), 0);
}

TEST(memory_invisible_to_nvml_stays_unknown)
{
	struct gpucache_balance balance;
	struct recording_builder b;

	fill(&b);
	b.devices[0].nvml = 1;
	b.devices[0].process_bytes = GPUCACHE_UNKNOWN;
	b.devices[0].others_bytes = GPUCACHE_UNKNOWN;
	b.devices[0].driver_bytes = 0;
	assert_true(balance_of(&b, &balance));
	assert_true(balance.process_outside == GPUCACHE_UNKNOWN);
	assert_int_equal(balance.unattributed, 2 * GIB);
	assert_int_equal(gpc_balance_difference(&balance), 0);
}

TEST(books_larger_than_the_device_show_as_a_difference)
{
	struct gpucache_balance balance;
	struct recording_builder b;

	fill(&b);
	/* Managed memory that is not on the device. */
	b.counters[1].direct_bytes = 20 * GIB;
	assert_true(balance_of(&b, &balance));
	assert_int_equal(balance.device_free, 0);
	assert_int_equal(gpc_balance_difference(&balance), -10 * (int64_t)GIB);
}

TEST(a_device_without_a_reading_has_no_balance)
{
	struct gpucache_balance balance;
	struct recording_builder b;

	fill(&b);
	b.devices[0].look_ns = 0;
	assert_false(balance_of(&b, &balance));
	fill(&b);
	b.devices[0].total_bytes = 0;
	assert_false(balance_of(&b, &balance));
}

TEST(the_largest_cached_piece_is_of_this_device)
{
	struct gpucache_balance balance;
	struct recording_builder b;

	fill(&b);
	b.blocks[0] = (struct gpucache_block){ .seq = 2, .state = GPUCACHE_BLOCK_FREE, .size = 30 };
	b.blocks[1] = (struct gpucache_block){ .seq = 2, .state = GPUCACHE_BLOCK_FREE, .size = 10 };
	b.blocks[2] = (struct gpucache_block){
		.seq = 2, .state = GPUCACHE_BLOCK_FREE, .size = 90, .device = 1
	};
	b.blocks[3] =
		(struct gpucache_block){ .seq = 2, .state = GPUCACHE_BLOCK_PENDING, .size = 70 };
	assert_true(balance_of(&b, &balance));
	assert_int_equal(balance.cached_largest, 30);
}

TEST(cached_neighbours_of_a_segment_count_as_one_piece)
{
	static const struct gpucache_block pieces[] = {
		{ .address = 120, .size = 40, .segment = 1 }, /* of the next segment */
		{ .address = 80, .size = 20 },
		{ .address = 100, .size = 20 },
		{ .address = 10, .size = 30 },
		{ .address = 70, .size = 10 },
	};
	struct gpucache_balance balance;
	struct recording_builder b;

	fill(&b);
	for (size_t i = 0; i < N_OF(pieces); i++) {
		b.blocks[i] = pieces[i];
		b.blocks[i].seq = 2;
		b.blocks[i].state = GPUCACHE_BLOCK_FREE;
	}
	assert_true(balance_of(&b, &balance));
	assert_int_equal(balance.cached_largest, 50);
}

TEST(without_a_free_block_the_largest_is_none_and_without_the_table_it_is_unknown)
{
	struct gpucache_balance balance;
	struct recording_builder b;

	fill(&b);
	assert_true(balance_of(&b, &balance));
	assert_int_equal(balance.cached_largest, 0);
	fill(&b);
	builder_entry(&b, GPUCACHE_REGION_BLOCKS)->kind = GPUCACHE_REGION_NONE;
	assert_true(balance_of(&b, &balance));
	assert_true(balance.cached_largest == GPUCACHE_UNKNOWN);
}

/* Every number between these two, whatever it counts. */
#define FIRST offsetof(struct gpucache_counters, requested_bytes)
#define LAST  sizeof(struct gpucache_counters)

static uint64_t *number_at(struct gpucache_counters *counters, size_t offset)
{
	return (uint64_t *)(void *)((char *)counters + offset);
}

static bool is_reserved(size_t offset)
{
	const size_t first = offsetof(struct gpucache_counters, reserved);

	return offset >= first && offset < first + sizeof((struct gpucache_counters){ 0 }.reserved);
}

TEST(every_counter_of_a_device_is_added_over_its_contexts)
{
	struct gpc_device_totals totals;
	struct recording_builder b;
	struct gpc_recording *rec;

	builder_init(&b);
	for (unsigned i = 0; i < 2; i++) {
		b.counters[i].context = 1 + i;
		for (size_t at = FIRST; at < LAST; at += sizeof(uint64_t))
			*number_at(&b.counters[i], at) = (i ? 100000 : 1) * at;
	}
	rec = open_built(&b);
	totals = gpc_recording_totals(rec, 0);
	for (size_t at = FIRST; at < LAST; at += sizeof(uint64_t)) {
		uint64_t wanted = 100001 * at;

		if (is_reserved(at))
			continue;
		if (at == offsetof(struct gpucache_counters, last_driver_malloc_ns) ||
			at == offsetof(struct gpucache_counters, one_stream_end))
			wanted = 100000 * at; /* the latest; any reason before none */
		if (*number_at(&totals.sum, at) != wanted)
			fail_msg("the counter at byte %zu is %llu, not %llu", at,
				(unsigned long long)*number_at(&totals.sum, at),
				(unsigned long long)wanted);
	}
	gpc_recording_close(rec);
}
