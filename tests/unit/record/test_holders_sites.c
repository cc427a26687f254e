/* SPDX-License-Identifier: Apache-2.0 */
#include "private_record.h"

#include "base/metamem.h"

static const struct gpc_share share = { 100, 1 };

TEST(a_stack_has_a_record_on_each_device_that_it_used)
{
	gpc_record_site_add(&rec, 0, 40, share, 1);
	gpc_record_site_add(&rec, 1, 40, share, 2);
	gpc_record_site_add(&rec, 1, 40, share, 3);
	gpc_record_site_add(&rec, 0, 7, share, 4);
	gpc_record_site_remove(&rec, 1, 40, share);
	assert_int_equal(gpc_record_site_end(&rec), 4);
	assert_true(rec.sites[1].stack == 40 && rec.sites[1].device == 0);
	assert_true(rec.sites[2].stack == 40 && rec.sites[2].device == 1);
	assert_true(rec.sites[3].stack == 7 && rec.sites[3].device == 0);
	assert_int_equal(rec.sites[1].live_bytes, 100);
	assert_int_equal(rec.sites[2].live_bytes, 100);
	assert_int_equal(rec.sites[2].total_blocks, 2);
	assert_int_equal(rec.sites[2].first_ns, 2);
	assert_int_equal(rec.sites[0].stack, 0);
}

TEST(a_pair_that_finds_no_room_is_counted_once)
{
	uint32_t n = rec.n_sites;

	for (uint32_t stack = 1; stack < n; stack++)
		gpc_record_site_add(&rec, 1, stack, share, 1);
	assert_int_equal(gpc_record_site_end(&rec), n);
	assert_int_equal(rec.header->dropped_sites, 0);
	gpc_record_site_add(&rec, 0, 5, share, 1);
	gpc_record_site_add(&rec, 0, 5, share, 1);
	gpc_record_site_remove(&rec, 0, 5, share);
	assert_int_equal(rec.header->dropped_sites, 1);
	assert_int_equal(gpc_record_site_end(&rec), n);
	gpc_record_site_add(&rec, 1, 5, share, 1);
	assert_int_equal(rec.sites[5].live_blocks, 2);
}

TEST(without_memory_for_the_table_nothing_is_counted)
{
	struct gpc_record_params params = { .is_private = true, .rank = -1 };
	struct gpc_record other;

	gpc_metamem_fail_at(2);
	assert_int_equal(gpc_record_open(&other, &params), GPC_OK);
	gpc_metamem_fail_at(0);
	gpc_record_site_add(&other, 0, 5, share, 1);
	gpc_record_site_remove(&other, 0, 5, share);
	assert_int_equal(gpc_record_site_end(&other), 1);
	gpc_record_close(&other);
}
