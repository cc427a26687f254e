/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "private_record.h"

#define MS UINT64_C(1000000)

static const struct gpucache_history_head *head_of(uint32_t device)
{
	return record_at(GPUCACHE_REGION_HISTORY, device);
}

static const struct gpucache_point *points_of(const struct gpucache_history_head *head)
{
	return (const struct gpucache_point *)(const void *)(head + 1) +
	       (size_t)head->live_buffer * head->max_points;
}

static const uint64_t *pending_of(const struct gpucache_history_head *head)
{
	const struct gpucache_point *points = (const void *)(head + 1);
	const uint64_t *pending = (const void *)(points + (size_t)2 * head->max_points);

	return pending + (size_t)head->live_buffer * head->max_points;
}

static uint64_t start(void)
{
	return rec.header->start_monotonic_ns;
}

TEST(a_device_without_points_is_marked_unused)
{
	assert_int_equal(head_of(0)->device, -1);
	gpc_record_history(&rec, 1, start(), 1, 2, 0, 3);
	assert_int_equal(head_of(0)->device, -1);
	assert_int_equal(head_of(1)->device, 1);
}

TEST(points_of_one_interval_are_one_with_the_highest_values)
{
	const struct gpucache_point *points;

	gpc_record_history(&rec, 0, start() + 10, 5, 60, 3, 700);
	gpc_record_history(&rec, 0, start() + 20, 50, 6, 9, 70);
	gpc_record_history(&rec, 0, start() + MS, 1, 1, 0, 1);
	points = points_of(head_of(0));
	assert_int_equal(head_of(0)->n_points[0], 2);
	assert_int_equal(points[0].time_ns, start());
	assert_int_equal(points[0].requested_bytes, 50);
	assert_int_equal(points[0].live_bytes, 60);
	assert_int_equal(points[0].reserved_bytes, 700);
	assert_int_equal(points[1].time_ns, start() + MS);
	assert_int_equal(pending_of(head_of(0))[0], 9);
	assert_int_equal(pending_of(head_of(0))[1], 0);
}

TEST(times_before_the_start_or_out_of_order_do_no_harm)
{
	gpc_record_history(&rec, 0, 0, 1, 1, 0, 1);
	gpc_record_history(&rec, 0, start() + 9 * MS, 2, 2, 0, 2);
	gpc_record_history(&rec, 0, start() + 3 * MS, 7, 7, 0, 7);
	assert_int_equal(head_of(0)->n_points[0], 2);
	assert_int_equal(points_of(head_of(0))[1].live_bytes, 7);
}

/* Tells n points, `gap` apart, with one high one; the high one must survive any thinning. */
static void check_thinning(uint32_t n, uint64_t gap, uint32_t high)
{
	const struct gpucache_history_head *head = head_of(0);
	const struct gpucache_point *points;
	uint64_t highest = 0;
	bool is_found = false;

	for (uint32_t i = 0; i < n; i++)
		gpc_record_history(&rec, 0, start() + i * gap, i == high ? 1000000 : 5, 5,
			i == high ? 77 : 1, 5);
	points = points_of(head);
	assert_true(head->n_points[head->live_buffer] <= head->max_points);
	assert_true(head->n_points[head->live_buffer] >= 2);
	for (uint32_t i = 0; i < head->n_points[head->live_buffer]; i++) {
		uint64_t time = start() + high * gap;

		if (points[i].requested_bytes > highest)
			highest = points[i].requested_bytes;
		is_found |= points[i].requested_bytes == 1000000 && points[i].time_ns <= time &&
			    time < points[i].time_ns + head->interval_ns &&
			    pending_of(head)[i] == 77;
		if (i > 0)
			assert_true(points[i].time_ns > points[i - 1].time_ns);
	}
	assert_int_equal(highest, 1000000);
	assert_true(is_found);
}

TEST(thinning_keeps_the_highest_value_and_its_time)
{
	for (uint32_t high = 0; high < 5000; high += 611) {
		check_thinning(5000, MS, high);
		close_private(state);
		open_private(state);
	}
}

TEST(a_long_run_with_rare_points_is_thinned_too)
{
	/* A point an hour for 10 years: neighbours only merge after many doublings. */
	check_thinning(87600, 3600 * 1000 * MS, 777);
	assert_true(head_of(0)->interval_ns > 3600 * 1000 * MS);
}
