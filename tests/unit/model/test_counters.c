/* SPDX-License-Identifier: Apache-2.0 */
#include "model/counters.h"
#include "unit.h"

#define N_WORDS (sizeof(struct gpucache_counters) / sizeof(uint64_t))

union record {
	struct gpucache_counters counters;
	uint64_t words[N_WORDS];
};

TEST(additions_and_subtractions_balance)
{
	struct gpucache_counters counters = { 0 };

	gpc_counter_add(&counters.live_bytes, 512);
	gpc_counter_add(&counters.live_bytes, 1024);
	gpc_counter_sub(&counters.live_bytes, 512);
	assert_int_equal(gpc_counter_get(&counters.live_bytes), 1024);
	gpc_counter_set(&counters.live_bytes, 7);
	assert_int_equal(counters.live_bytes, 7);
}

TEST(a_peak_only_rises)
{
	struct gpucache_counters counters = { 0 };

	gpc_counter_add_peak(&counters.live_bytes, &counters.peak_live_bytes, 100);
	gpc_counter_sub(&counters.live_bytes, 60);
	gpc_counter_add_peak(&counters.live_bytes, &counters.peak_live_bytes, 10);
	assert_int_equal(counters.live_bytes, 50);
	assert_int_equal(counters.peak_live_bytes, 100);
	gpc_counter_add_peak(&counters.live_bytes, &counters.peak_live_bytes, 51);
	assert_int_equal(counters.peak_live_bytes, 101);
}

/* The row that word i of a record is of; NULL: none. */
static const struct gpc_counter *row_of(size_t i)
{
	for (unsigned row = 0; row < GPC_N_COUNTERS; row++) {
		const struct gpc_counter *counter = &gpc_counters[row];

		if (i >= counter->offset / 8 && i < counter->offset / 8 + counter->n_words)
			return counter;
	}
	return NULL;
}

static union record filled(uint64_t value)
{
	union record record;

	for (size_t i = 0; i < N_WORDS; i++)
		record.words[i] = value;
	return record;
}

TEST(every_counter_is_added_as_its_row_says)
{
	union record sum = filled(100);
	const union record less = filled(3);
	const union record more = filled(1000);

	gpc_counters_add(&sum.counters, &less.counters);
	gpc_counters_add(&sum.counters, &more.counters);
	for (size_t i = 0; i < N_WORDS; i++) {
		const struct gpc_counter *row = row_of(i);

		if (!row) /* who it is, and what is reserved */
			assert_int_equal(sum.words[i], 100);
		else
			assert_int_equal(sum.words[i], row->adds == GPC_ADDS_SUM ? 1103 : 1000);
	}
	assert_int_equal(gpc_counters[GPC_COUNTER_last_driver_malloc_ns].adds, GPC_ADDS_MAX);
}

TEST(current_counters_are_cleared_and_the_others_stay)
{
	union record record = filled(5);

	gpc_counters_clear(&record.counters, GPC_WHEN_HEAP);
	assert_int_equal(record.counters.live_bytes, 0);
	assert_int_equal(record.counters.host_bytes, 5);
	gpc_counters_clear(&record.counters, GPC_WHEN_BESIDE);
	for (size_t i = 0; i < N_WORDS; i++) {
		const struct gpc_counter *row = row_of(i);
		bool is_now = row && row->when <= GPC_WHEN_BESIDE;

		assert_int_equal(record.words[i], is_now ? 0 : 5);
	}
}

/* Where a reader shows it. */
static const char *place_of(const struct gpc_counter *counter)
{
	static const char *const places[] = { [GPC_WHEN_HEAP] = "now",
		[GPC_WHEN_BESIDE] = "now",
		[GPC_WHEN_PEAK] = "peak",
		[GPC_WHEN_EVER] = "calls" };

	return places[counter->when];
}

TEST(every_row_has_a_key_of_its_own)
{
	for (unsigned row = 0; row < GPC_N_COUNTERS; row++) {
		const struct gpc_counter *counter = &gpc_counters[row];
		bool is_array = counter->counts >= GPC_COUNTS_BYTES_BY_KIND;

		assert_true(counter->key[0]);
		assert_int_equal(counter->n_words > 1, is_array);
		for (unsigned other = 0; other < row; other++)
			if (place_of(counter) == place_of(&gpc_counters[other]))
				assert_string_not_equal(gpc_counters[other].key, counter->key);
	}
}
