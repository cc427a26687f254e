/* SPDX-License-Identifier: Apache-2.0 */
#include "private_record.h"

static const struct gpucache_peak *peak_of(uint32_t device)
{
	const struct gpucache_peak *a = record_at(GPUCACHE_REGION_PEAKS, 2 * device);
	const struct gpucache_peak *b = record_at(GPUCACHE_REGION_PEAKS, 2 * device + 1);

	return a->number > b->number ? a : b;
}

TEST(the_first_bytes_are_a_peak)
{
	gpc_record_peak(&rec, 1, 77, 100, 512, 4096);
	assert_int_equal(peak_of(0)->number, 0);
	assert_int_equal(peak_of(1)->number, 1);
	assert_int_equal(peak_of(1)->device, 1);
	assert_int_equal(peak_of(1)->time_ns, 77);
	assert_int_equal(peak_of(1)->requested_bytes, 100);
	assert_int_equal(peak_of(1)->live_bytes, 512);
	assert_int_equal(peak_of(1)->reserved_bytes, 4096);
	assert_int_equal(peak_of(1)->seq % 2, 0);
}

TEST(nothing_is_no_peak)
{
	gpc_record_peak(&rec, 0, 1, 0, 0, 4096);
	assert_int_equal(peak_of(0)->number, 0);
}

TEST(a_peak_counts_from_one_percent_on)
{
	gpc_record_peak(&rec, 0, 1, 1, 1000000, 1);
	gpc_record_peak(&rec, 0, 2, 1, 1010000, 1);
	assert_int_equal(peak_of(0)->number, 1);
	gpc_record_peak(&rec, 0, 3, 1, 1010001, 1);
	assert_int_equal(peak_of(0)->number, 2);
	assert_int_equal(peak_of(0)->live_bytes, 1010001);
	gpc_record_peak(&rec, 0, 4, 1, 5, 1);
	assert_int_equal(peak_of(0)->number, 2);
}

TEST(a_big_peak_counts_from_64_mib_on)
{
	gpc_record_peak(&rec, 0, 1, 1, 100 * GPC_GIB, 1);
	gpc_record_peak(&rec, 0, 2, 1, 100 * GPC_GIB + 64 * GPC_MIB - 1, 1);
	assert_int_equal(peak_of(0)->number, 1);
	gpc_record_peak(&rec, 0, 3, 1, 100 * GPC_GIB + 64 * GPC_MIB, 1);
	assert_int_equal(peak_of(0)->number, 2);
}

TEST(peaks_use_their_two_slots_in_turn)
{
	const struct gpucache_peak *slots = record_at(GPUCACHE_REGION_PEAKS, 0);

	for (uint64_t i = 1; i <= 9; i++) {
		gpc_record_peak(&rec, 0, i, i, i * 1000, i);
		assert_int_equal(peak_of(0)->number, i);
	}
	assert_int_equal(slots[0].number + slots[1].number, 8 + 9);
}

TEST(the_biggest_holders_come_first_and_the_rest_is_summed)
{
	struct gpucache_counters *counters;
	const struct gpucache_peak *peak;
	uint32_t index;
	uint64_t total = 0;

	counters = gpc_record_counters_take(&rec, 1, 1, 0, &index);
	for (uint32_t i = 1; i <= 100; i++) {
		uint64_t bytes = 1000 + (i * 37) % 101;

		gpc_record_site_add(&rec, 0, i, (struct gpc_share){ bytes, 1 }, i);
		gpc_record_site_add(&rec, 0, i, (struct gpc_share){ bytes, 1 }, i);
		total += 2 * bytes;
	}
	gpc_record_site_add(&rec, 0, 101, (struct gpc_share){ 5000, 1 }, 1);
	gpc_record_site_remove(&rec, 0, 101, (struct gpc_share){ 5000, 1 });
	counters->requested_bytes = total;
	counters->direct_bytes = 333; /* without a stack */
	gpc_record_peak(&rec, 0, 1, total + 333, total + 333, total);
	peak = peak_of(0);
	assert_int_equal(peak->n_holders, GPUCACHE_MAX_HOLDERS);
	assert_int_equal(peak->n_sites, 100);
	for (uint32_t i = 0; i < peak->n_holders; i++) {
		assert_int_equal(peak->holders[i].n_blocks, 2);
		assert_int_equal(
			peak->holders[i].bytes, 2 * (1000 + (peak->holders[i].stack * 37) % 101));
		if (i > 0)
			assert_true(peak->holders[i].bytes <= peak->holders[i - 1].bytes);
		total -= peak->holders[i].bytes;
	}
	assert_int_equal(peak->rest_bytes, total + 333);
	/* The 64 biggest of 1000..1100, each once. */
	assert_true(peak->holders[63].bytes >= 2 * (1100 - 65));
}

TEST(few_holders_and_no_room_are_fine)
{
	struct gpucache_holder holder;
	uint32_t n_sites = 9;
	uint64_t rest = 9;

	assert_int_equal(gpc_record_top_holders(&rec, 0, &holder, 1, &n_sites, &rest), 0);
	assert_int_equal(n_sites, 0);
	assert_int_equal(rest, 0);
	gpc_record_site_add(&rec, 0, 5, (struct gpc_share){ 10, 1 }, 1);
	gpc_record_site_add(&rec, 0, 9, (struct gpc_share){ 20, 1 }, 1);
	assert_int_equal(gpc_record_top_holders(&rec, 0, &holder, 1, &n_sites, &rest), 1);
	assert_int_equal(holder.stack, 9);
	assert_int_equal(n_sites, 2);
	assert_int_equal(gpc_record_top_holders(&rec, 0, NULL, 0, &n_sites, &rest), 0);
	assert_int_equal(n_sites, 2);
}

TEST(each_device_has_holders_and_a_rest_of_its_own)
{
	struct gpucache_holder holders[4];
	struct gpucache_counters *first;
	struct gpucache_counters *second;
	uint32_t n_sites;
	uint32_t index;
	uint64_t rest;

	first = gpc_record_counters_take(&rec, 1, 1, 0, &index);
	second = gpc_record_counters_take(&rec, 2, 1, 1, &index);
	gpc_record_site_add(&rec, 0, 7, (struct gpc_share){ 1000, 3 }, 1);
	gpc_record_site_add(&rec, 1, 7, (struct gpc_share){ 20, 1 }, 1);
	gpc_record_site_add(&rec, 1, 8, (struct gpc_share){ 30, 2 }, 1);
	first->requested_bytes = 1100;
	second->direct_bytes = 51;
	assert_int_equal(gpc_record_top_holders(&rec, 0, holders, 4, &n_sites, &rest), 1);
	assert_true(holders[0].stack == 7 && holders[0].bytes == 1000 && holders[0].n_blocks == 3);
	assert_true(n_sites == 1 && rest == 100);
	assert_int_equal(gpc_record_top_holders(&rec, 1, holders, 4, &n_sites, &rest), 2);
	assert_true(holders[0].stack == 8 && holders[0].bytes == 30);
	assert_true(holders[1].stack == 7 && holders[1].bytes == 20);
	assert_true(n_sites == 2 && rest == 1);
	gpc_record_peak(&rec, 1, 1, 51, 51, 51);
	assert_true(peak_of(1)->n_holders == 2 && peak_of(1)->rest_bytes == 1);
	assert_int_equal(gpc_record_top_holders(&rec, 2, holders, 4, &n_sites, &rest), 0);
}
