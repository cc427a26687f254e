/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "oom/balance.h"

static const struct gpc_device_look look = {
	.device = 1,
	.device_free = 200,
	.device_total = 1000,
	.cached_largest = 30,
};

static const struct gpc_neighbours unknown = {
	.process_bytes = GPUCACHE_UNKNOWN,
	.others_bytes = GPUCACHE_UNKNOWN,
	.driver_bytes = GPUCACHE_UNKNOWN,
	.nvml_total_bytes = GPUCACHE_UNKNOWN,
};

static const struct gpucache_counters counters[] = {
	{ .context = 1,
		.device = 1,
		.requested_bytes = 90,
		.live_bytes = 100,
		.pending_bytes = 10,
		.cached_bytes = 40,
		.direct_bytes = 50,
		.host_bytes = 7777 },
	{ .context = 0, .device = 1, .requested_bytes = 5555 },
	{ .context = 2, .device = 0, .requested_bytes = 5555, .live_bytes = 5555 },
	{ .context = 3, .device = 1, .requested_bytes = 100, .live_bytes = 100 },
};

TEST(contexts_of_the_device_are_added_up_and_others_left_out)
{
	uint64_t kinds[GPUCACHE_MAX_KINDS];
	struct gpucache_balance sheet;

	gpc_balance_fill(counters, N_OF(counters), &look, &unknown, &sheet, kinds);
	assert_int_equal(sheet.requested, 190);
	assert_int_equal(sheet.rounding, 10);
	assert_int_equal(sheet.pending, 10);
	assert_int_equal(sheet.cached, 40);
	assert_int_equal(sheet.cached_largest, 30);
	assert_int_equal(sheet.direct, 50);
	assert_int_equal(sheet.unattributed, 500);
	assert_true(sheet.other_processes == GPUCACHE_UNKNOWN);
	assert_int_equal(gpc_balance_difference(&sheet), 0);
}

TEST(of_the_drivers_reserve_only_the_part_inside_cudas_total_counts)
{
	struct gpc_neighbours neighbours = {
		.process_bytes = 350,
		.others_bytes = 400,
		.driver_bytes = 60,
		.nvml_total_bytes = 1050,
	};
	uint64_t kinds[GPUCACHE_MAX_KINDS];
	struct gpucache_balance sheet;

	gpc_balance_fill(counters, N_OF(counters), &look, &neighbours, &sheet, kinds);
	assert_int_equal(sheet.process_outside, 50);
	assert_int_equal(sheet.other_processes, 400);
	assert_int_equal(sheet.driver_reserve, 10);
	assert_int_equal(sheet.unattributed, 40);
	assert_int_equal(gpc_balance_difference(&sheet), 0);

	neighbours.nvml_total_bytes = 1100;
	gpc_balance_fill(counters, N_OF(counters), &look, &neighbours, &sheet, kinds);
	assert_int_equal(sheet.driver_reserve, 0);

	neighbours.driver_bytes = GPUCACHE_UNKNOWN;
	gpc_balance_fill(counters, N_OF(counters), &look, &neighbours, &sheet, kinds);
	assert_true(sheet.driver_reserve == GPUCACHE_UNKNOWN);
}

TEST(kinds_of_the_device_are_added_up)
{
	struct gpucache_balance sheet;
	uint64_t kinds[GPUCACHE_MAX_KINDS];
	const struct gpucache_counters with_kinds[] = {
		{ .context = 1, .device = 1, .kind_bytes = { [GPUCACHE_KIND_ASYNC] = 5 } },
		{ .context = 2, .device = 0, .kind_bytes = { [GPUCACHE_KIND_ASYNC] = 50 } },
		{ .context = 0, .device = 1, .kind_bytes = { [GPUCACHE_KIND_ASYNC] = 500 } },
		{ .context = 3,
			.device = 1,
			.kind_bytes = { [GPUCACHE_KIND_ASYNC] = 7, [GPUCACHE_KIND_POOL] = 9 } },
	};

	memset(kinds, 0xff, sizeof kinds);
	gpc_balance_fill(with_kinds, N_OF(with_kinds), &look, &unknown, &sheet, kinds);
	for (unsigned kind = 0; kind < GPUCACHE_MAX_KINDS; kind++)
		assert_int_equal(kinds[kind], kind == GPUCACHE_KIND_ASYNC  ? 12
					      : kind == GPUCACHE_KIND_POOL ? 9
									   : 0);
}
