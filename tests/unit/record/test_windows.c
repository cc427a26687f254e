/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "record/windows.h"

static struct gpc_window_clock clk;
static struct gpc_windows windows;

static int set_up(void **state)
{
	gpc_window_clock_init(&clk);
	memset(&windows, 0, sizeof windows);
	return 0;
}

FIXTURE(set_up, NULL);

static void change(int64_t by)
{
	if (by > 0)
		gpc_windows_add(&windows, &clk, (uint64_t)by);
	else
		gpc_windows_remove(&windows, &clk, (uint64_t)-by);
}

/* `live` bytes are live on the device after an allocation of one byte by another site. */
static void other_allocates(uint64_t live)
{
	static struct gpc_windows other;

	gpc_windows_add(&other, &clk, 1);
	gpc_window_clock_note(&clk, live);
}

static uint32_t running(void)
{
	return clk.now & 0xff;
}

TEST(windows_span_the_run_whatever_its_length)
{
	for (uint64_t i = 1; i < 1000000; i++) {
		uint32_t before = running();

		other_allocates(i);
		assert_true(running() == before || running() == before + 1 ||
			    (before == GPC_WINDOWS - 1 && running() == GPC_WINDOWS / 2));
	}
	assert_true(running() >= GPC_WINDOWS / 2 && running() < GPC_WINDOWS);
	/* The highs of the windows rise with `live`, and the last one is of late. */
	for (uint32_t i = 1; i < running(); i++)
		assert_true(clk.highs[i] > clk.highs[i - 1]);
	assert_true(clk.highs[running() - 1] > 900000);
}

TEST(a_site_notes_the_windows_that_passed_it_by)
{
	change(100); /* in window 0, which it ends */
	change(50);
	change(-120); /* in window 2 */
	for (int i = 0; i < 3; i++)
		other_allocates(30);
	change(5); /* in window 5 */
	assert_int_equal(windows.lows[0], 0);
	assert_int_equal(windows.highs[0], 100);
	assert_int_equal(windows.lows[1], 100);
	assert_int_equal(windows.highs[1], 150);
	assert_int_equal(windows.lows[2], 30);
	assert_int_equal(windows.highs[2], 150);
	assert_int_equal(windows.lows[3], 30);
	assert_int_equal(windows.highs[4], 30);
	assert_int_equal(windows.low, 30);
	assert_int_equal(windows.high, 35);
	assert_int_equal(windows.live, 35);
	assert_int_equal(windows.smallest, 5);
	assert_int_equal(windows.largest, 100);
}

/* The same changes, noted at each window and only at the end, give the same windows. */
TEST(a_site_that_missed_a_union_is_in_step)
{
	struct gpc_windows each;

	change(7);
	each = windows;
	for (uint32_t i = 0; i < 100 * GPC_WINDOWS; i++) {
		other_allocates(7);
		gpc_windows_reach(&each, &clk);
	}
	gpc_windows_reach(&windows, &clk);
	assert_memory_equal(&each, &windows, sizeof each);
	assert_int_equal(windows.lows[0], 0);
	for (uint32_t i = 1; i < running(); i++)
		assert_int_equal(windows.lows[i], 7);
}

TEST(the_usual_is_what_was_live_before_the_last_windows)
{
	assert_true(gpc_window_clock_usual(&clk) == UINT64_MAX);
	for (int step = 0; step < 400; step++) {
		for (uint64_t level = 100; level <= 500; level += 100)
			other_allocates(level);
		clk.freed += 5;
	}
	assert_int_equal(gpc_window_clock_usual(&clk), 500);
	other_allocates(3000); /* a step that is unlike those before */
	assert_int_equal(gpc_window_clock_usual(&clk), 500);
}

static void usual_steps(int n)
{
	for (int step = 0; step < n; step++) {
		for (uint64_t level = 100; level <= 500; level += 100)
			other_allocates(level);
		clk.freed += 5;
	}
}

TEST(a_spike_of_many_windows_is_not_usual)
{
	usual_steps(400);
	for (uint64_t level = 30000; level <= 60000; level += 30000) {
		for (int i = 0; i < 400; i++)
			other_allocates(level + (uint64_t)i);
		clk.freed++;
	}
	assert_int_equal(gpc_window_clock_usual(&clk), 500);
}

/* Each step fills a window, and every fourth needs more. */
TEST(steps_of_varied_sizes_have_a_usual_level)
{
	for (int step = 0; step < 22; step++) {
		for (uint64_t i = 0; i < 1000; i++)
			other_allocates(step % 4 ? 100 : 500);
		clk.freed += 100;
		if (step >= 18)
			assert_int_equal(gpc_window_clock_usual(&clk), 500);
	}
}

TEST(what_rises_and_frees_as_usual_is_no_spike)
{
	usual_steps(400);
	for (uint64_t level = 500; level < 2500; level++) {
		other_allocates(level);
		clk.freed += level % 2;
	}
	assert_true(gpc_window_clock_usual(&clk) == UINT64_MAX);
}

TEST(what_only_rises_has_no_usual_level)
{
	for (uint64_t i = 1; i < 5000; i++)
		other_allocates(i);
	assert_true(gpc_window_clock_usual(&clk) == UINT64_MAX);
}
