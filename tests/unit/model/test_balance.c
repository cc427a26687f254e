/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "model/balance.h"

static struct gpc_balance_facts all_known(void)
{
	return (struct gpc_balance_facts){
		.requested = 50,
		.live = 55,
		.pending = 3,
		.cached = 7,
		.direct = 5,
		.cached_largest = 6,
		.device_free = 10,
		.device_total = 100,
		.process = 78,
		.others = 6,
		.driver = 2,
	};
}

TEST(all_lines_add_up_to_the_total)
{
	struct gpc_balance_facts facts = all_known();
	struct gpucache_balance sheet;

	gpc_balance_settle(&facts, &sheet);
	assert_int_equal(sheet.requested, 50);
	assert_int_equal(sheet.rounding, 5);
	assert_int_equal(sheet.process_outside, 8);
	assert_int_equal(sheet.other_processes, 6);
	assert_int_equal(sheet.driver_reserve, 2);
	assert_int_equal(sheet.unattributed, 4);
	assert_int_equal(gpc_balance_taken(&sheet), 70);
	assert_int_equal(gpc_balance_sum(&sheet), 100);
	assert_int_equal(gpc_balance_difference(&sheet), 0);
}

TEST(an_unknown_line_goes_into_unattributed)
{
	struct gpc_balance_facts facts = all_known();
	struct gpucache_balance sheet;

	facts.process = facts.others = facts.driver = GPUCACHE_UNKNOWN;
	gpc_balance_settle(&facts, &sheet);
	assert_true(sheet.process_outside == GPUCACHE_UNKNOWN);
	assert_true(sheet.other_processes == GPUCACHE_UNKNOWN);
	assert_true(sheet.driver_reserve == GPUCACHE_UNKNOWN);
	assert_int_equal(sheet.unattributed, 20);
	assert_int_equal(gpc_balance_difference(&sheet), 0);
}

TEST(claims_of_others_never_exceed_what_is_left)
{
	struct gpc_balance_facts facts = all_known();
	struct gpucache_balance sheet;

	facts.others = 1000;
	gpc_balance_settle(&facts, &sheet);
	assert_int_equal(sheet.process_outside, 8);
	assert_int_equal(sheet.other_processes, 12);
	assert_int_equal(sheet.driver_reserve, 0);
	assert_int_equal(sheet.unattributed, 0);
	assert_int_equal(gpc_balance_difference(&sheet), 0);
}

TEST(books_that_pass_the_total_show_a_negative_difference)
{
	struct gpc_balance_facts facts = all_known();
	struct gpucache_balance sheet;

	facts.direct = 40;
	gpc_balance_settle(&facts, &sheet);
	assert_int_equal(sheet.direct, 40);
	assert_int_equal(sheet.process_outside, 0);
	assert_int_equal(sheet.unattributed, 0);
	assert_int_equal(gpc_balance_difference(&sheet), -15);
}

TEST(a_process_that_nvml_sees_smaller_than_our_books_is_not_negative)
{
	struct gpc_balance_facts facts = all_known();
	struct gpucache_balance sheet;

	facts.process = 1;
	gpc_balance_settle(&facts, &sheet);
	assert_int_equal(sheet.process_outside, 0);
	assert_int_equal(gpc_balance_difference(&sheet), 0);
}

TEST(an_unknown_free_line_leaves_its_bytes_unattributed)
{
	struct gpc_balance_facts facts = all_known();
	struct gpucache_balance sheet;

	facts.device_free = GPUCACHE_UNKNOWN;
	gpc_balance_settle(&facts, &sheet);
	assert_int_equal(sheet.unattributed, 14);
	assert_int_equal(gpc_balance_difference(&sheet), 0);

	facts.device_total = GPUCACHE_UNKNOWN;
	gpc_balance_settle(&facts, &sheet);
	assert_int_equal(sheet.unattributed, 0);
	assert_int_equal(gpc_balance_difference(&sheet), 0);
}

TEST(sums_saturate_and_differences_stay_in_range)
{
	struct gpucache_balance sheet = {
		.requested = UINT64_MAX - 1,
		.direct = UINT64_MAX - 1,
	};

	assert_true(gpc_balance_sum(&sheet) == UINT64_MAX);
	assert_true(gpc_balance_difference(&sheet) == INT64_MIN);
	memset(&sheet, 0, sizeof sheet);
	sheet.device_total = UINT64_MAX - 1;
	assert_true(gpc_balance_difference(&sheet) == INT64_MAX);
}

TEST(our_lines_come_first_and_all_but_two_members_are_lines)
{
	bool ours = true;

	assert_int_equal(GPC_BALANCE_LINE_COUNT, sizeof(struct gpucache_balance) / 8 - 2);
	for (size_t i = 0; i < GPC_BALANCE_LINE_COUNT; i++) {
		assert_false(gpc_balance_lines[i].ours && !ours);
		ours = gpc_balance_lines[i].ours;
		assert_int_not_equal(gpc_balance_lines[i].offset,
			offsetof(struct gpucache_balance, device_total));
		assert_int_not_equal(gpc_balance_lines[i].offset,
			offsetof(struct gpucache_balance, cached_largest));
	}
}

TEST(the_kinds_of_a_device_are_those_with_bytes_on_it)
{
	const uint64_t kind_bytes[GPUCACHE_MAX_KINDS] = {
		[GPUCACHE_KIND_MANAGED] = 1,
		[GPUCACHE_KIND_HOST] = 1,
		[GPUCACHE_KIND_POOL] = 1,
		[GPUCACHE_KIND_IPC] = 1,
		[GPUCACHE_MAX_KINDS - 1] = 1, /* of a newer writer */
	};
	unsigned int kind = GPUCACHE_KIND_NONE;

	kind = gpc_balance_next_kind(kind_bytes, kind);
	assert_int_equal(kind, GPUCACHE_KIND_MANAGED);
	assert_string_equal(gpc_kind_words(kind), "managed memory");
	kind = gpc_balance_next_kind(kind_bytes, kind);
	assert_int_equal(kind, GPUCACHE_KIND_POOL);
	kind = gpc_balance_next_kind(kind_bytes, kind);
	assert_int_equal(kind, GPUCACHE_KIND_NONE);
	assert_string_equal(gpc_kind_words(GPUCACHE_KIND_COUNT), "memory");
}
